"""Rollouts against MuJoCo, and their derivatives against differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matching.conftest import Case, plant_of
from matching.plants import play

from steelyard.matching import Drives, MatchCoordinates
from steelyard.matching.command_stretch import command_stretches
from steelyard.matching.log_windows import Windows
from steelyard.matching.match_coordinates import JOINT_BLOCKS, MatchPoint
from steelyard.matching.window_rollout import Physics, rollout
from steelyard.matching.window_sensitivities import normal_equations
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot import Robot


def point_of(plant, robot: Robot, coordinates: MatchCoordinates) -> MatchPoint:
    point = coordinates.point(coordinates.centre)
    d = Drives(plant.kp, plant.kd, plant.limit, plant.delay, plant.delayed)
    return replace(
        point, links=plant.links, beta=coordinates.base.matrix @ plant.links, armature=plant.armature,
        viscous=plant.viscous, dry=plant.dry, bias=plant.bias, drives=d,
    )  # fmt: skip


def coordinates_of(robot: Robot, drives: Drives, fit=JOINT_BLOCKS) -> MatchCoordinates:
    ones = np.ones(robot.dof)
    scales = {"armature": 0.01 * ones, "viscous": ones, "dry": ones}
    return MatchCoordinates.of(robot, base_parameters(robot, ()), drives, fit, scales)


@pytest.mark.parametrize(("delayed", "limit"), [("torque", np.inf), ("goal", np.inf), ("torque", 4.0)])
def test_a_rollout_at_the_true_numbers_is_mujocos(leg: Robot, tmp_path, delayed: str, limit: float) -> None:
    """Over two seconds with sticking joints; MuJoCo's dry friction is soft over 4 ms, which limits the agreement."""
    plant = plant_of(leg, tmp_path, 3, delayed=delayed, limit=np.full(3, limit))
    rest = np.array([0.0, 0.8, -1.5])
    log = play(plant, lambda t: rest + 0.4 * np.sin(2 * np.pi * 1.5 * t + np.arange(3)), 2.0, 500.0)
    if np.isfinite(limit):
        held = np.abs(plant.kp * (log.channels["goal"] - log.q)) > limit
        assert held.any(axis=0).all()  # every joint reaches its limit, or the case is not the one it claims to be
    windows = Windows.of(command_stretches([log]), np.inf, 2)
    physics = Physics.of(leg, np.full(3, 0.01))
    point = point_of(plant, leg, coordinates_of(leg, Drives(plant.kp, plant.kd, plant.limit, plant.delay, delayed)))
    run = rollout(physics, windows, point, log.q[:1], np.zeros((1, 3)))
    error = np.abs(windows.q - run.at_samples(windows))
    assert (run.side == 0).any()  # friction holds joints at times
    assert error.max() < 2e-3 * np.ptp(log.q, axis=0).max()


def test_the_error_of_a_step_falls_with_its_square(leg: Robot, case: Case) -> None:
    drives = Drives(case.plant.kp, case.plant.kd, np.full(3, np.inf), 0.004)
    point = replace(point_of(case.plant, leg, coordinates_of(leg, drives)), dry=np.zeros(3), drives=drives)
    physics = Physics.of(leg, np.full(3, 0.01))
    ends = []
    for steps in (1, 2, 16):
        windows = Windows.of(command_stretches([case.log])[:1], 1.0, steps)
        # The velocity belongs to half a step before the first sample; a start at rest needs no correction.
        q0 = windows.past_q[-1].copy()
        at_rest = replace(
            windows, past_dq=np.zeros_like(windows.past_dq), past_q=np.repeat(q0[None], len(windows.past_q), 0)
        )
        ends.append(rollout(physics, at_rest, point, q0, np.zeros_like(q0)).at_samples(at_rest)[:, -1])
    coarse, fine = (np.sqrt(np.mean((e - ends[2]) ** 2)) for e in ends[:2])
    assert fine < coarse / 2.5  # four, but for the held goals and the start


def test_a_heavily_damped_joint_does_not_ring(leg: Robot, case: Case) -> None:
    """A damper stops joints within a step; then they sag slowly: each velocity changes its sign once at most."""
    c = coordinates_of(leg, Drives(case.plant.kp, case.plant.kd, np.full(3, np.inf), 0.0, "goal"))
    point = replace(c.point(c.centre), viscous=np.full(3, 30.0), dry=np.full(3, 0.1))
    windows = Windows.of([command_stretches([case.log])[0].part(0, 100)], np.inf, 1)
    at = np.repeat(windows.past_q[-1][None], len(windows.past_q), 0)
    still = replace(windows, past_q=at, past_dq=np.zeros_like(at))
    goal = replace(still.stretches[0], goal=np.tile(at[-1], (len(still.stretches[0]), 1)))
    still = replace(still, stretches=(goal,))
    run = rollout(Physics.of(leg, np.full(3, 1e-3)), still, point, at[-1], np.full((1, 3), 2.0))
    speed = run.v[run.past :, 0]
    assert np.all(run.shares > 0.5)
    assert np.all(np.sum(speed[1:-1] * speed[2:] < 0.0, axis=0) <= 1)


@pytest.mark.parametrize("delayed", ["torque", "goal"])
def test_derivatives_are_those_of_the_rollout(leg: Robot, case: Case, delayed: str) -> None:
    drives = Drives(case.plant.kp, case.plant.kd, np.full(3, 6.0), 0.0043, delayed)
    c = coordinates_of(leg, drives)
    z = c.centre
    for name, value in (("armature", 0.005), ("viscous", 0.1), ("dry", 0.2), ("bias", 0.02)):
        z[c.blocks[name]] = value
    z[c.blocks["links"]] = 0.1 * np.random.default_rng(0).standard_normal(30)
    windows = Windows.of([command_stretches([case.log])[0].part(0, 600)], 0.3, 2)
    physics = Physics.of(leg, np.full(3, 0.02))
    q0, v0 = windows.past_q[-1].copy(), windows.past_dq[-1].copy()

    def half_square(z: np.ndarray, q0=q0, v0=v0) -> np.ndarray:
        run = rollout(physics, windows, c.point(z), q0, v0)
        return -0.5 * np.sum((windows.q - run.at_samples(windows)) ** 2, axis=(1, 2))

    point = c.point(z)
    run = rollout(physics, windows, point, q0, v0)
    r = windows.q - run.at_samples(windows)
    ne = normal_equations(physics, c.base, windows, point, run, np.ones_like(r), r, c.fit)
    exact = ne.g[:, :-6] @ c.slope(z, point)
    for k in [0, 7, 12, 25, *(place.start + (name != "delay") for name, place in c.blocks.items())]:
        e = np.zeros_like(z)
        e[k] = 1e-6
        number = (half_square(z + e) - half_square(z - e)) / 2e-6
        # Differences of a piecewise smooth function: some joint may change its side within 1e-6.
        np.testing.assert_allclose(exact[:, k], number, rtol=2e-3, atol=1e-4 * np.abs(exact[:, k]).max() + 1e-9)
    e = np.zeros_like(q0)
    e[:, 1] = 1e-6
    number = (half_square(z, q0 + e) - half_square(z, q0 - e)) / 2e-6
    np.testing.assert_allclose(ne.g[:, -5], number, rtol=2e-3)
    number = (half_square(z, q0, v0 + e) - half_square(z, q0, v0 - e)) / 2e-6
    np.testing.assert_allclose(ne.g[:, -2], number, rtol=2e-3)
