"""Random Fourier motions within a robot's limits, for playing and for judging."""

from __future__ import annotations

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.excitation.constraints.limits import default_limits
from steelyard.excitation.trajectories import Fourier, Trajectory
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.blas import one_blas_thread
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array

# Of the limits; the loop overshoots a little.
_SHARE = 0.8
# Positions no farther from the middle than this (rad, m), where a robot has wide limits: as arms are really moved.
_REACH = {"revolute": 2.0, "prismatic": 0.5}
_SAMPLES = 400


def random_motion(robot: Robot, harmonics: int, duration: float, rng: np.random.Generator) -> Trajectory:
    """A series that starts and ends at rest, as wide as position, velocity and acceleration limits allow."""
    family = Fourier(max(harmonics, 2), duration)
    limits = default_limits(robot)
    t = np.linspace(0.0, duration, _SAMPLES, endpoint=False)
    velocities, _ = family.basis(t, 1)
    parts = []
    for k, joint in enumerate(robot.joints):
        middle = float(limits.middle[k])
        room = min(float(limits.upper[k]) - middle, _REACH[joint.kind])
        wanted = _velocity(t, family, rng)
        # The offset does not show in a velocity: the shortest solution leaves it alone.
        x = np.asarray(np.linalg.lstsq(velocities, wanted, rcond=None)[0], dtype=np.float64)
        peaks = [max(abs(end) for end in family.extent(x, order)) for order in range(3)]
        allowed = (room, float(limits.dq[k]), float(limits.ddq[k]))
        scale = _SHARE * min(limit / peak for limit, peak in zip(allowed, peaks, strict=True))
        parts.append(family.hold(middle) + scale * x)
    return Trajectory((family,) * robot.dof, np.concatenate(parts))


def _velocity(t: Array, family: Fourier, rng: np.random.Generator) -> Array:
    """Random harmonics whose power falls as their frequency rises."""
    size = rng.normal(size=(2, family.harmonics)) / np.sqrt(np.arange(1, family.harmonics + 1))
    angle = t[:, None] * family.omega
    return np.asarray(np.cos(angle) @ size[0] + np.sin(angle) @ size[1])


def exciting_motion(
    dynamics: Dynamics, base: BaseParameters, harmonics: int, duration: float, seed: list[int], trials: int = 12
) -> Trajectory:
    """The best of some random motions, by the condition number of the base columns scaled to unit length."""
    rng = np.random.default_rng(seed)
    motions = [random_motion(dynamics.robot, harmonics, duration, rng) for _ in range(trials)]
    with one_blas_thread():
        return min(motions, key=lambda motion: _condition(dynamics, base, motion))


def _condition(dynamics: Dynamics, base: BaseParameters, motion: Trajectory) -> float:
    t = np.linspace(0.0, motion.duration, _SAMPLES, endpoint=False)
    W = base.regressor_columns(dynamics.torque_regressor(*motion.sample(t))).reshape(-1, base.rank)
    lengths = np.linalg.norm(W, axis=0)
    return float(np.linalg.cond(W / np.where(lengths > 0.0, lengths, 1.0)))
