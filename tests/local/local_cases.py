"""A small arm with two regions that share a face, and its logs."""

from __future__ import annotations

from functools import cache

import numpy as np

from steelyard import Model, Preparation, Sensors, load_robot
from steelyard.local import Bank, Design, JointRegion, SimulatedArm, identify_locally
from steelyard.parameters.terms import identification_terms

TERMS = ("viscous", "coulomb")
ROBOT = load_robot("rotradi")
# The plant has the friction model of the fit, so noise is the only error.
TRUTH = Model(ROBOT, identification_terms(ROBOT, TERMS), Model.nominal(ROBOT).theta)
NOISE = Sensors(torque_noise=tuple(0.01 * j.effort for j in ROBOT.joints))
LEFT = JointRegion("left", [-1.2, -0.8, -1.0], [0.0, 0.8, 1.0])
RIGHT = JointRegion("right", [0.0, -0.8, -1.0], [1.2, 0.8, 1.0])
HOW = Design(how="via-points", duration=8.0, candidates=1)
FILTER = Preparation(cutoff_hz=30.0, order=8)
OPTIONS = {"terms": TERMS, "prior": "none", "preparation": FILTER}


def arm(truth: Model = TRUTH, sensors: Sensors = NOISE, seed: int = 0) -> SimulatedArm:
    return SimulatedArm(truth, sensors, rate=200.0, substeps=4, seed=seed)


@cache
def bank(physical: bool = False) -> Bank:
    return identify_locally(ROBOT, arm(), [LEFT, RIGHT], motions=HOW, physical=physical, **OPTIONS)


def motion_at(q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Postures `q` with random velocities and accelerations."""
    rng = np.random.default_rng(3)
    return q, rng.normal(size=q.shape), rng.normal(size=q.shape)
