"""`check_loops`: checks logs of a mechanism with closed loops, and their mapping, before identification.

The check corrects each possible mistake on trial: the sign of a joint's positions or torques, degrees instead of
radians. It reports a mistake if the loops close only after the correction, or if the correction halves the error of
left-out stretches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import LogError, SteelyardError
from steelyard.estimation.possible.reference import nominal_prior
from steelyard.floating.closed_loops import loop_sentence, loop_summary
from steelyard.floating.identify import bound_terms
from steelyard.floating.mechanism_logs import mechanism_band
from steelyard.floating.motion import Preparer
from steelyard.floating.projected_rows import RowMaker, divided, stretches_of
from steelyard.floating.row_information import determined
from steelyard.floating.setup import FloatingMapping
from steelyard.floating.weighted_fit import FOLDS, left_out_error
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns
from steelyard.ground.numbers import number
from steelyard.ground.outcome import Outcome
from steelyard.loops.branch import LoopMotion
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.load import RobotLike, load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding, Log

if TYPE_CHECKING:
    from rich.console import Console

# Cut-off relative to the band of the motion: it passes accelerations of faster joints and removes most noise.
_CUTOFF = 4.0
# Left-out errors [%]: a wrong sign exceeds the first, so smaller errors end the search. The correction of a mistake
# reduces the error to less than the second as a share; the scatter between stretches is far smaller.
_EXPLAINS, _BETTER = 12.0, 0.5
# Largest acceptable share of samples near singular poses, or with open loops.
_MANY = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class LoopCheck(Outcome, DisplayMixin):
    """A check of logs of a mechanism with closed loops.

    Attributes:
        robot: Name of the robot.
        loops: Loops, joints, and samples left out; None if the loops do not close.
        error: Error of left-out stretches, relative to the torques [%]; NaN without a fit.
        rank: Base parameters that the rows determine.
        structural: Base parameters of the mechanism.
        entries: Findings.
    """

    robot: str
    loops: Mapping[str, Any] | None
    error: float
    rank: int
    structural: int
    entries: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0 if the logs are usable, 1 if they must be fixed first."""
        return int(any(e.severity == "problem" for e in self.entries))

    def headline(self) -> Headline:
        points = tuple(f"{e.message} {e.advice}".strip() for e in self.entries)
        if self.exit_code:
            return Headline("bad", f"{self.robot}: the logs must be corrected before identification.", points)
        kind = "warning" if any(e.severity == "warning" for e in self.entries) else "good"
        return Headline(kind, f"{self.robot}: the logs are suitable for identification.", points)  # type: ignore[arg-type]

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        names = ("kind", "severity", "message", "advice")
        return {"findings": lambda: {name: [getattr(e, name) for e in self.entries] for name in names}}

    def to_json(self) -> dict[str, Any]:
        head = self.headline()
        return {
            "robot": self.robot,
            "verdict": {"kind": head.kind, "headline": head.sentence},
            "exit_code": self.exit_code,
            "loops": "they do not close" if self.loops is None else dict(self.loops),
            "left_out_error_percent": self.error if np.isfinite(self.error) else "no fit",
            "base_parameters": {"determined": self.rank, "structural": self.structural},
            "findings": [
                {
                    "kind": e.kind,
                    "severity": e.severity,
                    "message": e.message,
                    "advice": e.advice,
                    "joint": e.joint or "",
                }
                for e in self.entries
            ],
        }

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say_headline

        say_headline(out, self.headline())


def check_loops(robot: RobotLike, logs: Any, *, mapping: Any = None, terms: Any = None) -> LoopCheck:
    """Check logs of a mechanism with closed loops before identification.

    Args:
        robot: Robot with loops, or its source for `load_robot`.
        logs: Path of a log, a `Log`, or several.
        mapping: Mapping file or dict.
        terms: Joint terms; default: those of `identify_floating`.
    """
    robot = robot if isinstance(robot, Robot) else load_robot(robot, loops=True)
    columns = FloatingMapping.of(mapping, robot)
    preparer = Preparer(robot, columns)
    several = list(logs) if isinstance(logs, list | tuple) else [logs]
    readings = [preparer.read(one) for one in several]
    base = base_parameters(robot, bound_terms(robot, columns, terms))
    trial = _Trial(robot, columns, base)
    try:
        error, preparer, rank = trial.run(readings)
    except LogError as why:
        rivals = list(_closing_rivals(trial, readings))
        return LoopCheck(robot.name, None, float("nan"), 0, base.rank, tuple(rivals) or (_finding("loops", str(why)),))
    assert preparer.mechanism is not None
    rows = {f"samples left out: {reason}": n for reason, n in preparer.left_out.items()}
    summary = loop_summary(preparer.mechanism, preparer, rows)
    entries = [Finding("loops", "ok", loop_sentence(summary)), *_shares(summary, sum(len(log.t) for log in readings))]
    if error > _EXPLAINS:
        entries += _better_rivals(trial, readings, error)
    entries.append(Finding("fit", "ok", f"The error of left-out stretches is {number(error, 3)} % of the torques."))
    if rank < base.rank:
        text = f"The motion determines {rank} of {base.rank} base parameters."
        entries.append(
            Finding("excitation", "warning", text, "Move more joints, or faster; the description decides the rest.")
        )
    return LoopCheck(robot.name, summary, error, rank, base.rank, tuple(entries))


