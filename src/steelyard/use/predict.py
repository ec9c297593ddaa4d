"""`predict`: the torques that a model, or a bank of local ones, expects along logged motions."""

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
from steelyard.export.given import ModelLike, as_model
from steelyard.ground.arrays import Array
from steelyard.ground.displayed import Displayed, Glance, NamedColumns, by_columns, wide_columns
from steelyard.ground.numbers import number
from steelyard.ground.outcome import Content, Presentation, Viewed, file_name
from steelyard.ground.progress import steps
from steelyard.local.bank import Bank
from steelyard.robot.robot import Robot
from steelyard.signals.given import LogsLike, as_logs, log_label
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation
from steelyard.signals.read import AnyMapping
from steelyard.signals.units import unit_size
from steelyard.study import Study
from steelyard.use._band_of import torque_band_of, torque_delay_of
from steelyard.use.prediction_files import PREDICTION_FORMATS

_DATES = 1e15
# Half of an interval that holds 95 % of Gaussian errors, in standard deviations.
_GAUSSIAN = 1.96


@dataclass(frozen=True, eq=False)
class PredictedLog:
    """The torques of one log's motion, `(samples, joints)`, N m (N).

    Attributes:
        name: of the log.
        t: s, on the uniform clock of the prepared motion.
        torque: what is expected.
        band: ± one standard deviation of a measurement, where the model knows it.
        measured: what the log has, through the same low-pass as `filtered`; None where it has no torque.
        filtered: the prediction through that low-pass, which is what can be compared.
        compared: samples that the low-pass and the derivatives see both sides of; others are not judged.
        outside: samples that no region of a bank answers for.
        start_ns: what the log's clock shows at t = 0, ns.
        half_width: half the band that holds 95 % of measured torques, where the model knows it; NaN for joints whose
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
        """By joint: the share of compared samples inside the 95 % band, %."""
        if self.measured is None or self.half_width is None:
            return None
        inside = np.abs(self.measured - self.filtered)[self.compared] <= self.half_width[self.compared]
        used = np.isfinite(self.half_width).all(axis=0)
        return np.asarray(np.where(used, 100.0 * np.mean(inside, axis=0), np.nan))

    @cached_property
    def error_percent(self) -> Array | None:
        """By joint: root mean square of the difference, % of the measured torque's standard deviation."""
        if self.measured is None:
            return None
        measured, away = self.measured[self.compared], (self.measured - self.filtered)[self.compared]
        return np.asarray(100.0 * np.sqrt(np.mean(away**2, axis=0)) / np.maximum(np.std(measured, axis=0), 1e-300))

    @property
    def outside_share(self) -> float | None:
        """Of the samples, the part that no region answers for."""
        return None if self.outside is None else float(np.mean(self.outside))


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Viewed, Displayed):
    """What was predicted for each log of `robot`, by a model that has a name (`by`), below `cutoff_hz`."""

    robot: Robot
    by: str
    logs: tuple[PredictedLog, ...]
    cutoff_hz: float
    # Names in `PREDICTION_FORMATS`.
    formats: tuple[str, ...] = ("csv",)

    def glance(self) -> Glance:
        told = [x for log in self.logs if log.error_percent is not None for x in log.error_percent]
        off = f", measured torques are off by {number(float(np.mean(told)), 3)} % of σ" if told else ""
        logs = f"{len(self.logs)} log{'s' * (len(self.logs) != 1)}"
        return Glance("note", f"torques of {self.robot.name} along {logs} by {self.by}{off}")

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """How far measured torques are off, % of their standard deviation ("errors"), and the torques ("signals")."""
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
        """Torque measured and predicted ("torque"), of the first log or the one that is named."""
        from steelyard.use._predict_page import predicted_figure

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
        """A file for every log and format."""
        joints = self.robot.joint_names
        return {
            f"{name}.{kind}": PREDICTION_FORMATS[kind].content(log, joints)
            for name, log in zip(self._names, self.logs, strict=True)
            for kind in self.formats
        }

    @property
    def _names(self) -> list[str]:
        """What the tables are called: as the logs, numbered where two are called alike."""
        plain = [file_name(log.name) for log in self.logs]
        return [n if plain.count(n) == 1 else f"{n}-{k + 1}" for k, n in enumerate(plain)]

    def view(self) -> Presentation:
        from steelyard.use._predict_page import predictions_report, print_predictions

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
    """The torques that a model expects along the motions of `logs`, and how far measured ones are off.

    Args:
        by: a model, as `as_model` takes it, or a bank of local models. Banks, runs of `identify` and its results know
            their 95 % band, other models do not.
        logs: motions, as paths, `Log`s, frames or dicts of arrays; where they have torques, these are compared.
        names: of the logs, for tables.
        cutoff_hz: below which torques are compared, Hz; default: as `identify` would choose for these logs.
        label: what the model is called.
        mapping: what the columns of files and frames mean, as in `read_log`.
        formats: what a run folder holds for every log: names in `PREDICTION_FORMATS` (csv, mcap, rrd).
        band: the 95 % band of a model; default: that of `by`, where it knows one.
        delay: how far the torques of the logs lag behind the positions, s; default: as in the logs of `by`.
    """
    for kind in formats:
        PREDICTION_FORMATS[kind]
    given, by = by, by if isinstance(by, Bank) else as_model(by)
    known = None if isinstance(by, Bank) else band or torque_band_of(given, by)
    logs = as_logs(logs, by.robot, mapping)
    if not logs:
        raise SteelyardError("There is no log to predict for; give at least one.")
    # A log without torques can be predicted for as well.
    complete = [log if log.tau is not None else replace(log, tau=np.zeros_like(log.q)) for log in logs]
    how = Preparation(cutoff_hz=cutoff_hz, delay=torque_delay_of(given) if delay is None else delay)
    study = Study.of(by.robot, complete, (), how, needs_torque=False)
    called = [*names[: len(logs)], *(log_label(logs[k], f"log {k + 1}") for k in range(len(names), len(logs)))]
    out = [
        replace(
            _predicted(by, name, list(study.motions_of(mended)), log.tau is not None, known), start_ns=_start_ns(log)
        )
        for name, log, mended in steps(zip(called, logs, study.logs, strict=True), "Predicting", lambda x: x[0])
    ]
    called_by = label or type(by).__name__.lower()
    return Predictions(study.robot, called_by, tuple(out), study.cutoff_hz, tuple(formats))


