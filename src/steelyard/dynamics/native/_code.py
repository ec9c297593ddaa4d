"""Machine code from LLVM text, compiled for this processor and cached on disk."""

from __future__ import annotations

import hashlib
import threading
from functools import cache
from typing import TYPE_CHECKING

from steelyard.dynamics.native import _store

if TYPE_CHECKING:
    import llvmlite.binding as llvm

_lock = threading.Lock()


@cache
def _initialise() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _target_machine() -> llvm.TargetMachine:
    # A new one each time: an execution engine deletes its target machine with itself.
    import llvmlite.binding as llvm

    _initialise()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True)


@cache
def vector_width() -> int:
    """Doubles in a vector register of this processor."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 8
    return 4 if features.get("avx") else 2


@cache
def _machine_key() -> str:
    from importlib.metadata import version  # a slow import, needed only for compiling

    import llvmlite.binding as llvm

    host = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} {llvm.get_process_triple()}"
    return f"{host} llvm {llvm.llvm_version_info} llvmlite {version('llvmlite')} steelyard {version('steelyard')}"


class Code:
    """Loaded machine code; it lives as long as this object."""

    def __init__(self, text: str, optimise: bool = False) -> None:
        import llvmlite.binding as llvm

        self._addresses: dict[str, int] = {}
        # LLVM's global state is not thread-safe.
        with _lock:
            machine = _target_machine()
            key = hashlib.sha256("\0".join((text, str(optimise), _machine_key())).encode()).hexdigest()
            body = _store.read(key)
            if body is None:
                body = _compile(text, machine, optimise)
                _store.write(key, body)
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(body))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        # LLVM needs 0.2 ms to look up a symbol, more than a small job takes.
        if name not in self._addresses:
            self._addresses[name] = int(self._engine.get_function_address(name))
        return self._addresses[name]


def _compile(text: str, machine: llvm.TargetMachine, optimise: bool) -> bytes:
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text)
    module.verify()
    if optimise:  # loops gain from LLVM's passes; straight-line code is already optimal
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = True
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))
