"""Runs side by side, against numbers calculated by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from check.checked_logs import clean, robot_of

from steelyard import identify
from steelyard.identification.identification_run import result_json
from steelyard.studio.differences import (
    ComparedParameter,
    base_parameters_compared,
    differences_html,
    scores_compared,
    settings_that_differ,
    standard_parameters_compared,
)
from steelyard.studio.studio_folder import StudioError


def _run(values: dict[str, tuple[float, float]], error: float = 2.0, **settings: Any) -> dict[str, Any]:
    """Return the needed parts of a result.json with these base parameters (value, standard error)."""
    rows = [
        {"name": name, "formula": name, "unit": "kg m²", "value": value, "standard_error": sigma}
        for name, (value, sigma) in values.items()
    ]
    score = {"log": "b", "joints": [{"joint": "q1", "nrmse_percent": error}]}
    return {
        "verdict": {"grade": "good", "sentence": "It is."},
        "base_parameters": {"list": rows},
        "parameters": [{"name": row["name"], "unit": row["unit"], "value": row["value"]} for row in rows],
        "settings": {"estimator": "wls", "terms": [{"kind": "viscous", "where": None}], **settings},
        "identification": [],
        "validation": [score],
    }


def test_a_difference_combines_both_errors() -> None:
    # √(0.03² + 0.04²) = 0.05, so that 0.09 is 1.8 and 0.11 is 2.2 standard errors.
    first = _run({"Izz1": (1.00, 0.03), "mx2": (2.00, 0.03)})
    other = _run({"Izz1": (1.09, 0.04), "mx2": (1.89, 0.04)})
    a, b = base_parameters_compared([first, other])
    inside, outside = a.against_first(1), b.against_first(1)
    assert inside is not None
    assert outside is not None
    assert (inside.value, inside.error) == pytest.approx((0.09, 0.05))
    assert inside.standard_errors == pytest.approx(1.8)
    assert not inside.is_significant
    assert outside.value == pytest.approx(-0.11)
    assert outside.standard_errors == pytest.approx(2.2)
    assert outside.is_significant


def test_missing_parameters_and_other_formulas_have_no_significant_difference() -> None:
    one = ComparedParameter("Ia1", "kg m²", (0.1, None), (0.01, None), ("Ia1", ""))
    assert one.against_first(1) is None
    two_sums = ComparedParameter("Izz1", "kg m²", (1.0, 2.0), (0.01, 0.01), ("Izz1 + Ia1", "Izz1"))
    found = two_sums.against_first(1)
    assert found is not None
    assert found.standard_errors is not None
    assert found.standard_errors > 50.0
    assert not found.is_significant


def test_a_parameter_without_an_error_is_never_significant() -> None:
    one = ComparedParameter("m1", "kg", (1.0, 9.0), (None, None), ("m1", "m1")).against_first(1)
    assert one is not None
    assert (one.value, one.error, one.standard_errors, one.is_significant) == (8.0, None, None, False)


def test_settings_and_scores() -> None:
    first = _run({"Izz1": (1.0, 0.1)}, 2.0, cutoff_hz=5.0)
    other = _run({"Izz1": (1.0, 0.1)}, 3.5, cutoff_hz=9.0, preparation={"velocity": "auto"})
    assert settings_that_differ([first, other]) == [
        ("cutoff_hz", ("5.0", "9.0")),
        ("preparation velocity", ("–", "auto")),
    ]
    assert settings_that_differ([first, first]) == []
    assert scores_compared([first, other]) == [("b", "q1", (2.0, 3.5))]


def test_the_page_colours_and_counts_significant_differences() -> None:
    runs = [
        ("runs/one", _run({"Izz1": (1.0, 0.03), "mx2": (2.0, 0.03)})),
        ("runs/two", _run({"Izz1": (1.09, 0.04), "mx2": (1.5, 0.04)})),
        ("runs/<three>", _run({"Izz1": (1.0, 0.04), "mx2": (2.0, 0.04)})),
    ]
    page = differences_html(runs)
    assert "1 of 2 base parameters differ by more than their 95 % intervals: mx2." in page
    assert page.count("--level:100%") == 4  # difference and standard errors, of base and of all parameters
    assert "-0.500 ± 0.098" in page  # 1.96 · 0.05
    assert "runs/&lt;three&gt;" in page
    assert "<three>" not in page


def test_runs_of_other_commands_are_refused() -> None:
    with pytest.raises(StudioError, match="identify"):
        differences_html([("a", {"grade": "good"}), ("b", {})])
    with pytest.raises(StudioError, match="two"):
        differences_html([("a", _run({}))])


def test_two_motions_of_one_arm_agree_within_their_error_bars(tmp_path: Path) -> None:
    """Two logs of one simulated arm: normalised differences are of size one."""
    robot = robot_of("rotradi")
    # The terms of the simulated arm, so that only noise differs between the runs.
    found = [identify(robot, clean("rotradi", seed), terms="viscous,coulomb", physical=False) for seed in (0, 1)]
    results = [json.loads(json.dumps(result_json(one), default=float)) for one in found]
    compared = [p.against_first(1) for p in base_parameters_compared(results)]
    z = np.array([one.standard_errors for one in compared if one is not None])
    assert len(z) == found[0].base.rank
    # For correct, independent errors, at least 16 of 21 values are below 1.96 and the root mean square is above 0.55,
    # each with probability 99.9 % (binomial, χ²).
    assert np.sum(z < 1.96) >= 16
    assert np.sqrt(np.mean(z**2)) > 0.55
    alone = [p for p in standard_parameters_compared(results) if p.errors[0] is not None]
    classes = {row["name"] for row in results[0]["parameters"] if row["class"] == "alone"}
    assert {p.name for p in alone} == classes
    assert math.isfinite(sum(p.values[0] or 0.0 for p in alone))
    differences_html([("a", results[0]), ("b", results[1])])
