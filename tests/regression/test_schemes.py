"""All schemes agree for every robot: exactly, or to the order of the time discretisation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from regression.scheme_cases import ROBOTS, case, solved, stacked

from steelyard.dynamics import Dynamics
from steelyard.parameters import terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.schemes import make_scheme, paper_motion

# Torques of these motions are smooth between the samples, unlike a controller's.
INTEGRAL = {
    "filtered-dynamic": "filtered-dynamic:cutoff_hz=1.45,torque=trapezoid,still=0",
    "filtered-dynamic of order 3": "filtered-dynamic:cutoff_hz=3.18,order=3,torque=trapezoid,still=0",
    "momentum, short": "momentum:window=0.08,consecutive=yes,torque=trapezoid,still=0",
    "momentum, sliding": "momentum:window=0.2,torque=trapezoid,still=0",
    "momentum, long": "momentum:window=0.08,growing=yes,torque=trapezoid,still=0",
    "energy, short": "energy:window=0.08,consecutive=yes,work=trapezoid",
    "energy, long": "energy:window=0.08,growing=yes,work=trapezoid",
    "filtered-power": "filtered-power:cutoff_hz=1.45,work=trapezoid",
}


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("scheme", ["dynamic", "power"])
def test_equations_of_instants_give_the_parameters_back(name: str, scheme: str) -> None:
    """Rounding (1e-13 of torques of up to 1 kN m), times condition numbers of some thousand."""
    c = case(name)
    A, y = c.rows(scheme, c.log(0.02, 40.0))
    assert_allclose(A @ c.beta, y, atol=1e-11 * np.abs(y).max())
    assert_allclose(solved(A, y), c.beta, atol=1e-8 * np.abs(c.beta).max())


@pytest.mark.parametrize("name", ROBOTS)
def test_half_the_step_is_a_quarter_of_the_error(name: str) -> None:
    """The trapezoid rule is of order 2; the measured order lies between 1.8 and 2.2 for every scheme and robot."""
    c = case(name)
    logs = [c.log(h, 2.4) for h in (0.008, 0.004)]
    for label, scheme in INTEGRAL.items():
        errors = []
        for log in logs:
            A, y = c.rows(scheme, log)
            errors.append(np.linalg.norm(A @ c.beta - y) / np.linalg.norm(y) if len(y) else np.nan)
        assert errors[1] < 2e-3, label
        assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2), label


@pytest.mark.parametrize("name", ["rotradi", "irp6-screws", "prrrp"])
@pytest.mark.parametrize("label", INTEGRAL)
def test_parameters_come_back_to_second_order(name: str, label: str) -> None:
    c = case(name)
    errors = []
    for h in (0.008, 0.004):
        A, y = c.rows(INTEGRAL[label], c.log(h, 12.0))
        errors.append(np.linalg.norm((solved(A, y) - c.beta) * np.linalg.norm(A, axis=0)) / np.linalg.norm(y))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.35)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("label", ["power", "energy, long", "energy, short", "filtered-power", "momentum, short"])
def test_every_scheme_identifies_all_base_parameters(name: str, label: str) -> None:
    """Summing the joints loses nothing, since every force does work somewhere.

    Offsets, springs and rotors appear as energies, friction as loss. The motion is long enough for one scalar equation.
    """
    c = case(name)
    A, _ = c.rows(INTEGRAL.get(label, label), c.log(0.02, 40.0))
    values = np.linalg.svd(A / np.linalg.norm(A, axis=0), compute_uv=False)
    assert A.shape[1] == c.base.rank
    # The worst of them (long integrals of energy) has 9e-5; rounding would leave 1e-13.
    assert values[-1] > 3e-5 * values[0]


@pytest.mark.parametrize("scheme", INTEGRAL.values())
def test_a_filter_may_start_in_motion_and_in_the_middle(scheme: str) -> None:
    """No initial condition enters: the second half of a log satisfies the equations as well as the first."""
    c = case("rotradi")
    whole = c.log(0.004, 4.0)
    half = len(whole) // 2
    parts = [whole.t[half:], *(x[half:] for x in (whole.q, whole.dq, whole.ddq, whole.tau))]
    t, q, dq, ddq, tau = parts
    A, y = c.rows(scheme, type(whole)(whole.joints, t, q, dq=dq, ddq=ddq, tau=tau))
    assert np.linalg.norm(A @ c.beta - y) < 1e-3 * np.linalg.norm(y)


def test_known_friction_leaves_the_other_parameters() -> None:
    """Curves subtracted, columns dropped: the inertial parameters come back, in differential and integral form."""
    c = case("rotradi")
    log = c.log(0.002, 6.0)
    values = dict(zip(c.terms.names, c.theta[30:], strict=True))
    curves = [lambda v, k=k: values[f"Fv{k}"] * v + values[f"Fc{k}"] * np.tanh(v) for k in range(1, 4)]
    bound = terms(c.robot, "rotor", "offset", "spring")
    base = base_parameters(c.robot, bound)
    beta = base.values(np.concatenate([c.theta[:30], [values[n] for n in bound.names]]))
    motions = paper_motion(log)
    for scheme in ("dynamic", "power", *INTEGRAL.values()):
        data = make_scheme(scheme).data(Dynamics(c.robot, bound), base, lambda: motions, known_friction=curves)
        A, y = stacked(data, base.independent)
        assert np.linalg.norm(A @ beta - y) < 1e-4 * np.linalg.norm(y), scheme
    named = dict(zip(c.robot.joint_names, curves, strict=True))
    by_name = make_scheme(scheme).data(Dynamics(c.robot, bound), base, lambda: motions, known_friction=named)
    assert_allclose(stacked(by_name, base.independent)[1], y)
