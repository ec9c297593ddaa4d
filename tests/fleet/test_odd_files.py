"""Files among a fleet's logs that are not logs: a pipe, a device, an endless or a huge file, a silent server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steelyard.errors import LogError, SteelyardError
from steelyard.fleet.fleet import identify_fleet
from steelyard.fleet.storage import content_identity, file_state
from steelyard.ground import addresses
from steelyard.ground.remote import content_hash
from steelyard.signals.table import open_reader
from tests.fleet.planar_fleet import write_fleet
from tests.fleet.test_connection import listening, say_nothing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes with names are POSIX")
NOT_A_FILE = "this is a pipe or a device"


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        folder = os.getcwd()
        os.chdir(path.parent)  # names of sockets are short
        try:
            door.bind(path.name)
        finally:
            os.chdir(folder)


def make_huge(path: Path) -> None:
    """Make a sparse file of two terabytes, which would take hours to read."""
    with path.open("wb") as file:
        file.truncate(1 << 41)


ODD = {
    "pipe": (os.mkfifo, NOT_A_FILE),
    "socket": (make_socket, NOT_A_FILE),
    "endless": (lambda path: path.symlink_to("/dev/zero"), NOT_A_FILE),
    "kernel": (lambda path: path.symlink_to("/proc/kmsg"), "while it is read"),
    "circle": (lambda path: path.symlink_to(path.name), "cannot be read"),
    "huge": (make_huge, ""),
}


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".mcap"])
def test_special_files_are_listed_and_the_run_continues(tmp_path: Path, suffix: str) -> None:
    """The run is a separate process, which must end."""
    logs = write_fleet(tmp_path / "logs", robots=2, logs=2, samples=600)
    odd = [name for name in ODD if name != "kernel" or Path("/proc/kmsg").exists()]
    for name in odd:
        ODD[name][0](logs / "arm0" / f"{name}{suffix}")
    words = [sys.executable, "-m", "steelyard", "fleet", str(logs), "-o", str(tmp_path / "run"), "--plain"]
    begun = time.monotonic()
    done = subprocess.run([*words, "--workers", "0"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begun < 60.0
    logs_read = json.loads((tmp_path / "run" / "result.json").read_text())["logs"]
    reasons = {Path(log["log"]).stem: log["skipped"] for log in logs_read if log["skipped"]}
    assert set(reasons) == set(odd)
    for name in odd:
        assert reasons[name].startswith(f"{logs}/arm0/{name}{suffix}: ")
        assert ODD[name][1] in reasons[name]
    assert len(logs_read) == 4 + len(odd)


def test_every_function_that_opens_a_log_refuses_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "x.parquet"
    os.mkfifo(pipe)
    for opened in (file_state, content_identity, lambda p: content_hash(Path(p)), open_reader):
        with pytest.raises(LogError, match=NOT_A_FILE):
            opened(str(pipe))
    bag, signals = tmp_path / "bag", tmp_path / "signals"
    for folder, names in ((bag, ("metadata.yaml", "x.db3")), (signals, ("q.csv",))):
        folder.mkdir()
        for name in names:
            os.mkfifo(folder / name)
        with pytest.raises(SteelyardError, match=r"pipe or a device|none of"):
            open_reader(folder)


def test_a_pipe_as_table_description_or_mapping_gives_one_error(tmp_path: Path) -> None:
    logs = write_fleet(tmp_path / "logs", robots=1, logs=1, samples=400)
    for name in ("fleet.toml", "mapping.toml", "fleet.csv", "fleet.parquet"):
        os.mkfifo(logs / name)
        with pytest.raises(SteelyardError, match=NOT_A_FILE):
            identify_fleet(logs / name if name.startswith("fleet.") else logs, workers=0)
        (logs / name).unlink()


def test_logs_of_a_silent_server_are_listed_and_the_run_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server accepts and never answers. Only its first log has to wait, then the server is known as silent."""
    monkeypatch.setattr(addresses, "SILENT_S", 2.0)
    logs = write_fleet(tmp_path / "logs", robots=1, logs=2, samples=600)
    with listening(say_nothing) as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        for where in (f"http://127.0.0.1:{port}", "s3://bucket"):
            rows = [f"a,{logs}/planar.urdf,{where}/{k}.parquet" for k in range(16)]
            table = tmp_path / "fleet.csv"
            table.write_text("\n".join(["robot,model,log", *rows, f"a,{logs}/planar.urdf,{logs}/arm0/"]) + "\n")
            begun = time.monotonic()
            found = identify_fleet(table, workers=0, plain=True)
            assert time.monotonic() - begun < 30.0
            assert found.factors.robots["a"].logs == 2
            assert len(found.skipped) == 16
            assert all("does not answer" in reason for reason in found.skipped.values())


def test_the_wait_for_a_server_is_half_a_minute() -> None:
    assert addresses.SILENT_S == 30.0
