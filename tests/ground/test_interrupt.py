"""Ctrl-C ends the program at once, in one line; what was being written goes, what was being put in place is put."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import os, signal, sys
from pathlib import Path
from steelyard.ground.interrupt import best_on_interrupt, on_interrupt, stop_wanted, unfinished, uninterrupted
place = Path(sys.argv[1])
on_interrupt()
"""
PRESSED = "os.kill(os.getpid(), signal.SIGINT)"


def ended(script: str, place: Path) -> tuple[int, str, str]:
    # What a shell starts in the background ignores Ctrl-C, and so would what it starts in turn.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    done = subprocess.run(
        [sys.executable, "-c", heard + HEAD + script, str(place)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a process there cannot press Ctrl-C on itself")
@pytest.mark.parametrize(
    ("script", "code", "out", "err"),
    [
        (PRESSED, 130, "", "steelyard: stopped.\n"),
        ("os.kill(os.getpid(), signal.SIGTERM)", 143, "", "steelyard: stopped.\n"),
        # What was printed before is not lost, and no clause of ours or of others holds it up.
        (f"print('said')\ntry:\n    {PRESSED}\nexcept BaseException:\n    print('caught')", 130, "said\n",
         "steelyard: stopped.\n"),
        (f"(place / 'a').mkdir()\n(place / 'a' / 'b').touch()\nwith unfinished(place / 'a'):\n    {PRESSED}", 130, "",
         "steelyard: stopped.\n"),
        (f"(place / 'a').touch()\nwith unfinished(place / 'a'):\n    {PRESSED}", 130, "", "steelyard: stopped.\n"),
        (f"with uninterrupted():\n    {PRESSED}\n    print('put')\nprint('after')", 130, "put\n",
         "steelyard: stopped.\n"),
        (f"with best_on_interrupt('the best'):\n    {PRESSED}\n    print(stop_wanted())", 0, "True\n",
         "steelyard: stopping; the best so far is delivered (Ctrl-C again ends without it).\n"),
        (f"with best_on_interrupt('the best'):\n    {PRESSED}\n    {PRESSED}\n    print('on')", 130, "",
         "steelyard: stopping; the best so far is delivered (Ctrl-C again ends without it).\nsteelyard: stopped.\n"),
    ],
)  # fmt: skip
def test_it_ends_in_one_line(tmp_path: Path, script: str, code: int, out: str, err: str) -> None:
    assert ended(script, tmp_path) == (code, out, err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="a process there cannot press Ctrl-C on itself")
def test_who_ignores_it_still_does(tmp_path: Path) -> None:
    """As `nohup` and shells ask of a program in the background."""
    script = f"signal.signal(signal.SIGINT, signal.SIG_IGN)\non_interrupt()\n{PRESSED}\nprint('on')"
    assert ended(script, tmp_path) == (0, "on\n", "")
