"""`ContactCalibration`: statistics of the external torque without contact, and limits for a given false-alarm rate.

For every joint the variance of r is a sum of causes (`residual_scale.py`); their non-negative coefficients are fitted
to r². The scaled residual z = r/σ has heavier tails than a normal distribution. A generalised Pareto distribution is
fitted to the largest z of every second beyond a threshold (peaks over threshold, Pickands 1975), and the limit is the
value that is exceeded at the given rate. Data are few and rates small, so the fit is conservative: its tail is never
lighter than exponential, and its scale is the upper end of a 95 % interval.
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
from steelyard.ground.short_repr import short_repr
from steelyard.ground.untrusted_files import read_json
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.watch.batch import SampleBatch
from steelyard.watch.observer import MomentumObserver, dry_friction
from steelyard.watch.residual_scale import CAUSES, ResidualScale, ResidualTerms
from steelyard.watch.uncertain_model import UncertainModel

_FORMAT = "steelyard-watch-calibration-1"
# Block length of a peak [s]: longer than a touch, friction at a reversal, and the low-pass.
_BLOCK_SECONDS = 1.0
# Share of the peaks that the tail is fitted to: the usual compromise between bias and variance.
_TAIL_SHARE = 0.2
_MIN_PEAKS = 10
# Largest shape of the tail. Heavier tails have no fourth moment and come from a few outlying peaks.
_MAX_SHAPE = 0.25
# Smallest standard deviation in any state of the robot, as a share of the average.
_MIN_STD_RATIO = 0.1
# Candidate cut-off frequencies [Hz], from a time constant of 0.3 s to one that follows an impact.
_CUTOFFS_HZ = (0.5, 0.8, 1.25, 2.0, 3.0, 5.0, 8.0, 12.5, 20.0, 30.0, 50.0)
# Fewest samples within the time constant of a low-pass.
_MIN_SAMPLES = 4.0


# Limit of a joint without known residuals [N m, N].
NO_LIMIT = 1e15


class CalibrationError(SteelyardError):
    """Unsuitable logs, or an invalid calibration file."""


@short_repr
@dataclass(frozen=True, eq=False)
class ContactCalibration:
    """Statistics of a robot's residuals without contact.

    Args:
        joints: Names of the joints, in the order of the model.
        cutoff_hz: Cut-off frequency of the observer [Hz].
        coefficients: Coefficients of the causes of variance, shape (joints, causes).
        tails: Threshold u of z, rate of peaks beyond u [1/s], scale and shape of the tail, shape (joints, 4).
        seconds: Duration of the logs [s]; zero without logs.
    """

    joints: tuple[str, ...]
    cutoff_hz: float
    coefficients: Array
    tails: Array
    seconds: float = 0.0

    def limits(self, false_alarms_hz: float) -> Array:
        """Compute the limit of abs(z) per joint, so that all joints together have the rate `false_alarms_hz` [1/s]."""
        if not (math.isfinite(false_alarms_hz) and false_alarms_hz > 0.0):
            raise CalibrationError(f"The false-alarm rate must be positive, not {false_alarms_hz:g} per second.")
        u, rate, scale, shape = self.tails.T
        logs = np.maximum(np.log(rate * len(self.joints) / false_alarms_hz), 0.0)
        growth = np.where(shape > 1e-9, np.expm1(shape * logs) / np.maximum(shape, 1e-9), logs)
        return np.asarray(u + scale * growth)

    def to_json(self) -> dict[str, Any]:
        """Return the content of a file as plain values."""
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
        """Write the calibration to the file `path`."""
        write_whole(path, json.dumps(self.to_json(), indent=1) + "\n")

    def check(self, uncertain_model: UncertainModel) -> None:
        """Raise an error if `uncertain_model` has other joints, or lacks the covariance that the calibration uses."""
        robot = uncertain_model.model.robot
        if (
            uncertain_model.covariance is None
            and self.coefficients[:, CAUSES.index("parameters")].any()
            and self.seconds > 0.0
        ):
            raise CalibrationError(
                "The calibration uses the covariance of the parameters, which this model does not have. Use the run "
                "folder that it was made for, or repeat the calibration."
            )
        if self.joints != robot.joint_names:
            raise CalibrationError(
                f"The calibration is for the joints {', '.join(self.joints)}, the model has "
                f"{', '.join(robot.joint_names)}. Repeat the calibration."
            )


def read_calibration(path: str | os.PathLike[str]) -> ContactCalibration:
    """Read a calibration that `ContactCalibration.write` wrote to `path`."""
    root = read_json(Path(path), CalibrationError, "write it with `steelyard watch --calibrate`")
    if not isinstance(root.value, dict) or root.value.get("format") != _FORMAT or root.value.get("causes") != [*CAUSES]:
        root.fail("is not a calibration of this version; repeat the calibration.")
    keys = root.table(("format", "joints", "cutoff_hz", "seconds", "causes", "coefficients", "tails"))
    joints = tuple(keys["joints"].texts())
    tables = []
    for name, width in (("coefficients", len(CAUSES)), ("tails", 4)):
        table = np.array(keys[name].matrix(width))
        if table.shape != (len(joints), width) or not np.all(np.isfinite(table) & (table >= 0.0)):
            keys[name].fail(f"must be {len(joints)} rows of {width} non-negative numbers.")
        tables.append(table)
    return ContactCalibration(joints, keys["cutoff_hz"].number(), tables[0], tables[1], keys["seconds"].number())


def default_calibration(
    uncertain_model: UncertainModel, residual_std: Sequence[float], cutoff_hz: float
) -> ContactCalibration:
    """Return a rough calibration without logs.

    The standard deviation is that of the fit's residuals, at rest and in motion; near reversals it includes all of dry
    friction. The tail is exponential, as in a Laplace distribution, which describes residuals of friction.

    Args:
        uncertain_model: The model.
        residual_std: Standard deviation of the fit's residuals, one per joint whose torque is used [N m, N].
        cutoff_hz: Cut-off frequency of the observer [Hz].
    """
    robot = uncertain_model.model.robot
    used = np.flatnonzero(robot.torque_used)
    level = np.full(robot.dof, NO_LIMIT**2)
    level[used] = np.square(residual_std)
    balance = momentum_balance(uncertain_model.model)
    friction = np.square([float(x) for x in dry_friction(uncertain_model.model, balance, [0.0] * robot.dof)])
    coefficients = np.zeros((robot.dof, len(CAUSES)))
    for name, value in (("moving", level), ("resting", level), ("changing", friction), ("parameters", 1.0)):
        coefficients[:, CAUSES.index(name)] = value
    tails = np.tile([3.0, 0.1 / _BLOCK_SECONDS, 1.0, 0.0], (robot.dof, 1))
    return ContactCalibration(robot.joint_names, cutoff_hz, coefficients, tails)


def log_batches(log: Log, robot: Robot) -> list[SampleBatch]:
    """Convert a log to one fresh batch per segment without a gap.

    Args:
        log: The log.
        robot: The robot of the log.
    """
    if log.joints != robot.joint_names or log.dq is None or log.tau is None:
        raise CalibrationError(
            "The log must have velocities and torques of the model's joints, in the order of the model."
        )
    segments = log.segments or ((0, len(log.t)),)
    return [SampleBatch(log.t[a:b], log.q[a:b], log.dq[a:b], log.tau[a:b], fresh=True) for a, b in segments if b > a]


def calibrate_contact(
    uncertain_model: UncertainModel, logs: Sequence[Log], cutoff_hz: float | None = None
) -> ContactCalibration:
    """Calibrate the limits with logs of motion without contact.

    Without `cutoff_hz` the candidate with the shortest detection delay is used (median of the joints), for a contact of
    twice the smallest torque that any candidate detects at one false alarm per hour.

    Args:
        uncertain_model: The model; it should not be fitted to these logs, since they would then hide its errors.
        logs: Logs with velocities and torques, similar to later work, with reversals and rests.
        cutoff_hz: Cut-off frequency of the observer [Hz]; None to choose it.
    """
    batches = [batch for log in logs for batch in log_batches(log, uncertain_model.model.robot)]
    seconds = sum(float(b.t[-1] - b.t[0]) for b in batches)
    if seconds < _MIN_PEAKS / _TAIL_SHARE * _BLOCK_SECONDS:
        raise CalibrationError(f"{seconds:.0f} s without contact are too few for a calibration; give a minute or more.")
    if cutoff_hz is not None:
        return _calibrate_at(uncertain_model, batches, cutoff_hz, seconds)[0]
    period = float(np.median(np.concatenate([np.diff(b.t) for b in batches])))
    highest = 1.0 / (2.0 * math.pi * _MIN_SAMPLES * period)
    candidates = [
        _calibrate_at(uncertain_model, batches, hz, seconds)
        for hz in _CUTOFFS_HZ
        if hz <= highest or hz == _CUTOFFS_HZ[0]
    ]
    weakest = np.array([smallest for _, smallest in candidates])
    share = weakest / (
        2.0 * weakest.min(axis=0)
    )  # of a contact twice as strong as the weakest that the best candidate detects
    with np.errstate(divide="ignore", invalid="ignore"):
        delays = [
            -np.log1p(-row) / (2.0 * math.pi * c.cutoff_hz) for (c, _), row in zip(candidates, share, strict=True)
        ]
    delay = [float(np.median(np.where(np.isfinite(d), d, np.inf))) for d in delays]
    return candidates[int(np.argmin(delay))][0]


def _calibrate_at(
    uncertain_model: UncertainModel, batches: Sequence[SampleBatch], cutoff_hz: float, seconds: float
) -> tuple[ContactCalibration, Array]:
    """Calibrate one cut-off; return also the smallest torque that is typically detected per joint [N m, N]."""
    observer = MomentumObserver(uncertain_model.model, cutoff_hz)
    scale = ResidualScale(uncertain_model, observer)
    terms = [scale.update(observer.observe(batch)) for batch in batches]
    robot = uncertain_model.model.robot
    coefficients = np.array([_coefficients(terms, j) for j in range(robot.dof)])
    sigmas = [x.sigma(coefficients) for x in terms]
    peaks = [_peaks(b.t, np.abs(x.residual) / s) for b, x, s in zip(batches, terms, sigmas, strict=True)]
    tails = np.array([_tail(row) for row in np.concatenate(peaks).T])
    calibration = ContactCalibration(robot.joint_names, cutoff_hz, coefficients, tails, seconds)
    typical = np.median(np.concatenate(sigmas), axis=0)
    return calibration, calibration.limits(1.0 / 3600.0) * typical


def _coefficients(terms: Sequence[ResidualTerms], joint: int) -> Array:
    """Fit the causes to the squared residuals of one joint, by iterated non-negative least squares."""
    from scipy.optimize import nnls

    causes = np.concatenate([x.causes[:, joint] for x in terms])
    squares = np.concatenate([x.residual[:, joint] for x in terms]) ** 2
    mean = float(np.mean(squares)) or 1e-12
    fitted, variance = np.zeros(len(CAUSES)), np.full(len(squares), mean)
    for _ in range(10):  # the standard deviation of a square is about its mean, so weights follow the fit
        weighted = causes / variance[:, None]
        scale = np.maximum(np.linalg.norm(weighted, axis=0), 1e-300)
        fitted = nnls(weighted / scale, squares / variance)[0] / scale
        variance = np.maximum(causes @ fitted, _MIN_STD_RATIO**2 * mean)
    for k in (CAUSES.index("moving"), CAUSES.index("resting")):
        fitted[k] = max(fitted[k], _MIN_STD_RATIO**2 * mean)
    if np.sum(causes[:, CAUSES.index("resting")]) < 1e-3 * len(causes):  # no samples at rest
        fitted[CAUSES.index("resting")] = mean
    return np.asarray(fitted)


def _peaks(t: Array, z: Array) -> Array:
    """Return the maximum of every joint in each block of time, shape (blocks, joints)."""
    number = np.floor((t - t[0]) / _BLOCK_SECONDS).astype(int)
    firsts = np.flatnonzero(np.diff(number, prepend=-1))
    return np.asarray(np.maximum.reduceat(z, firsts, axis=0))


def _tail(peaks: Array) -> Array:
    """Fit the tail of the peaks: threshold, rate, scale and shape."""
    from scipy.stats import chi2

    u = float(np.quantile(peaks, 1.0 - _TAIL_SHARE))
    beyond = np.sort(peaks[peaks > u] - u)
    k = len(beyond)
    if k < _MIN_PEAKS:  # too few peaks: the tail of a Laplace distribution
        return np.array([max(u, 3.0), _TAIL_SHARE / _BLOCK_SECONDS, 1.0, 0.0])
    # Probability-weighted moments (Hosking and Wallis 1987).
    a0 = float(np.mean(beyond))
    a1 = float(np.mean(beyond * (1.0 - (np.arange(1, k + 1) - 0.35) / k)))
    shape = min(max(2.0 - a0 / max(a0 - 2.0 * a1, 1e-12), 0.0), _MAX_SHAPE) if a0 > 2.0 * a1 else _MAX_SHAPE
    scale = a0 * (1.0 - shape) * 2.0 * k / float(chi2.ppf(0.05, 2 * k))
    return np.array([u, _TAIL_SHARE / _BLOCK_SECONDS, scale, shape])
