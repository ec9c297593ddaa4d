"""`GravityColumns`: the torque regressor of a robot at rest, and its base parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import StructureError
from steelyard.ground.arrays import Array
from steelyard.parameters.terms import TermsLike, as_terms
from steelyard.robot.robot import Robot

# Random postures for the rank; it depends on the structure alone, so their number only has to exceed the columns.
_POSTURES = 120
# A column is dependent if its independent part is below this share of its length.
_INDEPENDENT = 1e-7
# Coefficients below this are rounding of the elimination.
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False)
class GravityColumns:
    """Columns of masses, first moments and terms at standstill; τ = A θ = A[:, independent] β, β = groups θ.

    Args:
        dynamics: Robot with its terms.
        columns: Indices of masses, first moments and terms in the parameters of the dynamics.
        independent: Positions in `columns` of the base parameters.
        groups: Combination of parameters of each base parameter, shape (base parameters, columns).
    """

    dynamics: Dynamics
    columns: tuple[int, ...]
    independent: tuple[int, ...]
    groups: Array

    @classmethod
    def of(cls, robot: Robot, terms: TermsLike | None = ("offset",)) -> GravityColumns:
        """Compute the columns of a robot.

        Args:
            robot: Robot.
            terms: Joint terms that act at standstill: offset, spring, counterbalance, ….
        """
        dynamics = Dynamics(robot, as_terms(robot, terms))
        first = robot.inertial_count
        of_links = [10 * k + i for k in range(len(robot.links)) for i in range(4)]
        columns = tuple([*of_links, *range(first, len(dynamics.parameters))])
        rng = np.random.default_rng(0)
        # The structure does not depend on limits.
        wide = _widths(robot)
        q = rng.uniform(-wide, wide, (_POSTURES, robot.dof))
        rows = _static_rows(dynamics, q, columns)[:, robot.torque_used].reshape(-1, len(columns))
        # First moments precede masses: the elimination then adds a mass to the first moments of the previous links.
        place = {0: 2, 1: 0, 2: 0, 3: 0}
        order = sorted(range(len(columns)), key=lambda k: (1 if k >= len(of_links) else place[k % 4], k))
        independent, groups = _eliminate(rows, order)
        if not any(k < len(of_links) for k in independent):
            raise StructureError(
                f"Gravity loads no joint of robot '{robot.name}'; state its gravity (--gravity X,Y,Z)."
            )
        return cls(dynamics, columns, tuple(independent), groups)

    @property
    def robot(self) -> Robot:
        return self.dynamics.robot

    def rows(self, q: ArrayLike) -> Array:
        """Compute the columns of all parameters at postures `q`, shape (poses, joints, columns)."""
        return _static_rows(self.dynamics, np.asarray(q, dtype=float), self.columns)

    def base_rows(self, q: ArrayLike) -> Array:
        """Compute the columns of the base parameters at postures `q`."""
        return np.asarray(self.rows(q)[:, :, list(self.independent)])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of masses, first moments and terms."""
        return tuple(self.dynamics.parameters[k].name for k in self.columns)

    @cached_property
    def base_names(self) -> tuple[str, ...]:
        """The combination of each base parameter as a formula."""
        return tuple(
            " + ".join(_product(c, self.names[k]) for k, c in sorted(enumerate(row), key=lambda p: p[0] != own) if c)
            .replace("+ -", "- ")
            for own, row in zip(self.independent, self.groups, strict=True)
        )  # fmt: skip

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Units of the base parameters."""
        return tuple(self.dynamics.parameters[self.columns[k]].unit for k in self.independent)

    @cached_property
    def invisible(self) -> tuple[str, ...]:
        """Names of the parameters without effect on any torque at rest."""
        seen = np.any(self.groups != 0.0, axis=0)
        return tuple(n for n, s in zip(self.names, seen, strict=True) if not s)

    @cached_property
    def reach(self) -> Array:
        """Largest distance of each link's centre of mass from its frame [m].

        No link is longer than the longest distance between two neighbouring joints, or between the last link and a
        frame on it: the rule needs no shapes, and holds for wrists whose axes meet in one point.
        """
        robot = self.robot
        lengths = [float(np.linalg.norm(link.translation)) for link in robot.links]
        lengths += [float(np.linalg.norm(f.translation)) for f in robot.frames.values() if f.host >= 0]
        lengths += [float(np.linalg.norm(link.frame_translation)) for link in robot.links]
        travel = [np.ptp([j.lower, j.upper]) for j in robot.joints if j.kind == "prismatic"]
        lengths += [float(x) for x in travel if np.isfinite(x)]
        return np.full(len(robot.links), max([*lengths, 0.1]))


def random_postures(robot: Robot, count: int, rng: np.random.Generator) -> Array:
    """Draw postures within the limits; joints without position limits get one turn, or 1 m.

    Args:
        robot: Robot.
        count: Number of postures.
        rng: Random generator.
    """
    wide = _widths(robot)
    known = np.array([np.isfinite(j.lower) and np.isfinite(j.upper) and j.upper > j.lower for j in robot.joints])
    low = np.where(known, [j.lower for j in robot.joints], -wide)
    high = np.where(known, [j.upper for j in robot.joints], wide)
    # Gravity torques repeat after a full turn, so a wider range adds no information.
    turns = np.array([j.kind == "revolute" for j in robot.joints]) & (high - low > 2.0 * np.pi)
    low, high = np.where(turns, -np.pi, low), np.where(turns, np.pi, high)
    return np.asarray(rng.uniform(low, high, (count, robot.dof)))


def _widths(robot: Robot) -> Array:
    return np.array([np.pi if j.kind == "revolute" else 0.5 for j in robot.joints])


def _static_rows(dynamics: Dynamics, q: Array, columns: tuple[int, ...]) -> Array:
    still = np.zeros_like(q)
    history = None
    if dynamics.terms.history:
        history = np.zeros((len(q), len(dynamics.terms.history)))
    return np.asarray(dynamics.torque_regressor(q, still, still, history=history)[:, :, list(columns)])


def _eliminate(rows: Array, order: list[int]) -> tuple[list[int], Array]:
    """Choose independent columns in an order, and express all columns by them."""
    lengths = np.linalg.norm(rows, axis=0)
    basis = np.zeros((len(rows), 0))
    independent: list[int] = []
    for k in order:
        if lengths[k] <= _INDEPENDENT * lengths.max():
            continue
        rest = rows[:, k] / lengths[k]
        for _ in range(2):  # twice is enough (Giraud et al. 2005)
            rest = rest - basis @ (basis.T @ rest)
        if (size := float(np.linalg.norm(rest))) > _INDEPENDENT:
            basis = np.column_stack([basis, rest / size])
            independent.append(k)
    independent.sort()
    groups = np.linalg.lstsq(rows[:, independent], rows, rcond=None)[0]
    groups[np.abs(groups) < _ROUNDING] = 0.0
    near = np.rint(groups)
    return independent, np.where(np.abs(groups - near) < _ROUNDING, near, groups)


def _product(factor: float, name: str) -> str:
    return name if factor == 1.0 else f"-{name}" if factor == -1.0 else f"{factor:.4g} {name}"
