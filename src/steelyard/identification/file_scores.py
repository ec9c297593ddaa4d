"""`score_files`: the robot files of an identification, written, read back by the programs that use them, and scored."""

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
from steelyard.identification._judged import Judged
from steelyard.identification.format_models import FormatModel, fit_formats
from steelyard.identification.identification import Identification
from steelyard.signals.prepare import Motion
from steelyard.study import Study

# Samples of a log that files are scored on: other programs answer one sample at a time, some microseconds each. At
# 1 kHz and 10 Hz they tell an error to two per cent, and how far it is beyond the full model's far better.
MOST_SAMPLES = 50_000
FILE_END = {"urdf": ".urdf", "mjcf": ".xml"}
# The numbers of a joint in a file, and the symbols of the parameters that they are.
_SYMBOLS = {"damping": "Fv", "friction": "Fc", "armature": "Ia", "offset": "F0"}


@dataclass(frozen=True)
class FileJoint:
    """A joint of a scored file.

    Args:
        joint: its name.
        rmse: of its torque, N m or N, over all judged logs.
        nrmse_percent: the same in percent of the torque's standard deviation.
        model_rmse: that of the full model on the same samples.
        model_nrmse_percent: the same in percent.
        left_out: terms of the full model that the file has no place for, with their numbers.
        numbers: what the file states of the joint, by name; SI units.
        standard_errors: of those numbers, where the rows show them alone.
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
        """How much larger the file's error is than the model's, in percent of the torque's standard deviation."""
        return self.nrmse_percent - self.model_nrmse_percent


@dataclass(frozen=True)
class FileLog:
    """A log that a file was scored on: how many of its `samples`, and the errors of all joints there (N m, N)."""

    log: str
    samples: int
    rmse: tuple[float, ...]
    model_rmse: tuple[float, ...]


@dataclass(frozen=True)
class FileScore:
    """How well a written file predicts torques.

    Args:
        file: its name.
        format: "urdf" or "mjcf".
        program: what read it back and answered.
        logs: that it was scored on, one by one.
        unseen: whether the logs took no part in the fit.
        joints: one by one, over all logs.
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
        """One line: its error beside the model's, and where it costs most."""
        worst = self.costliest
        said = (
            f"{self.file}, read by {self.program}: torque error {self.mean_nrmse_percent:.1f} %, the full model "
            f"{self.model_mean_nrmse_percent:.1f} %"
        )
        if worst.cost_percent < 0.05:
            return said + "."
        why = f" without {', '.join(worst.left_out)}" if worst.left_out else ""
        change = f"{worst.model_nrmse_percent:.1f} → {worst.nrmse_percent:.1f} %"
        return f"{said}; most is lost on '{worst.joint}', {change}{why}."

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
    """Write the model of each of `formats`, read the file back, and score it beside the full `model`.

    Args:
        model: the full model.
        formats: what the files hold.
        logs: names and prepared motions of the logs to score on.
        cutoff_hz: of the score's filter, Hz.
        unseen: whether these logs took no part in the fit.
    """
    with TemporaryDirectory() as folder:
        files = [(f, read) for f in formats if (read := _reloaded(f, Path(folder))) is not None]
        every: list[tuple[Score, ...]] = []
        if files:
            predictors: list[TorqueModel] = [model, *(replace(read, band_hz=cutoff_hz) for _, read in files)]
            every = [score_models(predictors, _short(m), cutoff_hz, name) for name, m in logs]
    out = []
    for k, (held, read) in enumerate(files, start=1):
        pairs = [(scores[k], scores[0]) for scores in every]
        out.append(
            FileScore(
                file_name(model.robot.name) + FILE_END[held.name], held.name, read.program,
                tuple(FileLog(a.log, a.samples, _errors(a), _errors(b)) for a, b in pairs), unseen,
                tuple(_joint(held, model, pairs, j) for j in range(len(pairs[0][0].joints))),
            )
        )  # fmt: skip
    return tuple(out)


