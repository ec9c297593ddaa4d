"""The examples run unchanged, each in a new folder."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "arm")
# Seconds each; `make proof` runs them.
SLOW = {"compare_schemes", "local_models"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.proof) if name in SLOW else name for name in SCRIPTS]
)
def test_an_example_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    try:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    finally:
        sys.modules.pop("arm", None)
    assert capsys.readouterr().out.strip()


def test_the_page_shows_every_example() -> None:
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    assert {name for name in SCRIPTS if f"examples/{name}.py" in page} == set(SCRIPTS)
    assert set(SCRIPTS) >= SLOW
    assert len(SCRIPTS) >= 15


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_fits_on_a_page(name: str) -> None:
    lines = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()
    assert 10 <= len(lines) <= 60
    assert "steelyard." not in "\n".join(line for line in lines if line.startswith(("import", "from")))
