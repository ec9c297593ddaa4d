"""Joint terms: their columns, names, units and bounds, on joints, drives and motors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import relative, states

from steelyard.dynamics import Dynamics, Model
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground import scalars as sc
from steelyard.parameters import (
    TERMS,
    AsymmetricCoulomb,
    Column,
    Coulomb,
    Custom,
    Offset,
    Rotor,
    Spring,
    StribeckAtan,
    Terms,
    Viscous,
    identification_terms,
    terms,
)
from steelyard.parameters.terms import DEFAULT_TERMS
from steelyard.robot import Transmission
from steelyard.robot.library import builtin

speeds = st.floats(-5.0, 5.0)


def hats(v: float) -> list[float]:
    """Linear interpolation of unit values at the default speeds of a friction table."""
    knots = [0.0, 0.05, 0.2, 0.5, 1.0, 2.0]
    return [float(np.interp(v, knots, unit)) for unit in np.eye(len(knots))]


@settings(max_examples=60, deadline=None)
@given(st.floats(-3, 3), speeds)
def test_each_term_is_its_closed_form(u: float, v: float) -> None:
    s = np.sign(v)
    expected = {
        "rotor": [0.0],
        "viscous": [v],
        "coulomb": [s],
        "coulomb-asymmetric": [max(s, 0.0), min(s, 0.0)],
        "viscous-asymmetric": [max(v, 0.0), min(v, 0.0)],
        "viscous-saturating": [-s * np.expm1(-abs(v))],
        "stribeck-atan": [2 / np.pi * np.arctan(500 * v), 2 / np.pi * np.arctan(5 * v), v],
        "stribeck": [s * np.exp(-abs(v) / 0.1)],
        "friction-table": [*(max(s, 0.0) * np.array(hats(abs(v)))), *(min(s, 0.0) * np.array(hats(abs(v))))],
        "quadratic": [s * v**2],
        "offset": [1.0],
        "spring": [u],
        "counterbalance": [np.sin(u), np.cos(u)],
        "ripple": [np.sin(4 * u), np.cos(4 * u)],
        # Terms with memory: after a long motion at this speed, under unit load.
        "stop": [s],
        "stop-loaded": [s],
        "coulomb-loaded": [s],
        "lag": [0.0],
    }
    assert set(expected) == set(TERMS)  # a new term must be added here
    for kind, values in expected.items():
        assert np.allclose(TERMS[kind]().force(u, v), values, rtol=1e-14, atol=1e-14), kind


def test_every_term_states_names_units_and_bounds() -> None:
    robot = builtin("prrrp")
    bound = terms(robot, *TERMS)
    assert len(bound) == 5 * sum(len(cls().columns) for cls in TERMS.values())
    by_name = {p.name: p for p in bound.parameters}
    assert by_name["Fv1"].unit == "N s/m"  # joint 1 slides
    assert by_name["Fv2"].unit == "N m s/rad"
    assert by_name["Ia3"].lower == 0.0
    assert by_name["F02"].lower == -np.inf
    assert all(p.lower <= 0.0 <= p.upper for p in bound.parameters)


@settings(max_examples=60, deadline=None)
@given(speeds)
def test_coulomb_can_be_smoothed_or_have_a_dead_band(v: float) -> None:
    (smooth,) = Coulomb(smooth=0.1).force(0.0, v)
    assert smooth == pytest.approx(np.tanh(v / 0.1), abs=1e-15)
    (cut,) = Coulomb(dead_band=0.5).force(0.0, v)
    assert cut == (np.sign(v) if abs(v) > 0.5 else 0.0)
    up, down = AsymmetricCoulomb(dead_band=0.5).force(0.0, v)
    assert (up, down) == ((1.0, 0.0) if v > 0.5 else (0.0, -1.0) if v < -0.5 else (0.0, 0.0))


@settings(max_examples=30, deadline=None)
@given(st.floats(-3, 3))
def test_conservative_terms_are_gradients_of_their_potential(u: float) -> None:
    step = 1e-30
    for kind, cls in TERMS.items():
        term = cls()
        energy = term.potential(u + 1j * step)
        if energy is not None:
            slopes = np.imag(np.array(energy, dtype=complex)) / step
            assert np.allclose(slopes, term.force(u, 0.0), rtol=1e-12, atol=1e-12), kind


@pytest.mark.parametrize("name", ["irp6", "irp6-screws"])
def test_drive_and_motor_terms_obey_the_balances_of_momentum_and_energy(name: str) -> None:
    """A posture-dependent ratio bends the motor's path: its inertia then acts on velocities too."""
    robot = builtin(name)
    every = [cls(on="motor") for kind, cls in TERMS.items() if kind != "rotor"]
    d = Dynamics(robot, terms(robot, Rotor(on="motor"), Rotor(on="drive"), Rotor(), *every))
    s = states(robot, 20)
    q = 0.3 * s.q
    past = d.history(q, s.dq, s.ddq)
    torque = d.torque_regressor(q, s.dq, s.ddq, history=past)
    rate = d.tangent("momentum_regressor", {"q": s.dq, "dq": s.ddq}, q=q, dq=s.dq)
    scale = np.max(np.abs(torque), axis=(0, 1))
    assert np.max(np.abs(rate + d.remainder_regressor(q, s.dq, past) - torque) / np.maximum(scale, 1.0)) < 1e-12
    change = d.tangent("kinetic_energy_regressor", {"q": s.dq, "dq": s.ddq}, q=q, dq=s.dq)
    change = change + d.tangent("potential_energy_regressor", {"q": s.dq}, q=q) + d.dissipation_regressor(q, s.dq, past)
    power = np.einsum("sj,sjp->sp", s.dq, torque)
    assert np.max(np.abs(change - power) / np.maximum(np.max(np.abs(power), axis=0), 1.0)) < 1e-11


