"""`Plant`: the forward dynamics of a robot, traced over lumped parameters and compiled for lanes of robots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.evaluate import compiled_at_once
from steelyard.dynamics.function import Function, Trace, dense
from steelyard.dynamics.native.kernel import Kernel, kernel_of
from steelyard.ground.arrays import Array, frozen, independent_columns, one_blas_thread
from steelyard.ground.recent_values import Recent
from steelyard.ground.scalars import Scalar, Vector, dot, maximum, minimum
from steelyard.parameters import Terms
from steelyard.robot.robot import Robot
from steelyard.simulation.dry_friction import DryFriction, smooth_terms, without_dry_friction

# Lumped parameters: fewer numbers per link with the same dynamics.
#
# Torque is linear in the links' parameters, τ = Y θ, and some columns of Y are combinations of columns of links
# nearer to the base (a mass behind a revolute joint acts like mass, first moment and inertia of the link before it;
# Gautier & Khalil 1990). Parameters of such columns are added to the others and set to zero, which saves 12 to 23 %
# of the arithmetic of forward dynamics. Lumped links need not be physically possible.


# Order of parameters within a link: those that should be eliminated come last.
_KEEP_FIRST = (9, 4, 5, 7, 8, 1, 2, 3, 0, 6)
# A column whose part outside the span of the others is smaller than this is a combination of them. Measured on the
# built-in robots and a UR10: dependent columns leave at most 3e-11, the others at least 0.5.
_DEPENDENT = 1e-9
# Columns this small relative to the largest are rounding of sines and cosines that should vanish.
_NOTHING = 1e-6


@dataclass(frozen=True, eq=False)
class Lumps:
    """Indices of the remaining parameters, and their values `matrix` · θ from all parameters of the links."""

    indices: tuple[int, ...]
    matrix: Array


def _lump(robot: Robot) -> Lumps:
    """Compute how the links' parameters of a robot can be lumped; the same for every run on every machine."""
    n, count = robot.dof, robot.inertial_count
    samples = 4 * count // n + 8
    # Fixed states; any generic ones give the same result. Speeds and accelerations of a few rad/s.
    q, dq, ddq = np.random.default_rng(0).uniform(-3.0, 3.0, (3, samples, n))
    with compiled_at_once(), one_blas_thread():  # otherwise the last digits depend on earlier computations
        Y = robot.torque_regressor(q, dq, ddq).reshape(samples * n, count)
    everything = Lumps(tuple(range(count)), frozen(np.eye(count)))
    norms = np.linalg.norm(Y, axis=0)
    floor = _NOTHING * float(np.max(norms))
    order = [10 * link + k for link in range(len(robot.links)) for k in _KEEP_FIRST]
    indices = sorted(independent_columns(Y, lambda c, size: size > _DEPENDENT * max(float(norms[c]), floor), order))
    matrix = np.linalg.lstsq(Y[:, indices], Y, rcond=None)[0]
    matrix[np.abs(matrix) < 1e-12] = 0.0
    matrix[:, indices] = np.eye(len(indices))
    if not np.allclose(Y[:, indices] @ matrix, Y, rtol=0.0, atol=1e-10 * (1.0 + float(np.abs(Y).max()))):
        return everything  # no clear structure: full parameters are always correct
    return Lumps(tuple(indices), frozen(matrix))


