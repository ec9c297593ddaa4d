"""Robots whose every parameter is known, because we chose them, and how they play a motion: many at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import UnknownNameError
from steelyard.estimation.possible.reference import default_bodies
from steelyard.excitation.constraints import default_limits
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array
from steelyard.parameters.inertial import LogCholesky
from steelyard.parameters.terms import Terms
from steelyard.robot.robot import Robot
from steelyard.simulation.play import play
from steelyard.simulation.simulation import Simulation

_KINDS = ("nominal", "perturbed")
# Where a description states no inertia: rods of this mass per joint (kg), as small arms have them.
_KILOGRAMS = 3.0
# Where it states no friction or rotor: each takes this share of what the drive can do, or of gravity's load, as they do
# in real arms.
_SHARE = 0.05


def planted(robot: Robot, terms: Terms, kind: str = "nominal", relative_std: float = 0.2, seed: int = 0) -> Model:
    """The nominal model of `robot` with values for all `terms`, or a possible robot around it, drawn by `seed`: `kind`.

    "perturbed" moves every log-Cholesky coordinate of every link by a normal deviate of `relative_std` (masses and
    inertias by about twice that share) and every positive term by a factor of about 1 ± relative_std.
    """
    return planted_around(Model(robot, terms, _nominal(robot, terms)), kind, relative_std, seed)


def planted_around(nominal: Model, kind: str, relative_std: float, seed: int) -> Model:
    """What `planted` gives where the `nominal` model is at hand, with `kind`, `relative_std` and `seed` as there; the
    physics of both is traced and compiled once."""
    if kind not in _KINDS:
        raise UnknownNameError("kind of truth", kind, _KINDS)
    if kind == "nominal":
        return nominal
    around = _around(nominal)
    deviates = np.random.default_rng([seed, 7]).normal(0.0, relative_std, len(around.x))
    made = Model(nominal.robot, nominal.terms, around.moved(deviates))
    vars(made)["dynamics"] = nominal.dynamics
    return made


def _nominal(robot: Robot, terms: Terms) -> Array:
    links, known = (_KILOGRAMS * robot.dof * default_bodies(robot)).ravel(), {}
    if robot.has_inertia:
        links = robot.inertial_parameters
        nominal = Model.nominal(robot)
        known = dict(zip((p.name for p in nominal.dynamics.parameters), nominal.theta.tolist(), strict=True))
    sizes = _sizes(robot, links)
    values = []
    for p, lever in zip(terms.parameters, _levers(robot, terms), strict=True):
        joint = int(np.argmax(lever))
        # Offsets and the like stay zero; what must be positive makes its share of the torque at full speed.
        made = sizes[joint] / lever[joint] if p.lower == 0.0 and lever[joint] > 0.0 else 0.0
        values.append(known.get(p.name, made))
    return np.concatenate([links, values])


def _sizes(robot: Robot, links: Array) -> Array:
    """Torque of an unknown friction or rotor, joint by joint (N m, N)."""
    low, high = np.array([[max(j.lower, -np.pi), min(j.upper, np.pi)] for j in robot.joints]).T
    postures = np.random.default_rng(0).uniform(low, high, (200, robot.dof))
    load = np.max(np.abs(Model(robot, Terms(robot, ()), links).gravity_torque(postures)), axis=0)
    effort = np.array([j.effort for j in robot.joints])
    return np.where(np.isfinite(effort) & (effort > 0.0), _SHARE * effort, _SHARE * max(float(np.median(load)), 1.0))


def _levers(robot: Robot, terms: Terms) -> Array:
    """How much torque a unit of each term's parameter asks of each joint at full speed and acceleration."""
    limits = default_limits(robot)
    Y = Dynamics(robot, terms).torque_regressor(np.zeros(robot.dof), limits.dq, limits.ddq)
    return np.abs(Y[:, robot.inertial_count :]).T


@dataclass(frozen=True, eq=False)
class _Around:
    """A nominal model as coordinates of which any numbers are a possible robot, and how far each moves by a deviate of
    one; what must not move is `zero`."""

    chart: LogCholesky
    x: Array
    scale: Array
    zero: NDArray[np.bool_]

    @classmethod
    def of(cls, nominal: Model) -> _Around:
        robot, theta, parameters = nominal.robot, nominal.theta, nominal.dynamics.parameters
        count = len(robot.links)
        body = default_bodies(robot)
        full = theta.copy()
        for k in range(count):  # what is no possible body, or a flat one, has no coordinates: round it out a little
            part = slice(10 * k, 10 * k + 10)
            full[part] += 1e-3 * max(float(full[part][0]), 1e-3) / body[k, 0] * body[k]
        chart = LogCholesky.of(parameters, count)
        x = chart.coordinates(full)
        scale = np.ones(len(x))
        for k in range(count):  # logarithms move by the deviate, the entries below the diagonal by a share of it
            scale[10 * k + 4 : 10 * k + 10] = np.exp(x[10 * k : 10 * k + 4])[[1, 2, 2, 3, 3, 3]] * 0.5
        scale[10 * count :][[p.lower != 0.0 for p in parameters[10 * count :]]] = 0.0
        return cls(chart, x, scale, np.r_[np.zeros(10 * count, dtype=bool), theta[10 * count :] == 0.0])

    def moved(self, deviates: Array) -> Array:
        """Full parameters at so many `deviates`, one a coordinate."""
        return np.where(self.zero, 0.0, self.chart.values(self.x + deviates * self.scale))


# Thousands of robots are planted around one.
_around = lru_cache(8)(_Around.of)


# Bytes of true signals of planted robots that are held at once.
_MOST_BYTES = 256_000_000
# What the robot's own controller is told to follow with, rad/s.
BANDWIDTH = 30.0


def played_together(
    models: Sequence[Model], motions: Sequence[Trajectory], rate: float, believed: Model
) -> Iterator[tuple[Simulation, ...]]:
    """How each of the `models`, of one robot with the same terms, plays the `motions`: some robots at a time.

    Args:
        models: the robots as they are.
        motions: what is played.
        rate: samples a second, Hz.
        believed: what their controllers know of them.
    """
    samples = sum(int(m.duration * rate) + 1 for m in motions)
    most = max(1, _MOST_BYTES // (4 * 8 * samples * believed.robot.dof))
    for first in range(0, len(models), most):
        some = models[first : first + most]
        theta = np.array([m.theta for m in some])
        runs = [play(some[0], m, rate, believed=believed, bandwidth_rad_s=BANDWIDTH, theta=theta) for m in motions]
        yield from (tuple(run.of_robot(k) for run in runs) for k in range(len(some)))