def test_a_rotor_behind_a_parallelogram_couples_the_joints() -> None:
    """IRp-6: motor 3 turns with q2 + q3, so its inertia appears in all four entries of that block."""
    robot = builtin("irp6")
    bare, with_rotors = robot.dynamics, Dynamics(robot, terms(robot, Rotor(on="drive")))
    theta = robot.inertial_parameters
    extra = with_rotors.mass_matrix(np.zeros(3), np.r_[theta, [1.0, 2.0, 3.0]]) - bare.mass_matrix(np.zeros(3), theta)
    assert np.allclose(extra, [[1, 0, 0], [0, 2 + 3, 3], [0, 3, 3]], atol=1e-12)


def test_forward_dynamics_inverts_inverse_dynamics_with_terms() -> None:
    for name in ("irp6-screws", "ns16", "arm7", "szabo3r"):
        model = Model.nominal(builtin(name))
        s = states(model.robot, 10)
        tau = model.torque(0.3 * s.q, s.dq, s.ddq)
        assert relative(model.acceleration(0.3 * s.q, s.dq, tau), s.ddq) < 1e-10  # cond(M) up to 1e4


def test_a_custom_term() -> None:
    robot = builtin("rotradi")
    f3 = Column("F3", "N m s³/rad³", "N s³/m³", lower=0.0)
    cubic = Custom(name="cubic", parameters=(f3,), torque=lambda u, du: (du**3,))
    wave = Custom(parameters=(Column("C", "N m", "N"),), torque=lambda u, du: (sc.cos(6.0 * u),), where=("q2",))
    bound = terms(robot, cubic, wave)
    assert bound.names == ("F31", "F32", "F33", "C2")
    s = states(robot, 4)
    y = Dynamics(robot, bound).torque_regressor(s.q, s.dq, s.ddq)[:, :, 30:]
    assert np.allclose(y[:, 1, 1], s.dq[:, 1] ** 3)
    assert np.allclose(y[:, 1, 3], np.cos(6 * s.q[:, 1]))
    assert np.count_nonzero(y[:, 0]) == 4


def test_terms_may_act_on_some_coordinates_only() -> None:
    """A coupled wrist as in the TX40: friction on every joint, and once more on motor 6, which moves two joints."""
    robot = builtin("ns16")
    from dataclasses import replace

    matrix = np.eye(6)
    matrix[5, 4] = 1.0
    robot = replace(robot, transmission=Transmission(matrix))
    bound = terms(robot, "viscous", Viscous(on="drive", where=("motor6",)))
    assert bound.names == ("Fv1", "Fv2", "Fv3", "Fv4", "Fv5", "Fv6", "Fv_motor6")
    dq = np.arange(1.0, 7.0)
    y = Dynamics(robot, bound).torque_regressor(np.zeros(6), dq, np.zeros(6))[:, 60:]
    assert y[:, 6].tolist() == [0.0, 0.0, 0.0, 0.0, 11.0, 11.0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda r: terms(r, "viscuos"), "Did you mean 'viscous'"),
        (lambda r: terms(r, "viscous", "viscous"), "Two terms have a parameter 'Fv1'"),
        (lambda r: terms(r, Viscous(on="drive")), "no transmission"),
        (lambda r: terms(r, Viscous(on="gear")), "choose one of joint, drive, motor"),
        (lambda r: terms(r, Viscous(where=("elbow",))), "There is no joint 'elbow'"),
        (lambda r: terms(r, Custom()), "needs `parameters`"),
    ],
)
def test_mistakes_are_named(make, words: str) -> None:
    with pytest.raises((SteelyardError, UnknownNameError), match=words):
        make(builtin("arm7"))


def test_settings_are_kept_in_the_term() -> None:
    (k,) = Spring(rest=0.5).force(1.0, 0.0)
    assert k == 0.5
    first, second, _ = StribeckAtan(Kv=100.0, delta=1.0).force(0.0, 0.01)
    assert first == pytest.approx(0.5)
    assert second == pytest.approx(2 / np.pi * np.arctan(0.01))
    assert Offset().potential(2.0) == (2.0,)


def test_a_motor_that_moves_two_joints_has_inertia_and_friction_by_default() -> None:
    """Its torque depends on the sum of the joints' motions, unlike any term on a joint."""
    plain = builtin("szabo3r")
    coupled = replace(plain, transmission=Transmission(np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])))
    uncoupled = replace(plain, transmission=Transmission(np.diag([1.0, 2.0, -1.0])))
    usual = [p.name for p in identification_terms(plain).parameters]
    assert [p.name for p in identification_terms(uncoupled).parameters] == usual
    more = [p.name for p in identification_terms(coupled).parameters]
    assert more == [*usual, "Ia_motor2", "Fv_motor2", "Fc_motor2"]
    # Terms requested by name are complete.
    assert [p.name for p in identification_terms(coupled, DEFAULT_TERMS).parameters] == usual

    s = states(coupled, 40, seed=2)
    truth = terms(coupled, Viscous(on="drive", where=("motor2",)))
    expected = Dynamics(coupled, truth).torque_regressor(s.q, s.dq, s.ddq)[..., -1].ravel()

    def left(which: Terms) -> float:
        columns = Dynamics(coupled, which).torque_regressor(s.q, s.dq, s.ddq).reshape(len(expected), -1)
        return float(np.linalg.norm(expected - columns @ np.linalg.lstsq(columns, expected, rcond=None)[0]))

    size = float(np.linalg.norm(expected))
    assert left(identification_terms(coupled)) < 1e-9 * size
    assert left(identification_terms(coupled, DEFAULT_TERMS)) > 0.1 * size