def _finding(kind: str, message: str, advice: str = "", joint: str | None = None) -> Finding:
    return Finding(kind, "problem", message, advice, joint)


def _shares(summary: Mapping[str, Any], samples: int) -> Iterator[Finding]:
    for key, where in (("singular_samples", "near singular poses"), ("open_samples", "where the loops do not close")):
        share = summary[key] / max(samples, 1)
        if share > _MANY:
            yield Finding(
                kind=key, severity="warning", message=f"{100.0 * share:.0f} % of the samples are {where}.",
                advice="Record motions away from these poses, or check the zeros of the encoders.",
            )  # fmt: skip


class _Trial:
    """A fit to logs after the trial correction of a mistake."""

    def __init__(self, robot: Robot, stated: FloatingMapping, base: BaseParameters) -> None:
        self.robot, self.stated, self.base = robot, stated, base
        self.prior = nominal_prior(robot, base.terms)

    def run(self, logs: list[Log]) -> tuple[float, Preparer, int]:
        """Return the error of stretches left out [%], the preparer, and the rank of the rows."""
        preparer = Preparer(self.robot, self.stated)
        cutoff = min(
            _CUTOFF * mechanism_band(preparer, logs), *(0.4 / float(np.median(np.diff(log.t))) for log in logs)
        )
        stretches = [s for log in logs for s in stretches_of(list(preparer.motions(log, cutoff)))]
        maker = RowMaker(preparer, self.base.structure.dynamics, self.base, np.ones(self.robot.dof))
        if maker.projects and preparer.mechanism is not None:
            maker = replace(maker, width=preparer.mechanism.mobility)
        parts = [maker.data(part) for part in divided(stretches, FOLDS)] if stretches else []
        if len(parts) < FOLDS:
            raise LogError("The logs are too short, or almost all of their samples are left out; record longer ones.")
        factors = [part.reduction().factor for part in parts]
        whole = factors[0].merge(*factors[1:])
        rank = determined(self.base, whole, np.ones(len(whole.rows)))[0].rank
        return 100.0 * left_out_error(parts, parts, self.base, self.prior), preparer, rank


def _rivals(logs: list[Log]) -> Iterator[tuple[str, str, str, list[Log]]]:
    """Yield kind, joint, description and corrected logs of each possible mistake."""
    for k, name in enumerate(logs[0].joints):
        sign = np.ones(len(logs[0].joints))
        sign[k] = -1.0
        turned = [replace(log, q=log.q * sign, dq=None if log.dq is None else log.dq * sign) for log in logs]
        yield "position sign", name, f"the sign of the positions of '{name}' is wrong", turned
        if logs[0].tau is not None:
            pushed = [replace(log, tau=None if log.tau is None else log.tau * sign) for log in logs]
            yield "torque sign", name, f"the sign of the torques of '{name}' is wrong", pushed
    scaled = [replace(log, q=np.radians(log.q), dq=None if log.dq is None else np.radians(log.dq)) for log in logs]
    yield "unit", "", "the positions are in degrees", scaled


_ADVICE = {
    "position sign": "State sign = {{position = …}} with -1 for '{joint}' in the mapping.",
    "torque sign": "State sign = {{torque = …}} with -1 for '{joint}' in the mapping.",
    "unit": 'State units = {{position = "deg"}} in the mapping.',
}


def _closing_rivals(trial: _Trial, logs: list[Log]) -> Iterator[Finding]:
    """Yield mistakes; after their correction the loops close over the logs."""
    for kind, joint, text, changed in _rivals(logs):
        if kind == "torque sign":
            continue
        mechanism = Preparer(trial.robot, trial.stated).mechanism
        assert mechanism is not None
        motions: list[LoopMotion] = [mechanism.complete(log.q) for log in changed]
        if all(m.closed.mean() > 1.0 - 0.1 * _MANY for m in motions):
            message = f"The loops do not close with the positions of the logs; they close if {text}."
            yield _finding(kind, message, _ADVICE[kind].format(joint=joint), joint or None)


def _better_rivals(trial: _Trial, logs: list[Log], error: float) -> list[Finding]:
    """Return the mistake with the smallest left-out error after its correction, if that is at most half."""
    best: tuple[float, Finding] | None = None
    for kind, joint, text, changed in _rivals(logs):
        try:
            own = trial.run(changed)[0]
        except SteelyardError:
            continue
        if own < _BETTER * error and (best is None or own < best[0]):
            message = (
                f"It seems that {text}: the correction reduces the error of left-out stretches from "
                f"{number(error, 3)} % to {number(own, 3)} %."
            )
            best = own, _finding(kind, message, _ADVICE[kind].format(joint=joint), joint or None)
    return [best[1]] if best else []
