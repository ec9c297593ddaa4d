"""Scores models on the fitted logs and on the validation logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from steelyard.assessment.score import Score, score_models, score_reduced
from steelyard.check.check import check_study
from steelyard.dynamics.model import Model
from steelyard.ground.progress import report_progress
from steelyard.identification._copies import Copy, find_copy
from steelyard.parameters.terms import identification_terms
from steelyard.signals.as_logs import log_label
from steelyard.signals.excerpt import part_of
from steelyard.signals.log import Log
from steelyard.signals.source import Source
from steelyard.study import Study

# Independent error values (two per period of the cut-off) for an RMS that is accurate to 10 %.
_MIN_INDEPENDENT = 50


@dataclass(frozen=True, eq=False)
class Scoring:
    """Scores of all models by name and log, and the copies among the validation logs."""

    cutoff_hz: float
    names: tuple[str, ...]
    validation_study: Study
    identification: dict[str, tuple[Score, ...]]
    validation: dict[str, tuple[Score, ...]]
    copies: tuple[Copy, ...] = ()

    @property
    def independent(self) -> Study:
        """Validation logs without copies."""
        copied = {copy.log for copy in self.copies if not copy.cut}
        if not copied:
            return self.validation_study
        labels = [s.log for s in self.validation["model"]]
        return self.validation_study.for_validation(
            [x for x, n in zip(self.validation_study.logs, labels, strict=True) if n not in copied]
        )


def score_models_on_logs(
    study: Study,
    models: Mapping[str, Model | None],
    score_cutoff_hz: float | None,
    validate: Sequence[Source],
    names: Sequence[str],
    validate_names: Sequence[str],
    find_copies: bool = True,
) -> Scoring:
    """Score models on the fitted logs and on the validation logs.

    Args:
        study: Study of the fitted logs.
        models: Models by name; "model" is the delivered one.
        score_cutoff_hz: Cut-off of the filter of the scores [Hz]; None: that of the fit.
        validate: Validation logs.
        names: Names of the fitted logs.
        validate_names: Names of the validation logs.
        find_copies: Whether to remove parts of validation logs that repeat fitted logs.
    """
    report_progress("Validating", 0.75)
    cutoff_hz = score_cutoff_hz or study.cutoff_hz
    nominal = Model.nominal(study.robot) if study.robot.has_inertia else None
    labels = _labels(names, study.logs, "log")
    own = {"model": models["model"], "nominal": None if validate else nominal}
    others = {**models, "nominal": nominal}

    # If the motion were smoothed more than the torque, the difference would count as a model error.
    def at_score_cutoff(one: Study) -> Study:
        return one if cutoff_hz <= one.cutoff_hz else replace(one, cutoff_hz=cutoff_hz)

    # Scores of a streamed log use the sums of the fit if these are sufficient; this avoids a second pass.
    in_the_pass = study.scores_in_the_pass and cutoff_hz == study.cutoff_hz

    def of_own(models: Sequence[Model], number: int, name: str) -> tuple[Score, ...]:
        # The sums are over the study's columns; a description with friction has other columns.
        same_columns = all(m.terms is study.terms or not m.terms.parameters for m in models)
        sums = study.parts[number].reduction() if in_the_pass and same_columns and number in study.parts else None
        if sums is None or not sums.unfiltered:
            return score_models(models, at_score_cutoff(study).motions_of(study.logs[number]), cutoff_hz, name)
        return score_reduced(models, study.base, sums, study.first_motions(number), cutoff_hz, name)

    identification = _scores(own, labels, of_own)
    validation_study, validation_labels = (
        study.for_validation(validate),
        _labels(validate_names, validate, "validation"),
    )
    copies: tuple[Copy, ...] = ()
    if find_copies:
        validation_study, copies = _without_copies(
            validation_study, validation_labels, list(zip(labels, study.beginnings, strict=True))
        )
    scored_study = at_score_cutoff(validation_study)

    def of_other(models: Sequence[Model], number: int, name: str) -> tuple[Score, ...]:
        return score_models(models, scored_study.motions_of(scored_study.logs[number]), cutoff_hz, name)

    validation = _scores(others, validation_labels, of_other)
    return Scoring(cutoff_hz, tuple(labels), validation_study, identification, validation, copies)


def _without_copies(
    validation_study: Study, labels: Sequence[str], fitted: Sequence[tuple[str, Log]]
) -> tuple[Study, tuple[Copy, ...]]:
    """Remove parts that repeat fitted logs, if the rest of the log is long enough to validate."""
    logs, copies = list(validation_study.logs), []
    for k, (label, log) in enumerate(zip(labels, validation_study.beginnings, strict=True)):
        if (match := find_copy(label, log, fitted)) is None:
            continue
        copy, ranges = match
        # Only the beginning of a streamed log is compared, so the whole log is rejected.
        rest = part_of(log, ranges) if logs[k] is log else None
        if rest is not None:
            left = [m for m in validation_study.motions_of(rest) if m.long_enough]
            if 2.0 * validation_study.cutoff_hz * sum(m.t[-1] - m.t[0] for m in left) >= _MIN_INDEPENDENT:
                copy, logs[k] = replace(copy, cut=True), rest
        copies.append(copy)
    return (validation_study.for_validation(logs) if any(c.cut for c in copies) else validation_study), tuple(copies)


def with_fitted_friction(study: Study) -> Study:
    """Return the study with fitted instead of known friction, as `check` uses it."""
    if not study.known_friction:
        return study
    return replace(study, terms=identification_terms(study.robot), known_friction={})


def check_validation_logs(scoring: Scoring) -> dict[str, Any]:
    """Return the checks of the validation logs and the copies among them, as fields of `Identification`."""
    names = [s.log for s in scoring.validation["model"]]
    checks = tuple(zip(names, check_study(with_fitted_friction(scoring.validation_study)), strict=True))
    return {"validation_checks": checks, "copies": scoring.copies}


def _scores(
    candidates: Mapping[str, Model | None],
    labels: Sequence[str],
    score: Callable[[Sequence[Model], int, str], tuple[Score, ...]],
) -> dict[str, tuple[Score, ...]]:
    """Score every model on every log; a model that is None gets no scores."""
    models = {key: m for key, m in candidates.items() if m is not None}
    each = [score(tuple(models.values()), k, name) for k, name in enumerate(labels)]
    return dict.fromkeys(candidates, ()) | {key: tuple(s[k] for s in each) for k, key in enumerate(models)}


def _labels(names: Sequence[str], logs: Sequence[Source], kind: str) -> list[str]:
    """Return a name for every log: the names given, then file names or numbers."""
    return [*names[: len(logs)], *(log_label(logs[k], f"{kind} {k + 1}") for k in range(len(names), len(logs)))]
