"""The dynamics equal the closed forms of the source papers, entry by entry, with the papers' errata corrected."""

from __future__ import annotations

import numpy as np
import papers.closed_forms as forms
import pytest
from numpy.testing import assert_allclose

from steelyard.dynamics import Dynamics, Model
from steelyard.parameters import Viscous, nominal_terms, terms
from steelyard.robot import Robot, load_robot
from steelyard.robot.spatial import inertia_matrix, skew

# Sums of some thirty products of numbers of order 100 (gravity × length × squares of speeds): rounding stays below.
ROUNDING = 1e-11


def motion(robot: Robot, samples: int = 40, seed: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, dq, ddq = np.random.default_rng(seed).uniform(-2.5, 2.5, (3, samples, robot.dof))
    return q, dq, ddq


# ---------------------------------------------------------------- Rotradi


@pytest.fixture(scope="module")
def rotradi() -> Robot:
    return load_robot("rotradi")


@pytest.fixture(scope="module")
def rotradi_dynamics(rotradi: Robot) -> Dynamics:
    return Dynamics(rotradi, terms(rotradi, "viscous", "coulomb"))


@pytest.fixture(scope="module")
def rotradi_map(rotradi: Robot, rotradi_dynamics: Dynamics) -> np.ndarray:
    """θ1..θ21 of the paper from our 36 parameters."""
    return forms.map_of(forms.ROTRADI + forms.ROTRADI_FRICTION, rotradi, rotradi_dynamics.terms.names)


def test_rotradi_has_the_printed_inertia_coriolis_and_gravity(
    rotradi: Robot, rotradi_dynamics: Dynamics, rotradi_map: np.ndarray
) -> None:
    """(22), (23), (24)."""
    model, L2 = Model.nominal(rotradi), rotradi.lengths["L2"]
    q, dq, _ = motion(rotradi)
    t = [np.nan, *(rotradi_map @ model.theta)]
    rigid = np.concatenate([rotradi.inertial_parameters, np.zeros(6)])
    assert_allclose(model.mass_matrix(q), forms.rotradi_mass_matrix(q, t, L2), atol=ROUNDING)
    assert_allclose(rotradi_dynamics.gravity_torque(q, rigid), forms.rotradi_gravity(q, t), atol=ROUNDING)
    bias = rotradi_dynamics.bias_torque(q, dq, rigid) - rotradi_dynamics.gravity_torque(q, rigid)
    coriolis = np.einsum("nij,nj->ni", forms.rotradi_coriolis_matrix(q, dq, t, L2), dq)
    assert_allclose(bias, coriolis, atol=ROUNDING)


def test_rotradi_has_the_printed_torque_regressor(
    rotradi: Robot, rotradi_dynamics: Dynamics, rotradi_map: np.ndarray
) -> None:
    """(33): for every one of the 36 parameters, not only for the robot's own values."""
    q, dq, ddq = motion(rotradi)
    printed = forms.rotradi_torque_regressor(q, dq, ddq, rotradi.lengths["L2"])
    assert_allclose(rotradi_dynamics.torque_regressor(q, dq, ddq), printed @ rotradi_map, atol=ROUNDING)


def test_rotradi_has_the_corrected_filtered_regressor(
    rotradi: Robot, rotradi_dynamics: Dynamics, rotradi_map: np.ndarray
) -> None:
    """(34): A is the momentum's regressor and B the remainder's, after the general rule."""
    q, dq, _ = motion(rotradi)
    A, B = forms.rotradi_filtered_regressors(q, dq, rotradi.lengths["L2"])
    assert_allclose(rotradi_dynamics.momentum_regressor(q, dq), A @ rotradi_map, atol=ROUNDING)
    assert_allclose(rotradi_dynamics.remainder_regressor(q, dq), B @ rotradi_map, atol=ROUNDING)


def test_rotradi_has_the_printed_energies(rotradi: Robot, rotradi_dynamics: Dynamics, rotradi_map: np.ndarray) -> None:
    """(35), counted from rest at q = 0."""
    q, dq, _ = motion(rotradi)
    rest = np.zeros(3)
    energy = rotradi_dynamics.kinetic_energy_regressor(q, dq) + rotradi_dynamics.potential_energy_regressor(q)
    energy = energy - rotradi_dynamics.potential_energy_regressor(rest)
    printed = forms.rotradi_energy(q, dq, rotradi.lengths["L2"])
    assert_allclose(energy[:, :30], printed @ rotradi_map[:15, :30], atol=ROUNDING)


def test_rotradi_has_the_printed_powers(rotradi: Robot, rotradi_dynamics: Dynamics, rotradi_map: np.ndarray) -> None:
    """(36): q̇ᵀτ per parameter; the last six are what friction takes."""
    q, dq, ddq = motion(rotradi)
    power = np.einsum("nj,njp->np", dq, rotradi_dynamics.torque_regressor(q, dq, ddq))
    printed = forms.rotradi_power(q, dq, ddq, rotradi.lengths["L2"])
    # One factor of speed more than a torque.
    assert_allclose(power, printed @ rotradi_map, atol=3 * ROUNDING)
    lost = rotradi_dynamics.dissipation_regressor(q, dq)
    assert_allclose(lost[:, 30:], printed[:, 15:] @ rotradi_map[15:, 30:], atol=ROUNDING)


# ---------------------------------------------------------------- IRp-6


def test_irp6_has_the_thirteen_energies() -> None:
    """d1..d13 with the parallelogram, for links as the paper supposes: no products of inertia, masses on x."""
    robot = load_robot("irp6")
    bound = terms(robot, *nominal_terms(robot)[0].terms)
    dynamics = Dynamics(robot, bound)
    X = forms.map_of(forms.IRP6, robot, bound.names)
    q, dq, _ = motion(robot)
    d = forms.irp6_energy(q, dq, robot.lengths["l2"])
    energy = dynamics.kinetic_energy_regressor(q, dq) + dynamics.potential_energy_regressor(q)
    here = np.zeros(3)
    energy0, d0 = dynamics.potential_energy_regressor(here), forms.irp6_energy(here[None], here[None], 1.0)
    names = [p.name for p in dynamics.parameters]
    kept = [
        k
        for k, n in enumerate(names)
        if n.startswith("Ia") or n[:-1] in ("m", "Ixx", "Iyy", "Izz") or (n[:-1] == "mx" and n != "mx1")
    ]
    assert_allclose((energy - energy0)[:, kept], ((d - d0) @ X[:7])[:, kept], atol=ROUNDING)
    lost = dynamics.dissipation_regressor(q, dq)
    assert_allclose(lost, forms.irp6_dissipation(dq) @ X[7:], atol=ROUNDING)


def test_irp6_torques_are_those_of_the_thirteen_parameters() -> None:
    """Work done along a motion equals the energies' change plus friction, with the built-in numbers."""
    robot = load_robot("irp6")
    model = Model.nominal(robot)
    X = forms.map_of(forms.IRP6, robot, model.terms.names) @ model.theta
    assert_allclose(
        X, [3.340927, 2.407152, 8.582848, 3.082848, 0.816, 0.4, 8.125, 12, 28.75, 15, 20, 26, 18], atol=1e-6
    )
    t = np.linspace(0.0, 2.0, 4001)
    amplitude, rate, phase = np.array([0.9, 0.5, 0.6]), np.array([1.7, 2.3, 3.1]), np.array([0.3, 1.1, 2.0])
    swing = np.outer(t, rate) + phase
    q, dq, ddq = amplitude * np.sin(swing), amplitude * rate * np.cos(swing), -amplitude * rate**2 * np.sin(swing)
    power = np.sum(dq * model.torque(q, dq, ddq), axis=1) - forms.irp6_dissipation(dq) @ X[7:]
    work = np.sum((power[1:] + power[:-1]) / 2 * np.diff(t))
    energy = forms.irp6_energy(q, dq, robot.lengths["l2"]) @ X[:7]
    assert work == pytest.approx(energy[-1] - energy[0], abs=1e-4)  # the trapezoid rule's error at 0.5 ms


# ---------------------------------------------------------------- PRRRP


@pytest.fixture(scope="module")
def prrrp() -> tuple[Robot, dict[str, dict[int, float]]]:
    """The robot, with masses, centres of mass counted from the joints, and Izz about them."""
    robot = load_robot("prrrp")
    m, lc, inertia = {}, {}, {}
    for k, link in enumerate(robot.links, start=1):
        assert link.inertia is not None
        m[k] = link.inertia[0]
        c = link.inertia[1:4] / m[k]
        inertia[k] = (inertia_matrix(link.inertia) + m[k] * skew(c) @ skew(c))[2, 2]
        lc[k] = robot.lengths.get(f"l{k}", 0.0) + c[0]
    inertia[4] += inertia[5]  # the tool turns with link 4; the paper leaves its own Izz out
    return robot, {"m": m, "lc": lc, "inertia": inertia}


def test_prrrp_has_the_printed_linear_form(prrrp: tuple[Robot, dict[str, dict[int, float]]]) -> None:
    """Annex B and Table 3."""
    robot, links = prrrp
    q, dq, ddq = motion(robot)
    values = forms.prrrp_parameters(**links, lengths=robot.lengths)
    assert_allclose(values, [4.297, 0.108632, 0.067712, 0.066061, 0.026792, 0.025141, 0.025141, 0.5114], atol=1e-6)
    torque = Model.nominal(robot).torque(q, dq, ddq)
    assert_allclose(torque, forms.prrrp_regressor(q, dq, ddq) @ values, atol=ROUNDING)


def test_prrrp_has_the_corrected_coriolis_torques(prrrp: tuple[Robot, dict[str, dict[int, float]]]) -> None:
    """(A.12) corrected, (A.13), (A.14), and the gravity of (A.15)."""
    robot, links = prrrp
    m, lc, lengths = links["m"], links["lc"], robot.lengths
    P, R = m[3] * lc[3] + (m[4] + m[5]) * lengths["l3"], m[4] * lc[4] + m[5] * lengths["l4"]
    q, dq, _ = motion(robot)
    gravity = np.array([sum(m.values()), 0.0, 0.0, 0.0, -m[5]]) * forms.G
    torque = Model.nominal(robot).torque(q, dq, np.zeros_like(q))
    coriolis = forms.prrrp_coriolis(q, dq, P, R, lengths["l2"], lengths["l3"])
    assert_allclose(torque, coriolis + gravity, atol=ROUNDING)


# ---------------------------------------------------------------- errata: what was printed does not hold


def test_the_printed_filtered_regressor_counts_velocity_products_twice(
    rotradi: Robot, rotradi_dynamics: Dynamics, rotradi_map: np.ndarray
) -> None:
    """(34) as printed has −q̇1q̇2 sin 2q2 under f2 in row 1; nothing must be there."""
    q, dq, _ = motion(rotradi)
    remainder = rotradi_dynamics.remainder_regressor(q, dq)[:, 0] @ np.linalg.pinv(rotradi_map)
    assert_allclose(remainder[:, :15], 0.0, atol=ROUNDING)


def test_the_printed_viscous_term_of_szabo_lacks_its_velocity() -> None:
    """(7) prints τ_v for τ_v·v: friction then would not vanish at rest."""
    robot = load_robot("szabo3r")
    bound, values = nominal_terms(robot)
    still = np.zeros(3)
    friction = Dynamics(robot, bound).torque_regressor(still, still, still)[:, 30:] @ values
    assert_allclose(friction, 0.0, atol=1e-15)
    viscous = Dynamics(robot, terms(robot, Viscous())).torque_regressor(still, still + 2.0, still)[:, 30:]
    assert_allclose(viscous, 2.0 * np.eye(3))