def _reloaded(held: FormatModel, folder: Path) -> ReloadedFile | None:
    """The file that is written of `held`, read back; None where no such file can be written.

    It is written into the robot's own description, as a run does; anew where that cannot be read.
    """
    path, own = folder / f"model{FILE_END[held.name]}", Path(held.model.robot.source or ".")
    source = own if own.suffix.lower() in (".urdf", ".xml") and own.is_file() else None
    for origin in dict.fromkeys((source, None)):
        try:
            held.write(path, origin)
            return reload_file(held.name, path, held.model, None if origin is None else origin.resolve().parent)
        except ExportError:
            continue
    return None


def _short(motions: Iterable[Motion]) -> Iterator[Motion]:
    """The first `MOST_SAMPLES` of the motions."""
    left = MOST_SAMPLES
    for m in motions:
        start, stop, step = m.keep.indices(len(m.t))
        inside = min(stop, start + left)
        if inside < stop:
            end = min(inside + start, len(m.t))
            states = {name: getattr(m, name)[:end] for name in ("t", "q", "dq", "ddq", "tau")}
            given = {name: x[:end] for name in ("history", "standing") if (x := getattr(m, name)) is not None}
            m = replace(m, **states, **given, keep=slice(start, inside, step))
        yield m
        left -= inside - start
        if left <= 0:
            return


def _joint(held: FormatModel, model: Model, pairs: Sequence[tuple[Score, Score]], number: int) -> FileJoint:
    """Joint `number` of all logs together, by the scores of the file and of the model on each."""
    name = pairs[0][0].joints[number].joint
    (rmse, percent), (model_rmse, model_percent) = (_pooled([p[k] for p in pairs], number) for k in (0, 1))
    at = model.robot.joint_index(name)
    numbers = {n: float(values[at]) for n, values in held.numbers.items()}
    errors = {n: held.errors[f"{s}{at + 1}"] for n, s in _SYMBOLS.items() if f"{s}{at + 1}" in held.errors}
    left = tuple(CAPABILITIES[held.name].left_out(model, at))
    return FileJoint(name, rmse, percent, model_rmse, model_percent, left, numbers, errors)


def _errors(score: Score) -> tuple[float, ...]:
    return tuple(j.rmse for j in score.joints)


def _pooled(scores: Sequence[Score], joint: int) -> tuple[float, float]:
    """Root mean square error of a joint over all logs, and its percentage of the torque's standard deviation."""
    total = sum(s.samples for s in scores)
    own = [(s.joints[joint], s.samples / total) for s in scores]
    error = np.sqrt(sum(share * j.rmse**2 for j, share in own))
    spread = np.sqrt(sum(share * (100.0 * j.rmse / max(j.nrmse_percent, 1e-12)) ** 2 for j, share in own))
    return float(error), float(100.0 * error / max(spread, 1e-12))


def with_files(
    found: Identification, study: Study, judged: Judged, fit: Callable[[Study], tuple[Estimate, Model]]
) -> Identification:
    """What was `found`, with the best model for each kind of robot file and the scores of the files.

    Args:
        found: the identification of the full model.
        study: the logs that it was identified from.
        judged: its scores, and the logs that it was judged by.
        fit: fits a study with its terms as they are.
    """
    try:
        formats = fit_formats(study, found.model.terms, fit)
    except (EstimationError, StructureError):
        return found  # no possible robot with so few terms fits; files then hold what they can of the full model
    unseen = bool(found.validation)
    # A motion that is smoothed more than the torque it is held against would be blamed on the model.
    logs = judged.judges if unseen else study
    if judged.cutoff_hz > logs.cutoff_hz:
        logs = replace(logs, cutoff_hz=judged.cutoff_hz)
    names = [s.log for s in (found.validation or found.identification)]
    motions = ((name, logs.motions_of(log)) for name, log in zip(names, logs.logs, strict=True))
    return replace(found, formats=formats, files=score_files(found.model, formats, motions, judged.cutoff_hz, unseen))
