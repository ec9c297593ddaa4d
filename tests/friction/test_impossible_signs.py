"""Coefficients with an impossible sign, which would drive the joint, are not shown as results."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import steelyard as sy
from steelyard.demo import simulated_log
from steelyard.friction.laws import FittedLaw, choose_law, fit_law, law_named
from steelyard.friction.measure import FrictionCurves, _fit
from steelyard.friction.plateaus import Plateau
from steelyard.ground.numbers import NO_SIGN
from steelyard.identification.identification_run import result_json
from steelyard.identification.parameters_page import base_parameters_section, model_section

SPEEDS = np.concatenate([-np.linspace(0.2, 2.0, 8), np.linspace(0.2, 2.0, 8)])


def falling(v: np.ndarray) -> np.ndarray:
    """Friction that falls with speed: dry friction of 5 N m and a viscous coefficient of \u22121."""
    return np.sign(v) * (5.0 - np.abs(v))


def test_a_law_lists_coefficients_with_an_impossible_sign() -> None:
    fitted = fit_law(law_named("coulomb-viscous"), SPEEDS, falling(SPEEDS), np.full(16, 0.01))
    assert fitted.coefficients == pytest.approx([5.0, -1.0])
    assert fitted.impossible == ("Fv",)
    both = fit_law(law_named("coulomb-viscous-asymmetric"), SPEEDS, falling(SPEEDS), np.full(16, 0.01))
    assert both.impossible == ("Fvp", "Fvn")
    rising = fit_law(law_named("coulomb-viscous"), SPEEDS, -falling(-SPEEDS) + 2.0 * SPEEDS, np.full(16, 0.01))
    assert rising.impossible == ()


@pytest.mark.parametrize("seed", range(6))
def test_laws_with_possible_signs_have_priority(seed: int) -> None:
    """A quadratic fits a Stribeck curve as well with fewer coefficients, but one has an impossible sign."""
    noise = np.random.default_rng(seed).normal(0.0, 0.2, 16)
    torque = np.sign(SPEEDS) * (2.0 + 3.0 * np.exp(-((SPEEDS / 0.6) ** 2))) + noise
    choice = choose_law(SPEEDS, torque, np.full(16, 0.2))
    assert fit_law(law_named("quadratic"), SPEEDS, torque, np.full(16, 0.2)).impossible == ("Fv",)
    assert choice.fitted.impossible == ()
    assert choose_law(SPEEDS, torque, np.full(16, 0.2), [law_named("quadratic")]).fitted.impossible == ("Fv",)


def test_coefficients_with_an_impossible_sign_are_named_without_a_value() -> None:
    points = [Plateau(0, 0.0, 1.0, float(v), float(f), 0.01, np.zeros(3), np.zeros(3))
              for v, f in zip(SPEEDS, falling(SPEEDS), strict=True)]  # fmt: skip
    joint = _fit("q1", points, "plateaus", "coulomb-viscous", False, None)
    found = FrictionCurves(sy.load_robot("rotradi"), (joint,), {})
    out = Console(width=300, record=True, file=io.StringIO())
    found.print_to(out)
    printed = out.export_text()
    assert f"Fv {NO_SIGN}" in printed
    assert "Fv is not identifiable: the best fit has an impossible sign." in printed
    assert "-1" not in printed
    document = found.to_json()["joints"][0]
    assert document["impossible_signs"] == ["Fv"]
    page = found.page()
    row = re.search(r"<td[^>]*>Fv</td>.*?</tr>", page, re.DOTALL)
    assert row is not None
    assert NO_SIGN in row[0]
    assert "-1" not in row[0].split("</td>")[1]
    assert "\u22121" not in row[0].split("</td>")[1]


@pytest.fixture(scope="module")
def driven() -> sy.Identification:
    """The free fit to a log with a torque that grows with speed and drives the first joint."""
    robot = sy.load_robot("rotradi")
    log = simulated_log(sy.Model.nominal(robot), seed=1)
    assert log.tau is not None
    assert log.dq is not None
    tau = log.tau.copy()
    tau[:, 0] -= 50.0 * log.dq[:, 0]
    return sy.identify(robot, replace(log, tau=tau), terms=["viscous"], physical=False, check=False)


def test_free_fits_mark_impossible_signs(driven: sy.Identification) -> None:
    k = driven.base.names.index("Fv1")
    assert driven.estimate.beta[k] < -10.0
    signs = driven.base.impossible_signs(driven.estimate.beta)
    assert signs[k]
    rows = json.loads(json.dumps(result_json(driven)["base_parameters"]["list"], default=str))
    assert rows[k]["impossible_sign"] is rows[k]["free_impossible_sign"] is True
    assert [r["impossible_sign"] for r in rows] == signs.tolist()
    for section in (base_parameters_section(driven), model_section(driven)):
        assert NO_SIGN in str(section.body)
    row = re.search(r">Fv1</.*?</tr>", str(base_parameters_section(driven).body), re.DOTALL)
    assert row is not None
    assert row[0].count(NO_SIGN) == 2


def test_only_base_parameters_of_joint_terms_have_a_lower_bound(driven: sy.Identification) -> None:
    """A first moment may be negative."""
    base = driven.base
    least = dict(zip(base.names, base.least_values, strict=True))
    assert {name for name, low in least.items() if low == 0.0} == {"Fv1", "Fv2", "Fv3"}
    assert all(low == -np.inf for name, low in least.items() if not name.startswith("Fv"))


def test_a_negative_stribeck_coefficient_must_not_exceed_the_dry_friction() -> None:
    """SmoothedCurve off near zero, dry friction is less there; below nothing it would drive the joint out of rest."""
    law, covariance = law_named("tustin"), np.eye(4) * 1e-4
    less = FittedLaw(law, np.array([8.0, -5.0, 6.0]), covariance, shape=0.02, fastest=2.0)
    driving = FittedLaw(law, np.array([8.0, -15.0, 6.0]), covariance, shape=0.02, fastest=2.0)
    assert less.impossible == ()
    assert driving(0.001) < 0.0
    assert driving.impossible == ("Fst",)
