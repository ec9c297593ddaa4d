"""`ElasticTable`: filtered signals of motors and links of a log, on one clock and without clock skew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.elasticity.encoder_readings import EncoderReadings
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.robot.robot import Robot
from steelyard.signals.filters import LowPass, delayed, derivative
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation, chosen_cutoff
from steelyard.signals.rounding import velocity_noise
from steelyard.signals.standing import standing

# Rows closer than a fifth of the cut-off's period are redundant after the filter.
_STEP = 0.2
# Friction models fail near a reversal: presliding, Stribeck effect, soft constraints of simulators. The fit excludes
# rows while the speed is below this share of its rms value, and neighbours within the reach of the low-pass (in periods
# of its cut-off). Including them makes c 3 % too small on a MuJoCo pendulum with friction of a tenth of gravity.
_SLOW, _SPREAD = 0.1, 0.5
# Clocks that deviate from a uniform one by more than this are resampled [samples].
_UNIFORM = 1e-3


@dataclass(frozen=True, eq=False)
class ElasticTable:
    """Rows of a gap-free piece of a log; arrays have the shape (rows, joints).

    Attributes:
        log: Index of the log.
        t: Times [s].
        theta, dtheta, ddtheta: Motion of the motors over the gears.
        q, dq, ddq: Motion of the links.
        tau: Torque of the motors over the gears.
        direction: Direction of the motors' motion, −1 to 1.
        deflection, deflection_rate: Motor minus link position by the sensors, and its rate.
        moves: Whether a joint moves at a row, away from reversals; the friction at rest is unknown.
    """

    log: int
    t: Array
    theta: Array
    dtheta: Array
    ddtheta: Array
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    direction: Array
    deflection: Array
    deflection_rate: Array
    moves: NDArray[np.bool_]


def cutoff_of(logs: Sequence[Log], cutoff_hz: float | None) -> float:
    """Choose the cut-off of the low-pass of all signals [Hz].

    Args:
        logs: Logs of the fit.
        cutoff_hz: Cut-off of the user; None: computed from the band of the motion.
    """
    return chosen_cutoff(logs, Preparation(cutoff_hz=cutoff_hz))


def elastic_tables(
    robot: Robot, readings: Sequence[EncoderReadings], cutoff_hz: float, skew: Array
) -> list[ElasticTable]:
    """Prepare the rows of logs.

    Args:
        robot: Robot of the logs.
        readings: Logs with two encoders.
        cutoff_hz: Cut-off of the low-pass [Hz].
        skew: Lag of each link encoder [s], to be removed.
    """
    smooth = np.array([SMOOTHING_SPEED[joint.kind] for joint in robot.joints])
    return [t for k, one in enumerate(readings) for t in _tables_of(one, k, cutoff_hz, skew, smooth)]


def _tables_of(
    one: EncoderReadings, number: int, cutoff_hz: float, skew: Array, smooth: Array
) -> Iterator[ElasticTable]:
    torque = np.zeros_like(one.theta) if one.log.tau is None else one.log.tau
    for start, stop in one.log.segments:
        period, t, (theta, q, tau) = uniform(one.log.t[start:stop], [x[start:stop] for x in (one.theta, one.q, torque)])
        low_pass = LowPass(min(cutoff_hz, 0.4 / period), period)
        trim = low_pass.memory // 3
        step = max(1, int(_STEP / (low_pass.cutoff_hz * period)))
        rows = slice(trim, len(t) - trim, step)
        if len(range(*rows.indices(len(t)))) < 8:
            continue
        for k in one.elastic:
            q[:, k] = delayed(q[:, k], -skew[k] / period)
        low = low_pass(np.hstack([theta, q, tau, theta - q]))
        x, link, torques, gap = np.split(low, 4, axis=1)
        dx, dlink = derivative(x, period), derivative(link, period)
        still = standing(x, dx, velocity_noise(theta, low_pass, False), low_pass)
        still |= _around(np.abs(dx) < _SLOW * np.sqrt(np.mean(dx**2, axis=0)), _SPREAD / (low_pass.cutoff_hz * period))
        direction = low_pass(np.tanh(dx / smooth))
        yield ElasticTable(
            number, t[rows], x[rows], dx[rows], derivative(dx, period)[rows], link[rows], dlink[rows],
            derivative(dlink, period)[rows], torques[rows], direction[rows], gap[rows], derivative(gap, period)[rows],
            ~still[rows],
        )  # fmt: skip


def _around(flags: NDArray[np.bool_], samples: float) -> NDArray[np.bool_]:
    """Extend flags to neighbouring samples."""
    width = 2 * int(np.ceil(samples)) + 1
    counts = np.cumsum(np.pad(flags.astype(int), ((width // 2 + 1, width // 2), (0, 0))), axis=0)
    return np.asarray(counts[width:] > counts[:-width])


def uniform(t: Array, signals: Sequence[Array]) -> tuple[float, Array, list[Array]]:
    """Resample signals of a jittering clock to a uniform clock; return period, times and signals.

    Args:
        t: Times [s].
        signals: Signals, shape (samples, columns).
    """
    if len(t) < 3:
        return 1.0, t, list(signals)
    count = len(t)
    period = float((t[-1] - t[0]) / (count - 1))
    clock = t[0] + period * np.arange(count)
    if np.max(np.abs(clock - t)) < _UNIFORM * period:
        return period, clock, [x.copy() for x in signals]
    return period, clock, [np.column_stack([np.interp(clock, t, c) for c in x.T]) for x in signals]
