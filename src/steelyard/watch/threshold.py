"""`Calibration`: how far the external torque strays without contact, and the limits for a stated rate of false alarms.

For every joint the variance of r is a sum of causes (`scatter.py`) whose coefficients are fitted to the squares of r,
none of them negative. What is left, z = r/σ, has the tails of the robot itself, not those of a Gauss: the largest z of
every second is looked at, a generalised Pareto law is fitted to those beyond the usual (peaks over a threshold,
Pickands 1975), and the limit is where it is crossed as rarely as was asked for. Seconds are few and rates are small, so
the law is taken on the safe side: its tail is never lighter than exponential, and its scale is the upper end of a 95 %
interval.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.momentum import momentum_balance
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.files import write_whole
from steelyard.ground.untrusted import read_json
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.watch.batch import SampleBatch
from steelyard.watch.model import WatchedModel
from steelyard.watch.observer import MomentumObserver, dry_friction
from steelyard.watch.scatter import CAUSES, Excused, Scatter

_FORMAT = "steelyard-watch-calibration-1"
# The largest z of so many seconds is one peak: longer than touches, friction at a reversal and the low-pass go on.
_BLOCK_SECONDS = 1.0
# The law of the tail is that of this part of the peaks, its usual compromise between bias and scatter.
_TAIL_SHARE = 0.2
_FEWEST_PEAKS = 10
# Heavier tails than this have no fourth moment, and are those of a few peaks that do not belong to the rest.
_HEAVIEST = 0.25
# No state of the robot is trusted to be so many times quieter than it is on average.
_QUIETEST = 0.1
# Low-passes that are tried (Hz), from one that takes a third of a second to one that follows an impact.
_CUTOFFS_HZ = (0.5, 0.8, 1.25, 2.0, 3.0, 5.0, 8.0, 12.5, 20.0, 30.0, 50.0)
# Four samples within the time constant: below that a low-pass is none.
_SAMPLES_WITHIN = 4.0


# N m, N: the limit of a joint of which nothing is known.
NO_LIMIT = 1e15


class CalibrationError(SteelyardError):
    """Logs that no limits follow from, or a file that holds none."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """What is known of a robot's residuals without contact.

    Args:
        joints: their names, in the order of the model.
        cutoff_hz: of the observer's low-pass.
        coefficients: of the causes of variance, (joints, causes).
        tails: per joint: the threshold u of z, how often a second has a peak beyond it (1/s), scale and shape of the
            law of what is beyond, (joints, 4).
        seconds: of motion that it was made from; zero where none was.
    """

    joints: tuple[str, ...]
    cutoff_hz: float
    coefficients: Array
    tails: Array
    seconds: float = 0.0

    def limits(self, false_alarms_hz: float) -> Array:
        """How large abs(z) may be on each joint, so that all together alarm as often as `false_alarms_hz` (1/s)."""
        if not (math.isfinite(false_alarms_hz) and false_alarms_hz > 0.0):
            raise CalibrationError(f"A rate of false alarms is positive, not {false_alarms_hz:g} a second.")
        u, rate, scale, shape = self.tails.T
        logs = np.maximum(np.log(rate * len(self.joints) / false_alarms_hz), 0.0)
        grown = np.where(shape > 1e-9, np.expm1(shape * logs) / np.maximum(shape, 1e-9), logs)
        return np.asarray(u + scale * grown)

    def to_json(self) -> dict[str, Any]:
        """As a file holds it."""
        return {
            "format": _FORMAT,
            "joints": list(self.joints),
            "cutoff_hz": self.cutoff_hz,
            "seconds": self.seconds,
            "causes": list(CAUSES),
            "coefficients": self.coefficients.tolist(),
            "tails": self.tails.tolist(),
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it to the file `path`, whole."""
        write_whole(path, json.dumps(self.to_json(), indent=1) + "\n")

    def check(self, watched: WatchedModel) -> None:
        """Refuse a calibration of another robot than that of `watched`, or one that knew more of its errors."""
        robot = watched.model.robot
        if watched.covariance is None and self.coefficients[:, CAUSES.index("parameters")].any() and self.seconds > 0.0:
            raise CalibrationError(
                "The calibration counts on the covariance of the parameters, which this model comes without; watch the "
                "run folder that it was made for, or calibrate anew."
            )
        if self.joints != robot.joint_names:
            raise CalibrationError(
                f"The calibration is of the joints {', '.join(self.joints)}; the model has "
                f"{', '.join(robot.joint_names)}; calibrate anew."
            )


