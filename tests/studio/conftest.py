"""A studio in a process of its own, and a real browser that opens it."""

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
def one_process_aside() -> Iterator[None]:
    """All studios of these tests share one process for small computations: to start it takes longer than most tests."""
    aside = pytest.importorskip("steelyard.studio.aside")
    gc.collect()
    gc.freeze()  # every studio that ends looks for garbage, and thousands of tests have left what stays
    shared, made, close = aside.AsideProcess(None), aside.AsideProcess._made, aside.AsideProcess.close
    aside.AsideProcess._made = lambda self: made(self if getattr(self, "alone", False) else shared)
    aside.AsideProcess.close = lambda self: close(self) if getattr(self, "alone", False) else None
    yield
    aside.AsideProcess._made, aside.AsideProcess.close = made, close
    shared.close()


@pytest.fixture
def studio(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    """A studio of an empty folder."""
    pytest.importorskip("uvicorn", reason="the studio's packages are not installed")
    folder = tmp_path / "arm"
    folder.mkdir()
    served = Served(folder, apart=getattr(request.function, "apart", False))
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
    made.set_default_timeout(60_000)  # a busy machine is no failure
    made.goto(studio.address)
    yield made
    context.close()
    assert not trouble, trouble
