"""LuGre friction against its closed forms: steady sliding, pre-sliding stiffness, break-away; and its refinement."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.parameters.terms import terms
from steelyard.robot import load_robot
from steelyard.simulation import PD
from steelyard.simulation.lugre import LuGre, refine_lugre, simulate_lugre

BRISTLES = LuGre(stiffness=2e4, damping=40.0, viscous=0.8, coulomb=5.0, static=8.0, stribeck_speed=0.05)
J = 0.5  # kg m²


def wheel() -> Model:
    """One joint about a vertical axis, free of gravity: inertia alone."""
    arm = load_robot("szabo3r")
    robot = load_robot(
        arm, joints=[arm.joint_names[0]], locked={n: 0.0 for n in arm.joint_names[1:]}, gravity=(0, 0, 0)
    )
    theta = np.zeros(robot.inertial_count)
    mass = Model(robot, terms(robot), robot.inertial_parameters).mass_matrix(np.zeros((1, 1)))[0, 0, 0]
    theta[:] = robot.inertial_parameters * (J / mass)
    return Model(robot, terms(robot), theta)


def test_steady_sliding_is_the_stribeck_curve() -> None:
    model = wheel()
    for speed in (0.02, 0.1, -0.5):
        t = np.arange(601) * 2e-3
        path = (speed * t[:, None], np.full((601, 1), speed), np.zeros((601, 1)))
        run = simulate_lugre(model, BRISTLES, PD([2e3], [100.0]), duration=1.2, step=2e-3, reference=path, dq0=[speed])
        # Held within 1e-3 of the speed by the controller; the curve's slope there is at most 50 N m s/rad.
        np.testing.assert_allclose(run.friction[-100:, 0].mean(), BRISTLES.steady([speed])[0], rtol=0.01)
        np.testing.assert_allclose(run.simulation.tau[-100:, 0].mean(), run.friction[-100:, 0].mean(), rtol=0.01)


def test_before_sliding_it_is_a_spring() -> None:
    """Pulled slowly with F bristles bend by F/σ₀; the joint goes −(Fs/σ₀) ln(1 − F/Fs), as dz/dx = 1 − σ₀z/Fs."""
    F = 2.0
    torque = F * np.minimum(np.arange(1000)[:, None] / 900.0, 1.0)
    run = simulate_lugre(wheel(), BRISTLES, torque, duration=1.0)
    np.testing.assert_allclose(run.bristles[-1, 0], F / 2e4, rtol=2e-3)
    np.testing.assert_allclose(run.simulation.q[-1, 0], -8.0 / 2e4 * np.log(1.0 - F / 8.0), rtol=0.01)


def test_break_away_is_static_friction() -> None:
    """A ramp slower than all modes breaks away within a few percent of Fs, also with long steps."""
    found = []
    for step in (2e-3, 5e-4):
        t = np.arange(round(1.0 / step)) * step
        torque = 6.0 + 4.0 * t[:, None]
        held = {"q0": [-8.0 / 2e4 * np.log(1.0 - 6.0 / 8.0)], "z0": [6.0 / 2e4]}
        run = simulate_lugre(wheel(), BRISTLES, torque, duration=1.0, step=step, **held)
        moving = int(np.argmax(run.simulation.dq[:, 0] > 0.02))
        found.append(run.simulation.tau[moving, 0])
    # The ramp of 4 N m/s rises by 0.1 N m in the 25 ms that 0.5 kg m² take to gather 0.02 rad/s.
    np.testing.assert_allclose(found, 8.0, rtol=0.03)
    assert abs(found[0] - found[1]) < 0.02 * 8.0


def test_stiff_bristles_do_not_oscillate_on_an_arm() -> None:
    """Bristles a thousand times too stiff for explicit steps of 1 ms, on six joints."""
    arm = Model.nominal(load_robot("ns16"))
    stiff = LuGre(stiffness=[1e8] * 6, damping=1e3, viscous=1.0, coulomb=5.0, static=7.0, stribeck_speed=0.05)
    run = simulate_lugre(arm, stiff, arm.gravity_torque(np.zeros((1, 6)))[0], duration=0.3)
    # The motors hold gravity, so that the arm stays in place up to the deflection of the bristles.
    assert np.max(np.abs(run.simulation.q)) < 1e-6
    played = simulate_lugre(arm, stiff, None, duration=0.3)
    assert np.all(np.isfinite(played.simulation.q))
    assert np.max(np.abs(played.simulation.q)) < 1.0


def test_energy_only_decreases() -> None:
    """A released joint stops; friction never returns more energy than the bristles store."""
    run = simulate_lugre(wheel(), BRISTLES, None, duration=0.6, dq0=[2.0])
    kinetic = 0.5 * J * run.simulation.dq[:, 0] ** 2
    stored = 0.5 * 2e4 * run.bristles[:, 0] ** 2
    assert np.all(np.diff(kinetic + stored) < 1e-6)
    assert kinetic[-1] < 1e-6


def test_output_error_finds_the_parameters() -> None:
    model = wheel()
    t = np.arange(250) * 4e-3
    tau = (9.0 * np.sin(2 * np.pi * 2.0 * t) + 3.0 * np.sin(2 * np.pi * 0.9 * t))[:, None]
    run = simulate_lugre(model, BRISTLES, tau[:-1], times=t, step=4e-3)
    start = LuGre(stiffness=2e4, damping=40.0, viscous=1.1, coulomb=6.0, static=8.0, stribeck_speed=0.05)
    found = refine_lugre(model, run.simulation.log(), start, ("coulomb", "viscous"), step=4e-3)
    # Without noise the result is the truth up to the optimiser's tolerance.
    assert found.rmse < 0.02 * found.start_rmse
    np.testing.assert_allclose(found.friction.coulomb, 5.0, rtol=0.02)
    np.testing.assert_allclose(found.friction.viscous, 0.8, rtol=0.05)


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(SteelyardError, match="at least Coulomb"):
        LuGre(stiffness=1.0, damping=1.0, viscous=0.0, coulomb=5.0, static=4.0, stribeck_speed=0.1)
    with pytest.raises(SteelyardError, match="zero or positive"):
        LuGre(stiffness=-1.0, damping=1.0, viscous=0.0, coulomb=5.0, static=6.0, stribeck_speed=0.1)
    with pytest.raises(SteelyardError, match="of 1 joints"):
        simulate_lugre(Model.nominal(load_robot("ns16")), BRISTLES, duration=0.1)
    arm, log = Model.nominal(load_robot("ns16")), simulate_lugre(wheel(), BRISTLES, duration=0.01).simulation.log()
    with pytest.raises(SteelyardError, match="lock all but one"):
        refine_lugre(arm, log, BRISTLES)
