"""Ctrl-C ends the program at once with one line; partial files are deleted, and complete files are kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import os, signal, sys
from pathlib import Path
from steelyard.ground.interrupt import best_on_interrupt, on_interrupt, stop_wanted, unfinished, uninterrupted
folder = Path(sys.argv[1])
on_interrupt()
"""
PRESS = "os.kill(os.getpid(), signal.SIGINT)"


def run_script(script: str, folder: Path) -> tuple[int, str, str]:
    # Background processes of a shell ignore Ctrl-C, and so do their children.
    enable = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = subprocess.run(
        [sys.executable, "-c", enable + HEAD + script, str(folder)], capture_output=True, text=True, check=False
    )
    return process.returncode, process.stdout, process.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="on Windows a process cannot send Ctrl-C to itself")
@pytest.mark.parametrize(
    ("script", "code", "out", "err"),
    [
        (PRESS, 130, "", "steelyard: stopped.\n"),
        ("os.kill(os.getpid(), signal.SIGTERM)", 143, "", "steelyard: stopped.\n"),
        # Earlier output is not lost, and no exception handler can stop the interrupt.
        (f"print('said')\ntry:\n    {PRESS}\nexcept BaseException:\n    print('caught')", 130, "said\n",
         "steelyard: stopped.\n"),
        (f"(folder / 'a').mkdir()\n(folder / 'a' / 'b').touch()\nwith unfinished(folder / 'a'):\n    {PRESS}", 130, "",
         "steelyard: stopped.\n"),
        (f"(folder / 'a').touch()\nwith unfinished(folder / 'a'):\n    {PRESS}", 130, "", "steelyard: stopped.\n"),
        (f"with uninterrupted():\n    {PRESS}\n    print('put')\nprint('after')", 130, "put\n",
         "steelyard: stopped.\n"),
        (f"with best_on_interrupt('the best'):\n    {PRESS}\n    print(stop_wanted())", 0, "True\n",
         "steelyard: stopping; the best so far is returned (Ctrl-C again: end without it).\n"),
        (f"with best_on_interrupt('the best'):\n    {PRESS}\n    {PRESS}\n    print('on')", 130, "",
         "steelyard: stopping; the best so far is returned (Ctrl-C again: end without it).\nsteelyard: stopped.\n"),
    ],
)  # fmt: skip
def test_an_interrupt_prints_one_line(tmp_path: Path, script: str, code: int, out: str, err: str) -> None:
    assert run_script(script, tmp_path) == (code, out, err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="on Windows a process cannot send Ctrl-C to itself")
def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    """`nohup` and shells set this for background programs."""
    script = f"signal.signal(signal.SIGINT, signal.SIG_IGN)\non_interrupt()\n{PRESS}\nprint('on')"
    assert run_script(script, tmp_path) == (0, "on\n", "")
