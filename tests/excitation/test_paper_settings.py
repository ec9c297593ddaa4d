"""The papers' excitation problems under their limits, compared with the published figures."""

from __future__ import annotations

import numpy as np
import pytest
from excitation_cases import pendulum, szabo

import steelyard as sy
from steelyard.excitation import SearchSettings
from steelyard.excitation._motion_rows import SchemeRows, Windows
from steelyard.excitation.sampled_motions import SampledMotions
from steelyard.excitation.trajectories import Fourier

PARAMETERS = ["mx1", "Izz1", "Fv1", "Fc1"]


@pytest.mark.proof
def test_frobenius_condition_of_szabo_and_szadeczky_kardoss():
    """Five harmonics of 0.1 Hz, 24 columns: 2.4e4 by a simplex search under the same limits."""
    robot, terms = szabo()
    plan = sy.excite(
        robot,
        terms=terms,
        criterion="frobenius",
        limits={"q": [2.5, 1.2, 2.5], "dq": 3.0, "ddq": 12.0},
        search=SearchSettings(starts=16, survivors=(4, 1), sharpness=(4.0, 4.0, 4.0), repeats=3),
    )
    assert len(plan.columns) == 24
    assert plan.value == pytest.approx(np.linalg.cond(plan.gram, "fro"), rel=1e-6)
    # Measured 1.5e4: the sharp friction terms of joint 2 limit it, at the allowed speeds.
    assert plan.value < 1.7e4
    assert plan.violation == 0.0


def test_one_joint_integral_model_of_kozlowski_and_dutkiewicz():
    """cond(hᵀh) of four parameters within ±40° and 1.5 rad/s: 1807 for the cosine start, then at most 62."""
    robot = pendulum()
    terms = sy.terms(robot, "viscous", "coulomb")
    base = sy.base_parameters(robot, terms)
    times = np.arange(0.0, 4.0, 0.005)
    family = Fourier(5, 4.0, rest=False)
    columns = [base.independent[base.names.index(n)] for n in PARAMETERS]
    sampled = SampledMotions([family], times)
    rows = SchemeRows(base.structure.dynamics, columns, sampled, "energy", [0], Windows.along(800, 200.0, 0.005, False))
    # q = 0.3 (1 − cos ωt): in the series' own coefficients b₁ = 0.3 ω, q₀ = 0.3
    cosine = np.zeros(11)
    cosine[0], cosine[6] = 0.3, 0.3 * np.pi / 2.0
    assert np.linalg.cond(rows.grams(cosine)[0]) == pytest.approx(1807.0, rel=0.01)
    plan = sy.excite(
        robot,
        terms=terms,
        parameters=PARAMETERS,
        scheme="energy",
        window=0.005,
        criterion="information",
        rate=200.0,
        duration=4.0,
        family=family,
        limits={"q": np.deg2rad(40.0), "dq": 1.5, "ddq": None},
        search=SearchSettings(starts=4, survivors=(1, 1), sharpness=(4.0, 8.0, 32.0)),
    )
    assert plan.value <= 62.0
    assert plan.violation == 0.0


def test_one_equation_of_the_differential_model_of_kozlowski_and_dutkiewicz():
    """Equation 1 of the IRp-6 at 300 points: from 1.9e5 to 88 in the paper (its start is not given)."""
    robot = sy.load_robot("irp6")
    terms, _ = sy.nominal_terms(robot)
    # The paper's 13 parameters in the first equation: products of inertia with axis 1 are assumed zero.
    model = ["Izz1", "Ixx2", "Ixx3", "Ixy3", "mx3", "Fc_motor1", "Fv_motor1"]
    base = sy.base_parameters(robot, terms)
    plan = sy.excite(
        robot,
        terms=terms,
        parameters=[n for n in base.names if n in model],
        equations=["q1"],
        criterion="information",
        duration=6.0,
        rate=50.0,
        limits={"ddq": 12.0},
        search=SearchSettings(starts=4, survivors=(1, 1), sharpness=(4.0, 8.0, 32.0)),
    )
    assert len(plan.columns) == 7
    assert plan.value < 88.0
    assert plan.violation == 0.0
