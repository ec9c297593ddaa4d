"""A studio in a process of its own, and a real browser that opens it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip


@dataclass
class Served:
    """A studio that runs."""

    folder: Path
    options: tuple[str, ...] = ()
    address: str = ""
    process: Any = None
    port: int = 0
    outside: list[str] = field(default_factory=list)

    @property
    def base(self) -> str:
        return self.address.partition("?")[0].rstrip("/")

    def start(self) -> None:
        command = [sys.executable, "-m", "steelyard", "studio", str(self.folder), "--no-open", "--port", str(self.port)]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [*command, *self.options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        said = ""
        for line in self.process.stdout:
            said += line
            if found := re.search(r"http://\S+", line):
                self.address = found[0]
                self.port = int(re.search(r":(\d+)/", self.address)[1])  # type: ignore[index]
                break
        assert self.address, said
        end = time.monotonic() + 20.0
        while time.monotonic() < end:
            try:
                urllib.request.urlopen(self.base + "/", timeout=5.0)
            except urllib.error.HTTPError:
                return  # it answers: the door is shut, as it should be
            except OSError:
                time.sleep(0.05)
        raise AssertionError("The studio does not answer.")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.process.terminate()
            self.process.wait(10.0)
        # Jobs outlive a studio; none may outlive its test.
        for begun in self.folder.glob(".steelyard/jobs/*/begun.json"):
            with contextlib.suppress(Exception):
                os.killpg(int(re.search(r'"pid": (\d+)', begun.read_text())[1]), signal.SIGKILL)  # type: ignore[index]


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Served]:
    """A studio of an empty folder."""
    pytest.importorskip("uvicorn", reason="the studio's packages are not installed")
    folder = tmp_path / "arm"
    folder.mkdir()
    served = Served(folder)
    served.start()
    yield served
    served.end()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The system's browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    where = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if where is None:
        pytest.skip("there is no Chromium on this machine")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=where, args=_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any, studio: Served) -> Iterator[Any]:
    """A page on which the studio is open. It must ask nobody else for anything, and no script may fail."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    made = context.new_page()
    trouble: list[str] = []
    made.on("pageerror", lambda error: trouble.append(str(error)))
    made.on("console", lambda m: trouble.append(m.text) if "Content Security Policy" in m.text else None)
    made.on("request", lambda r: None if r.url.startswith((studio.base, "data:", "blob:")) else trouble.append(r.url))
    made.set_default_timeout(20_000)
    made.goto(studio.address)
    yield made
    context.close()
    assert not trouble, trouble