def _start_ns(log: Log) -> int:
    """What the clock of a log shows at t = 0, in ns since whatever it counts from."""
    start = log.meta.get("start_time", 0)
    stated = (log.meta.get("mapping") or {}).get("units", {}).get("time") or "s"
    # Dates are counted in nanoseconds (`signals.read`); of a clock in seconds no figure is as large.
    unit = 1e-9 if abs(start) > _DATES else unit_size("time", stated if isinstance(stated, str) else stated[0])
    return int(start) * round(1e9 * unit) if isinstance(start, int) else round(1e9 * unit * start)


def _predicted(
    by: Model | Bank, name: str, motions: Sequence[Motion], measured: bool, known: TorqueBand | None
) -> PredictedLog:
    if not motions:
        raise SteelyardError(f"{name}: no piece of it is long enough to be filtered; raise the cut-off (--cutoff).")
    band = outside = half = None
    if isinstance(by, Bank):
        made = [by.prediction(m.q, m.dq, m.ddq) for m in motions]
        torques = [p.torque for p in made]
        band, outside = np.concatenate([p.band for p in made]), np.concatenate([p.outside for p in made])
        half = _GAUSSIAN * band
    else:
        torques = [by.torque(m.q, m.dq, m.ddq, m.filter.period) for m in motions]
        if known is not None:
            half = np.concatenate([_half_width(known, m) for m in motions])
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
    """Half the 95 % `band` along a motion, `(samples, joints)`."""
    used = np.asarray(band.model.robot.torque_used, dtype=bool)
    out = np.full(m.q.shape, np.nan)
    out[:, used] = band.half_width(m.q, m.dq, m.ddq, None if m.standing is None else m.standing[:, used])
    return out


def _inner(m: Motion) -> NDArray[np.bool_]:
    out = np.zeros(len(m.t), dtype=bool)
    out[m.keep.start : m.keep.stop] = True
    return out
