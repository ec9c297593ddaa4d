"""Check whether a log is suitable for identification, with the problems and their remedies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from steelyard.assumptions.ledger import Ledger
from steelyard.check._artefacts import (
    check_computed,
    check_drop_outs,
    check_echo,
    check_hidden_limit,
    check_overshoot,
    check_spikes,
    without_plateaus,
)
from steelyard.check._channels import STILL, check_channels, check_limits, check_rounding, check_times
from steelyard.check._delay import check_delay, check_velocity
from steelyard.check._description import check_scale
from steelyard.check._evidence import Evidence, Fit, gather
from steelyard.check._joint_coupling import check_coupled
from steelyard.check._kind_of_log import check_collinear, check_held_poses
from steelyard.check.excitation import Excitation, excitation_of
from steelyard.check.free_fits import (
    check_explained,
    check_motion,
    free_fits,
    friction_share,
)
from steelyard.check.ledger_of_log import findings_of, ledger_of_log
from steelyard.check.left_out import LeftOutFits
from steelyard.check.mistakes import find_mistakes
from steelyard.check.pictures import FindingPicture, pictures_of
from steelyard.check.severity import FATAL, Grade, advices, by_severity, verdict
from steelyard.errors import LogError, StructureError
from steelyard.ground.arrays import one_blas_thread
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns, by_columns
from steelyard.ground.grades import tone
from steelyard.ground.outcome import Content, Outcome
from steelyard.ground.progress import report_progress, steps
from steelyard.ground.reasons import explained
from steelyard.parameters.terms import TermsLike
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.as_logs import LogLike, as_source
from steelyard.signals.log import Finding, Log
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import AnyMapping
from steelyard.signals.robot_setup import apply_log_setup
from steelyard.signals.source import PIECE_ROWS, Source, is_one_piece, pieces_of
from steelyard.study import Study

if TYPE_CHECKING:
    from rich.console import Console

# Positions in degrees, or zeros among them, falsify every row: further checks would give wrong results.
_SPOILS_ROWS = ("degrees", "drop_out", "spike")
# Pieces of a long log that are checked fully, and findings that concern the whole motion and not a single piece.
_FULLY_CHECKED = 5
_OF_THE_MOTION = ("rank", "condition", "hidden", "motionless")


@dataclass(frozen=True, repr=False)
class Check(Outcome, DisplayMixin):
    """Result of a check of a log.

    Attributes:
        robot: Name of the robot.
        source: File of the log.
        grade: Whether the log can be identified from.
        verdict: The grade in a sentence.
        advice: Remedies, the most urgent first.
        entries: All findings.
        excitation: Base parameters that the motion shows; None if the log is too broken.
        pictures: Evidence of findings for pages, by their keys.
        assumptions: Test of the assumptions of a fit to this log; None if the log is too short or too broken.
    """

    why_null: ClassVar = {
        "excitation": "The log is too broken to say what its motion shows.",
        "assumptions": "The log is too short or too broken to test them, or `identify` tests them with all its logs.",
        **{f"assumptions/entries/*/{name}": why for name, why in Ledger.why_null.items()},
    }

    robot: str
    source: str
    grade: Grade
    verdict: str
    advice: tuple[str, ...]
    entries: tuple[Finding, ...]
    excitation: Excitation | None
    pictures: Mapping[str, FindingPicture] = field(default_factory=dict, compare=False)
    assumptions: Ledger | None = field(default=None, compare=False)

    def of(self, kind: str) -> tuple[Finding, ...]:
        """Select the entries of one `kind`."""
        return tuple(e for e in self.entries if e.kind == kind)

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0 if the log is usable, 1 if it must be fixed first, 2 if it is useless."""
        return {"good": 0, "usable": 0, "mend": 1, "unusable": 2}[self.grade]

    @property
    def complaints(self) -> tuple[Finding, ...]:
        """Warnings and problems."""
        return tuple(e for e in self.entries if e.severity in ("warning", "problem"))

    def headline(self) -> Headline:
        return Headline(tone(self.grade), f"{self.robot}: {self.verdict}", self.advice)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Tables of the findings, most severe first ("findings"), and of the excitation ("parameters", "joints")."""
        from steelyard.check.excitation import joint_columns, parameter_columns

        heads = ("severity", "kind", "joint", "message", "advice")
        ranked = by_severity(self.entries)
        rows = [[getattr(e, head) for head in heads] for e in ranked]
        out: dict[str, Callable[[], NamedColumns]] = {"findings": lambda: by_columns(heads, rows)}
        excitation = self.excitation
        if excitation is not None:
            out |= {"joints": lambda: joint_columns(excitation), "parameters": lambda: parameter_columns(excitation)}
        return out

    def to_json(self) -> dict[str, Any]:
        parts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "pictures"}
        parts["assumptions"] = None if self.assumptions is None else self.assumptions.to_json()
        return explained(parts, self.why_null)

    def files(self) -> Mapping[str, Content]:
        from steelyard.check.saved_checks import evidence_file

        return evidence_file([self])

    def page(self) -> str:
        from steelyard.check.page import check_report

        return check_report([(self.source or "log", self)], self.robot)

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.check.page import print_check

        print_check(self, out)


def check_log(
    robot: RobotLike,
    log: LogLike,
    terms: TermsLike | None = None,
    preparation: Preparation | None = None,
    mapping: AnyMapping = None,
) -> Check:
    """Check a log before identification.

    Args:
        robot: Robot of the log, as `load_robot` takes it. If its description has inertias, torques are compared
            with those that they need.
        log: Path, `Log`, frame (pandas, polars, xarray) or dict of arrays. In a long log, the channels of every
            piece are checked, and five pieces are checked fully.
        terms: Joint terms to be identified, by name or as objects (default: those of `identify`).
        preparation: Filter, derivatives and masks (default: those of `identify`).
        mapping: Meaning of the columns of files and frames, as in `read_log`.
    """
    robot = as_robot(robot)
    log = as_source(log, robot, mapping)
    if not isinstance(log, Log) or not is_one_piece(log):
        return _check_long(robot, log, terms, preparation)
    try:
        study = Study.of(robot, log, terms, preparation)
    except LogError as error:
        return _unprepared(apply_log_setup(robot, [log]), log, error)
    with one_blas_thread():
        return _check(study, 0, assumptions=True)


def _check_long(robot: Robot, log: Source, terms: TermsLike | None, preparation: Preparation | None) -> Check:
    """Check a log in pieces: the result of one piece, and findings of the others with their rows."""
    last = max(0, round((len(log) if isinstance(log, Log) else log.row_count()) / PIECE_ROWS) - 1)
    looked = {round(k * last / (_FULLY_CHECKED - 1)) for k in range(_FULLY_CHECKED)}
    base: tuple[Log, Check] | None = None
    others: list[Finding] = []
    pictures: dict[str, FindingPicture] = {}
    for number, piece in enumerate(pieces_of(log)):
        report_progress("Checking", number / (last + 1), f"piece {number + 1} of {last + 1}")
        if number in looked:
            check = check_log(robot, piece, terms, preparation)
            # A robot that stands in one piece may move in others: the first usable piece is the base.
            if base is None or (base[1].grade == "unusable" and check.grade != "unusable"):
                base = piece, check
                continue
            others += _with_rows(piece, check.entries)
            pictures = {**check.pictures, **pictures}
        else:
            mounted = apply_log_setup(robot, [piece])
            others += (later := check_later_piece(mounted, piece))
            pictures = {**pictures_of(later, mounted, piece), **pictures}
        del piece
    assert base is not None  # a file without rows is refused before
    pictures = {**pictures, **base[1].pictures}
    return _build(apply_log_setup(robot, [base[0]]), base[0], base[1].entries, base[1].excitation, others, pictures)


def check_later_piece(robot: Robot, piece: Log) -> list[Finding]:
    """Check the channels of a later piece of a long log; messages name its rows.

    Args:
        robot: Robot of the log.
        piece: Later piece of the log.
    """
    return _with_rows(piece, _of_channels(robot, piece))


def _with_rows(piece: Log, entries: Sequence[Finding]) -> list[Finding]:
    """Select the complaints that concern a single piece, and add its rows to their messages."""
    rows = "Rows {:,} to {:,}: ".format(*piece.meta["rows"]) if "rows" in piece.meta else ""
    blamed = (e for e in entries if e.rank > 1 and e.kind not in (*FATAL, *_OF_THE_MOTION))
    return [replace(e, message=f"{rows}{e.message}") for e in blamed]


def check_study(study: Study) -> tuple[Check, ...]:
    """Check every log of a study with the data that the study has prepared.

    In a long log, the beginning is checked fully. The channels of the rest are checked if a pass over the log did so
    (`Study.look`).

    Args:
        study: Study of one robot, with the terms and the preparation of the identification.
    """
    with one_blas_thread():
        numbers = steps(range(len(study.logs)), "Checking the logs", lambda _: "", 0.85)
        return tuple(_check(study, number) for number in numbers)


def _check(study: Study, number: int, assumptions: bool = False) -> Check:
    log = study.beginnings[number]
    entries = _of_channels(study.robot, log)
    excitation, rows, ledger = None, None, None
    if not _spoilt(entries):
        more, excitation, rows = _check_rows(study, number)
        # A fit to mixed-up channels gives no evidence about smaller mistakes.
        mixed_up = any(e.severity == "problem" or e.kind == "coupled" for e in more)
        if assumptions and rows is not None and not mixed_up:
            ledger = ledger_of_log(study, rows[0])
            more = [*more, *findings_of(ledger, LeftOutFits(rows[0]))]
        entries = [*(without_plateaus(entries, log, *rows) if rows else entries), *more]
    entries = _without_echoes(entries)
    pictures = pictures_of(entries, study.robot, log, *(rows or ()))
    check = _build(study.robot, log, entries, excitation, study.later(number), pictures)
    return replace(check, assumptions=ledger)


def _unprepared(robot: Robot, log: Log, error: LogError) -> Check:
    """Check the channels of a log for which no cut-off can be chosen, and add the reason."""
    entries = _of_channels(robot, log)
    if not _spoilt(entries):
        entries.append(Finding("nothing_moves", "problem", str(error), "Log the robot while its joints move."))
    return _build(robot, log, entries, None, (), pictures_of(entries, robot, log))


def _of_channels(robot: Robot, log: Log) -> list[Finding]:
    if held := list(check_held_poses(robot, log)):
        return [*check_times(log), *_needed(robot, log), *held]
    cut = list(check_channels(robot, log))
    hard = {e.joint for e in cut if e.kind == "saturated"}
    hidden = [e for e in check_hidden_limit(robot, log) if e.joint not in hard]
    spikes = list(check_spikes(robot, log))
    torn = {e.joint for e in spikes}
    lost = check_drop_outs(robot, log)
    limits = (e for e in check_limits(robot, log) if e.joint not in torn)
    return [*check_times(log), *_needed(robot, log), *cut, *hidden, *spikes, *lost, *limits]


def _spoilt(entries: Sequence[Finding]) -> bool:
    return any(e.kind in (*FATAL, *_SPOILS_ROWS) and e.severity == "problem" for e in entries)


def _build(
    robot: Robot, log: Log, entries: Sequence[Finding], excitation: Excitation | None, later: Sequence[Finding],
    pictures: Mapping[str, FindingPicture],
) -> Check:  # fmt: skip
    """Build the result from the findings; `later` ones are added once each if the beginning does not have them."""
    reported = {(e.kind, e.joint) for e in entries if e.rank > 1}
    more = {(e.kind, e.joint): e for e in reversed(later) if (e.kind, e.joint) not in reported}
    entries = [*entries, *reversed(more.values())]
    (grade, sentence), source = verdict(entries), str(log.meta.get("source", ""))
    shown = {e.key: pictures[e.key] for e in by_severity(entries) if e.key in pictures}
    return Check(robot.name, source, grade, sentence, advices(entries), tuple(entries), excitation, shown)


def _without_echoes(entries: list[Finding]) -> list[Finding]:
    """Remove entries that another entry of the same joint repeats or explains better."""
    first = {(e.kind, e.joint): e for e in reversed(entries) if e.kind in ("saturated", "sign")}
    entries = [e for e in entries if first.get((e.kind, e.joint), e).message == e.message or e.severity == "ok"]
    reported = {(e.kind, e.joint) for e in entries}
    better = {"unexplained": ("dead_torque", "quantised"), "velocity_limit": ("velocity_degrees",),
              "torque_is_current": ("current",)}  # fmt: skip
    return [e for e in entries if not any((kind, e.joint) in reported for kind in better.get(e.kind, ()))]


def _needed(robot: Robot, log: Log) -> list[Finding]:
    """Check that the log has a torque and a motion."""
    if log.tau is None or log.meta.get("torque_kind") == "none":
        return [Finding("no_torque", "problem", "The log has no torque.", "Log torques, or motor currents.")]
    if log.meta.get("torque_kind") == "current":
        message = "The log has motor currents [A], but no torque constants [N m/A]."
        return [Finding("current", "problem", message, "Give torque_constants (N m per A, joint side) in the mapping.")]
    if all(np.ptp(x) < STILL[j.kind] for j, x in zip(robot.joints, log.q.T, strict=True)):
        return [Finding("nothing_moves", "problem", "No joint moves.", "Log the robot while its joints move.")]
    if not np.any(np.ptp(log.tau[:, list(robot.torque_used)], axis=0) > 0.0):
        advice = "Log the torques while the robot moves."
        return [Finding("all_dead", "problem", "All torques to be used are constant.", advice)]
    return []


# Prepared rows, and the fits of every joint's torque by itself.
_Rows = tuple[Evidence, Mapping[int, Fit]]


def _check_rows(study: Study, number: int) -> tuple[list[Finding], Excitation | None, _Rows | None]:
    """Run the checks that need prepared rows; also return the rows."""
    robot, log = study.robot, study.beginnings[number]
    try:
        evidence = gather(study, number)
    except LogError as error:
        return [Finding("nothing_moves", "problem", str(error), "Log the robot while its joints move.")], None, None
    except StructureError as error:
        return [_unfit(error)], None, None
    velocity = list(check_velocity(robot, evidence.motions, log))
    if any(e.kind in ("degrees", "clock") for e in velocity):
        return velocity, None, None
    if min(len(y) for y in evidence.y) < evidence.base.rank:
        message = (
            f"After filtering {min(len(y) for y in evidence.y)} rows remain for {evidence.base.rank} base parameters."
        )
        return [*velocity, Finding("short", "problem", message, "Log a longer motion.")], None, None
    fits = free_fits(evidence)
    left_out = LeftOutFits(evidence)
    excitation = replace(excitation_of(evidence, fits), floors=left_out.floors)
    mixed_up = _against_physics(evidence, left_out)
    motion = list(check_motion(robot, excitation))
    if any(e.severity == "problem" for e in (*velocity, *mixed_up)):
        # Excitation is judged by a fit, and a fit to wrong torques gives no evidence about it.
        motion = [replace(e, severity="note") if e.kind in ("hidden", "condition") else e for e in motion]
        return [*velocity, *mixed_up, *motion], excitation, (evidence, fits)
    late = check_delay(evidence, friction_share(evidence, fits), fits)
    steps = check_rounding(log, evidence)
    beyond = check_overshoot(evidence, fits)
    unexplained = check_explained(evidence, fits)
    every = [*velocity, *mixed_up, *check_collinear(evidence), *unexplained, *beyond, *late, *steps, *motion]
    return every, excitation, (evidence, fits)


def _unfit(error: StructureError) -> Finding:
    """Report why there are no rows: the description is not exact, or the log is too short."""
    if "snap" in str(error):
        return Finding("aligned", "problem", str(error), "Make nearly right angles exact: --snap 1e-4 (snap=1e-4).")
    return Finding("short", "problem", str(error), "Log a longer motion.")


def _against_physics(evidence: Evidence, fits: LeftOutFits) -> list[Finding]:
    """Check gravity, order, signs and scale. If one mistake is found, its consequences are not reported."""
    echoes = list(check_echo(evidence))
    if not echoes and evidence.robot.has_inertia:
        echoes = list(check_computed(evidence))
    if found := echoes or find_mistakes(fits) or list(check_coupled(evidence)):
        return found
    return list(check_scale(evidence)) if evidence.robot.has_inertia else []
