"""The process aside: whatever a file does to the code that reads it, the server hears a sentence, and goes on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from simulated_arms import run_apart

from steelyard.errors import SteelyardError
from steelyard.studio.aside import AsideProcess
from steelyard.studio.place import StudioError, StudioFolder


def _refuse(name: str) -> None:
    raise SteelyardError(f"{name} is no robot.")


def _vanish() -> None:
    os._exit(3)


def test_it_answers_breaks_down_takes_too_long_and_answers_again(tmp_path: Path) -> None:
    aside = AsideProcess(StudioFolder(tmp_path))
    aside.alone = True  # type: ignore[attr-defined]  # not the one that other tests share

    async def all_of_it() -> None:
        assert await aside.ask(os.getcwd) == str(tmp_path.resolve())
        with pytest.raises(StudioError, match="arm is no robot"):
            await aside.ask(_refuse, "arm")
        with pytest.raises(StudioError, match="broke down"):
            await aside.ask(_vanish)
        assert await aside.ask(len, "abc") == 3
        with pytest.raises(StudioError, match="given up"):
            await aside.ask(time.sleep, 60.0, seconds=0.2)
        assert await aside.ask(len, "abcd") == 4

    try:
        run_apart(all_of_it())
    finally:
        aside.end()
