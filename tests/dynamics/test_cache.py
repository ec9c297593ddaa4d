"""Compiled code on disk survives races, damage and read-only folders; code from other users is never run."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import trace
from steelyard.dynamics.native import _code
from steelyard.dynamics.native.drivers import driver
from steelyard.ground.user_files import forget_secrets, make_seal


def double_of(tag: float) -> Evaluator:
    """A tiny function that no other test compiles (the tag is part of its code)."""
    return Evaluator(trace("double", {"x": 1}, lambda x: {(0,): 2.0 * x[0] + tag}, (1,)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    driver("dense")  # load the shared loops first; these tests are about single functions
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("STEELYARD_CONFIG", str(tmp_path / "config"))
    monkeypatch.setattr(_code, "_warned", set())
    return tmp_path / "cache" / "code"


def test_code_is_stored_and_loaded_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _ = double_of(1.0).kernel
    assert len(list(folder.glob("*.o"))) == 1
    monkeypatch.setattr("steelyard.dynamics.native._code._compile", lambda *_: pytest.fail("compiled again"))
    again = double_of(1.0)
    _ = again.kernel
    assert again({"x": [3.0]}).tolist() == [7.0]


@pytest.mark.parametrize("damage", [b"", b"rubbish", "cut", "flip"])
def test_damaged_code_is_reported_and_replaced(folder: Path, damage: bytes | str) -> None:
    _ = double_of(2.0).kernel
    (file,) = folder.glob("*.o")
    whole = file.read_bytes()
    changed = {"cut": whole[:-10], "flip": whole[:-1] + bytes([whole[-1] ^ 1])}
    file.write_bytes(changed[damage] if isinstance(damage, str) else damage)
    evaluator = double_of(2.0)
    with pytest.warns(_code.CacheWarning, match="damaged"):
        _ = evaluator.kernel
    assert evaluator({"x": [3.0]}).tolist() == [8.0]
    assert file.read_bytes() == whole


# ---------------------------------------------------------------- code of other users is never run


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that were compiled instead of loaded from disk."""
    texts: list[str] = []
    honest = _code._compile

    def watched(text: str, *others: Any) -> bytes:
        texts.append(text)
        return honest(text, *others)

    monkeypatch.setattr(_code, "_compile", watched)
    return texts


def test_exchanged_files_are_not_run(folder: Path, compiled: list[str]) -> None:
    for tag in (10.0, 20.0):
        _ = double_of(tag).kernel
    one, other = (p.read_bytes() for p in sorted(folder.glob("*.o")))
    for path, content in zip(sorted(folder.glob("*.o")), (other, one), strict=True):
        path.write_bytes(content)
    compiled.clear()
    for tag in (10.0, 20.0):
        evaluator = double_of(tag)
        with pytest.warns(_code.CacheWarning, match="not written by this user"):
            _ = evaluator.kernel
        assert evaluator({"x": [3.0]}).tolist() == [6.0 + tag]
    assert len(compiled) == 2


@pytest.mark.parametrize("forged", ["plain hash", "old format", "another's secret"])
def test_a_forged_file_is_not_run(folder: Path, compiled: list[str], forged: str) -> None:
    """Its body is valid machine code of another function, but its hash is wrong."""
    _ = double_of(30.0).kernel
    (file,) = folder.glob("*.o")
    body = file.read_bytes()[len(_code._MAGIC) + 32 :]
    file.unlink()
    _ = double_of(31.0).kernel
    (file,) = folder.glob("*.o")
    plain = hashlib.sha256(body).digest()
    file.write_bytes({
        "plain hash": _code._MAGIC + plain + body,
        "old format": b"steelyard-object-1\n" + plain + body,
        "another's secret": _code._MAGIC + make_seal(b"x" * 32, _code._MAGIC, file.stem, body) + body,
    }[forged])  # fmt: skip
    compiled.clear()
    evaluator = double_of(31.0)
    with pytest.warns(_code.CacheWarning, match="not written by this user"):
        _ = evaluator.kernel
    assert len(compiled) == 1
    assert evaluator({"x": [3.0]}).tolist() == [37.0]