class Plant:
    """q̈ of a `robot` with joint `terms`, as kernels over the rows q, dq, tau, theta (lumped).

    Args:
        robot: Robot.
        terms: Joint terms.
        width: Speed range of smoothed dry friction [rad/s, m/s].
    """

    def __init__(self, robot: Robot, terms: Terms, width: float) -> None:
        self.robot = robot
        self.dry = DryFriction(terms)
        self.smooth = Dynamics(robot, smooth_terms(terms, width))
        self._bare = Dynamics(robot, without_dry_friction(terms))

    @cached_property
    def lumps(self) -> Lumps:
        return _lump(self.robot)

    def lumped(self, theta: Array) -> Array:
        """Convert full parameters `theta` `(…, parameters)` to those of the kernels."""
        links = self.robot.inertial_count
        matrix = self.lumps.matrix
        # One robot at a time: a product of matrices may round differently with their number of rows.
        flat = [matrix @ row[:links] for row in theta.reshape(-1, theta.shape[-1])]
        out = np.concatenate([np.reshape(flat, (*theta.shape[:-1], len(matrix))), theta[..., links:]], axis=-1)
        return np.ascontiguousarray(out)

    def full_parameters(self, theta: Vector) -> list[Scalar]:
        """Place the kernels' parameters `theta` among the full ones, with zeros elsewhere."""
        out: list[Scalar] = [0.0] * self.robot.inertial_count
        for place, value in zip(self.lumps.indices, theta, strict=False):
            out[place] = value
        return out + list(theta[len(self.lumps.indices) :])

    def friction_rate(self, q: Array, theta: Array) -> float:
        """Compute the largest rate [1/s] at which friction at rest damps a motion; 0 if not finite. Steps must resolve
        it.

        Args:
            q: Posture [rad, m].
            theta: Parameters of the robot.
        """
        still = np.zeros(self.robot.dof)
        slopes = self.smooth.jacobian("forward_dynamics", "dq", q=q, dq=still, tau=still, theta=theta)
        if not np.all(np.isfinite(slopes)):
            return 0.0
        return float(np.max(-np.linalg.eigvals(slopes).real, initial=0.0))

    @cached_property
    def widths(self) -> dict[str, int]:
        n = self.robot.dof
        return {"q": n, "dq": n, "tau": n, "theta": len(self.lumps.indices) + len(self._bare.terms)}

    @cached_property
    def rows(self) -> dict[str, int]:
        """First row of each input."""
        n = self.robot.dof
        return {"q": 0, "dq": n, "tau": 2 * n, "theta": 3 * n}

    @property
    def row_count(self) -> int:
        return self.rows["theta"] + self.widths["theta"]

    def lumped_units(self, parameters: Sequence[int]) -> Array:
        """Return a unit vector of lumped parameters for each of `parameters` (indices)."""
        return self.lumped(np.eye(len(self.smooth.parameters))[list(parameters)])

    @cached_property
    def traced(self) -> Function:
        """Traced q̈ with smooth friction."""
        trace = Trace(self.widths)
        q, dq, tau, theta = trace.all()
        rates = self.smooth.forward_over_scalars(q, dq, tau, self.full_parameters(theta))
        return dense("acceleration", trace.graph, self.widths, rates)

    @cached_property
    def acceleration(self) -> Kernel:
        """q̈ with smooth friction."""
        return kernel_of(self.traced, self.rows)

    @cached_property
    def sliding(self) -> Kernel:
        """q̈ while every contact with dry friction slides in the direction `modes` (±1, or 0 for no friction)."""
        links = self.robot.inertial_count
        trace = Trace(self.widths | {"modes": len(self.dry)})
        q, dq, tau, theta, modes = trace.all()
        full = self.full_parameters(theta)
        up, down = self.dry.levels(q, dq, full[links:])
        rub = [self._sliding_level(*each) for each in zip(modes, up, down, strict=True)]
        drive = [t - dot(lever, rub) for t, lever in zip(tau, self.dry.directions.T.tolist(), strict=True)]
        rows = self.rows | {"modes": self.row_count}
        return Kernel(trace.graph, self._bare.forward_over_scalars(q, dq, drive, full), rows)

    @staticmethod
    def _sliding_level(mode: Scalar, up: Scalar, down: Scalar) -> Scalar:
        return maximum(mode, 0.0) * up + minimum(mode, 0.0) * down

    @cached_property
    def parts(self) -> Kernel:
        """M (row by row), the torque without acceleration and dry friction, and the friction levels."""
        n, links = self.robot.dof, self.robot.inertial_count
        trace = Trace(self.widths)
        q, dq, _, theta = trace.all()
        full = self.full_parameters(theta)
        mass = self._bare.mass_over_scalars(q, full)
        relaxed = [0.0] * len(self._bare.terms.history)  # the stepper adds friction with memory
        bias = self._bare.inverse_over_scalars(q, dq, [0.0] * n, full, relaxed)
        up, down = self.dry.levels(q, dq, full[links:])
        entries = [mass.get((i, j), 0.0) for i in range(n) for j in range(n)]
        rows = {x: row for x, row in self.rows.items() if x != "tau"}
        return Kernel(trace.graph, [*entries, *bias, *up, *down], rows)


_plants: Recent[Plant] = Recent(16)


def plant_of(robot: Robot, terms: Terms, width: float) -> Plant:
    """Return a plant from a small cache: tracing takes longer than a short run.

    Args:
        robot: Robot.
        terms: Joint terms.
        width: Speed range of smoothed dry friction [rad/s, m/s].
    """
    motors = robot.transmission.motors if robot.transmission is not None else ()
    key = (robot.fingerprint, robot.joint_names, motors, terms.terms, width)
    return _plants.get(key, lambda: Plant(robot, terms, width))
