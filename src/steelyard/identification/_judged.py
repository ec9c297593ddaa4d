"""`judge`: scores of what was found on the logs that it was found from, and on others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from steelyard.assessment.score import Score, score_models, score_reduced
from steelyard.check.check import check_study
from steelyard.dynamics.model import Model
from steelyard.ground.progress import tell_progress
from steelyard.identification._copies import Copy, find_copy
from steelyard.parameters.terms import identification_terms
from steelyard.signals.excerpt import part_of
from steelyard.signals.given import log_label
from steelyard.signals.log import Log
from steelyard.signals.source import Source
from steelyard.study import Study

# Independent values of the error, two in a period of the cut-off, from which a root mean square is known to 10 %.
_ENOUGH = 50


@dataclass(frozen=True, eq=False)
class Judged:
    """The scores of all models by name, log by log, and what of the logs that judge was copied from fitted ones."""

    cutoff_hz: float
    names: tuple[str, ...]
    judges: Study
    identification: dict[str, tuple[Score, ...]]
    validation: dict[str, tuple[Score, ...]]
    copies: tuple[Copy, ...] = ()

    @property
    def independent(self) -> Study:
        """The logs that judge, but for those that are copies."""
        copied = {copy.log for copy in self.copies if not copy.cut}
        if not copied:
            return self.judges
        labels = [s.log for s in self.validation["model"]]
        return self.judges.judged_on([x for x, n in zip(self.judges.logs, labels, strict=True) if n not in copied])


def judge(
    study: Study,
    models: Mapping[str, Model | None],
    score_cutoff_hz: float | None,
    validate: Sequence[Source],
    names: Sequence[str],
    validate_names: Sequence[str],
    find_copies: bool = True,
) -> Judged:
    """Score `models`, of which "model" is the delivered one, on the logs of `study` and on those to `validate` by.

    Their `names` and `validate_names` are for tables; `score_cutoff_hz` is of the scores' own filter. With
    `find_copies`, parts of judging logs that repeat fitted ones are cut off, where enough is left to judge by.
    """
    tell_progress("Judging", 0.75)
    cutoff_hz = score_cutoff_hz or study.cutoff_hz
    nominal = Model.nominal(study.robot) if study.robot.has_inertia else None
    labels = _labels(names, study.logs, "log")
    own = {"model": models["model"], "nominal": None if validate else nominal}
    others = {**models, "nominal": nominal}

    # A motion that is smoothed more than the torque it is held against would be blamed on the model.
    def judging(one: Study) -> Study:
        return one if cutoff_hz <= one.cutoff_hz else replace(one, cutoff_hz=cutoff_hz)

    # A streamed log that was fitted to is not gone through again where its one pass has all that the scores need.
    in_the_pass = study.scores_in_the_pass and cutoff_hz == study.cutoff_hz

    def of_own(models: Sequence[Model], number: int, name: str) -> tuple[Score, ...]:
        # What the pass added up is of the study's columns; a description with friction of its own has others.
        alike = all(m.terms is study.terms or not m.terms.parameters for m in models)
        seen = study.parts[number].reduction() if in_the_pass and alike and number in study.parts else None
        if seen is None or not seen.unfiltered:
            return score_models(models, judging(study).motions_of(study.logs[number]), cutoff_hz, name)
        return score_reduced(models, study.base, seen, study.first_motions(number), cutoff_hz, name)

    identification = _scores(own, labels, of_own)
    judges, judging_labels = study.judged_on(validate), _labels(validate_names, validate, "validation")
    copies: tuple[Copy, ...] = ()
    if find_copies:
        judges, copies = _without_copies(judges, judging_labels, list(zip(labels, study.beginnings, strict=True)))
    unseen = judging(judges)

    def of_other(models: Sequence[Model], number: int, name: str) -> tuple[Score, ...]:
        return score_models(models, unseen.motions_of(unseen.logs[number]), cutoff_hz, name)

    validation = _scores(others, judging_labels, of_other)
    return Judged(cutoff_hz, tuple(labels), judges, identification, validation, copies)


def _without_copies(
    judges: Study, labels: Sequence[str], fitted: Sequence[tuple[str, Log]]
) -> tuple[Study, tuple[Copy, ...]]:
    """Cut off what repeats fitted logs, where the rest of a log is long enough to judge by."""
    logs, copies = list(judges.logs), []
    for k, (label, log) in enumerate(zip(labels, judges.beginnings, strict=True)):
        if (found := find_copy(label, log, fitted)) is None:
            continue
        copy, ranges = found
        # Of a log that is streamed only the beginning is compared, and all of it is in doubt.
        rest = part_of(log, ranges) if logs[k] is log else None
        if rest is not None:
            left = [m for m in judges.motions_of(rest) if m.long_enough]
            if 2.0 * judges.cutoff_hz * sum(m.t[-1] - m.t[0] for m in left) >= _ENOUGH:
                copy, logs[k] = replace(copy, cut=True), rest
        copies.append(copy)
    return (judges.judged_on(logs) if any(c.cut for c in copies) else judges), tuple(copies)


def as_checked(study: Study) -> Study:
    """As `check` looks at the logs alone: with friction that is to be found, be it known or not."""
    if not study.known_friction:
        return study
    return replace(study, terms=identification_terms(study.robot), known_friction={})


def checked_judges(judged: Judged) -> dict[str, Any]:
    """The checks of the logs to judge by, and what of them is copied."""
    names = [s.log for s in judged.validation["model"]]
    checks = tuple(zip(names, check_study(as_checked(judged.judges)), strict=True))
    return {"judged_checks": checks, "copies": judged.copies}


def _scores(
    given: Mapping[str, Model | None],
    labels: Sequence[str],
    score: Callable[[Sequence[Model], int, str], tuple[Score, ...]],
) -> dict[str, tuple[Score, ...]]:
    """The scores of every model on every log; those of a model that is None are none."""
    models = {key: m for key, m in given.items() if m is not None}
    each = [score(tuple(models.values()), k, name) for k, name in enumerate(labels)]
    return dict.fromkeys(given, ()) | {key: tuple(s[k] for s in each) for k, key in enumerate(models)}


def _labels(given: Sequence[str], logs: Sequence[Source], kind: str) -> list[str]:
    """A name for every log: those given, then those of the files, or numbers."""
    return [*given[: len(logs)], *(log_label(logs[k], f"{kind} {k + 1}") for k in range(len(given), len(logs)))]