def test_files_of_another_machine_are_not_run(
    folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _ = double_of(32.0).kernel
    (file,) = folder.glob("*.o")
    foreign = file.read_bytes()
    file.unlink()
    monkeypatch.setattr(_code, "_machine_key", lambda: "another processor")
    _ = double_of(32.0).kernel
    (file,) = folder.glob("*.o")
    file.write_bytes(foreign)
    compiled.clear()
    with pytest.warns(_code.CacheWarning, match="not written by this user"):
        _ = double_of(32.0).kernel
    assert len(compiled) == 1


def open_to_others(folder: Path) -> None:
    folder.chmod(0o777)


def file_open_to_others(folder: Path) -> None:
    next(folder.glob("*.o")).chmod(0o666)


def of_another_user(folder: Path) -> None:
    os.chown(folder, 65534, -1)


def file_of_another_user(folder: Path) -> None:
    os.chown(next(folder.glob("*.o")), 65534, -1)


def linked(folder: Path) -> None:
    file = next(folder.glob("*.o"))
    file.rename(folder.parent / "elsewhere")
    file.symlink_to(folder.parent / "elsewhere")


def key_that_others_read(folder: Path) -> None:
    (folder.parents[1] / "config" / "cache.key").chmod(0o644)
    forget_secrets()


def key_folder_open_to_others(folder: Path) -> None:
    (folder.parents[1] / "config").chmod(0o777)
    forget_secrets()


def no_key(folder: Path) -> None:
    (folder.parents[1] / "config" / "cache.key").write_bytes(b"short")
    forget_secrets()


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are those of POSIX")
@pytest.mark.parametrize(
    "spoil",
    [open_to_others, file_open_to_others, of_another_user, file_of_another_user, linked,
     key_that_others_read, key_folder_open_to_others, no_key],
)  # fmt: skip
def test_files_writable_by_others_are_not_run(folder: Path, compiled: list[str], spoil: Callable[[Path], None]) -> None:
    if "another_user" in spoil.__name__ and os.geteuid() != 0:
        pytest.skip("only root can change the owner of files")
    _ = double_of(40.0).kernel
    spoil(folder)
    compiled.clear()
    evaluator = double_of(40.0)
    with pytest.warns(_code.CacheWarning, match="not used"):
        _ = evaluator.kernel
    assert len(compiled) == 1
    assert evaluator({"x": [3.0]}).tolist() == [46.0]


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_key_and_code_are_closed_to_others_from_the_start(folder: Path) -> None:
    before = os.umask(0)
    try:
        _ = double_of(50.0).kernel
    finally:
        os.umask(before)
    places = [folder, *folder.glob("*.o"), folder.parents[1] / "config", folder.parents[1] / "config" / "cache.key"]
    assert [oct(p.stat().st_mode & 0o777) for p in places] == ["0o700", "0o600", "0o700", "0o600"]


def test_without_a_folder_for_the_key_nothing_is_stored(folder: Path, compiled: list[str]) -> None:
    (folder.parents[1] / "config").write_text("a file where the folder should be")
    forget_secrets()
    evaluator = double_of(51.0)
    with pytest.warns(_code.CacheWarning, match="set STEELYARD_CONFIG"):
        _ = evaluator.kernel
    assert evaluator({"x": [3.0]}).tolist() == [57.0]
    assert not list(folder.glob("*"))


def test_a_read_only_folder_causes_only_a_warning(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    folder.write_text("a file where the folder should be")
    evaluator = double_of(3.0)
    with pytest.warns(_code.CacheWarning, match="set STEELYARD_CACHE"):
        _ = evaluator.kernel
    assert evaluator({"x": [3.0]}).tolist() == [9.0]
    with warnings.catch_warnings():  # one warning, not one per function
        warnings.simplefilter("error", _code.CacheWarning)
        _ = double_of(4.0).kernel


def test_racing_processes_all_get_working_code(folder: Path) -> None:
    script = (
        "import numpy as np\n"
        "from steelyard.robot.library import builtin\n"
        "r = builtin('rotradi'); s = np.ones((50_000, 3))\n"
        "print(repr(float(r.torque_regressor(s, s, s).sum())))\n"
    )
    environment = dict(os.environ, STEELYARD_CACHE=str(folder.parent), STEELYARD_CONFIG=str(folder.parent / "config"))
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    results = [run.communicate() for run in runs]
    assert [error for _, error in results] == [b""] * 4
    assert len({output for output, _ in results}) == 1
    assert not list(folder.glob(".*"))


def test_the_key_depends_on_the_code(folder: Path) -> None:
    _ = double_of(5.0).kernel
    _ = double_of(6.0).kernel
    assert len(list(folder.glob("*.o"))) == 2
    assert np.isfinite(double_of(5.0)({"x": [1.0]})).all()
