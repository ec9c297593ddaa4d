"""Machine code from LLVM text, compiled for this very processor and kept on disk."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
import warnings
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

if TYPE_CHECKING:
    import llvmlite.binding as llvm

# The store of compiled code on disk: safe against races, read-only folders and broken files.


_MAGIC = b"steelyard-object-1\n"
_warned: set[str] = set()


class CacheWarning(UserWarning):
    """The cache of compiled code could not be used; results are right, only the start is slower."""


def cache_folder() -> Path:
    """Where compiled code is kept: $STEELYARD_CACHE, or the user's cache folder."""
    chosen = os.environ.get("STEELYARD_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("steelyard"))


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read(key: str) -> bytes | None:
    """The object stored under a key, or None; a file that is not whole is reported and passed over."""
    path = _path(key)
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _warn(f"The cache of compiled code at {path.parent} cannot be read ({error.strerror}); compiling again.")
        return None
    head = len(_MAGIC) + 32
    body = content[head:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : head] != hashlib.sha256(body).digest():
        _warn(f"The compiled code in {path} is damaged; compiling again and replacing it.")
        return None
    return body


def write(key: str, body: bytes) -> None:
    """Store an object whole: written aside, then renamed, so that racing processes only ever see complete files."""
    path = _path(key)
    name = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as aside:
            name = aside.name
            aside.write(_MAGIC + hashlib.sha256(body).digest() + body)
        os.replace(name, path)
    except OSError as error:
        if name:
            with contextlib.suppress(OSError):
                os.unlink(name)
        _warn(
            f"Compiled code cannot be kept in {path.parent} ({error.strerror}); "
            "set STEELYARD_CACHE to a folder that can be written."
        )


def _path(key: str) -> Path:
    return cache_folder() / "native" / f"{key}.o"


def _warn(message: str) -> None:
    # Once per process and message: a batch over ten thousand logs must not print ten thousand lines.
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, CacheWarning, stacklevel=3)


_lock = threading.Lock()


@cache
def _initialise() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _target_machine() -> llvm.TargetMachine:
    # A new one each time: an execution engine takes its target machine with it when it goes.
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
    import llvmlite.binding as llvm

    host = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} {llvm.get_process_triple()}"
    return f"{host} llvm {llvm.llvm_version_info} llvmlite {version('llvmlite')} steelyard {version('steelyard')}"


class Code:
    """Loaded machine code; it lives as long as this object."""

    def __init__(self, text: str, optimise: bool = False) -> None:
        import llvmlite.binding as llvm

        self._addresses: dict[str, int] = {}
        # LLVM's global state is not safe to enter from two threads at once.
        with _lock:
            machine = _target_machine()
            key = digest(text, str(optimise), _machine_key())
            body = read(key)
            if body is None:
                body = _compile(text, machine, optimise)
                write(key, body)
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(body))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        # Looking a symbol up takes LLVM 0.2 ms, more than a small job.
        if name not in self._addresses:
            self._addresses[name] = int(self._engine.get_function_address(name))
        return self._addresses[name]


def _compile(text: str, machine: llvm.TargetMachine, optimise: bool) -> bytes:
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text)
    module.verify()
    if optimise:  # loops gain from LLVM's passes; straight-line code is already as short as it gets
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = True
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))
