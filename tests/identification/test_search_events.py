"""Progress events of a structure search match its result, and a callback does not change the result."""

from __future__ import annotations

import json

import numpy as np
import pytest
from test_search import log, plant

from steelyard.ground.progress import ProgressReport
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.identification.structure import term_text


@pytest.fixture(scope="module", params=["stribeck", "coulomb"])
def heard(request: pytest.FixtureRequest) -> tuple[str, Identification, list[ProgressReport]]:
    told: list[ProgressReport] = []
    return request.param, identify(plant(request.param).robot, log(request.param), progress=told.append), told


def test_the_rows_that_were_taken_are_the_structure_that_is_reported(
    heard: tuple[str, Identification, list[ProgressReport]],
) -> None:
    _, found, told = heard
    seen = [p.results for p in told if p.results.get("of") == "structure"]
    steps, (chosen,) = [s for s in seen if s["event"] == "step"], [s for s in seen if s["event"] == "chosen"]
    assert found.structure is not None
    reported = found.structure.to_json()["steps"]
    kept = [{key: step[key] for key in reported[0]} for step in steps if step["way"] == chosen["way"]]
    assert kept == reported == chosen["steps"]
    assert chosen["tried"] == found.structure.tried
    # Applied to the usual terms, joint by joint, they give the terms of the model.
    usual = {"rotor", "viscous", "coulomb", "offset"}
    terms = {joint: set(usual) for joint in found.robot.joint_names}
    for step in (s for s in kept if s["taken"]):
        sign, _, what = step["change"].partition(" ")
        if sign == "=":
            terms[step["joint"]].discard("coulomb")
        (terms[step["joint"]].discard if sign == "-" else terms[step["joint"]].add)(what)
    by_joint: dict[str, set[str]] = {joint: set() for joint in found.robot.joint_names}
    for term in found.structure.terms.terms:
        for joint in term.where or found.robot.joint_names:
            by_joint[joint].add(term_text(term))
    assert {j: {_short(t) for t in names} for j, names in terms.items()} == {
        j: {_short(t) for t in names} for j, names in by_joint.items()
    }


def _short(text: str) -> str:
    """Without the options of what everybody has."""
    kind = text.split(" (")[0]
    return kind if kind in ("rotor", "viscous", "offset") else text if "smooth" in text else kind


def test_every_step_says_why_and_what_else_was_tried(heard: tuple[str, Identification, list[ProgressReport]]) -> None:
    kind, _, told = heard
    steps = [p.results for p in told if p.results.get("event") == "step"]
    for step in steps:
        gain = step["before_percent"] - step["after_percent"]
        if step["change"].startswith("-"):
            assert "idle" in step["why"]
        else:
            assert ("gains more" in step["why"]) == step["taken"]
            assert not step["taken"] or gain > step["doubt_percent"]
            best = [c["after_percent"] for c in step["candidates"] if c["after_percent"] is not None]
            assert len(step["candidates"]) > 1
            assert min(best) <= step["after_percent"] * (1.0 + 1e-4)
    assert any(s["taken"] and "stribeck" in s["change"] for s in steps) == (kind == "stribeck")
    json.dumps([dict(p.results) for p in told], allow_nan=False)


def test_who_listens_changes_nothing(heard: tuple[str, Identification, list[ProgressReport]]) -> None:
    kind, found, told = heard
    assert np.array_equal(identify(plant(kind).robot, log(kind)).model.theta, found.model.theta)
    fits = [p.results for p in told if p.results.get("of") == "fit"]
    assert fits[0]["parameters"] == found.base.rank
    assert np.allclose(fits[-1]["residual_std"], found.estimate.residual_std, rtol=1e-4)  # Rounded to five digits.
