"""The baseline of the scoreboard, written anew with Pinocchio and NumPy; nothing of ours is used.

Zero-phase Butterworth of order 4, central differences, Pinocchio's regressor with rotor, viscous, Coulomb and offset
columns, least squares over the columns' row space, every joint weighted by its residuals until they stand still.
Coulomb friction is sign(q̇) with a ramp, between ±0.01 rad/s where the data's page names no other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin
import pyarrow.parquet as pq
from scipy.signal import butter, decimate, sosfiltfilt

Array = np.ndarray


@dataclass(frozen=True)
class Recipe:
    """How a README prepares its log: cut-off (Hz), clock (Hz), seconds cut at both ends, every `step`-th row."""

    cutoff_hz: float
    rate: float
    trim: float = 0.0
    step: int = 1
    measured: bool = True
    rotor: bool = True
    coupled: tuple[int, int] | None = None
    window_after: bool = False  # the window is cut after filtering, not before
    ramp: float = 0.01  # of Coulomb friction, rad/s or m/s
    no_offset: tuple[int, ...] = ()  # joints without one
    least: float = 1e-6  # of the columns' row space, what is kept, beside the largest singular value

    def low_pass(self, x: Array) -> Array:
        return np.asarray(sosfiltfilt(butter(4, 2.0 * self.cutoff_hz / self.rate, output="sos"), x, axis=0))


@dataclass(frozen=True)
class Signals:
    """Filtered signals on the recipe's clock; `rows` are those that count."""

    every: tuple[Array, Array, Array, Array]
    rows: slice
    t: Array


class Baseline:
    def __init__(self, folder: Path, recipe: Recipe, joints: tuple[str, ...] | None = None) -> None:
        self.folder, self.recipe = folder, recipe
        model = pin.buildModelFromUrdf(str(folder / "robot.urdf"))
        if joints is not None:
            others = [model.getJointId(n) for n in model.names[1:] if n not in joints]
            model = pin.buildReducedModel(model, others, pin.neutral(model))
        self.model, self.data = model, model.createData()
        self.meta = json.loads((folder / "meta.json").read_text())
        model.gravity.linear = np.array(self.meta["gravity"], float)
        self.theta = np.zeros(0)

    def read(self, log: str) -> Signals:
        r, n = self.recipe, self.model.nv
        table = pq.read_table(self.folder / f"{log}.parquet").to_pydict()
        first, end = self._window(log, len(table["t"]))
        cut = slice(None) if r.window_after else slice(first - 1, end)
        t = np.array(table["t"], float)
        clock = np.arange(t[cut][0], t[cut][-1] + 1e-9, 1.0 / r.rate)

        def signal(name: str) -> Array:
            return np.column_stack([np.interp(clock, t, np.array(table[f"{name}{k + 1}"], float)) for k in range(n)])

        tau = signal("tau") if "tau1" in table else signal("i") * np.array(self.meta["i_to_tau"])
        q = r.low_pass(signal("q"))
        if r.measured:
            dq = r.low_pass(signal("dq"))
            ddq = r.low_pass(np.gradient(dq, 1.0 / r.rate, axis=0))
        else:
            dq = np.gradient(q, 1.0 / r.rate, axis=0)
            ddq = np.gradient(dq, 1.0 / r.rate, axis=0)
        trim = round(r.trim * r.rate)
        rows = slice(trim, len(clock) - trim, r.step)
        if r.window_after:
            rows = slice(first - 1, end - 1, r.step)
        return Signals((q, dq, ddq, r.low_pass(tau)), rows, clock[rows])

    def _window(self, log: str, length: int) -> tuple[int, int]:
        given = self.meta.get("windows_1based", {}).get(log) or self.meta.get("window") or (1, length)
        return int(given[0]), int(given[1])

    def columns(self, q: Array, dq: Array, ddq: Array) -> Array:
        n = self.model.nv
        Y = np.array(
            [pin.computeJointTorqueRegressor(self.model, self.data, *s).copy() for s in zip(q, dq, ddq, strict=True)]
        )
        drives = [ddq] if self.recipe.rotor else []
        drives += [dq, self._direction(dq), self._offsets(dq)]
        parts = [Y, *(np.eye(n) * x[:, :, None] for x in drives)]
        if self.recipe.coupled is not None:
            a, b = self.recipe.coupled
            v, w = dq[:, a] + dq[:, b], ddq[:, a] + ddq[:, b]
            extra = np.zeros((len(q), n, 3))
            extra[:, [a, b]] = np.column_stack([w, v, self._direction(v)])[:, None]
            parts.append(extra)
        return np.concatenate(parts, axis=2)

    def _offsets(self, dq: Array) -> Array:
        ones = np.ones_like(dq)
        ones[:, list(self.recipe.no_offset)] = 0.0
        return ones

    def _direction(self, dq: Array) -> Array:
        return np.clip(dq / self.recipe.ramp, -1.0, 1.0)

    def fit(self, signals: Sequence[Signals], rows: Array | None = None, rounds: int = 20) -> None:
        q, dq, ddq, y = (np.concatenate(x) for x in zip(*([x[s.rows] for x in s.every] for s in signals), strict=True))
        if rows is not None:
            q, dq, ddq, y = (x[rows] for x in (q, dq, ddq, y))
        W = self.columns(q, dq, ddq)
        width = W.shape[2]
        length = np.linalg.norm(W.reshape(-1, width), axis=0)
        length[length == 0.0] = 1.0
        _, values, V = np.linalg.svd(np.linalg.qr(W.reshape(-1, width) / length, mode="r"))
        B = V[values > self.recipe.least * values[0]].T / length[:, None]
        weights = np.ones(y.shape[1])
        for _ in range(rounds):
            A = (W * weights[:, None]).reshape(-1, width) @ B
            self.theta = B @ np.linalg.lstsq(A, (y * weights).ravel(), rcond=None)[0]
            weights = 1.0 / np.sqrt(np.mean((y - W @ self.theta) ** 2, axis=0))

    def errors(self, signals: Signals, filtered: bool) -> Array:
        """Measured minus predicted on the rows that count; the prediction through the filter as well, or as it is."""
        q, dq, ddq, y = signals.every
        if not filtered:
            q, dq, ddq, y = (x[signals.rows] for x in signals.every)
        predicted = np.concatenate(
            [self.columns(q[s], dq[s], ddq[s]) @ self.theta for s in _chunks(len(q), 4000)]
        )  # fmt: skip
        if filtered:
            return np.asarray((y - self.recipe.low_pass(predicted))[signals.rows])
        return np.asarray(y - predicted)


