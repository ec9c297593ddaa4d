"""The helper process: if a function fails, crashes or hangs, the server gets a message and continues."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from simulated_arms import run_apart

from steelyard.errors import SteelyardError
from steelyard.studio import helper_process
from steelyard.studio.helper_process import HelperProcess
from steelyard.studio.studio_folder import StudioError, StudioFolder


def _fail(name: str) -> None:
    raise SteelyardError(f"{name} is not a robot.")


def _crash() -> None:
    os._exit(3)


def test_it_recovers_from_errors_crashes_and_timeouts(tmp_path: Path) -> None:
    helper = HelperProcess(StudioFolder(tmp_path))
    helper.is_private = True  # type: ignore[attr-defined]  # not shared with other tests

    async def check() -> None:
        assert await helper.ask(os.getcwd) == str(tmp_path.resolve())
        with pytest.raises(StudioError, match="arm is not a robot"):
            await helper.ask(_fail, "arm")
        with pytest.raises(StudioError, match="crashed"):
            await helper.ask(_crash)
        assert await helper.ask(len, "abc") == 3
        with pytest.raises(StudioError, match="was stopped"):
            await helper.ask(time.sleep, 60.0, seconds=0.2)
        assert await helper.ask(len, "abcd") == 4

    try:
        run_apart(check())
    finally:
        helper.end()


def test_calls_that_wait_are_answered_when_the_process_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool's own limit of tasks left them without an answer."""
    monkeypatch.setattr(helper_process, "_MOST_CALLS", 2)
    helper = HelperProcess(StudioFolder(tmp_path))
    helper.is_private = True  # type: ignore[attr-defined]

    async def check() -> list[int]:
        return await asyncio.gather(*(helper.ask(os.getpid, seconds=60.0) for _ in range(5)))

    try:
        processes = run_apart(check())
    finally:
        helper.end()
    assert len(set(processes)) == 3
