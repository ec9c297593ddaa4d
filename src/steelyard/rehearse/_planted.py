"""`planted`: a robot whose every parameter is known, because we chose it."""

from __future__ import annotations

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import UnknownNameError
from steelyard.estimation.possible.reference import default_bodies
from steelyard.excitation.constraints import default_limits
from steelyard.ground.arrays import Array
from steelyard.parameters.inertial import LogCholesky
from steelyard.parameters.terms import Terms
from steelyard.robot.robot import Robot

_KINDS = ("nominal", "perturbed")
# Where a description states no inertia: rods of this mass per joint (kg), as small arms have them.
_KILOGRAMS = 3.0
# Where it states no friction or rotor: each takes this share of what the drive can do, or of gravity's load, as they do
# in real arms.
_SHARE = 0.05


def planted(robot: Robot, terms: Terms, kind: str = "nominal", relative_std: float = 0.2, seed: int = 0) -> Model:
    """The nominal model with values for all terms, or a possible robot around it.

    "perturbed" moves every log-Cholesky coordinate of every link by a normal deviate of `relative_std` (masses and
    inertias by about twice that share) and every positive term by a factor of about 1 ± relative_std.
    """
    if kind not in _KINDS:
        raise UnknownNameError("kind of truth", kind, _KINDS)
    theta = _nominal(robot, terms)
    if kind == "perturbed":
        theta = _perturbed(robot, terms, theta, relative_std, np.random.default_rng([seed, 7]))
    return Model(robot, terms, theta)


def _nominal(robot: Robot, terms: Terms) -> Array:
    links = robot.inertial_parameters if robot.has_inertia else _rods(robot)
    known: dict[str, float] = {}
    if robot.has_inertia:
        nominal = Model.nominal(robot)
        known = dict(zip((p.name for p in nominal.dynamics.parameters), nominal.theta.tolist(), strict=True))
    sizes = _sizes(robot, links)
    values = []
    for k, p in enumerate(terms.parameters):
        joint, lever = _where(robot, terms, k)
        # Offsets and the like stay zero; what must be positive makes its share of the torque at full speed.
        made = sizes[joint] / lever if p.lower == 0.0 and lever > 0.0 else 0.0
        values.append(known.get(p.name, made))
    return np.concatenate([links, values])


def _sizes(robot: Robot, links: Array) -> Array:
    """Torque of an unknown friction or rotor, joint by joint (N m, N)."""
    low, high = np.array([[max(j.lower, -np.pi), min(j.upper, np.pi)] for j in robot.joints]).T
    postures = np.random.default_rng(0).uniform(low, high, (200, robot.dof))
    load = np.max(np.abs(Model(robot, Terms(robot, ()), links).gravity_torque(postures)), axis=0)
    effort = np.array([j.effort for j in robot.joints])
    return np.where(np.isfinite(effort) & (effort > 0.0), _SHARE * effort, _SHARE * max(float(np.median(load)), 1.0))


def _where(robot: Robot, terms: Terms, k: int) -> tuple[int, float]:
    """The joint that a term's parameter loads most at full speed and acceleration, and by how much per unit."""
    limits = default_limits(robot)
    still = np.zeros(robot.dof)
    Y = Dynamics(robot, terms).torque_regressor(still, limits.dq, limits.ddq)
    column = np.abs(Y[:, robot.inertial_count + k])
    return int(np.argmax(column)), float(column.max())


def _rods(robot: Robot) -> Array:
    return np.asarray((_KILOGRAMS * robot.dof * default_bodies(robot)).ravel())


def _perturbed(robot: Robot, terms: Terms, theta: Array, relative_std: float, rng: np.random.Generator) -> Array:
    parameters = Model(robot, terms, theta).dynamics.parameters
    count = len(robot.links)
    body = default_bodies(robot)
    full = theta.copy()
    for k in range(count):  # what is no possible body, or a flat one, has no coordinates: round it out a little
        part = slice(10 * k, 10 * k + 10)
        full[part] += 1e-3 * max(float(full[part][0]), 1e-3) / body[k, 0] * body[k]
    chart = LogCholesky.of(parameters, count)
    x = chart.coordinates(full)
    step = rng.normal(0.0, relative_std, len(x))
    for k in range(count):  # logarithms move by the deviate, the entries below the diagonal by a share of the diagonal
        below = slice(10 * k + 4, 10 * k + 10)
        rows = (1, 2, 2, 3, 3, 3)
        step[below] *= np.exp(x[10 * k : 10 * k + 4])[list(rows)] * 0.5
    kept = np.array([p.lower != 0.0 for p in parameters[10 * count :]], dtype=bool)
    step[10 * count :][kept] = 0.0
    zero = np.concatenate([np.zeros(10 * count, dtype=bool), (theta[10 * count :] == 0.0)])
    out, _ = chart.parameters(x + step)
    return np.where(zero, 0.0, out)
