"""`predict`: predicts the torques of logged motions with a model or a bank of local models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.assessment.torque_band import TorqueBand
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.export.coerce import ModelLike, as_model
from steelyard.ground.arrays import Array
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns, by_columns, wide_columns
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.numbers import number
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation, file_name
from steelyard.ground.progress import steps
from steelyard.ground.short_repr import short_repr
from steelyard.local.bank import Bank
from steelyard.prediction._band_of import torque_band_of, torque_delay_of
from steelyard.prediction.prediction_files import PREDICTION_FORMATS
from steelyard.robot.robot import Robot
from steelyard.signals.as_logs import LogsLike, as_logs, log_label
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation
from steelyard.signals.read import AnyMapping
from steelyard.signals.units import unit_size
from steelyard.study import Study

# Larger clock values are dates in nanoseconds.
_DATES = 1e15


@short_repr
@dataclass(frozen=True, eq=False)
class PredictedLog:
    """The predicted torques of one log, shape (samples, joints) [N m or N].

    Attributes:
        name: Name of the log.
        t: Time [s], uniform.
        torque: Predicted torque.
        band: Standard deviation of a measurement, if the model provides it.
        measured: Measured torque after the low-pass; None without one.
        filtered: Predicted torque after the same low-pass, for the comparison.
        compared: Samples without boundary effects of the low-pass and the derivatives; only they are compared.
        outside: Samples outside all regions of a bank.
        start_ns: Clock of the log at t = 0 [ns].
        half_width: Half width of the 95 % band of measured torques, if the model provides it; NaN for joints whose
            torque is not used.
    """

    name: str
    t: Array
    torque: Array
    band: Array | None
    measured: Array | None
    filtered: Array
    compared: NDArray[np.bool_]
    outside: NDArray[np.bool_] | None
    start_ns: int = 0
    half_width: Array | None = None

    @property
    def inside_percent(self) -> Array | None:
        """Share of compared samples inside the 95 % band, by joint [%]."""
        if self.measured is None or self.half_width is None:
            return None
        inside = np.abs(self.measured - self.filtered)[self.compared] <= self.half_width[self.compared]
        used = np.isfinite(self.half_width).all(axis=0)
        return np.asarray(np.where(used, 100.0 * np.mean(inside, axis=0), np.nan))

    @cached_property
    def error_percent(self) -> Array | None:
        """RMS of the residual, in percent of the measured torque's standard deviation, by joint."""
        if self.measured is None:
            return None
        measured, residual = self.measured[self.compared], (self.measured - self.filtered)[self.compared]
        return np.asarray(100.0 * np.sqrt(np.mean(residual**2, axis=0)) / np.maximum(np.std(measured, axis=0), 1e-300))

    @property
    def outside_share(self) -> float | None:
        """Share of samples outside all regions, 0 to 1."""
        return None if self.outside is None else float(np.mean(self.outside))


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(OutcomeWithPage, DisplayMixin):
    """The predictions for several logs.

    Attributes:
        robot: The robot.
        by: Name of the model that predicts.
        logs: Predictions by log.
        cutoff_hz: Cut-off of the comparison [Hz].
        formats: Names in `PREDICTION_FORMATS`.
    """

    robot: Robot
    by: str
    logs: tuple[PredictedLog, ...]
    cutoff_hz: float
    formats: tuple[str, ...] = ("csv",)

    def headline(self) -> Headline:
        errors = [x for log in self.logs if log.error_percent is not None for x in log.error_percent]
        error = f", prediction error {number(float(np.mean(errors)), 3)} % of σ" if errors else ""
        logs = f"{len(self.logs)} log{'s' * (len(self.logs) != 1)}"
        return Headline("note", f"torques of {self.robot.name} along {logs} by {self.by}{error}")

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Return the errors in percent of the standard deviation ("errors") and the torques ("signals")."""
        joints = self.robot.joint_names
        rows = [[log.name, *(log.error_percent if log.error_percent is not None else [None] * len(joints))]
                for log in self.logs]  # fmt: skip
        return {"errors": lambda: by_columns(("log", *joints), rows), "signals": self._signals}

    def _signals(self) -> NamedColumns:
        parts = []
        for log in self.logs:
            nothing = np.full_like(log.torque, np.nan)
            signals = {"predicted": log.torque, "sigma": nothing if log.band is None else log.band,
                       "measured": nothing if log.measured is None else log.measured}  # fmt: skip
            name = np.full(len(log.t), log.name, dtype=object)
            parts.append({"log": name, **wide_columns(log.t, signals, self.robot.joint_names)})
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def figures(self) -> Mapping[str, Callable[..., Any]]:
        """Return the figure of measured and predicted torque ("torque")."""
        from steelyard.prediction._predict_page import predicted_figure

        return {"torque": partial(predicted_figure, self)}

    def to_json(self) -> dict[str, Any]:
        return {
            "robot": self.robot.name,
            "by": self.by,
            "cutoff_hz": self.cutoff_hz,
            "joints": list(self.robot.joint_names),
            "logs": [self._numbers(log) for log in self.logs],
        }

    def _numbers(self, log: PredictedLog) -> dict[str, Any]:
        out: dict[str, Any] = {"log": log.name, "samples": len(log.t)}
        if log.error_percent is not None:
            out["error_percent"] = log.error_percent.tolist()
        if log.inside_percent is not None:
            out["inside_band_percent"] = [float(x) if np.isfinite(x) else None for x in log.inside_percent]
        if log.outside_share is not None:
            out["outside_all_regions"] = log.outside_share
        return out

    def files(self) -> dict[str, Content]:
        """Return a file for every log and format."""
        joints = self.robot.joint_names
        return {
            f"{name}.{kind}": PREDICTION_FORMATS[kind].content(log, joints)
            for name, log in zip(self._names, self.logs, strict=True)
            for kind in self.formats
        }

    @property
    def _names(self) -> list[str]:
        """Names of the files: those of the logs, numbered where two are equal."""
        plain = [file_name(log.name) for log in self.logs]
        return [n if plain.count(n) == 1 else f"{n}-{k + 1}" for k, n in enumerate(plain)]

    def view(self) -> Presentation:
        from steelyard.prediction._predict_page import predictions_report, print_predictions

        return predictions_report, print_predictions


def predict(
    by: ModelLike | Bank,
    logs: LogsLike,
    *,
    names: Sequence[str] = (),
    cutoff_hz: float | None = None,
    label: str = "",
    mapping: AnyMapping = None,
    formats: Sequence[str] = ("csv",),
    band: TorqueBand | None = None,
    delay: float | None = None,
) -> Predictions:
    """Predict the torques of logged motions, and compare them with measured torques.

    Args:
        by: Model, as in `as_model`, or bank of local models. Banks, runs and results of `identify` provide a 95 %
            band; other models do not.
        logs: Motions as paths, `Log`s, frames or dicts of arrays; measured torques in them are compared.
        names: Names of the logs, for tables.
        cutoff_hz: Cut-off of the comparison [Hz]; default: the choice of `identify` for these logs.
        label: Name of the model.
        mapping: Mapping of the columns of files and frames, as in `read_log`.
        formats: Formats in the run folder: names in `PREDICTION_FORMATS` (csv, mcap, rrd).
        band: 95 % band of a model; default: that of `by`, if any.
        delay: Delay of torques behind positions [s]; default: that of the logs of `by`.
    """
    for kind in formats:
        PREDICTION_FORMATS[kind]
    source, by = by, by if isinstance(by, Bank) else as_model(by)
    torque_band = None if isinstance(by, Bank) else band or torque_band_of(source, by)
    logs = as_logs(logs, by.robot, mapping)
    if not logs:
        raise SteelyardError("There is no log to predict for; give at least one.")
    # A study needs torques, so logs without them get zeros.
    complete = [log if log.tau is not None else replace(log, tau=np.zeros_like(log.q)) for log in logs]
    preparation = Preparation(cutoff_hz=cutoff_hz, delay=torque_delay_of(source) if delay is None else delay)
    study = Study.of(by.robot, complete, (), preparation, needs_torque=False)
    labels = [*names[: len(logs)], *(log_label(logs[k], f"log {k + 1}") for k in range(len(names), len(logs)))]
    out = []
    for name, log, prepared in steps(zip(labels, logs, study.logs, strict=True), "Predicting", lambda x: x[0]):
        predicted = _predict(by, name, list(study.motions_of(prepared)), log.tau is not None, torque_band)
        out.append(replace(predicted, start_ns=_start_ns(log)))
    return Predictions(study.robot, label or type(by).__name__.lower(), tuple(out), study.cutoff_hz, tuple(formats))


def _start_ns(log: Log) -> int:
    """The clock of a log at t = 0 [ns]."""
    start = log.meta.get("start_time", 0)
    units = (log.meta.get("mapping") or {}).get("units", {}).get("time") or "s"
    # Dates are in nanoseconds (`signals.read`); a clock in seconds never has such large values.
    unit = 1e-9 if abs(start) > _DATES else unit_size("time", units if isinstance(units, str) else units[0])
    return int(start) * round(1e9 * unit) if isinstance(start, int) else round(1e9 * unit * start)


def _predict(
    by: Model | Bank, name: str, motions: Sequence[Motion], measured: bool, torque_band: TorqueBand | None
) -> PredictedLog:
    if not motions:
        raise SteelyardError(f"{name}: no segment is long enough for the filter; raise the cut-off (--cutoff).")
    band = outside = half = None
    if isinstance(by, Bank):
        predictions = [by.prediction(m.q, m.dq, m.ddq) for m in motions]
        torques = [p.torque for p in predictions]
        band, outside = np.concatenate([p.band for p in predictions]), np.concatenate([p.outside for p in predictions])
        half = HALF_WIDTH_95 * band
    else:
        torques = [by.torque(m.q, m.dq, m.ddq, m.filter.period) for m in motions]
        if torque_band is not None:
            half = np.concatenate([_half_width(torque_band, m) for m in motions])
    return PredictedLog(
        name,
        t=np.concatenate([m.t for m in motions]),
        torque=np.concatenate(torques),
        band=band,
        measured=np.concatenate([m.filter(m.tau) for m in motions]) if measured else None,
        filtered=np.concatenate([m.filter(x) for m, x in zip(motions, torques, strict=True)]),
        compared=np.concatenate([_inner(m) for m in motions]),
        outside=outside,
        half_width=half,
    )


def _half_width(band: TorqueBand, m: Motion) -> Array:
    """Half width of the 95 % band along a motion, shape (samples, joints)."""
    used = np.asarray(band.model.robot.torque_used, dtype=bool)
    out = np.full(m.q.shape, np.nan)
    out[:, used] = band.half_width(m.q, m.dq, m.ddq, None if m.standing is None else m.standing[:, used])
    return out


def _inner(m: Motion) -> NDArray[np.bool_]:
    out = np.zeros(len(m.t), dtype=bool)
    out[m.keep.start : m.keep.stop] = True
    return out
