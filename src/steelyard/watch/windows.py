"""`RowWindows`: what the observer has left unexplained, with all that might explain it, in small sums.

Over a window of a fifth of a second, joint by joint, the torque that the model does not explain, ρ = mean τ − model, is

    ρ = L θ + ΔFc·s + ΔFv·v + o + γ·(model torque) + K δ + noise,

with L the rows of the last link's ten parameters (a load that it carries), s the direction and v the velocity of the
joint (friction beyond the model's), o an offset of its sensor, γ an error of its gain, and δ zeros of joint positions
that have moved. A second's windows leave one Gram matrix of these columns per joint. All parts that look for causes
share them, at a cost that hardly depends on the rate of the samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import trace
from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.payload.payload import frame_transfer, link_frame
from steelyard.watch.batch import SampleBatch, Seen
from steelyard.watch.parts import PartState, WatchSetup

# Columns are worked out at ticks of 10 ms: robots move by a few Hz, and their trapezoids are exact to a part in 10⁴.
TICK_S = 0.01
# Stamps at whole ticks lie within rounding of a tick's edge, and that on both sides of it; all belong above.
_ABOVE = 1e-3
# A window is so many ticks: its mean lets pass what a robot's motion is made of, and ripple and noise not.
_TICKS = 20
WINDOW_S = TICK_S * _TICKS
# A second: what changes faster than that is a contact, not a load or a gear.
_WINDOWS = 5
LOOK_S = WINDOW_S * _WINDOWS
Indices = NDArray[np.int64]
_Rows = tuple[Array, Array, NDArray[np.bool_]]
# A joint that goes one way all the window has all of its dry friction; one that rests or turns has any part of it.
_ONE_WAY = 0.95
# The columns of a joint, in this order, and the residual behind them.
LOAD, DIRECTION, SPEED, OFFSET, GAIN, ZEROS = slice(0, 10), 10, 11, 12, 13, slice(14, -1)


@dataclass(frozen=True, eq=False)
class Looks:
    """The seconds that have become complete with a batch.

    Args:
        t: when each ended, s.
        gram: (looks, joints, columns, columns) sums over windows in which the joint moved; the last column is ρ.
        warmth: seconds that each joint moved, (looks, joints).
        lagged: (looks, joints) sums of ρ times the window before's.
    """

    t: Array
    gram: Array
    warmth: Array
    lagged: Array

    def __len__(self) -> int:
        return len(self.t)


class RowWindows:
    """Makes `Looks` of what is seen; where batches begin and end makes no difference but for rounding.

    Args:
        setup: model and options; option "frame" names where a load is described (default: the last link).
    """

    def __init__(self, setup: WatchSetup) -> None:
        self.setup = setup
        model = setup.model
        robot = model.robot
        self.n = n = robot.dof
        self.columns = 14 + n + 1
        place = robot.moving_frame(str(setup.options.get("frame", "")))
        self._host = place.host
        self._to_own = np.linalg.inv(frame_transfer(link_frame(robot.links[place.host], place.host), place))
        bare = Dynamics(robot)
        self._momentum, self._remainder = (self._of_load(bare, name) for name in ("momentum", "remainder"))
        self._stiffness = _stiffness(model)
        self._slow = np.array([SMOOTHING_SPEED[joint.kind] for joint in robot.joints])
        self._used = np.array(robot.torque_used, dtype=bool)
        self._tick_width = 12 * n  # rows of the load, direction, velocity
        self._seen: Seen | None = None
        self._found = self._none()
        self._clear()
        self._look = self._ended = np.nan  # number and end of the second that is being filled
        self._sums = np.zeros((n, self.columns, self.columns))
        self._more = np.zeros((2, n))  # seconds moved; lagged products

    def _of_load(self, bare: Dynamics, name: str) -> Evaluator:
        first, n = 10 * self._host, self.n

        def body(q: Vector, dq: Vector) -> dict[tuple[int, int], Scalar]:
            entries = bare.over_scalars(f"{name}_regressor", {"q": q, "dq": dq})
            return {(row, c - first): x for (row, c), x in entries.items() if first <= c < first + 10}

        made = Evaluator(trace(f"load_{name}", {"q": n, "dq": n}, body, (n, 10)))
        made.compile()
        return made

    def _none(self) -> Looks:
        n, c = self.n, self.columns
        return Looks(np.zeros(0), np.zeros((0, n, c, c)), np.zeros((0, n)), np.zeros((0, n)))

    def _clear(self) -> None:
        """Nothing is carried across a gap: the window that was begun is left out."""
        n = self.n
        self._slot = np.nan  # number of the last tick
        self._time = np.array([np.nan, np.nan])  # of the last sample, of the last tick
        self._impulse = np.zeros(2 * n)  # of e, and of the measured torque, since the last edge
        self._tau = np.zeros(n)  # of the last sample
        self._tick = np.zeros(self._tick_width)  # columns at the last tick
        self._area = np.zeros(self._tick_width)  # their integrals since the last edge
        self._edge = np.zeros(1 + 10 * n + n * n)  # t, momentum rows and stiffness at the last edge
        self._edge[0] = np.nan
        self._before = np.zeros(n)

    @classmethod
    def shared(cls, setup: WatchSetup) -> RowWindows:
        """The windows of all parts that are made for the same `setup`: each batch is worked out once."""
        made = _SHARED.get(id(setup))
        if made is None or made.setup is not setup:
            made = _SHARED[id(setup)] = cls(setup)
        return made

    def take(self, seen: Seen) -> Looks:
        """The seconds that are complete after what was `seen`; asked again for the same, the same."""
        if seen is not self._seen:
            self._found = self._taken(seen)
            self._seen = seen
        return self._found

    def _taken(self, seen: Seen) -> Looks:
        batch = seen.batch
        if batch.fresh:
            self._clear()
        if not len(batch):
            return self._none()
        t = batch.t
        begins = bool(np.isnan(self._time[0]))
        if begins:
            self._time[:], self._tau = t[0], batch.tau[0]
        h = np.diff(t, prepend=self._time[0])
        tau = np.concatenate([self._tau[None], batch.tau])
        impulses = np.concatenate([seen.e, 0.5 * (tau[1:] + tau[:-1])], axis=1) * h[:, None]
        slots = np.floor(t / TICK_S + _ABOVE)
        slots_before, self._slot = self._slot, slots[-1]
        self._time[0], self._tau = t[-1], batch.tau[-1].copy()
        ticks = np.flatnonzero(np.diff(slots, prepend=slots_before) != 0.0)  # NaN before the first: one, too
        numbers = np.floor(slots[ticks] / _TICKS)
        edges = np.flatnonzero(np.diff(numbers, prepend=np.floor(slots_before / _TICKS)) != 0.0)
        at = ticks[edges]
        impulse, self._impulse = _between(impulses, at, self._impulse)
        if not len(ticks):
            return self._none()
        area, self._area = _between(self._steps(seen, ticks), edges, self._area)
        if not len(at):
            return self._none()
        return self._looks(numbers[edges], self._rows(batch, at, impulse, area))

    def _steps(self, seen: Seen, ticks: Indices) -> Array:
        """What each tick adds to the integrals of the columns."""
        batch, n = seen.batch, self.n
        q, dq, t = batch.q[ticks], batch.dq[ticks], batch.t[ticks]
        rows = np.asarray(self._remainder({"q": q, "dq": dq}, threads=1)).reshape(-1, 10) @ self._to_own
        now = np.concatenate([rows.reshape(len(t), 10 * n), np.tanh(dq / self._slow), dq], axis=1)
        old = np.concatenate([self._tick[None], now[:-1]])
        steps = np.diff(t, prepend=self._time[1])[:, None]  # 0 for the first of all: what is before it does not count
        self._tick, self._time[1] = now[-1], t[-1]
        return np.asarray(0.5 * steps * (now + old))

    def _rows(self, batch: SampleBatch, at: Indices, impulse: Array, area: Array) -> _Rows:
        """The times at which windows end, their rows (windows, joints, columns), and whether each joint moved."""
        n = self.n
        q, dq, t = batch.q[at], batch.dq[at], batch.t[at]
        P = np.asarray(self._momentum({"q": q, "dq": dq}, threads=1)).reshape(-1, 10) @ self._to_own
        new = np.concatenate([t[:, None], P.reshape(len(t), -1), self._stiffness(q).reshape(len(t), -1)], axis=1)
        old = np.concatenate([self._edge[None], new[:-1]])
        self._edge = new[-1]
        T = new[:, :1] - old[:, :1]
        with np.errstate(invalid="ignore"):
            good = np.abs(T / WINDOW_S - 1.0) < 0.5  # the first of all has no beginning
            T = np.where(good, T, 1.0)
            residual, torque = -impulse[:, :n] / T, impulse[:, n:] / T
            direction, speed = area[:, 10 * n : 11 * n] / T, area[:, 11 * n :] / T
            load = (new - old)[:, 1 : 1 + 10 * n] / T + area[:, : 10 * n] / T
            zeros = -0.5 * (new + old)[:, 1 + 10 * n :].reshape(-1, n, n)
        moves = good & (np.abs(direction) > _ONE_WAY)
        columns = np.empty((len(t), n, self.columns))
        columns[..., LOAD] = load.reshape(-1, n, 10)
        columns[..., DIRECTION], columns[..., SPEED] = direction, speed
        columns[..., OFFSET], columns[..., GAIN], columns[..., ZEROS] = 1.0, torque - residual, zeros
        columns[..., -1] = residual
        return t, np.where((moves & self._used)[..., None], columns, 0.0), moves

    def _looks(self, numbers: Array, rows: _Rows) -> Looks:
        """The seconds that are complete; the windows of the one that is not are kept."""
        n, c, (t, columns, moves) = self.n, self.columns, rows
        rho = columns[..., -1]
        lagged = rho * np.concatenate([self._before[None], rho[:-1]])
        self._before = rho[-1]
        # A window ends at the edge that begins the next one: the number of the look is that of the window before.
        look = np.floor((numbers - 1.0) / _WINDOWS)
        first = np.flatnonzero(np.diff(look, prepend=look[0] - 1.0) != 0.0)
        gram = np.add.reduceat(columns[..., :, None] * columns[..., None, :], first, axis=0)
        more = np.add.reduceat(np.stack([moves * WINDOW_S, lagged], axis=1), first, axis=0)
        if look[0] == self._look:
            gram[0] += self._sums
            more[0] += self._more
        elif np.isfinite(self._look):  # one that was complete already
            gram = np.concatenate([self._sums[None], gram])
            more = np.concatenate([self._more[None], more])
            first = np.concatenate([[0], first])
            t = np.concatenate([[self._ended], t])
            first[1:] += 1
        self._look, self._sums, self._more = look[-1], gram[-1].copy(), more[-1].copy()
        ends = np.append(first[1:], len(t)) - 1
        self._ended = t[-1]
        return Looks(t[ends[:-1]], gram[:-1].reshape(-1, n, c, c), more[:-1, 0], more[:-1, 1])

    def state(self) -> PartState:
        """All that the next sample needs, as arrays."""
        return {f"windows_{name}": np.array(getattr(self, f"_{name}")) for name in _KEPT}

    def restore(self, state: PartState) -> None:
        """Go on from a `state` of the same model."""
        for name in _KEPT:
            value = np.array(state[f"windows_{name}"], dtype=float)
            setattr(self, f"_{name}", value if value.ndim else float(value))


_KEPT = ("slot", "time", "impulse", "tau", "tick", "area", "edge", "before", "look", "ended", "sums", "more")
_SHARED: WeakValueDictionary[int, RowWindows] = WeakValueDictionary()


def _between(rows: Array, at: Indices, carried: Array) -> tuple[Array, Array]:
    """Sums of `rows` from one place of `at` to the next, the first with what was `carried`; and what is left over."""
    if not len(at):
        return rows[:0], carried + rows.sum(axis=0)
    stop = at[-1] + 1
    sums = np.add.reduceat(rows[:stop], np.concatenate([[0], at[:-1] + 1]), axis=0)
    sums[0] += carried
    return sums, rows[stop:].sum(axis=0)


def _stiffness(model: Model) -> Callable[[Array], Array]:
    """∂(torque that holds the robot still)/∂q at postures, (samples, joints, joints)."""
    n = model.robot.dof
    made = Evaluator(model.dynamics.function("gravity_torque", "tangent", "q"))
    made.compile()
    given = {"theta": model.theta}

    def of(q: Array) -> Array:
        columns = [made({"q": q, **given, "tangent_q": unit}, threads=1) for unit in np.eye(n)]
        return np.stack(columns, axis=-1)

    return of