def read_calibration(path: str | os.PathLike[str]) -> Calibration:
    """The calibration in a file at `path` that `Calibration.write` wrote."""
    root = read_json(Path(path), CalibrationError, "write it with `steelyard watch --calibrate`")
    if not isinstance(root.value, dict) or root.value.get("format") != _FORMAT or root.value.get("causes") != [*CAUSES]:
        root.fail("is no calibration that this version reads; calibrate anew.")
    keys = root.table(("format", "joints", "cutoff_hz", "seconds", "causes", "coefficients", "tails"))
    joints = tuple(keys["joints"].texts())
    tables = []
    for name, width in (("coefficients", len(CAUSES)), ("tails", 4)):
        table = np.array(keys[name].matrix(width))
        if table.shape != (len(joints), width) or not np.all(np.isfinite(table) & (table >= 0.0)):
            keys[name].fail(f"must be {len(joints)} rows of {width} numbers that are not negative.")
        tables.append(table)
    return Calibration(joints, keys["cutoff_hz"].number(), tables[0], tables[1], keys["seconds"].number())


def rough_calibration(watched: WatchedModel, residual_std: Sequence[float], cutoff_hz: float) -> Calibration:
    """What stands in where no log was calibrated on.

    The residuals of the fit itself are the level, at rest and in motion; near reversals all of dry friction is doubted.
    The tail is exponential with the scale of a Laplace law, which residuals of friction have, rather than a Gauss's.

    Args:
        watched: the model.
        residual_std: standard deviations of the fit's residuals, one per joint whose torque is used, N m (N).
        cutoff_hz: of the observer's low-pass.
    """
    robot = watched.model.robot
    used = np.flatnonzero(robot.torque_used)
    level = np.full(robot.dof, NO_LIMIT**2)
    level[used] = np.square(residual_std)
    balance = momentum_balance(watched.model)
    friction = np.square([float(x) for x in dry_friction(watched.model, balance, [0.0] * robot.dof)])
    coefficients = np.zeros((robot.dof, len(CAUSES)))
    for name, value in (("moving", level), ("resting", level), ("changing", friction), ("parameters", 1.0)):
        coefficients[:, CAUSES.index(name)] = value
    tails = np.tile([3.0, 0.1 / _BLOCK_SECONDS, 1.0, 0.0], (robot.dof, 1))
    return Calibration(robot.joint_names, cutoff_hz, coefficients, tails)


def log_batches(log: Log, robot: Robot) -> list[SampleBatch]:
    """The samples of a `log` of `robot`, a fresh batch for each stretch without a gap."""
    if log.joints != robot.joint_names or log.dq is None or log.tau is None:
        raise CalibrationError("The log needs velocity and torque of the model's joints, in its order.")
    parts = log.segments or ((0, len(log.t)),)
    return [SampleBatch(log.t[a:b], log.q[a:b], log.dq[a:b], log.tau[a:b], fresh=True) for a, b in parts if b > a]


def calibrate(watched: WatchedModel, logs: Sequence[Log], cutoff_hz: float | None = None) -> Calibration:
    """Limits from `logs` of motion in which nothing touched the robot.

    Args:
        watched: the model, which was not fitted to these logs if its errors are to be seen whole.
        logs: with velocities and torques; the more like later work, with reversals and rests, the better.
        cutoff_hz: of the observer's low-pass; None takes the one that finds a contact soonest which is twice as strong
            as the weakest that any of them would find, at one false alarm an hour: the median of the joints.
    """
    batches = [batch for log in logs for batch in log_batches(log, watched.model.robot)]
    seconds = sum(float(b.t[-1] - b.t[0]) for b in batches)
    if seconds < _FEWEST_PEAKS / _TAIL_SHARE * _BLOCK_SECONDS:
        raise CalibrationError(f"{seconds:.0f} s without contact are too few to calibrate on; give a minute or more.")
    if cutoff_hz is not None:
        return _calibrated(watched, batches, cutoff_hz, seconds)[0]
    period = float(np.median(np.concatenate([np.diff(b.t) for b in batches])))
    highest = 1.0 / (2.0 * math.pi * _SAMPLES_WITHIN * period)
    tried = [_calibrated(watched, batches, hz, seconds) for hz in _CUTOFFS_HZ if hz <= highest or hz == _CUTOFFS_HZ[0]]
    weakest = np.array([least for _, least in tried])
    share = weakest / (2.0 * weakest.min(axis=0))  # of a contact twice the weakest that the best low-pass finds
    with np.errstate(divide="ignore", invalid="ignore"):
        delays = [-np.log1p(-row) / (2.0 * math.pi * c.cutoff_hz) for (c, _), row in zip(tried, share, strict=True)]
    late = [float(np.median(np.where(np.isfinite(d), d, np.inf))) for d in delays]
    return tried[int(np.argmin(late))][0]


