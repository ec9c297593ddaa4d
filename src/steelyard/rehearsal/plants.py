"""Simulated robots with known parameters, and the simulation of many of them at once."""

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
# Mass per joint of the rods that replace missing inertias [kg], as in small arms.
_KILOGRAMS = 3.0
# Torque of a missing friction or rotor term relative to the drive's limit or the gravity torque, as in real arms.
_SHARE = 0.05


def true_model(robot: Robot, terms: Terms, kind: str = "nominal", relative_std: float = 0.2, seed: int = 0) -> Model:
    """Create the true model of a simulated robot.

    "perturbed" changes every log-Cholesky coordinate of every link by a normal deviate of `relative_std` (masses and
    inertias by about twice that share) and every positive term by a factor of about 1 ± relative_std.

    Args:
        robot: Robot.
        terms: Joint terms, which all get values.
        kind: "nominal", or "perturbed": a physically possible robot close to the nominal one.
        relative_std: Relative standard deviation of the perturbation.
        seed: Seed of the perturbation.
    """
    return true_model_around(Model(robot, terms, _nominal(robot, terms)), kind, relative_std, seed)


def true_model_around(nominal: Model, kind: str, relative_std: float, seed: int) -> Model:
    """Create a true model as `true_model` does, from a nominal model, with which it shares the compiled physics.

    Args:
        nominal: Nominal model.
        kind: As for `true_model`.
        relative_std: As for `true_model`.
        seed: As for `true_model`.
    """
    if kind not in _KINDS:
        raise UnknownNameError("kind of truth", kind, _KINDS)
    if kind == "nominal":
        return nominal
    perturbation = _perturbation(nominal)
    deviates = np.random.default_rng([seed, 7]).normal(0.0, relative_std, len(perturbation.x))
    model = Model(nominal.robot, nominal.terms, perturbation.parameters(deviates))
    vars(model)["dynamics"] = nominal.dynamics
    return model


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
        # Positive parameters give their share of the torque at full speed; others, such as offsets, are zero.
        default = sizes[joint] / lever[joint] if p.lower == 0.0 and lever[joint] > 0.0 else 0.0
        values.append(known.get(p.name, default))
    return np.concatenate([links, values])


def _sizes(robot: Robot, links: Array) -> Array:
    """Return the torque of a missing friction or rotor term of each joint [N m or N]."""
    low, high = np.array([[max(j.lower, -np.pi), min(j.upper, np.pi)] for j in robot.joints]).T
    postures = np.random.default_rng(0).uniform(low, high, (200, robot.dof))
    load = np.max(np.abs(Model(robot, Terms(robot, ()), links).gravity_torque(postures)), axis=0)
    effort = np.array([j.effort for j in robot.joints])
    return np.where(np.isfinite(effort) & (effort > 0.0), _SHARE * effort, _SHARE * max(float(np.median(load)), 1.0))


def _levers(robot: Robot, terms: Terms) -> Array:
    """Return the torque of each joint per unit of each term's parameter, at full speed and acceleration."""
    limits = default_limits(robot)
    Y = Dynamics(robot, terms).torque_regressor(np.zeros(robot.dof), limits.dq, limits.ddq)
    return np.abs(Y[:, robot.inertial_count :]).T


@dataclass(frozen=True, eq=False)
class _Perturbation:
    """Coordinates of a nominal model, all of whose values are possible robots, with their scales; some stay `zero`."""

    chart: LogCholesky
    x: Array
    scale: Array
    zero: NDArray[np.bool_]

    @classmethod
    def of(cls, nominal: Model) -> _Perturbation:
        robot, theta, parameters = nominal.robot, nominal.theta, nominal.dynamics.parameters
        count = len(robot.links)
        body = default_bodies(robot)
        full = theta.copy()
        for k in range(count):  # impossible or flat bodies lack coordinates: make them possible by a small addition
            part = slice(10 * k, 10 * k + 10)
            full[part] += 1e-3 * max(float(full[part][0]), 1e-3) / body[k, 0] * body[k]
        chart = LogCholesky.of(parameters, count)
        x = chart.coordinates(full)
        scale = np.ones(len(x))
        # A deviate changes the logarithm of a diagonal entry by 1, and entries below the diagonal by half that entry.
        for k in range(count):
            scale[10 * k + 4 : 10 * k + 10] = np.exp(x[10 * k : 10 * k + 4])[[1, 2, 2, 3, 3, 3]] * 0.5
        scale[10 * count :][[p.lower != 0.0 for p in parameters[10 * count :]]] = 0.0
        return cls(chart, x, scale, np.r_[np.zeros(10 * count, dtype=bool), theta[10 * count :] == 0.0])

    def parameters(self, deviates: Array) -> Array:
        """Return full parameters for `deviates`, one per coordinate."""
        return np.where(self.zero, 0.0, self.chart.values(self.x + deviates * self.scale))


# Thousands of robots share one nominal model.
_perturbation = lru_cache(8)(_Perturbation.of)


# Largest memory for the signals of robots that are simulated at once [bytes].
_MOST_BYTES = 256_000_000
# Bandwidth of the robot's controller [rad/s].
BANDWIDTH = 30.0


def simulate_robots(
    models: Sequence[Model], motions: Sequence[Trajectory], rate: float, believed: Model
) -> Iterator[tuple[Simulation, ...]]:
    """Simulate all motions on robots with the same terms, some robots at a time; yields the runs of each robot.

    Args:
        models: True models.
        motions: Motions to play.
        rate: Sampling rate [Hz].
        believed: Model that the controllers use.
    """
    samples = sum(int(m.duration * rate) + 1 for m in motions)
    most = max(1, _MOST_BYTES // (4 * 8 * samples * believed.robot.dof))
    for first in range(0, len(models), most):
        group = models[first : first + most]
        theta = np.array([m.theta for m in group])
        runs = [play(group[0], m, rate, believed=believed, bandwidth_rad_s=BANDWIDTH, theta=theta) for m in motions]
        yield from (tuple(run.of_robot(k) for run in runs) for k in range(len(group)))
