"""Scores the robot files of an identification: writes them, reads them back with their programs, and predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from steelyard.assessment.score import Score, TorqueModel, score_models
from steelyard.dynamics.model import Model
from steelyard.errors import ExportError, StructureError
from steelyard.estimation.estimate import Estimate, EstimationError
from steelyard.export.capability import CAPABILITIES
from steelyard.export.reload import ReloadedFile, reload_file
from steelyard.ground.outcome import file_name
from steelyard.identification._scoring import Scoring
from steelyard.identification.format_models import FormatModel, fit_formats
from steelyard.identification.identification import Identification
from steelyard.signals.prepare import Motion
from steelyard.study import Study

# Samples per log for scoring; other programs need some microseconds per sample. At 1 kHz with a 10 Hz cut-off this
# gives an error accurate to two per cent.
MOST_SAMPLES = 50_000
FILE_END = {"urdf": ".urdf", "mjcf": ".xml"}
# Numbers of a joint in a file, with the symbols of their parameters.
_SYMBOLS = {"damping": "Fv", "friction": "Fc", "armature": "Ia", "offset": "F0"}


@dataclass(frozen=True)
class FileJoint:
    """Score of one joint of a robot file.

    Args:
        joint: Name of the joint.
        rmse: Torque error over all evaluation logs [N m, N].
        nrmse_percent: Torque error [% of the torque's standard deviation].
        model_rmse: Error of the full model on the same samples [N m, N].
        model_nrmse_percent: Error of the full model [% of the torque's standard deviation].
        left_out: Terms of the full model that the file cannot store, with their values.
        numbers: Numbers of the joint in the file, by name, in SI units.
        standard_errors: Standard errors of those numbers that are identifiable alone.
    """

    joint: str
    rmse: float
    nrmse_percent: float
    model_rmse: float
    model_nrmse_percent: float
    left_out: tuple[str, ...]
    numbers: dict[str, float]
    standard_errors: dict[str, float]

    @property
    def cost_percent(self) -> float:
        """Error of the file minus that of the model [% of the torque's standard deviation]."""
        return self.nrmse_percent - self.model_nrmse_percent


@dataclass(frozen=True)
class FileLog:
    """Score of a file on one log.

    Args:
        log: Name of the log.
        samples: Number of samples used.
        rmse: Torque errors of the file by joint [N m, N].
        model_rmse: Torque errors of the full model by joint [N m, N].
    """

    log: str
    samples: int
    rmse: tuple[float, ...]
    model_rmse: tuple[float, ...]


@dataclass(frozen=True)
class FileScore:
    """Prediction errors of a robot file.

    Args:
        file: Name of the file.
        format: "urdf" or "mjcf".
        program: Program that read the file and computed the torques.
        logs: Scores by log.
        unseen: Whether these logs are validation logs.
        joints: Scores by joint over all logs.
    """

    file: str
    format: str
    program: str
    logs: tuple[FileLog, ...]
    unseen: bool
    joints: tuple[FileJoint, ...]

    @property
    def mean_nrmse_percent(self) -> float:
        return float(np.mean([j.nrmse_percent for j in self.joints]))

    @property
    def model_mean_nrmse_percent(self) -> float:
        return float(np.mean([j.model_nrmse_percent for j in self.joints]))

    @property
    def costliest(self) -> FileJoint:
        return max(self.joints, key=lambda j: j.cost_percent)

    @property
    def sentence(self) -> str:
        """One line with the errors of file and model, and the joint with the largest difference."""
        worst = self.costliest
        text = (
            f"{self.file}, read by {self.program}: torque error {self.mean_nrmse_percent:.1f} %, the full model "
            f"{self.model_mean_nrmse_percent:.1f} %"
        )
        if worst.cost_percent < 0.05:
            return text + "."
        why = f" without {', '.join(worst.left_out)}" if worst.left_out else ""
        change = f"{worst.model_nrmse_percent:.1f} → {worst.nrmse_percent:.1f} %"
        return f"{text}. Largest loss: joint '{worst.joint}', {change}{why}."

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file, "format": self.format, "program": self.program,
            "logs": [asdict(log) for log in self.logs], "unseen": self.unseen,
            "mean_nrmse_percent": self.mean_nrmse_percent,
            "model_mean_nrmse_percent": self.model_mean_nrmse_percent,
            "joints": [
                {
                    "joint": j.joint, "rmse": j.rmse, "nrmse_percent": j.nrmse_percent, "model_rmse": j.model_rmse,
                    "model_nrmse_percent": j.model_nrmse_percent, "cost_percent": j.cost_percent,
                    "left_out": list(j.left_out), "numbers": j.numbers, "standard_errors": j.standard_errors,
                }
                for j in self.joints
            ],
        }  # fmt: skip


def score_files(
    model: Model,
    formats: Sequence[FormatModel],
    logs: Iterable[tuple[str, Iterable[Motion]]],
    cutoff_hz: float,
    unseen: bool,
) -> tuple[FileScore, ...]:
    """Write each model to its file, read the file back, and score it and the full model.

    Args:
        model: Full model.
        formats: Models of the files.
        logs: Names and prepared motions of the evaluation logs.
        cutoff_hz: Cut-off of the filter of the scores [Hz].
        unseen: Whether these logs are validation logs.
    """
    with TemporaryDirectory() as folder:
        files = [(f, read) for f in formats if (read := _reloaded(f, Path(folder))) is not None]
        scores_by_log: list[tuple[Score, ...]] = []
        if files:
            predictors: list[TorqueModel] = [model, *(replace(read, band_hz=cutoff_hz) for _, read in files)]
            scores_by_log = [score_models(predictors, _short(m), cutoff_hz, name) for name, m in logs]
    out = []
    for k, (format_model, read) in enumerate(files, start=1):
        pairs = [(scores[k], scores[0]) for scores in scores_by_log]
        out.append(
            FileScore(
                file_name(model.robot.name) + FILE_END[format_model.name], format_model.name, read.program,
                tuple(FileLog(a.log, a.samples, _errors(a), _errors(b)) for a, b in pairs), unseen,
                tuple(_joint(format_model, model, pairs, j) for j in range(len(pairs[0][0].joints))),
            )
        )  # fmt: skip
    return tuple(out)


def _reloaded(format_model: FormatModel, folder: Path) -> ReloadedFile | None:
    """Write a model to its file and read it back; None if the file cannot be written.

    The file is based on the robot's description if that can be read, as in a run folder.
    """
    path, own = folder / f"model{FILE_END[format_model.name]}", Path(format_model.model.robot.source or ".")
    source = own if own.suffix.lower() in (".urdf", ".xml") and own.is_file() else None
    for origin in dict.fromkeys((source, None)):
        try:
            format_model.write(path, origin)
            return reload_file(
                format_model.name, path, format_model.model, None if origin is None else origin.resolve().parent
            )
        except ExportError:
            continue
    return None


def _short(motions: Iterable[Motion]) -> Iterator[Motion]:
    """Yield the first `MOST_SAMPLES` samples of the motions."""
    left = MOST_SAMPLES
    for m in motions:
        start, stop, step = m.keep.indices(len(m.t))
        inside = min(stop, start + left)
        if inside < stop:
            end = min(inside + start, len(m.t))
            states = {name: getattr(m, name)[:end] for name in ("t", "q", "dq", "ddq", "tau")}
            optional = {name: x[:end] for name in ("history", "standing") if (x := getattr(m, name)) is not None}
            m = replace(m, **states, **optional, keep=slice(start, inside, step))
        yield m
        left -= inside - start
        if left <= 0:
            return


def _joint(format_model: FormatModel, model: Model, pairs: Sequence[tuple[Score, Score]], number: int) -> FileJoint:
    """Pool the scores of a joint by its number over all logs."""
    name = pairs[0][0].joints[number].joint
    (rmse, percent), (model_rmse, model_percent) = (_pooled([p[k] for p in pairs], number) for k in (0, 1))
    at = model.robot.joint_index(name)
    numbers = {n: float(values[at]) for n, values in format_model.numbers.items()}
    errors = {
        n: format_model.errors[f"{s}{at + 1}"] for n, s in _SYMBOLS.items() if f"{s}{at + 1}" in format_model.errors
    }
    left = tuple(CAPABILITIES[format_model.name].left_out(model, at))
    return FileJoint(name, rmse, percent, model_rmse, model_percent, left, numbers, errors)


def _errors(score: Score) -> tuple[float, ...]:
    return tuple(j.rmse for j in score.joints)


def _pooled(scores: Sequence[Score], joint: int) -> tuple[float, float]:
    """Return the RMS error of a joint over all logs, and its percentage of the torque's standard deviation."""
    total = sum(s.samples for s in scores)
    own = [(s.joints[joint], s.samples / total) for s in scores]
    error = np.sqrt(sum(share * j.rmse**2 for j, share in own))
    spread = np.sqrt(sum(share * (100.0 * j.rmse / max(j.nrmse_percent, 1e-12)) ** 2 for j, share in own))
    return float(error), float(100.0 * error / max(spread, 1e-12))


def with_files(
    result: Identification, study: Study, scoring: Scoring, fit: Callable[[Study], tuple[Estimate, Model]]
) -> Identification:
    """Add the best model for each robot file format and the scores of the files.

    Args:
        result: Identification of the full model.
        study: Study of the fitted logs.
        scoring: Scores, with the validation logs.
        fit: Function that fits a study with its given terms.
    """
    try:
        formats = fit_formats(study, result.model.terms, fit)
    except (EstimationError, StructureError):
        return result  # A possible model needs more terms; the files then store a part of the full model.
    unseen = bool(result.validation)
    logs = scoring.validation_study if unseen else study
    if scoring.cutoff_hz > logs.cutoff_hz:
        logs = replace(logs, cutoff_hz=scoring.cutoff_hz)
    names = [s.log for s in (result.validation or result.identification)]
    motions = ((name, logs.motions_of(log)) for name, log in zip(names, logs.logs, strict=True))
    return replace(
        result, formats=formats, files=score_files(result.model, formats, motions, scoring.cutoff_hz, unseen)
    )
