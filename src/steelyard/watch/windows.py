"""`ResidualWindows`: sums of the observer's residual torque and of the regressors of its possible causes.

Over a window of 0.2 s the residual torque of a joint, ρ = mean τ − model, is

    ρ = L θ + ΔFc·s + ΔFv·v + o + γ·(model torque) + K δ + noise,

with L the regressor of the last link's ten parameters (a payload), s the direction and v the velocity of the joint
(friction beyond the model), o an offset of the torque sensor, γ an error of the gain, and δ errors of the zeros of
joint positions. The windows of each second give one Gram matrix of these columns per joint. All monitors that search
for causes share them, at a cost that hardly depends on the sample rate.
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
from steelyard.watch.batch import ObservedBatch, SampleBatch
from steelyard.watch.monitor_base import SavedArrays, WatchSetup, saved_attributes

# Columns are computed at ticks of 10 ms. Robots move with a few Hz, so the trapezoidal rule is exact to 1e-4.
TICK_S = 0.01
# Stamps at whole ticks differ from the edge by rounding errors; this share of a tick puts all of them above it.
_EDGE_TOLERANCE = 1e-3
# Ticks of a window. Its mean passes the frequencies of the motion, and removes ripple and noise.
_WINDOW_TICKS = 20
WINDOW_S = TICK_S * _WINDOW_TICKS
# Windows of a second. Faster changes are contacts, not payloads or drives.
_WINDOWS = 5
SECOND_S = WINDOW_S * _WINDOWS
Indices = NDArray[np.int64]
_Rows = tuple[Array, Array, NDArray[np.bool_]]
# Mean direction above which a joint counts as moving in one direction, with full dry friction.
_MIN_DIRECTION = 0.95
# Columns of a joint; the last column is the residual.
LOAD, DIRECTION, SPEED, OFFSET, GAIN, ZEROS = slice(0, 10), 10, 11, 12, 13, slice(14, -1)


@dataclass(frozen=True, eq=False)
class SecondSums:
    """Sums over the seconds that a batch completes.

    Args:
        t: End of each second [s].
        gram: Sums over windows with motion of the joint, shape (seconds, joints, columns, columns); last column ρ.
        moved_s: Time in motion [s], shape (seconds, joints).
        lagged: Sums of ρ times ρ of the previous window, shape (seconds, joints).
    """

    t: Array
    gram: Array
    moved_s: Array
    lagged: Array

    def __len__(self) -> int:
        return len(self.t)


class ResidualWindows(SavedArrays):
    """Computes `SecondSums` from batches; the split into batches changes only rounding errors.

    Args:
        setup: Model and options; option "frame" names the frame of the payload (default: the last link).
    """

    saved = saved_attributes("windows_", "_slot _time _impulse _tau _tick _area _edge _before _look _ended _sums _more")

    def __init__(self, setup: WatchSetup) -> None:
        self.setup = setup
        model = setup.model
        robot = model.robot
        self.n = n = robot.dof
        self.columns = 14 + n + 1
        frame = robot.moving_frame(str(setup.options.get("frame", "")))
        self._host = frame.host
        self._to_own = np.linalg.inv(frame_transfer(link_frame(robot.links[frame.host], frame.host), frame))
        rigid = Dynamics(robot)
        self._momentum, self._remainder = (self._load_regressor(rigid, name) for name in ("momentum", "remainder"))
        self._stiffness = _stiffness(model)
        self._slow = np.array([SMOOTHING_SPEED[joint.kind] for joint in robot.joints])
        self._used = np.array(robot.torque_used, dtype=bool)
        self._tick_width = 12 * n  # rows of the load, direction, velocity
        self._last_batch: ObservedBatch | None = None
        self._last_sums = self._no_sums()
        self._clear()
        self._look = self._ended = np.nan  # number and end of the present second
        self._sums = np.zeros((n, self.columns, self.columns))
        self._more = np.zeros((2, n))  # time in motion; lagged products

    def _load_regressor(self, rigid: Dynamics, name: str) -> Evaluator:
        first, n = 10 * self._host, self.n

        def body(q: Vector, dq: Vector) -> dict[tuple[int, int], Scalar]:
            entries = rigid.over_scalars(f"{name}_regressor", {"q": q, "dq": dq})
            return {(row, c - first): x for (row, c), x in entries.items() if first <= c < first + 10}

        evaluator = Evaluator(trace(f"load_{name}", {"q": n, "dq": n}, body, (n, 10)))
        evaluator.compile()
        return evaluator

    def _no_sums(self) -> SecondSums:
        n, c = self.n, self.columns
        return SecondSums(np.zeros(0), np.zeros((0, n, c, c)), np.zeros((0, n)), np.zeros((0, n)))

    def _clear(self) -> None:
        """Reset at a gap; the incomplete window is dropped."""
        n = self.n
        self._slot = np.nan  # number of the last tick
        self._time = np.array([np.nan, np.nan])  # of the last sample, of the last tick
        self._impulse = np.zeros(2 * n)  # of e and of the measured torque since the last edge
        self._tau = np.zeros(n)  # of the last sample
        self._tick = np.zeros(self._tick_width)  # columns at the last tick
        self._area = np.zeros(self._tick_width)  # their integrals since the last edge
        self._edge = np.zeros(1 + 10 * n + n * n)  # t, momentum rows and stiffness at the last edge
        self._edge[0] = np.nan
        self._before = np.zeros(n)

    @classmethod
    def shared(cls, setup: WatchSetup) -> ResidualWindows:
        """Return the windows that all monitors with the same `setup` share."""
        windows = _SHARED.get(id(setup))
        if windows is None or windows.setup is not setup:
            windows = _SHARED[id(setup)] = cls(setup)
        return windows

    def update(self, batch: ObservedBatch) -> SecondSums:
        """Return the seconds that `batch` completes; a second call with the same batch returns the same."""
        if batch is not self._last_batch:
            self._last_sums = self._compute(batch)
            self._last_batch = batch
        return self._last_sums

    def _compute(self, batch: ObservedBatch) -> SecondSums:
        samples = batch.samples
        if samples.fresh:
            self._clear()
        if not len(samples):
            return self._no_sums()
        t = samples.t
        begins = bool(np.isnan(self._time[0]))
        if begins:
            self._time[:], self._tau = t[0], samples.tau[0]
        h = np.diff(t, prepend=self._time[0])
        tau = np.concatenate([self._tau[None], samples.tau])
        impulses = np.concatenate([batch.e, 0.5 * (tau[1:] + tau[:-1])], axis=1) * h[:, None]
        slots = np.floor(t / TICK_S + _EDGE_TOLERANCE)
        slots_before, self._slot = self._slot, slots[-1]
        self._time[0], self._tau = t[-1], samples.tau[-1].copy()
        ticks = np.flatnonzero(np.diff(slots, prepend=slots_before) != 0.0)  # NaN before the first gives a tick
        numbers = np.floor(slots[ticks] / _WINDOW_TICKS)
        edges = np.flatnonzero(np.diff(numbers, prepend=np.floor(slots_before / _WINDOW_TICKS)) != 0.0)
        at = ticks[edges]
        impulse, self._impulse = _sums_frame_transfer(impulses, at, self._impulse)
        if not len(ticks):
            return self._no_sums()
        area, self._area = _sums_frame_transfer(self._steps(batch, ticks), edges, self._area)
        if not len(at):
            return self._no_sums()
        return self._complete(numbers[edges], self._rows(samples, at, impulse, area))

    def _steps(self, batch: ObservedBatch, ticks: Indices) -> Array:
        """Return the increments of the column integrals at each tick."""
        samples, n = batch.samples, self.n
        q, dq, t = samples.q[ticks], samples.dq[ticks], samples.t[ticks]
        rows = np.asarray(self._remainder({"q": q, "dq": dq}, threads=1)).reshape(-1, 10) @ self._to_own
        now = np.concatenate([rows.reshape(len(t), 10 * n), np.tanh(dq / self._slow), dq], axis=1)
        old = np.concatenate([self._tick[None], now[:-1]])
        steps = np.diff(t, prepend=self._time[1])[:, None]  # 0 for the first tick
        self._tick, self._time[1] = now[-1], t[-1]
        return np.asarray(0.5 * steps * (now + old))

    def _rows(self, samples: SampleBatch, at: Indices, impulse: Array, area: Array) -> _Rows:
        """Return the ends of the windows, their rows (windows, joints, columns), and whether each joint moved."""
        n = self.n
        q, dq, t = samples.q[at], samples.dq[at], samples.t[at]
        P = np.asarray(self._momentum({"q": q, "dq": dq}, threads=1)).reshape(-1, 10) @ self._to_own
        new = np.concatenate([t[:, None], P.reshape(len(t), -1), self._stiffness(q).reshape(len(t), -1)], axis=1)
        old = np.concatenate([self._edge[None], new[:-1]])
        self._edge = new[-1]
        T = new[:, :1] - old[:, :1]
        with np.errstate(invalid="ignore"):
            good = np.abs(T / WINDOW_S - 1.0) < 0.5  # false for the first window
            T = np.where(good, T, 1.0)
            residual, torque = -impulse[:, :n] / T, impulse[:, n:] / T
            direction, speed = area[:, 10 * n : 11 * n] / T, area[:, 11 * n :] / T
            load = (new - old)[:, 1 : 1 + 10 * n] / T + area[:, : 10 * n] / T
            zeros = -0.5 * (new + old)[:, 1 + 10 * n :].reshape(-1, n, n)
        moves = good & (np.abs(direction) > _MIN_DIRECTION)
        columns = np.empty((len(t), n, self.columns))
        columns[..., LOAD] = load.reshape(-1, n, 10)
        columns[..., DIRECTION], columns[..., SPEED] = direction, speed
        columns[..., OFFSET], columns[..., GAIN], columns[..., ZEROS] = 1.0, torque - residual, zeros
        columns[..., -1] = residual
        return t, np.where((moves & self._used)[..., None], columns, 0.0), moves

    def _complete(self, numbers: Array, rows: _Rows) -> SecondSums:
        """Return the complete seconds; store the windows of the present one."""
        n, c, (t, columns, moves) = self.n, self.columns, rows
        rho = columns[..., -1]
        lagged = rho * np.concatenate([self._before[None], rho[:-1]])
        self._before = rho[-1]
        # A window ends at the edge that starts the next one, so the number of the second is that of the previous
        # window.
        second = np.floor((numbers - 1.0) / _WINDOWS)
        first = np.flatnonzero(np.diff(second, prepend=second[0] - 1.0) != 0.0)
        gram = np.add.reduceat(columns[..., :, None] * columns[..., None, :], first, axis=0)
        more = np.add.reduceat(np.stack([moves * WINDOW_S, lagged], axis=1), first, axis=0)
        if second[0] == self._look:
            gram[0] += self._sums
            more[0] += self._more
        elif np.isfinite(self._look):  # the stored second is complete
            gram = np.concatenate([self._sums[None], gram])
            more = np.concatenate([self._more[None], more])
            first = np.concatenate([[0], first])
            t = np.concatenate([[self._ended], t])
            first[1:] += 1
        self._look, self._sums, self._more = second[-1], gram[-1].copy(), more[-1].copy()
        ends = np.append(first[1:], len(t)) - 1
        self._ended = t[-1]
        return SecondSums(t[ends[:-1]], gram[:-1].reshape(-1, n, c, c), more[:-1, 0], more[:-1, 1])


_SHARED: WeakValueDictionary[int, ResidualWindows] = WeakValueDictionary()


def _sums_frame_transfer(rows: Array, at: Indices, carried: Array) -> tuple[Array, Array]:
    """Return the sums of `rows` up to each index of `at`, the first including `carried`, and the sum of the rest."""
    if not len(at):
        return rows[:0], carried + rows.sum(axis=0)
    stop = at[-1] + 1
    sums = np.add.reduceat(rows[:stop], np.concatenate([[0], at[:-1] + 1]), axis=0)
    sums[0] += carried
    return sums, rows[stop:].sum(axis=0)


def _stiffness(model: Model) -> Callable[[Array], Array]:
    """Return a function for ∂(static torque)/∂q at postures, shape (samples, joints, joints)."""
    n = model.robot.dof
    evaluator = Evaluator(model.dynamics.function("gravity_torque", "tangent", "q"))
    evaluator.compile()
    parameters = {"theta": model.theta}

    def stiffness(q: Array) -> Array:
        columns = [evaluator({"q": q, **parameters, "tangent_q": unit}, threads=1) for unit in np.eye(n)]
        return np.stack(columns, axis=-1)

    return stiffness
