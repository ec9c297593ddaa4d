"""The papers in fast mode: all assertions hold, and the results are those of the specification."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import papers.closed_forms as forms
import pytest
from numpy.testing import assert_allclose
from papers.rotradi_experiment import arm
from report_pages import figures, own_part
from typer.testing import CliRunner

import steelyard.papers
from steelyard.cli import app
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground.field import Field
from steelyard.ground.schema import build
from steelyard.papers import load_paper
from steelyard.papers.paper import (
    Item,
    Reproduction,
    printed_table,
    tables_and_figures,
)
from steelyard.papers.paper_parameters import PaperParameters
from steelyard.papers.prrrp._lab import Lab, inertia
from steelyard.papers.prrrp.histories import _EightFilter
from steelyard.papers.prrrp.validation import _tracking_says_nothing
from steelyard.papers.reproduce import paper_page, reproduction_to_json, run_paper
from steelyard.papers.szabo3r.tables import formula
from steelyard.signals.log import Log

HOME = Path(steelyard.papers.__file__).parent
ROOT = Path(__file__).parents[2]
SHORT = ("irp6", "szabo3r", "prrrp")
# The longest of them is a proof; `make papers` runs it as well.
PAPER_NAMES = (pytest.param("rotradi", marks=pytest.mark.proof), *SHORT)


class Reproductions(dict[str, Reproduction]):
    """Papers that are reproduced when a test first asks for them."""

    def __missing__(self, name: str) -> Reproduction:
        self[name] = run_paper(load_paper(name), fast=True)
        return self[name]


@pytest.fixture(scope="module")
def done() -> dict[str, Reproduction]:
    return Reproductions()


def found(done: Reproduction, word: str) -> str:
    return next(s.found for s in done.statements if word in s.claim)


def numbers(text: str) -> list[float]:
    return [float(x) for x in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]


@pytest.mark.parametrize("name", PAPER_NAMES)
def test_all_assertions_hold(done: dict[str, Reproduction], name: str) -> None:
    must = [s for s in done[name].statements if s.kind == "asserted"]
    assert len(must) >= 8
    assert done[name].failures == ()


@pytest.mark.parametrize("name", PAPER_NAMES)
def test_failed_claims_have_a_reason(done: dict[str, Reproduction], name: str) -> None:
    against = [s for s in done[name].statements if s.holds is False]
    assert [s.claim for s in against if not s.why] == []
    page = paper_page(done[name])
    assert page.count("Does not hold: ") == len(against)  # on top, where the others are said to hold


@pytest.mark.parametrize("name", PAPER_NAMES)
def test_items_have_the_tables_and_figures_of_their_titles(done: dict[str, Reproduction], name: str) -> None:
    for item in done[name].items:
        named = tables_and_figures(item.title)
        assert bool(item.figures) or not any(n.startswith("Figure") for n in named), item.title
        assert bool(item.tables) or not any(n.startswith("Table") for n in named), item.title


@pytest.mark.proof
def test_the_rotradi_figures_are_those_of_the_specification(done: dict[str, Reproduction]) -> None:
    one = done["rotradi"]
    titles = [item.title for item in one.items]
    for what in ("Table 2", "Table 3", "Table 4", "Figure 2", "Figure 3", "Figures 4", "Figures 6"):
        assert any(title.startswith(what) for title in titles)
    shares = numbers(found(one, "M(q) of Table 3"))
    assert_allclose(shares[:4], [100.0, 100.0, 9.1, 0.0], atol=0.3)  # percent of a grid of 6°
    assert shares[4] == pytest.approx(-0.0026, abs=1e-4)
    # Medians over ten other runs in the specification: 13.6, 8.1, 14.8, 5.5; ours is one run.
    medians = numbers(found(one, "Error of each scheme"))[1:]
    median = dict(zip(("dynamic", "fd", "energy", "power", "fp"), medians, strict=True))
    assert median["energy"] == pytest.approx(8.1, rel=0.3)
    assert median["fp"] == pytest.approx(5.5, rel=0.3)
    assert min(median["dynamic"], median["power"]) > 1.5 * max(median["fd"], median["energy"], median["fp"])


@pytest.mark.proof
def test_friction_near_rest_decides_which_scheme_is_best(done: dict[str, Reproduction]) -> None:
    """The conclusion "filtered-dynamic is best" depends on the friction law; the table has all laws."""
    item = next(i for i in done["rotradi"].items if i.title.startswith("Which scheme"))
    rows = {row[0]: [numbers(cell)[0] for cell in row[1:]] for row in item.tables[1].rows}
    ramp, tanh, stick = rows["filtered-dynamic"]
    assert min(tanh, stick) > 2.0 * ramp  # 1.6 % against 4.6 and 5.8 %
    assert_allclose(rows["filtered-power"], rows["filtered-power"][0], rtol=0.1)  # independent of it
    # Two runs are too few to rank the schemes, so the claim is open.
    assert {s.holds for s in item.statements if s.claim.startswith("Filtered-dynamic is the best")} == {None}


def test_szabo_table_2_has_the_printed_rows(done: dict[str, Reproduction]) -> None:
    item = next(i for i in done["szabo3r"].items if i.title.startswith("Table 2"))
    rows = item.tables[0].rows
    assert len(rows) == 24
    exact = np.array([[row[1], row[2]] for row in rows], dtype=float)
    assert_allclose(exact[:, 1], exact[:, 0], atol=6e-4)  # three printed decimals
    ratio = np.array([row[-1] / row[-2] for row in rows], dtype=float)  # our WLS variances over the paper's
    assert 0.2 < np.median(ratio) < 5.0  # its motion is not printed: the same order
    # Compared with least squares by hand, a wrong weight (1/σ for 1/σ²) has a ten times larger difference.
    right, *_, plain, root, square = numbers(found(done["szabo3r"], "Weights from residuals"))
    assert right < 0.05
    assert min(plain, root, square) > 0.15


def test_the_irp6_figures_are_those_of_the_specification(done: dict[str, Reproduction]) -> None:
    one = done["irp6"]
    titles = " ".join(item.title for item in one.items)
    for what in ("Table I:", *(f"Figure {k}:" for k in (2, 5, 6, 15, 16, 17)), "Figures 3 and 4", "7–9", "10–14"):
        assert what in titles
    # Windows of 5 ms, every tenth sample: a tolerance of two windows.
    assert numbers(found(one, "settles within 1.5 s"))[1] == pytest.approx(0.54, abs=0.011)
    # An independent plain recursive least squares had 12 % and 49 %.
    assert_allclose(numbers(found(one, "friction falls by a fifth")), [12.6, 48.7], atol=1.0)
    short, long = numbers(found(one, "white noise of 0.01"))[:2]
    assert short == pytest.approx(65.0, abs=6.0)  # the independent code: 65 % and 0.2 %; ours is of three runs
    assert long < 1.0
    start, best = numbers(found(one, "Optimisation of motor 2"))[:2]
    assert start == pytest.approx(1807.0, abs=1.0)
    assert best <= 62.0  # a simplex search
    # The simulated arm can play the optimum with free accelerations; the paper's could not.
    tried = {row[0]: row[2] for row in next(i for i in one.items if i.title.startswith("Figure 6")).tables[0].rows}
    assert tried["that, as the arm plays it"] == pytest.approx(tried["optimal, free"], rel=0.05)
    assert next(s.holds for s in one.statements if "cannot be realised" in s.claim) is False
    # 132 points: fewer than 118 of the 95 % intervals contain the truth in one of a thousand cases.
    inside, points = numbers(found(one, "one family of curves"))[-3:-1]
    assert points == 132
    assert 118 <= inside < points
    load = {row[0]: row[2] for row in next(i for i in one.items if "10–14" in i.title).tables[0].rows}
    assert load["start, read as degrees"] == pytest.approx(3.2e5, rel=0.02)  # two printed digits
    assert load["start, read as radians"] == pytest.approx(51.0, rel=0.02)
    assert load["the move of Table I"] == pytest.approx(410.0, rel=0.02)  # one sample more or less


def test_both_sides_of_the_irp6_statements_are_shown(done: dict[str, Reproduction]) -> None:
    """Long windows and known friction are better or worse, depending on the conditions."""
    shown_ones = {s.claim: s.holds for s in done["irp6"].statements if s.kind == "shown"}
    for both in ("Long integrals", "With friction known beforehand", "With drift the integral"):
        assert {holds for claim, holds in shown_ones.items() if claim.startswith(both)} == {True, False}
    for wrong in ("The printed computed values are", "Thirteen parameters cannot be found", "One move of 1.83 s"):
        assert [holds for claim, holds in shown_ones.items() if claim.startswith(wrong)] == [False]
    load = next(i for i in done["irp6"].items if i.title.startswith("Table I"))
    as_printed = np.array([row[1] for row in load.tables[1].rows], dtype=float)
    # Thirty random runs gave 0.3, 5, 24, 1 % and 60–330 %, which agree with these exact values within a third.
    assert_allclose(as_printed[:4], [0.3, 5.0, 24.0, 1.0], rtol=0.35)
    assert 40.0 < as_printed[4:].min() < as_printed[4:].max() < 450.0


def test_prrrp_has_the_figures_of_the_specification(done: dict[str, Reproduction]) -> None:
    one = done["prrrp"]
    wrong = ("successfully identified", "Tracking validates", "says nothing about a model", "sensitivity to its")
    assert [s.holds for word in wrong for s in one.statements if word in s.claim] == [False] * 4
    # One draw of the noise cannot prove that the filter is stable for all.
    assert [s.holds for s in one.statements if "velocity noise of 1e-4" in s.claim] == [None]
    shares = numbers(found(one, "successfully identified"))
    assert_allclose(shares, (0.0, 51.0, 54.0, 100.0), atol=1.0)  # a grid of 5°
    titles = " ".join(item.title for item in one.items)
    wanted = [f"Table {k}" for k in (3, 4, 5, 6)] + [f"Figure {k}" for k in (3, 5, 6, 7, 8)]
    assert all(what in titles for what in wanted)
    assert_allclose(numbers(found(one, "Runge–Kutta steps"))[0], 0.2, atol=0.03)  # percent, one digit in print
    # Percent, except κ(W). Only the noise is random, with a seed.
    assert numbers(found(one, "motion excites all eight"))[0] == pytest.approx(6.0, abs=0.1)
    assert numbers(found(one, "Least squares is exact"))[1] == pytest.approx(0.6, abs=0.2)
    assert numbers(found(one, "Adaline with γ"))[0] == pytest.approx(7.7, abs=0.1)
    assert numbers(found(one, "Hopfield with c"))[0] == pytest.approx(4.4, abs=0.1)
    assert_allclose(numbers(found(one, "Computed torque with Kalman"))[-2:], (0.16, 1.1), rtol=0.1)  # rad
    assert numbers(found(one, "explicit steps"))[1] == pytest.approx(1719, abs=1)
    assert_allclose(numbers(found(one, "velocity noise of 1e-4"))[-1], 0.7, atol=0.05)  # the same draw of the noise
    # The paper prints 0.0012 m for Adaline's joint 5, 0.0001 rad for Kalman's three rotary joints, and zeros.
    item = next(i for i in one.items if i.title.startswith("Table 5"))
    ours = np.array([row[3:10:2] for row in item.tables[0].rows if row[1] == "RMS"], dtype=float)
    assert_allclose(ours, np.array([row[2:9:2] for row in item.tables[0].rows if row[1] == "RMS"]), atol=1e-4)
    assert ours[4, 1] == pytest.approx(0.0012, abs=5e-5)


def test_orders_that_agree_by_chance_are_no_evidence() -> None:
    """With four sets, only the identical order is rarer than one in twenty."""
    assert _tracking_says_nothing([1, 2, 3, 4], [10, 20, 30, 40]).holds is False
    assert _tracking_says_nothing([1, 2, 4, 3], [10, 20, 30, 40]).holds is True
    assert "-1.0; 24 of 24" in _tracking_says_nothing([4, 3, 2, 1], [10, 20, 30, 40]).found


def test_any_eight_lambdas_make_a_model() -> None:
    """Torques and inertias are those of the annexes, even if λ6/λ7 is not l2/l3."""
    lab = Lab(fast=True)
    rng = np.random.default_rng(5)
    values = lab.true * rng.uniform(0.2, 3.0, 8) * np.array([1, 1, -1, 1, 1, -1, 1, 1])
    model = lab.with_lambdas(values)
    q, dq, ddq = rng.normal(size=(3, 20, 5))
    torque = forms.prrrp_regressor(q, dq, ddq) @ values
    assert_allclose(model.torque(q, dq, ddq), torque, atol=1e-11 * np.abs(torque).max())  # rounding of lstsq
    assert_allclose(model.mass_matrix(q), inertia(q, np.tile(values, (20, 1))), atol=1e-12)


def test_the_filter_of_eight_remains_at_the_truth() -> None:
    """With clean positions, short steps and a start at the truth, the estimate does not change."""
    lab = Lab(fast=True)
    log = lab.log(5.0)
    part = Log(log.joints, log.t[:50], log.q[:50], tau=np.asarray(log.tau)[:50])
    first = np.concatenate([log.q[0], np.asarray(log.dq)[0]])
    estimate = _EightFilter(1e-4, "rk4").run(part, first, lab.true)
    assert_allclose(estimate[-1], lab.true, rtol=1e-3)  # torques are linear between samples of 20 ms


def test_paper_parameters_convert_in_both_directions() -> None:
    a = arm()
    assert_allclose(a.own.matrix, a.map)
    assert a.own.rank == 21
    rng = np.random.default_rng(3)
    theta = rng.normal(size=a.map.shape[1])
    # Sums of some ten products of numbers of order one.
    assert_allclose(a.own.from_base(a.base.values(theta)), a.own.values(theta), atol=1e-12)
    values = rng.normal(size=21)
    assert_allclose(a.own.values(a.model(values).theta), values, atol=1e-11)


def test_unidentifiable_parameters_are_refused() -> None:
    with pytest.raises(SteelyardError, match="'mass' = m1 is not identifiable"):
        PaperParameters.of({"mass": "m1"}, arm().base)


def test_expressions_of_szabo_are_parsed() -> None:
    table_2 = printed_table("szabo3r", "table2")
    read = {formula(text) for text in table_2.words("expression")}
    assert set(forms.SZABO.values()) <= read
    assert {"Fs1", "Fsc2", "Fsv3"} <= read


def test_printed_tables_know_their_columns() -> None:
    assert np.isnan(printed_table("rotradi", "table2").numbers("dynamic")).all()
    with pytest.raises(UnknownNameError, match=r"no column 'dinamic'.*'dynamic'"):
        printed_table("rotradi", "table2").numbers("dinamic")


def public_names(module: str) -> list[str]:
    """Return the public names of a module: `__all__`, or all names of the module of errors."""
    imported = import_module(module)
    return list(getattr(imported, "__all__", None) or vars(imported))


@pytest.mark.parametrize("script", sorted(HOME.rglob("*.py")), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_scripts_import_public_names_only(script: Path) -> None:
    """Papers import only public names of `steelyard` and its rooms, and modules of `papers`."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            inside = [alias.name for alias in node.names if alias.name.startswith("steelyard.")]
            assert inside == [], f"{script.name} imports {inside}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("steelyard"):
            module = str(node.module)
            if module.startswith("steelyard.papers"):
                continue
            assert module.count(".") <= 1, f"{script.name} imports from {module}, not from a room"
            strange = {alias.name for alias in node.names} - set(public_names(module))
            assert not strange, f"{script.name} imports {strange}, which {module} does not list"