def _chunks(length: int, size: int) -> list[slice]:
    return [slice(k, min(k + size, length)) for k in range(0, length, size)]


def emps_baseline(folder: Path, model: Callable[[Array, Array, Array], Array]) -> dict[str, list[float]]:
    """Relative errors (%) on both logs of the published fits and of a given model, all by the published definition.

    100 Hz zero-phase Butterworth of order 4, central differences, 50 samples cut at both ends, then everything
    decimated by ten (Chebyshev of order 8, zero phase): the torque, the columns, and the model's torque.
    """
    logs = []
    for name in ("ident", "val_pulses"):
        table = pq.read_table(folder / f"{name}.parquet").to_pydict()
        sections = butter(4, 0.2, output="sos")
        q = np.asarray(sosfiltfilt(sections, np.array(table["q1"], float)))
        v = np.gradient(q, 1e-3)
        a = np.gradient(v, 1e-3)
        symmetric = np.column_stack([a, v, np.sign(v), np.ones_like(v)])
        asymmetric = np.column_stack([a, np.maximum(v, 0.0), np.minimum(v, 0.0), v > 0.0, -1.0 * (v < 0.0)])
        ours = model(q[:, None], v[:, None], a[:, None])
        both = (symmetric, asymmetric, ours, np.array(table["tau1"], float)[:, None])
        logs.append([decimate(x[50:-50], 10, zero_phase=True, axis=0) for x in both])

    def relative(predicted: list[Array]) -> list[float]:
        pairs = zip(logs, predicted, strict=True)
        return [float(100.0 * np.linalg.norm(x[3][:, 0] - p) / np.linalg.norm(x[3])) for x, p in pairs]

    out = {}
    for k, label in enumerate(("baseline, symmetric friction", "baseline, asymmetric friction")):
        beta = np.linalg.lstsq(logs[0][k], logs[0][3][:, 0], rcond=None)[0]
        out[label] = relative([x[k] @ beta for x in logs])
    out["ours"] = relative([x[2][:, 0] for x in logs])
    return out
