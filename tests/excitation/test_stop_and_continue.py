"""A search as a child process without a terminal: stopped, it delivers a motion; stopped or killed, it can resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signal stops a process there")

SEARCHES = {
    "gradient": (),
    "ga": ("--optimiser", "ga", "--population", "30", "--generations", "40"),
    "cma": ("--optimiser", "cma", "--population", "20", "--generations", "60"),
}


def command(optimiser: str, run: Path, *more: str) -> list[str]:
    quick = ("--duration", "4", "--rate", "50", "--harmonics", "3", "--no-collision")
    return [sys.executable, "-m", "steelyard", "excite", "szabo3r", *quick, *SEARCHES[optimiser], "-o", str(run), *more]


def first(arguments: list[str], file: Path) -> subprocess.Popen[str]:
    """Start the search in its own session and wait for its checkpoint."""
    process = subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    until = time.monotonic() + 60.0
    while not file.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)
    return process


def result(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "result.json").read_text())
    return document


@pytest.mark.parametrize(
    "optimiser", [x if x == "gradient" else pytest.param(x, marks=pytest.mark.proof) for x in SEARCHES]
)
def test_a_stopped_and_killed_search_resumes_to_the_same_result(optimiser: str, tmp_path: Path) -> None:
    file, checkpoint = tmp_path / "file.json", ("--checkpoint", str(tmp_path / "file.json"))
    stopped = first(command(optimiser, tmp_path / "stopped", *checkpoint), file)
    stopped.send_signal(signal.SIGINT)
    _, output = stopped.communicate(timeout=60)
    assert stopped.returncode == 130
    assert output == "steelyard: stopping; the best motion so far is returned (Ctrl-C again: end without it).\n"
    early = result(tmp_path / "stopped")
    assert early["criterion"]["stopped"] is True
    assert early["violation"] <= 0.0
    assert any("stopped before its end" in note for note in early["notes"])
    assert "stopped before its end" in (tmp_path / "stopped" / "report.html").read_text()
    assert json.loads((tmp_path / "stopped" / "trajectory.json").read_text())["stopped"] is True

    before = file.read_bytes()
    killed = first(command(optimiser, tmp_path / "killed", *checkpoint), file)
    until = time.monotonic() + 60.0
    while file.read_bytes() == before and killed.poll() is None:  # until it has resumed
        assert time.monotonic() < until
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=60)
    assert not (tmp_path / "killed").exists()

    for name, more in (("whole", checkpoint), ("undisturbed", ())):
        done = subprocess.run(
            command(optimiser, tmp_path / name, *more), capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
    whole, undisturbed = result(tmp_path / "whole"), result(tmp_path / "undisturbed")
    assert whole["criterion"] == undisturbed["criterion"]
    assert whole["criterion"]["stopped"] is False
    assert not any("stopped" in note for note in whole["notes"])
    files = [(tmp_path / name / "trajectory.csv").read_bytes() for name in ("whole", "undisturbed")]
    assert files[0] == files[1]


def test_a_stop_while_the_motion_is_being_written_does_not_lose_it(tmp_path: Path) -> None:
    """The stop comes just after the end of the search."""
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from steelyard.excitation.motion_design import MotionDesign\n"
        "files = MotionDesign.files\n"
        "def late(self):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return files(self)\n"
        "MotionDesign.files = late\n"
        "from steelyard.cli.app import main\n"
        "main()\n"
    )
    arguments = command("gradient", tmp_path / "run", "--search-time", "0")[3:]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 130, done.stderr
    assert result(tmp_path / "run")["violation"] <= 0.0
