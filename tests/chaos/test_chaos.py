"""Commands that write are killed, interrupted, run at once and out of disk: nothing is lost, torn or left over.

The short form of `make chaos`, whose counts are in docs/reliability.md; and Ctrl-C in the program as it is typed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc, and forks")


def test_a_short_campaign_finds_nothing() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "chaos.py"), "--short"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("after", [0.0, 0.3])
def test_ctrl_c_is_one_line_and_130(tmp_path: Path, after: float) -> None:
    command = ["excite", "ns16", "--no-collision", "-o", str(tmp_path / "run")]
    process = subprocess.Popen(
        [sys.executable, "-m", "steelyard", *command],
        stderr=subprocess.PIPE,
        text=True,
        # What a shell starts in the background ignores Ctrl-C, and so would what it starts in turn.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    handled = 1 << (signal.SIGINT - 1)
    while not _caught(process.pid) & handled:  # the interpreter itself is starting
        assert process.poll() is None
        time.sleep(0.002)
    while _processor_time(process.pid) < 0.1 + after:  # not the clock's: others may have the processor
        assert process.poll() is None
        time.sleep(0.002)
    for _ in range(2):  # the first one may ask for the best motion
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    assert process.stderr is not None
    lines = process.stderr.read().strip().splitlines()
    assert process.wait() == 130
    assert lines[-1] == "steelyard: stopped."
    assert all(line.startswith("steelyard: stop") for line in lines)
    assert list(tmp_path.iterdir()) == []


def _caught(pid: int) -> int:
    """The signals that a process has handlers for, as a mask."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("SigCgt:")[1].split()[0], 16)


def _processor_time(pid: int) -> float:
    """Return the processor time that a process has used [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("place", ["missing/deeper/run", "file/run", "read-only/run"])
def test_a_place_that_cannot_be_written_is_told_before_the_work(tmp_path: Path, place: str) -> None:
    """By a user without rights: root may write anywhere."""
    if os.geteuid() == 0 and not place.startswith("file"):
        pytest.skip("root may write anywhere")
    (tmp_path / "file").write_text("mine")
    for name in ("read-only", "missing"):
        (tmp_path / name).mkdir(mode=0o555)
    command = [sys.executable, "-m", "steelyard", "identify", "rotradi", "no-such-log.csv", "-o", str(tmp_path / place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr  # and not that the log is missing, which is found later
