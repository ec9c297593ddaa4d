"""`Sticking`: one robot whose joints and drives can stand still under dry friction.

Every place that rubs (see `DryFriction`) has a mode: sliding up (+1), sliding down (−1), or stuck (0). Between
events the modes are fixed and the motion is smooth: friction of a sliding place is constant in direction, that
of a stuck place is whatever keeps it still. Events are a sliding place that comes to rest and a stuck place that
needs more than its break-away torque; after an event all places at rest decide together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.native.kernel import Single
from steelyard.ground.arrays import Array
from steelyard.simulation.plant import Plant

# The smallest problem of dry friction: which bodies stay at rest when several rub at once.


_PIVOTS_PER_PLACE = 20
_SWEEPS = 20_000


def solve_box(W: Array, c: Array, lower: Array, upper: Array) -> Array:
    """λ in [lower, upper] such that the acceleration w = c − W λ is zero, or has the sign of the bound that λ sits at.

    W is symmetric and positive (semi)definite, so w is unique. Active sets by principal pivoting with the least
    index first, which ends for positive definite W (Murty 1974) and is exact up to the rounding of one linear
    solve; where W is singular (more places than joints) projected Gauss–Seidel takes over, to 1e-13 of λ's range.
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
    still = 1e-14 * (1.0 + np.abs(c))
    for _ in range(_PIVOTS_PER_PLACE * m):
        x = np.where(at > 0, upper, lower)
        free = at == 0
        x[free] = np.linalg.solve(W[np.ix_(free, free)], c[free] - W[np.ix_(free, ~free)] @ x[~free])
        w = c - W @ x
        target = np.where(free, np.where(x > upper + slack, 1, np.where(x < lower - slack, -1, 0)), at)
        target = np.where((at > 0) & (w < -still) | (at < 0) & (w > still), 0, target)
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
# A stuck place may need this much more than its limit (relative) before it lets go: rounding is no event.
_GRACE = 1e-10
# An acceleration below this (relative to what drives it) is none; well below the grace, so that an event moves.
_NO_MOTION = 1e-12


@dataclass(frozen=True, eq=False)
class Still:
    """Motions q̇ = Z y that leave some places at rest; y are the velocities of the joints `free`.

    Z comes from exact elimination, so that for joints (and couplings by ±1) the places' speed is zero to the bit.
    """

    Z: Array
    free: NDArray[np.int64]
    levers: Array  # directions of the places at rest
    determined: bool  # whether each place's own torque is

    @classmethod
    def of(cls, levers: Array) -> Still:
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
    """The physics of one robot under dry friction; `break_away` is static over sliding friction."""

    def __init__(self, plant: Plant, theta: Array, break_away: float) -> None:
        widths = {x: plant.widths[x] for x in ("q", "dq", "theta")}
        self._parts = Single(plant.parts, widths, theta=theta)
        self._sliding = Single(plant.sliding, plant.widths | {"modes": len(plant.dry)}, theta=theta)
        self._n, self._m = plant.robot.dof, len(plant.dry)
        self.G = plant.dry.directions
        self.break_away = break_away
        self._stills: dict[bytes, Still] = {}

    def parts(self, q: Array, dq: Array) -> tuple[Array, Array, Array, Array]:
        """Mass matrix, torque without acceleration and dry friction, friction's levels up and down."""
        values, n, m = self._parts(q, dq), self._n, self._m
        mass, bias = values[: n * n].reshape(n, n), values[n * n : n * n + n]
        return mass, bias, values[n * n + n : n * n + n + m], values[n * n + n + m :]

    def still(self, modes: Modes) -> Still:
        key = (modes == 0).tobytes()
        if key not in self._stills:
            self._stills[key] = Still.of(self.G[modes == 0])
        return self._stills[key]

    def rates(self, q: Array, dq: Array, tau: Array, modes: Modes) -> Array:
        """q̈ while the modes last."""
        if modes.all():
            return self._sliding(q, dq, tau, modes)
        mass, bias, up, down = self.parts(q, dq)
        return self._accelerate(mass, self._drive(tau - bias, up, down, modes), modes)

    def _drive(self, torque: Array, up: Array, down: Array, modes: Modes) -> Array:
        """Joint torque less the friction of the sliding places."""
        sliding = np.where(modes > 0, up, np.where(modes < 0, -down, 0.0))
        out: Array = torque - sliding @ self.G
        return out

    def _accelerate(self, mass: Array, drive: Array, modes: Modes) -> Array:
        Z = self.still(modes).Z
        if Z.shape[1] == 0:
            return np.zeros(self._n)
        out: Array = Z @ np.linalg.solve(Z.T @ mass @ Z, Z.T @ drive)
        return out

    def guards(self, q: Array, dq: Array, tau: Array, modes: Modes) -> Array:
        """Negative where a mode has come to its end: speed left of the sliding, torque to spare of the stuck."""
        out = modes * (self.G @ dq)
        if modes.all():
            return out
        stuck = modes == 0
        mass, bias, up, down = self.parts(q, dq)
        drive = self._drive(tau - bias, up, down, modes)
        still = self.still(modes)
        high, low = self.break_away * up[stuck], -self.break_away * down[stuck]
        grace = _GRACE * (high - low) + 1e-300
        if still.determined:
            hold = drive - mass @ self._accelerate(mass, drive, modes)
            needed = np.linalg.lstsq(still.levers.T, hold, rcond=None)[0]
            out[stuck] = np.minimum(high + grace - needed, needed - low + grace)
        else:  # several places share one motion: ask whether any division of the load holds it
            W = still.levers @ np.linalg.solve(mass, still.levers.T)
            c = still.levers @ np.linalg.solve(mass, drive)
            left = c - W @ solve_box(W, c, low, high)
            out[stuck] = 1e-9 * (1e-12 + np.max(np.abs(c))) - np.max(np.abs(left))
        return out

    def decide(self, q: Array, dq: Array, tau: Array, modes: Modes) -> Modes:
        """New modes of the places at rest (mode 0): they stay, or start to slide with sliding friction."""
        if modes.all():
            return modes
        rest = modes == 0
        mass, bias, up, down = self.parts(q, dq)
        drive = self._drive(tau - bias, up, down, modes)
        levers = self.G[rest]
        W = levers @ np.linalg.solve(mass, levers.T)
        c = levers @ np.linalg.solve(mass, drive)
        loose = np.zeros(len(levers), dtype=bool)
        # Whoever breaks away drops to sliding friction, which may pull others loose; the loose ones only grow.
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
        """Modes from the speeds alone; places at rest have yet to decide."""
        modes: Modes = np.sign(self.G @ dq).astype(np.int64)
        return modes