def _calibrated(
    watched: WatchedModel, batches: Sequence[SampleBatch], cutoff_hz: float, seconds: float
) -> tuple[Calibration, Array]:
    """The calibration for one low-pass, and the torque on each joint that is typically found, N m (N)."""
    observer = MomentumObserver(watched.model, cutoff_hz)
    scatter = Scatter(watched, observer)
    excused = [scatter.take(observer.take(batch)) for batch in batches]
    robot = watched.model.robot
    coefficients = np.array([_coefficients(excused, j) for j in range(robot.dof)])
    sigmas = [x.sigma(coefficients) for x in excused]
    peaks = [_peaks(b.t, np.abs(x.beyond) / s) for b, x, s in zip(batches, excused, sigmas, strict=True)]
    tails = np.array([_tail(row) for row in np.concatenate(peaks).T])
    found = Calibration(robot.joint_names, cutoff_hz, coefficients, tails, seconds)
    typical = np.median(np.concatenate(sigmas), axis=0)
    return found, found.limits(1.0 / 3600.0) * typical


def _coefficients(excused: Sequence[Excused], joint: int) -> Array:
    """What the causes contribute to the squares of one joint, by likelihood of a Gauss with that variance."""
    from scipy.optimize import nnls

    causes = np.concatenate([x.causes[:, joint] for x in excused])
    squares = np.concatenate([x.beyond[:, joint] for x in excused]) ** 2
    mean = float(np.mean(squares)) or 1e-12
    found, variance = np.zeros(len(CAUSES)), np.full(len(squares), mean)
    for _ in range(10):  # squares scatter as much as their mean: weights follow the fit, which settles in a few rounds
        weighted = causes / variance[:, None]
        scale = np.maximum(np.linalg.norm(weighted, axis=0), 1e-300)
        found = nnls(weighted / scale, squares / variance)[0] / scale
        variance = np.maximum(causes @ found, _QUIETEST**2 * mean)
    for k in (CAUSES.index("moving"), CAUSES.index("resting")):
        found[k] = max(found[k], _QUIETEST**2 * mean)
    if np.sum(causes[:, CAUSES.index("resting")]) < 1e-3 * len(causes):  # never seen at rest
        found[CAUSES.index("resting")] = mean
    return np.asarray(found)


def _peaks(t: Array, z: Array) -> Array:
    """The largest of every joint in each block of time, (blocks, joints)."""
    number = np.floor((t - t[0]) / _BLOCK_SECONDS).astype(int)
    firsts = np.flatnonzero(np.diff(number, prepend=-1))
    return np.asarray(np.maximum.reduceat(z, firsts, axis=0))


def _tail(peaks: Array) -> Array:
    """Threshold, rate, scale and shape of the law of the largest peaks."""
    from scipy.stats import chi2

    u = float(np.quantile(peaks, 1.0 - _TAIL_SHARE))
    beyond = np.sort(peaks[peaks > u] - u)
    k = len(beyond)
    if k < _FEWEST_PEAKS:  # a joint that hardly ever strays: as a Laplace law would
        return np.array([max(u, 3.0), _TAIL_SHARE / _BLOCK_SECONDS, 1.0, 0.0])
    # Probability-weighted moments (Hosking and Wallis 1987).
    a0 = float(np.mean(beyond))
    a1 = float(np.mean(beyond * (1.0 - (np.arange(1, k + 1) - 0.35) / k)))
    shape = min(max(2.0 - a0 / max(a0 - 2.0 * a1, 1e-12), 0.0), _HEAVIEST) if a0 > 2.0 * a1 else _HEAVIEST
    scale = a0 * (1.0 - shape) * 2.0 * k / float(chi2.ppf(0.05, 2 * k))
    return np.array([u, _TAIL_SHARE / _BLOCK_SECONDS, scale, shape])
