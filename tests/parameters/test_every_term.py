"""Every registered term, and one of another package, passes all checks."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import plugged_terms
import pytest
from term_roads import KINDS, ROADS

from steelyard.errors import UnknownNameError
from steelyard.ground import registry
from steelyard.parameters import TERMS, Term, describe_terms, make_term

DOCS = Path(__file__).parents[2] / "docs" / "terms.md"
POINTS = ("cogging", "Cogging"), ("saturating", "Saturating")


@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_every_term_passes_all_checks(kind: str, road, tmp_path: Path) -> None:
    road(kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_class_attributes_agree_with_the_formula(kind: str) -> None:
    term = make_term(kind)
    u, v = np.random.default_rng(0).uniform(-3.0, 3.0, (2, 200))
    columns = np.array([np.broadcast_to(c, u.shape) for c in term.force(u, v)])
    assert term.dissipative == (np.all(columns * v >= 0.0) and np.any(columns * v > 0.0))
    # Exact columns depend only on direction, not on position or speed.
    same = np.ptp(np.abs(columns[:, v > 0.0]), axis=1) == 0.0
    assert term.exact == (bool(np.all(same)) and not term.inertial and not term.history)
    stored = term.potential(u)
    if stored is not None:
        h = 1e-6
        slope = (np.array(term.potential(u + h)) - np.array(term.potential(u - h))) / (2.0 * h)  # type: ignore[operator]
        np.testing.assert_allclose(np.broadcast_to(slope, columns.shape), columns, atol=1e-8)
    for shape in term.shape_parameters:
        assert getattr(term, shape.option) is not None


@pytest.fixture
def other_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with two terms and a third that fails to import; it is removed afterwards."""
    named = [EntryPoint(name, f"{plugged_terms.__name__}:{cls}", TERMS.group) for name, cls in POINTS]
    broken = EntryPoint("broken", "no_such_package:Nothing", TERMS.group)
    monkeypatch.setattr(registry, "entry_points", lambda group: [*named, broken] if group == TERMS.group else [])
    monkeypatch.setattr(TERMS, "_members", dict(TERMS))
    monkeypatch.setattr(TERMS, "_plugins_read", False)


@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.__name__)
@pytest.mark.parametrize("kind", [name for name, _ in POINTS])
@pytest.mark.filterwarnings("ignore::steelyard.ground.registry.PluginWarning")
def test_a_term_of_another_package_passes_all_checks(kind: str, road, tmp_path: Path, other_package: None) -> None:
    assert kind in TERMS
    road(kind, tmp_path)


def test_a_broken_plug_in_causes_one_warning(other_package: None) -> None:
    with pytest.warns(registry.PluginWarning) as told:
        names = list(TERMS)
    assert [str(w.message) for w in told] == [
        "The term 'broken' is left out, it cannot be loaded (ModuleNotFoundError: No module named 'no_such_package')."
    ]
    assert {*KINDS, "cogging", "saturating"} == set(names)
    with pytest.raises(UnknownNameError, match="broken"):
        make_term("broken")


def test_the_decorator_makes_a_term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TERMS, "_members", dict(TERMS))

    @TERMS.register("cogging-again")
    class Again(plugged_terms.Cogging):
        pass

    assert isinstance(make_term("cogging-again", poles=2.0), Again)
    assert make_term("cogging-again").name == "cogging-again"


@pytest.mark.parametrize(("member", "why"), [(dict, "derives from"), (TERMS["coulomb"], "'coulomb' already")])
def test_invalid_registrations_are_refused(member: type, why: str) -> None:
    with pytest.raises(registry.SteelyardError, match=why):
        TERMS.register("another")(member)
    assert "another" not in TERMS


def _row(term: Term, name: str, summary: str) -> str:
    columns = {c.symbol.rstrip("_"): c for c in term.columns}
    symbols = [f"{s} ({c.unit})" for s, c in columns.items()]
    if len(symbols) > 4:
        symbols = [symbols[0], "…", symbols[-1]]
    bounds = [f"{s} ≥ 0" for s, c in columns.items() if c.lower == 0.0]
    options = [f"`{option}`" for option in term.options]
    return f"| `{name}` | {summary} | {', '.join(symbols)} | {', '.join(bounds) or '–'} | {', '.join(options) or '–'} |"


def test_the_table_of_the_documentation_is_the_registry() -> None:
    made = [_row(make_term(t.name), t.name, t.summary) for t in describe_terms()]
    there = [line for line in DOCS.read_text("utf-8").splitlines() if re.match(r"\| `[\w-]+` \|", line)]
    assert there == made, "docs/terms.md should have these rows:\n" + "\n".join(made)
