"""Fixtures: a running studio, and a browser that opens it."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest_studio import Served

_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def shared_helper_process() -> Iterator[None]:
    """All studios share one helper process, because starting it takes longer than most tests."""
    helper = pytest.importorskip("steelyard.studio.helper_process")
    gc.collect()
    gc.freeze()  # each ending studio collects garbage; skip the objects of earlier tests
    shared, executor, close = helper.HelperProcess(None), helper.HelperProcess._executor, helper.HelperProcess.close
    helper.HelperProcess._executor = lambda self: executor(self if getattr(self, "is_private", False) else shared)
    helper.HelperProcess.close = lambda self: close(self) if getattr(self, "is_private", False) else None
    yield
    helper.HelperProcess._executor, helper.HelperProcess.close = executor, close
    shared.close()


@pytest.fixture
def studio(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    """A running studio of an empty folder."""
    pytest.importorskip("uvicorn", reason="the studio's packages are not installed")
    folder = tmp_path / "arm"
    folder.mkdir()
    served = Served(folder, own_process=getattr(request.function, "own_process", False))
    served.start()
    yield served
    served.end()


@pytest.fixture(scope="module")
def shared_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A running studio for all tests of a module; each test makes its own folders or files in it."""
    pytest.importorskip("uvicorn", reason="the studio's packages are not installed")
    served = Served(tmp_path_factory.mktemp("studio"), own_process=False)
    served.start()
    yield served
    served.end()


@pytest.fixture(scope="module")
def shared_page(chromium: Any, shared_studio: Served) -> Iterator[Any]:
    """A page of the shared studio. The module fails on requests to other servers and on script errors."""
    yield from _opened(chromium, shared_studio)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser of the system."""
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
    """A page of the studio. The test fails on requests to other servers and on script errors."""
    yield from _opened(chromium, studio)


def _opened(chromium: Any, studio: Served) -> Iterator[Any]:
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    made = context.new_page()
    trouble: list[str] = []
    made.on("pageerror", lambda error: trouble.append(str(error)))
    made.on("console", lambda m: trouble.append(m.text) if "Content Security Policy" in m.text else None)
    made.on("request", lambda r: None if r.url.startswith((studio.base, "data:", "blob:")) else trouble.append(r.url))
    made.set_default_timeout(60_000)  # the machine may be busy
    made.goto(studio.address)
    yield made
    context.close()
    assert not trouble, trouble
