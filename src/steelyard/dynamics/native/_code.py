"""Machine code from LLVM text, compiled for this processor and cached on disk.

The stored code is executed, so the store returns only code that this user wrote. Every object carries a keyed hash of
itself and of its key (the text it was compiled from, the processor, the versions), made with a secret that only this
user can read; the folders and files must belong to this user and be closed to others. Anything else is compiled again.
Races, read-only folders and broken files cost time, but never affect a result.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import threading
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.ground.atomic_files import leftovers
from steelyard.ground.files import write_whole
from steelyard.ground.user_files import (
    SEAL_BYTES,
    NoSecretError,
    NotOursError,
    cache_folder,
    check_own_folder,
    make_seal,
    read_own_file,
    user_secret,
)

if TYPE_CHECKING:
    import llvmlite.binding as llvm


_MAGIC = b"steelyard-object-2\n"
_HEAD = len(_MAGIC) + SEAL_BYTES
_warned: set[str] = set()


class CacheWarning(UserWarning):
    """The cache of compiled code is unusable; results are correct, only the start is slower."""


def read_code(key: str) -> bytes | None:
    """Return the object stored under a key; None, with a warning, if it is incomplete or not this user's."""
    path = _path(key)
    try:
        check_own_folder(path.parent)
        content = read_own_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _warn(f"The cache of compiled code at {path.parent} is not readable ({error.strerror}); compiling again.")
        return None
    except NotOursError as why:
        _warn(f"The cache of compiled code is not used: {why}.")
        return None
    secret = _secret()
    if secret is None:
        return None
    body = content[_HEAD:]
    if not hmac.compare_digest(content[:_HEAD], _MAGIC + make_seal(secret, _MAGIC, key, body)):
        _warn(f"The compiled code in {path} is damaged or was not written by this user; compiling again.")
        return None
    return body


def write_code(key: str, body: bytes) -> None:
    """Store an object: write a temporary file and rename it, so that racing processes see only complete files."""
    path = _path(key)
    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir(mode=0o700)
        check_own_folder(path.parent)
        secret = _secret()
        if secret is None:
            return
        for left in leftovers(path.parent):
            left.path.unlink()
        write_whole(path, _MAGIC + make_seal(secret, _MAGIC, key, body) + body, private=True)
    except OSError as error:
        _warn(
            f"Compiled code cannot be stored in {path.parent} ({error.strerror}); "
            "set STEELYARD_CACHE to a writable folder."
        )
    except NotOursError as why:
        _warn(f"The cache of compiled code is not used: {why}.")


def _path(key: str) -> Path:
    return cache_folder() / "code" / f"{key}.o"


def _secret() -> bytes | None:
    """Return this user's secret; None, with a warning, if it cannot be stored."""
    try:
        return user_secret()
    except NoSecretError as why:
        if why.unwritable:
            _warn(
                f"Compiled code is not stored, since {why}; set STEELYARD_CONFIG to a writable folder."
            )  # fmt: skip
        else:
            _warn(f"The cache of compiled code is not used: {why}.")
    return None


def _warn(message: str) -> None:
    # Once per process and message, even in a batch over ten thousand logs.
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
            body = read_code(key)
            if body is None:
                body = _compile(text, machine, optimise)
                write_code(key, body)
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
