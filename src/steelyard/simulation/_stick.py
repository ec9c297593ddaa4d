"""`Sticking`: one robot whose joints and drives can stick under dry friction.

Every contact (see `DryFriction`) has a mode: sliding up (+1), sliding down (−1), or stuck (0). Between events the modes
are fixed and the motion is smooth: a sliding contact has friction of constant direction, a stuck one has whatever
friction keeps it at rest. An event is a sliding contact that stops or a stuck contact that exceeds its break-away
torque; after an event the modes of all contacts at rest are determined together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.native.kernel import Single
from steelyard.ground.arrays import Array
from steelyard.simulation.plant import Plant

# The complementarity problem of dry friction: which contacts stay at rest.


_PIVOTS_PER_CONTACT = 20
_SWEEPS = 20_000


def solve_box(W: Array, c: Array, lower: Array, upper: Array) -> Array:
    """Solve for λ in [lower, upper] such that each w = c − W λ is zero, or has the sign of the bound that λ is at.

    The acceleration w is unique, since W is symmetric and positive (semi)definite. Principal pivoting with the least
    index first ends for positive definite W (Murty 1974) and is exact up to the rounding of one linear solve. If W is
    singular (more contacts than joints), projected Gauss–Seidel takes over, to 1e-13 of λ's range.

    Args:
        W: Matrix of the problem.
        c: Acceleration without friction.
        lower: Lower bounds of λ.
        upper: Upper bounds of λ.
    """
    m = len(c)
    if np.linalg.matrix_rank(W) == m:
        found = _pivot(W, c, lower, upper)
        if found is not None:
            return found
    return _relax(W, c, lower, upper)


def _pivot(W: Array, c: Array, lower: Array, upper: Array) -> Array | None:
    m = len(c)
    at = np.zeros(m, dtype=int)  # −1 at the lower bound, 1 at the upper, 0 between
    slack = 1e-14 * (1.0 + np.abs(upper) + np.abs(lower))
    tiny = 1e-14 * (1.0 + np.abs(c))
    for _ in range(_PIVOTS_PER_CONTACT * m):
        x = np.where(at > 0, upper, lower)
        free = at == 0
        x[free] = np.linalg.solve(W[np.ix_(free, free)], c[free] - W[np.ix_(free, ~free)] @ x[~free])
        w = c - W @ x
        target = np.where(free, np.where(x > upper + slack, 1, np.where(x < lower - slack, -1, 0)), at)
        target = np.where((at > 0) & (w < -tiny) | (at < 0) & (w > tiny), 0, target)
        wrong = np.flatnonzero(target != at)
        if not len(wrong):
            return np.clip(x, lower, upper)
        at[wrong[0]] = target[wrong[0]]
    return None


def _relax(W: Array, c: Array, lower: Array, upper: Array) -> Array:
    x = np.clip(np.zeros(len(c)), lower, upper)
    reach = 1e-13 * (1e-12 + float(np.max(upper - lower, initial=0.0)))
    for _ in range(_SWEEPS):
        moved = 0.0
        for k in range(len(c)):
            if W[k, k] > 0.0:
                new = min(max(x[k] + (c[k] - W[k] @ x) / W[k, k], lower[k]), upper[k])
                moved, x[k] = max(moved, abs(new - x[k])), new
        if moved <= reach:
            break
    return x


Modes = NDArray[np.int64]
# A stuck contact may exceed its limit by this (relative) before it slides, so that rounding causes no event.
_GRACE = 1e-10
# Accelerations below this (relative to the driving torque) count as zero; far below the grace, so that events move.
_NO_MOTION = 1e-12


@dataclass(frozen=True, eq=False)
class RestMotions:
    """Motions q̇ = Z y that keep some contacts at rest; y are the velocities of the joints `free`.

    Exact elimination gives Z, so that with joints (and couplings by ±1) the speeds of the contacts are exactly zero.
    """

    Z: Array
    free: NDArray[np.int64]
    levers: Array  # directions of the contacts at rest
    determined: bool  # whether the torque of each contact is unique

    @classmethod
    def of(cls, levers: Array) -> RestMotions:
        rows, n = levers.copy(), levers.shape[1]
        pivots: list[int] = []
        for column in range(n):
            rank = len(pivots)
            if rank == len(rows):
                break
            best = rank + int(np.argmax(np.abs(rows[rank:, column])))
            if abs(rows[best, column]) <= 1e-12:
                continue
            rows[[rank, best]] = rows[[best, rank]]
            rows[rank] /= rows[rank, column]
            for other in range(len(rows)):
                if other != rank:
                    rows[other] -= rows[other, column] * rows[rank]
            pivots.append(column)
        free = np.array([k for k in range(n) if k not in pivots], dtype=np.int64)
        Z = np.zeros((n, len(free)))
        Z[free, np.arange(len(free))] = 1.0
        if len(free):
            Z[pivots] = -rows[: len(pivots)][:, free]
        return cls(Z, free, levers, len(pivots) == len(levers))

    def project(self, dq: Array) -> Array:
        out: Array = self.Z @ dq[self.free] + 0.0  # no negative zeros
        return out


class Sticking:
    """The physics of one robot under dry friction; `break_away` is the ratio of static to sliding friction."""

    def __init__(self, plant: Plant, theta: Array, break_away: float) -> None:
        widths = {x: plant.widths[x] for x in ("q", "dq", "theta")}
        self._parts = Single(plant.parts, widths, theta=theta)
        self._sliding = Single(plant.sliding, plant.widths | {"modes": len(plant.dry)}, theta=theta)
        self._n, self._m = plant.robot.dof, len(plant.dry)
        self.G = plant.dry.directions
        self.break_away = break_away
        self._rest_motions: dict[bytes, RestMotions] = {}

    def parts(self, q: Array, dq: Array) -> tuple[Array, Array, Array, Array]:
        """Compute the mass matrix, the torque without acceleration and dry friction, and friction levels up and
        down.
        """
        values, n, m = self._parts(q, dq), self._n, self._m
        mass, bias = values[: n * n].reshape(n, n), values[n * n : n * n + n]
        return mass, bias, values[n * n + n : n * n + n + m], values[n * n + n + m :]

    def rest_motions(self, modes: Modes) -> RestMotions:
        key = (modes == 0).tobytes()
        if key not in self._rest_motions:
            self._rest_motions[key] = RestMotions.of(self.G[modes == 0])
        return self._rest_motions[key]

    def rates(self, q: Array, dq: Array, tau: Array, modes: Modes) -> Array:
        """Compute q̈ for the present modes."""
        if modes.all():
            return self._sliding(q, dq, tau, modes)
        mass, bias, up, down = self.parts(q, dq)
        return self._accelerate(mass, self._drive(tau - bias, up, down, modes), modes)

    def _drive(self, torque: Array, up: Array, down: Array, modes: Modes) -> Array:
        """Compute the joint torque minus the friction of sliding contacts."""
        sliding = np.where(modes > 0, up, np.where(modes < 0, -down, 0.0))
        out: Array = torque - sliding @ self.G
        return out

    def _accelerate(self, mass: Array, drive: Array, modes: Modes) -> Array:
        Z = self.rest_motions(modes).Z
        if Z.shape[1] == 0:
            return np.zeros(self._n)
        out: Array = Z @ np.linalg.solve(Z.T @ mass @ Z, Z.T @ drive)
        return out

    def guards(self, q: Array, dq: Array, tau: Array, modes: Modes) -> Array:
        """Return values that become negative when a mode ends: remaining speed if sliding, torque reserve if stuck."""
        out = modes * (self.G @ dq)
        if modes.all():
            return out
        stuck = modes == 0
        mass, bias, up, down = self.parts(q, dq)
        drive = self._drive(tau - bias, up, down, modes)
        rest_motions = self.rest_motions(modes)
        high, low = self.break_away * up[stuck], -self.break_away * down[stuck]
        grace = _GRACE * (high - low) + 1e-300
        if rest_motions.determined:
            hold = drive - mass @ self._accelerate(mass, drive, modes)
            needed = np.linalg.lstsq(rest_motions.levers.T, hold, rcond=None)[0]
            out[stuck] = np.minimum(high + grace - needed, needed - low + grace)
        else:  # several contacts share one motion: test whether any division of the load holds it
            W = rest_motions.levers @ np.linalg.solve(mass, rest_motions.levers.T)
            c = rest_motions.levers @ np.linalg.solve(mass, drive)
            left = c - W @ solve_box(W, c, low, high)
            out[stuck] = 1e-9 * (1e-12 + np.max(np.abs(c))) - np.max(np.abs(left))
        return out

    def decide(self, q: Array, dq: Array, tau: Array, modes: Modes) -> Modes:
        """Determine new modes of contacts at rest (mode 0): they stick, or start to slide with sliding friction."""
        if modes.all():
            return modes
        rest = modes == 0
        mass, bias, up, down = self.parts(q, dq)
        drive = self._drive(tau - bias, up, down, modes)
        levers = self.G[rest]
        W = levers @ np.linalg.solve(mass, levers.T)
        c = levers @ np.linalg.solve(mass, drive)
        loose = np.zeros(len(levers), dtype=bool)
        # A contact that breaks away drops to sliding friction, which may release others; released ones never return.
        for _ in range(len(levers) + 1):
            factor = np.where(loose, 1.0, self.break_away)
            w = c - W @ solve_box(W, c, -factor * down[rest], factor * up[rest])
            moving = np.abs(w) > _NO_MOTION * (np.abs(c) + np.abs(W).sum(axis=1) * (up[rest] + down[rest]))
            if not np.any(moving & ~loose) or self.break_away == 1.0:
                break
            loose |= moving
        out = modes.copy()
        out[rest] = np.where(moving, np.sign(w), 0.0).astype(np.int64)
        return out

    def begin(self, dq: Array) -> Modes:
        """Set modes from the speeds alone; contacts at rest are determined later."""
        modes: Modes = np.sign(self.G @ dq).astype(np.int64)
        return modes
