"""`linear_starts`: first values of a drive by non-negative least squares, with the known load as the scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.actuators.command_log import CommandLog
from steelyard.ground.arrays import Array

# Half width of the window [s] that averages the equation of motion. It must be short compared with the motion (0.5 s
# and more) and long compared with the noise of an encoder: 12 steps of 5 ms.
_HALF = 0.06
# Below this speed [rad/s] an encoder of 12 bits at 200 Hz does not determine the direction of motion.
_STILL = 0.05


@dataclass(frozen=True)
class _Rows:
    """The averaged equation of motion of all runs: one row per instant."""

    load: Array  # torque that moves the known load [N m]
    acceleration: Array
    velocity: Array
    velocity_on: Array
    error: Array  # kp · (goal − position) while the drive is on
    sign: Array
    through: Array
    supply: Array
    duty: Array
    velocity_kd: Array
    on: Array


def linear_starts(
    logs: Sequence[CommandLog], supply: Sequence[Array], kind: str, given: Mapping[str, float]
) -> list[dict[str, float]]:
    """Return first values of a drive: one set for each assumed saturation and for noise in the torque or the error.

    Args:
        logs: Runs.
        supply: Voltage of each run [V].
        kind: Kind of the drive.
        given: Known parameters.
    """
    rows = _rows(logs, supply)
    largest = float(np.max(np.abs(rows.error), initial=1e-9))
    if kind == "voltage":
        known = given.get("duty_gain")
        gains = [known] if known else [float(g / largest) for g in np.geomspace(0.7, 20.0, 6)]
        bounds = [1.0 / g for g in gains]
        return [_voltage(rows, g, known is not None) for g in gains] + [_stiff(rows, kind, b) for b in bounds]
    bounds = [largest * share for share in (2.0, *np.geomspace(0.5, 0.04, 5))]
    return [_loop(rows, kind, b) for b in bounds] + [_stiff(rows, kind, b) for b in bounds]


def _common(rows: _Rows) -> list[tuple[str, Array]]:
    return [
        ("armature", -rows.acceleration),
        ("friction_viscous", -rows.velocity),
        ("friction_base", -rows.sign),
        ("load_friction", -rows.sign * rows.through),
    ]


def _voltage(rows: _Rows, gain: float, measured: bool) -> dict[str, float]:
    share = rows.duty if measured and np.isfinite(rows.duty).all() else np.clip(gain * rows.error, -1.0, 1.0)
    columns = [("torque_per_volt", share * rows.supply), ("back_emf", -rows.velocity_on), *_common(rows)]
    return {**_solved(columns, rows.load), "duty_gain": gain}


def _loop(rows: _Rows, kind: str, bound: float) -> dict[str, float]:
    names = ("kp_gain", "kd_gain") if kind == "torque" else ("stiffness", "damping")
    drag = rows.velocity_kd if kind == "torque" else rows.velocity_on
    columns = [(names[0], np.clip(rows.error, -bound, bound)), (names[1], -drag), *_common(rows)]
    values = _solved(columns, rows.load)
    return {**values, "torque_limit": max(values[names[0]] * bound, 1e-6)}


def _stiff(rows: _Rows, kind: str, bound: float) -> dict[str, float]:
    """Regress the error on the torque: in a stiff drive the torque is exact and the small error contains the noise."""
    inside = (rows.on > 0.99) & (np.abs(rows.error) < 0.9 * bound)
    names = ("damping", "armature", "friction_base")
    columns = [
        ("compliance", rows.load),
        (names[0], rows.velocity),
        (names[1], rows.acceleration),
        (names[2], rows.sign),
    ]
    if inside.sum() < 10 * len(columns):
        return {}
    scaled = _solved([(name, c[inside]) for name, c in columns], rows.error[inside])
    if scaled["compliance"] <= 0.0:
        return {}
    stiffness = 1.0 / scaled["compliance"]
    values = {name: scaled[name] * stiffness for name in names}
    drag = values.pop("damping")
    limit = stiffness * bound
    if kind == "voltage":
        volts = float(np.median(rows.supply))
        return {**values, "torque_per_volt": limit / volts, "duty_gain": 1.0 / bound, "back_emf": drag}
    own = ("kp_gain", "kd_gain") if kind == "torque" else ("stiffness", "damping")
    share = float(np.sum(rows.velocity_kd * rows.velocity_on) / max(np.sum(rows.velocity_on**2), 1e-12))
    gain = drag / share if kind == "torque" and share > 0.0 else drag
    return {**values, own[0]: stiffness, own[1]: gain, "torque_limit": limit}


def _solved(columns: list[tuple[str, Array]], target: Array) -> dict[str, float]:
    from scipy.optimize import nnls

    matrix = np.stack([c for _, c in columns], axis=1)
    scale = np.maximum(np.sqrt(np.mean(matrix**2, axis=0)), 1e-12)
    solution, _ = nnls(matrix / scale, target, maxiter=20 * len(columns))
    return {name: float(x) for (name, _), x in zip(columns, solution / scale, strict=True)}


def _rows(logs: Sequence[CommandLog], supply: Sequence[Array]) -> _Rows:
    """Average the equation of motion with a smooth window, whose own derivatives replace those of the position."""
    parts: list[list[Array]] = []
    for log, volts in zip(logs, supply, strict=True):
        for part in log.segments():
            rows = _part(log, volts, part)
            if rows is not None:
                parts.append(rows)
    return _Rows(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _part(log: CommandLog, volts: Array, part: slice) -> list[Array] | None:
    step = min(max(float(np.median(np.diff(log.time[part]))), 1e-3), 0.02)
    half = max(round(_HALF / step), 3)
    grid = np.arange(log.time[part][0], log.time[part][-1], step)
    if len(grid) < 4 * half:
        return None
    x = np.arange(-half, half + 1) / (half + 1.0)
    window = (1.0 - x**2) ** 3
    window /= window.sum()
    width = (half + 1.0) * step
    first = -6.0 * x * (1.0 - x**2) ** 2
    second = (1.0 - x**2) * (30.0 * x**2 - 6.0)
    total = ((1.0 - x**2) ** 3).sum()
    # The derivative of an averaged signal is the signal averaged with the window's derivative.
    first, second = first / total / width, second / total / width**2
    # With few samples these sums are not the integrals: exact for a parabola, wherever the zero of the encoder is.
    first /= -float(first @ x) * width
    second -= second.mean()
    second /= 0.5 * float(second @ x**2) * width**2

    def average(values: Array, kernel: Array = window) -> Array:
        return np.asarray(np.convolve(values, kernel, mode="valid"))

    def sampled(values: Array) -> Array:
        return np.interp(grid, log.time[part], values[part])

    on = (sampled(log.enabled.astype(float)) > 0.5).astype(float)
    q = sampled(log.position)
    goal = sampled(np.where(np.isfinite(log.goal), log.goal, log.position))
    kp, kd = (1.0 if math.isnan(g) else g for g in (log.kp, log.kd))
    v, a = average(q, first), average(q, second)
    mean_position = average(q)
    load = log.load
    needed = load.inertia * a - average(np.asarray(load.torque(q)))
    duty = np.full_like(needed, np.nan) if log.duty is None else average(sampled(np.nan_to_num(log.duty)) * on)
    motion = average(on) * v
    sign = np.where(np.abs(v) > _STILL, np.sign(v), 0.0)
    through = np.abs(needed - np.asarray(load.torque(mean_position)))
    rows = [needed, a, v, motion, kp * average((goal - q) * on), sign, through, average(sampled(volts)), duty,
            kd * motion, average(on)]  # fmt: skip
    # At rest dry friction may have any value; only rows in motion are informative.
    moving = sign != 0.0
    return [r[moving] for r in rows] if moving.sum() > 5 else None
