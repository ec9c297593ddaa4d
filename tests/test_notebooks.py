"""The notebooks run from top to bottom, in a new kernel and an empty folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks need nbformat (an extra for developers)")
nbclient = pytest.importorskip("nbclient", reason="notebooks are run by nbclient (an extra for developers)")

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_six_with_no_output_kept() -> None:
    assert len(NOTEBOOKS) >= 6
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")], path.name


# These take most of the time: they run under make proof.
_LONG = ("02-", "03-", "05-", "06-", "07-", "08-", "09-")


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.proof] if path.stem.startswith(_LONG) else []) for path in NOTEBOOKS],
    ids=[path.stem for path in NOTEBOOKS],
)
def test_it_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    ran = nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in ran.cells for output in cell.get("outputs", [])]
    assert not [output for output in shown if output.output_type == "error"]
    # What a reader meets: a table or a figure, not only lines of text; and no object that shows all its insides.
    plain = [output.data.get("text/plain", "") for output in shown if output.output_type == "execute_result"]
    assert max(map(len, plain), default=0) < 2000
    assert any("text/html" in output.get("data", {}) for output in shown)