def test_the_errata_name_tests_that_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")))
    there = {
        n for f in (ROOT / "tests").rglob("test_*.py") for n in re.findall(r"def (test_\w+)", f.read_text("utf-8"))
    }
    assert len(named) > 10
    assert named <= there


@pytest.mark.parametrize("name", PAPER_NAMES)
def test_results_survive_json(done: dict[str, Reproduction], name: str) -> None:
    written = json.loads(json.dumps(reproduction_to_json(done[name]), allow_nan=False))
    items = tuple(build(Item, Field(item, "item", exact=True)) for item in written["items"])
    again = replace(done[name], items=items)
    for item, read in zip(done[name].items, again.items, strict=True):
        assert read.statements == item.statements
        assert read.title == item.title
    assert reproduction_to_json(again)["items"] == written["items"]  # gaps in lines are NaN, which equals nothing


def test_unknown_papers_are_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reproduce", "rotrady", "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "There is no paper 'rotrady'. Did you mean 'rotradi'?" in result.output
    assert not (tmp_path / "out").exists()


def test_the_command_writes_a_page(
    tmp_path: Path, done: dict[str, Reproduction], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.papers.reproduce.run_paper", lambda paper, **_: done[paper.name])
    # Wide enough for all cells of the table on one line.
    wide = CliRunner(env={"COLUMNS": "240"})
    result = wide.invoke(app, ["reproduce", *SHORT, "--fast", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "The combinations are those of Table 2." in " ".join(result.output.split())
    for name in SHORT:
        page = (tmp_path / name / "report.html").read_text(encoding="utf-8")
        assert "reason if not regenerated" in page
        assert "NaN" not in own_part(page)
        assert figures(page)
