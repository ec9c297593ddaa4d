"""A motion played on a simulated robot: torques agree with inverse dynamics, and the log is that of the sensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import steelyard as sy
from steelyard.dynamics.model import Model
from steelyard.parameters import Coulomb, terms
from steelyard.simulation import PD, SimulationWarning, good_sensors, play
from steelyard.simulation.play import ENCODER


@dataclass(frozen=True)
class Swing:
    """All joints swing by half a radian (metre) and rest at both ends: 2 s of 0.25 (1 − cos)²-like motion."""

    joints: int
    duration: float = 2.0

    def sample(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        w = 2.0 * np.pi / self.duration
        ones = np.ones(self.joints)
        time = np.asarray(t, dtype=float)[..., None]
        return (
            0.25 * (1.0 - np.cos(w * time)) * ones,
            0.25 * w * np.sin(w * time) * ones,
            0.25 * w**2 * np.cos(w * time) * ones,
        )


ROBOT = sy.load_robot("szabo3r")
# Without friction, so that the closed form is that of rigid bodies.
TRUTH = Model(ROBOT, terms(ROBOT), Model.nominal(ROBOT).theta[: ROBOT.inertial_count])


def test_with_the_true_model_torques_are_those_of_inverse_dynamics() -> None:
    motion = Swing(ROBOT.dof)
    run = play(TRUTH, motion, 500.0)
    assert len(run.t) == 1001  # 2 s at 500 Hz, both ends
    q, dq, ddq = motion.sample(run.t)
    # Torque is held for 0.5 ms: it lags by a quarter of that on average, which moves the arm by far less than 1e-4 rad.
    assert np.max(np.abs(run.q - q)) < 1e-4
    wanted = TRUTH.torque(q, dq, ddq)
    # The first samples answer to the start: the motion begins with an acceleration, the robot at rest.
    late = run.t > 0.2
    assert np.max(np.abs(run.tau - wanted)[late]) < 0.01 * np.ptp(wanted)


def test_a_controller_with_a_wrong_model_follows_worse() -> None:
    motion = Swing(ROBOT.dof)
    heavy = Model(ROBOT, TRUTH.terms, 1.5 * TRUTH.theta)
    off = [np.max(np.abs(play(TRUTH, motion, 500.0, believed=b).q - motion.sample(np.arange(1001) / 500.0)[0]))
           for b in (TRUTH, heavy)]  # fmt: skip
    assert off[1] > 10.0 * off[0]


def test_periods_are_divided_until_the_friction_is_accurate() -> None:
    rubbing = terms(ROBOT, Coulomb())
    model = Model(ROBOT, rubbing, np.concatenate([TRUTH.theta, np.full(len(rubbing.lower), 0.05)]))
    options = {"controller": PD.for_model(model, bandwidth_rad_s=20.0), "loops": 1, "smoothing": 0.1}
    with pytest.warns(SimulationWarning, match="Friction damps"):
        play(model, Swing(ROBOT.dof), 200.0, **options)
    cut = play(model, Swing(ROBOT.dof), 200.0, settle=True, **options)  # warnings would be errors
    exact = play(model, Swing(ROBOT.dof), 200.0, method="rk45", **options)
    # Torque is held for the same periods, so that only the integrator differs; steps that just keep from ringing are
    # good to a part in a thousand of the motion.
    assert np.max(np.abs(cut.q - exact.q)) < 1e-3 * np.ptp(exact.q)


def test_sensors_round_positions_and_add_the_requested_noise() -> None:
    run = play(TRUTH, Swing(ROBOT.dof), 500.0)
    log = run.log(sensors=good_sensors([0.1, 0.2, 0.3], seed=1))
    steps = log.q / ENCODER
    assert np.allclose(steps, np.round(steps), atol=1e-6)
    assert log.tau is not None
    std = np.std(log.tau - run.tau, axis=0)
    # 1001 samples: the standard deviation of a standard deviation is 2.2 %; four of those.
    assert np.allclose(std, [0.1, 0.2, 0.3], rtol=0.09)
