"""Elasticity of all joints with two encoders: skew, sum row, deflection rows, repetition over the logs, scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.elasticity.deflection import DeflectionFit, fit_deflection, predicted
from steelyard.elasticity.elastic_table import ElasticTable, elastic_tables
from steelyard.elasticity.encoder_readings import EncoderReadings
from steelyard.elasticity.joint_elasticity import Interval, JointElasticity
from steelyard.elasticity.sum_row import SumRow, fit_sum_row, model_torque
from steelyard.errors import SteelyardError
from steelyard.estimation.linear.block_jackknife import JACKKNIFE_BLOCKS
from steelyard.ground.arrays import Array
from steelyard.ground.student import quantile
from steelyard.parameters.terms import TermsLike
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.robot import Robot

# Iterations that remove and estimate the skew; each one reduces the remaining skew by orders of magnitude.
_ROUNDS = 6
# The iteration ends when the remaining skew is below this share of its standard error.
_SMALL = 0.05
# Probability of a false disagreement between the compliances of logs of one robot.
_FALSE = 0.01


@dataclass(frozen=True, eq=False)
class TwoEncoderFit:
    """Fit of all joints with two encoders.

    Attributes:
        tables: Rows after the removal of the skew.
        sums: Sum row.
        joints: Deflection row of each joint, by index.
        skew: Lag of each link encoder [s].
    """

    tables: tuple[ElasticTable, ...]
    sums: SumRow
    joints: dict[int, DeflectionFit]
    skew: Array


@dataclass(eq=False)
class TwoEncoders:
    """Fits joints with two encoders.

    Attributes:
        robot: The robot.
        cutoff_hz: Cut-off of the low-pass of all signals [Hz].
        terms: Additional terms of the sum row.
        model: Known links that replace the motor torque, or None.
        base: Base parameters of the sum row, after the first fit.
    """

    robot: Robot
    cutoff_hz: float
    terms: TermsLike | None = None
    model: Model | None = None
    base: BaseParameters | None = None

    def fit(self, readings: Sequence[EncoderReadings]) -> TwoEncoderFit:
        """Fit logs together.

        Args:
            readings: The logs.
        """
        skew = np.zeros(self.robot.dof)
        joints = sorted({k for one in readings for k in one.elastic})
        for _ in range(_ROUNDS):
            tables = elastic_tables(self.robot, readings, self.cutoff_hz, skew)
            if not tables:
                raise SteelyardError("Every piece of the logs is too short for the filter; log a longer motion.")
            blocks = _blocks(tables)
            if self.model is None:
                sums = fit_sum_row(self.robot, tables, blocks, JACKKNIFE_BLOCKS, self.terms, self.base)
                self.base = sums.base
            else:
                sums = model_torque(self.model, tables, JACKKNIFE_BLOCKS)
                tables = [replace(t, tau=own) for t, own in zip(tables, sums.torque, strict=True)]
            fits = {
                k: fit_deflection(k, tables, sums, blocks, JACKKNIFE_BLOCKS, len(readings), self.model is None)
                for k in joints
            }
            estimates = {k: f for k, f in fits.items() if f is not None}
            if not estimates:
                names = ", ".join(self.robot.joint_names[k] for k in joints)
                raise SteelyardError(f"The motion of {names} is too short in the logs; log a longer motion.")
            rest = {k: float(f.values[3]) for k, f in estimates.items()}
            if all(abs(x) <= _SMALL * estimates[k].errors[3] for k, x in rest.items()):
                break
            for k, x in rest.items():
                skew[k] += x
        return TwoEncoderFit(tuple(tables), sums, estimates, skew)

    def joints_of(
        self, readings: Sequence[EncoderReadings], validate: Sequence[EncoderReadings], names: Sequence[str]
    ) -> tuple[TwoEncoderFit, tuple[JointElasticity, ...]]:
        """Fit logs together and each alone, and score the fit.

        Args:
            readings: Logs of the fit.
            validate: Logs for scores.
            names: Names of all logs.
        """
        whole = self.fit(readings)
        alone = [self._alone(one) for one in readings] if len(readings) > 1 else []
        raw = elastic_tables(self.robot, readings, self.cutoff_hz, np.zeros(self.robot.dof))
        out = []
        for k, fit in whole.joints.items():
            by_log = {names[i]: _interval(one.joints[k], 0) for i, one in enumerate(alone) if one and k in one.joints}
            scores = {
                names[len(readings) + i]: self.score(whole, k, [one])
                for i, one in enumerate(validate)
                if k in one.elastic
            }
            own = [x.joints[k] for x in alone if x and k in x.joints]
            out.append(_joint(self.robot, k, whole, fit, own, _share(whole, k, raw, whole.tables), by_log, scores,
                              names[: len(readings)], self.model is None))  # fmt: skip
        return whole, tuple(out)

    def _alone(self, one: EncoderReadings) -> TwoEncoderFit | None:
        try:
            return self.fit([one])
        except SteelyardError:  # this log is too short, or does not move a joint
            return None

    def score(self, whole: TwoEncoderFit, joint: int, readings: Sequence[EncoderReadings]) -> float:
        """Compute the explained share of the deflection's variance in other logs.

        Args:
            whole: The fit.
            joint: Index of the joint.
            readings: The other logs.
        """
        tables = elastic_tables(self.robot, readings, self.cutoff_hz, whole.skew)
        raw = elastic_tables(self.robot, readings, self.cutoff_hz, np.zeros(self.robot.dof))
        if self.model is not None:
            links = model_torque(self.model, tables, 1)
            tables = [replace(t, tau=own) for t, own in zip(tables, links.torque, strict=True)]
        return _share(whole, joint, raw, tables)


def _blocks(tables: Sequence[ElasticTable]) -> list[NDArray[np.int64]]:
    total, start = sum(len(t.t) for t in tables), 0
    out: list[NDArray[np.int64]] = []
    for table in tables:
        out.append((start + np.arange(len(table.t))) * JACKKNIFE_BLOCKS // total)
        start += len(table.t)
    return out


def _share(whole: TwoEncoderFit, k: int, raw: Sequence[ElasticTable], tables: Sequence[ElasticTable]) -> float:
    """Return the explained share of the deflection's variance about each piece's mean, in rows with motion."""
    errors, variance = 0.0, 0.0
    for before, table in zip(raw, tables, strict=True):
        use = table.moves[:, k] & before.moves[:, k]
        if use.sum() < 2:
            continue
        y = before.deflection[use, k]
        r = (table.deflection[:, k] - predicted(whole.joints[k], float(whole.sums.viscous[k]), table))[use]
        errors += float(np.sum((r - r.mean()) ** 2))
        variance += float(np.sum((y - y.mean()) ** 2))
    return 1.0 - errors / variance if variance > 0.0 else float("nan")


def _interval(fit: DeflectionFit, place: int) -> Interval:
    return Interval(float(fit.values[place]), float(fit.half_widths[place]))


def _joint(
    robot: Robot,
    k: int,
    whole: TwoEncoderFit,
    fit: DeflectionFit,
    alone: Sequence[DeflectionFit],
    explained: float,
    by_log: dict[str, Interval],
    held_out: dict[str, float],
    names: Sequence[str],
    motor: bool,
) -> JointElasticity:
    compliance = _interval(fit, 0)
    c, coulomb = compliance.value, float(whole.sums.coulomb[k])
    unknown = _why_unknown(compliance, fit, alone)
    slack = Interval(float(fit.values[2]) - c * coulomb, float(fit.half_widths[2]))
    offsets = {name: float(x) for name, x in zip(names, fit.offsets, strict=True) if np.isfinite(x)}
    return JointElasticity(
        robot.joint_names[k],
        robot.joints[k].unit,
        "two encoders" if motor else "known links",
        compliance,
        unknown,
        damping=None if unknown else _scaled(fit, 4),
        rotor=None if unknown or not motor else _scaled(fit, 1),
        skew=Interval(float(whole.skew[k]), float(fit.half_widths[3])),
        hysteresis=slack if motor else None,
        friction=(coulomb, float(whole.sums.viscous[k])),
        explained=explained,
        without_skew=fit.explained,
        held_out=held_out,
        offsets=offsets,
        by_log=by_log,
    )


def _scaled(fit: DeflectionFit, place: int) -> Interval:
    """Divide a product with the compliance by the compliance, and propagate both errors."""
    c, x = float(fit.values[0]), float(fit.values[place])
    relative = fit.half_widths[0] / c
    return Interval(x / c, float(np.hypot(fit.half_widths[place] / c, relative * x / c)))


def _why_unknown(compliance: Interval, fit: DeflectionFit, alone: Sequence[DeflectionFit]) -> str:
    if compliance.low <= 0.0:
        return "the compliance is not significantly positive"
    for other in alone:
        spread = float(np.hypot(fit.errors[0], other.errors[0]))
        if abs(other.values[0] - fit.values[0]) > quantile(1.0 - _FALSE, fit.freedom) * spread:
            return "the logs disagree about the compliance"
    return ""


def log_names(readings: Sequence[EncoderReadings]) -> list[str]:
    """Return short, unique names of logs.

    Args:
        readings: The logs.
    """
    out: list[str] = []
    for k, one in enumerate(readings):
        stem = Path(one.source).stem if one.log.meta.get("source") else f"log {k + 1}"
        out.append(stem if stem not in out else f"{stem} ({k + 1})")
    return out
