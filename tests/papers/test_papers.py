"""Requirements of every paper, interrupted runs, and the page."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.errors import SteelyardError
from steelyard.papers import PAPERS, load_paper
from steelyard.papers.paper import (
    Item,
    Paper,
    assertion,
    claim_result,
    holm,
    measurement,
    paper_table,
    tables_and_figures,
)
from steelyard.papers.reproduce import contents_list, paper_page, reproduce, run_paper
from steelyard.papers.rotradi.lab import PAPER_SCHEMES
from steelyard.papers.rotradi.ranking import Runs

ROOT = Path(__file__).parents[2]
# All tables and figures of the papers, counted in print.
IN_PRINT = {"rotradi": (4, 8), "irp6": (1, 17), "szabo3r": (2, 3), "prrrp": (6, 8), "ns16": (2, 8)}


@pytest.mark.parametrize("name", PAPERS)
def test_every_table_and_figure_is_shown_or_has_a_reason(name: str) -> None:
    """Only photographs, block diagrams and items without data are missing; the docs have the same list."""
    paper = load_paper(name)
    kinds = [content.name.split()[0] for content in paper.contents]
    assert (kinds.count("Table"), kinds.count("Figure")) == IN_PRINT[name]
    for content in paper.contents:
        assert content.shown_in or re.search("photograph|diagram|chart|not given", content.reason), content
    docs = (ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8")
    part = docs.split(f"<!-- {name} -->\n")[1].split("<!-- / -->")[0]
    assert part == contents_list(paper), (
        f"print steelyard.papers.reproduce.contents_list(…) of {name} between the marks"
    )


def test_a_paper_must_list_all_its_tables_and_figures() -> None:
    with pytest.raises(SteelyardError, match=r"toy: Figure 2 is in no item; list it in `missing`"):
        replace(toy([]), prints="Table 1, Figures 1, 2 and 9")
    with pytest.raises(SteelyardError, match="toy: the paper has no Figure 9"):
        replace(toy([]), prints="Table 1, Figure 1")
    assert [c.reason for c in toy([]).contents] == ["", "", "lost"]
    assert tables_and_figures("Table II, rows 41–58: whose friction") == ("Table II",)
    assert tables_and_figures("The curves of Figure 3") == ()


def test_a_scheme_is_best_only_if_significantly_better() -> None:
    """Neither of two schemes with alternating ranks is the best; Holm's correction agrees with his own rule."""
    rng = np.random.default_rng(0)
    errors = {name: np.exp(rng.normal(k, 0.3, 40)) for k, name in enumerate(PAPER_SCHEMES)}
    assert Runs(("run",) * 40, {}, errors).wins("dynamic")
    assert Runs(("run",) * 9, {}, {n: x[:9] for n, x in errors.items()}).wins("dynamic") is None
    errors["power"] = errors["dynamic"] * np.exp(rng.normal(0.0, 0.3, 40))
    tied = Runs(("run",) * 40, {}, errors)
    assert not tied.wins("dynamic")
    assert not tied.wins("power")
    errors["power"] = np.full(40, np.inf)  # diverged simulations
    assert Runs(("run",) * 40, {}, errors).wins("dynamic")
    # Four tests at 0.01, 0.04, 0.03, 0.005: times 3, 1, 2, 4, and never below the one before.
    p = {(k, k): x for k, x in zip("abcd", (0.01, 0.04, 0.03, 0.005), strict=True)}
    assert_allclose(list(holm(p).values()), [0.03, 0.06, 0.06, 0.02], rtol=1e-12)


def toy(calls: list[str], holds: bool = True) -> Paper:
    """Return a paper with two items; the second raises KeyboardInterrupt if `calls` contain "break"."""

    def first(lab: str) -> Item:
        """Table 1: something."""
        calls.append("first")
        start = time.process_time()
        while time.process_time() < start + 0.05:  # some ticks of the clock that counts processor seconds
            pass
        rows = [("a", np.float64(1.0), float("nan"))]
        return Item(
            text=lab, tables=(paper_table(("name", "x", "y"), rows),), statements=(assertion("One.", holds, "1."),)
        )

    def second(lab: str) -> Item:
        """Figure 1: something else."""
        calls.append("second")
        if "break" in calls:
            raise KeyboardInterrupt
        return Item(
            statements=(claim_result("Two.", False, "2.", "Because."), measurement("Three.", "3.")),
            differences=("<script>",),
        )

    return Paper("toy", "A toy", "Nobody, 2000", "About", lambda fast: "lab", (first, second), (("Figure 9", "lost"),))


def test_an_interrupted_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = ["break"]
    paper = toy(calls)
    monkeypatch.setattr("steelyard.papers.reproduce.load_paper", lambda name: paper)
    with pytest.raises(KeyboardInterrupt):
        reproduce(["toy"], tmp_path)
    assert not (tmp_path / "toy" / "result.json").exists()
    calls.remove("break")
    (one,) = reproduce(["toy"], tmp_path)
    assert calls == ["first", "second", "second"]
    assert sorted(p.name for p in (tmp_path / "toy").iterdir()) == ["manifest.json", "report.html", "result.json"]
    saved = json.loads((tmp_path / "toy" / "result.json").read_text(encoding="utf-8"))
    assert saved["holds"]
    assert saved["items"][0]["tables"][0]["rows"] == [["a", 1.0, None]]
    assert [item.title for item in one.items] == ["Table 1: something", "Figure 1: something else"]
    with pytest.raises(SteelyardError, match="finished run"):
        reproduce(["toy"], tmp_path)
    interrupted = {p.name: p.read_bytes() for p in (tmp_path / "toy").iterdir()}
    reproduce(["toy"], tmp_path, overwrite=True)
    assert {p.name: p.read_bytes() for p in (tmp_path / "toy").iterdir()} == interrupted


def test_a_paper_beyond_its_time_limit_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is written in any case; without a limit only the time is printed."""
    monkeypatch.setattr("steelyard.papers.reproduce.load_paper", lambda name: toy([]))
    line = ["reproduce", "toy", "--overwrite", "-o", str(tmp_path)]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 0, result.output
    assert re.search(r"\(\d+\.\d processor seconds\)", " ".join(result.output.split()))
    assert CliRunner().invoke(app, [*line, "--most-seconds", "600"]).exit_code == 0
    (tmp_path / "toy" / "result.json").unlink()
    slow = CliRunner().invoke(app, [*line, "--most-seconds", "0"])
    assert slow.exit_code == 1
    assert "processor seconds, more than 0." in slow.output
    assert (tmp_path / "toy" / "result.json").exists()


def test_foreign_folders_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "rotradi").mkdir()
    (tmp_path / "rotradi" / "thesis.tex").write_text("dear", encoding="utf-8")
    with pytest.raises(SteelyardError, match=re.escape("thesis.tex")):
        reproduce(["rotradi"], tmp_path, fast=True)


@pytest.mark.parametrize("holds", [True, False])
def test_the_page_has_all_results(holds: bool) -> None:
    page = paper_page(run_paper(toy([], holds)))
    assert ("All 1 asserted statements hold" in page) == holds
    assert ("1 of 1 asserted statements fail" in page) == (not holds)
    assert "Of 1 tested claims, one does not hold" in page or not holds
    assert "<li>&lt;script&gt;</li>" in page
    assert "lost" in page
    assert ("Does not hold: Two. 2. Because." in page) == holds
    assert '<strong class="word">Does not hold.</strong> Two. 2. Because.' in page
