"""`check_log`: is this log fit for identification, what is wrong with it, and what to do about it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from steelyard.check._artefacts import (
    check_computed,
    check_drop_outs,
    check_echo,
    check_hidden_limit,
    check_overshoot,
)
from steelyard.check._channels import STILL, check_channels, check_limits, check_rounding, check_times
from steelyard.check._delay import check_delay, check_velocity
from steelyard.check._description import States, check_description, check_gravity
from steelyard.check._evidence import Evidence, Fit, gather
from steelyard.check._mistakes import check_together
from steelyard.check._witness import check_coupled, check_witness
from steelyard.check._zeros import check_clock, check_zeros
from steelyard.check.excitation import Excitation, excitation_of
from steelyard.check.explained import (
    check_explained,
    check_motion,
    check_warming,
    free_fits,
    friction_power,
    friction_share,
    giving,
)
from steelyard.errors import LogError, StructureError
from steelyard.ground.arrays import one_blas_thread
from steelyard.ground.displayed import Displayed, Glance, NamedColumns, by_columns
from steelyard.ground.outcome import Outcome
from steelyard.ground.progress import steps, tell_progress
from steelyard.ground.reasons import explained
from steelyard.parameters.terms import TermsLike
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.given import LogLike, as_source
from steelyard.signals.log import Finding, Log
from steelyard.signals.mounted import as_logged
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import AnyMapping
from steelyard.signals.source import PIECE_ROWS, Source, is_one_piece, pieces_of
from steelyard.study import Study

if TYPE_CHECKING:
    from rich.console import Console

Grade = Literal["good", "usable", "mend", "unusable"]
MOST_ADVICES = 5
# What makes a log useless as it stands, whatever else it holds.
FATAL = ("no_torque", "current", "short", "aligned", "nothing_moves", "all_dead")
# First what spoils everything, then what spoils a joint, then what would make a good log better.
_ORDER = (
    *FATAL, "degrees", "velocity_degrees", "clock", "echo", "drop_out", "order", "gravity", "sign", "position_sign",
    "zero", "coupled", "dead_torque", "velocity_sign", "torque_scale", "velocity_factor", "unexplained", "inconsistent",
    "quantised", "saturated", "motionless", "delay", "position_steps",
    "rank", "condition", "hidden",
)  # fmt: skip
# Positions in degrees, or zeros among them, make nonsense of every row; what a check would say of them would be wrong.
_SPOILS_ROWS = ("degrees", "drop_out")
# Of a long log, so many pieces are looked at with rows of their own; and what a single piece cannot be blamed for.
_LOOKED = 5
_OF_THE_MOTION = ("rank", "condition", "hidden", "motionless")


@dataclass(frozen=True, repr=False)
class Check(Outcome, Displayed):
    """What was found: entries from checks, what the motion can show (None if the log is too broken to tell)."""

    why_null: ClassVar = {"excitation": "The log is too broken to say what its motion shows."}

    robot: str
    source: str
    grade: Grade
    verdict: str
    advice: tuple[str, ...]
    entries: tuple[Finding, ...]
    excitation: Excitation | None

    def of(self, kind: str) -> tuple[Finding, ...]:
        """The entries of one `kind`."""
        return tuple(e for e in self.entries if e.kind == kind)

    @property
    def exit_code(self) -> int:
        """Of the command: 0 if the log can be identified from, 1 if it must be mended first, 2 if it is of no use."""
        return {"good": 0, "usable": 0, "mend": 1, "unusable": 2}[self.grade]

    @property
    def complaints(self) -> tuple[Finding, ...]:
        """Warnings and problems."""
        return tuple(e for e in self.entries if e.severity in ("warning", "problem"))

    def glance(self) -> Glance:
        kinds: dict[Grade, Any] = {"good": "good", "usable": "warning"}
        return Glance(kinds.get(self.grade, "bad"), f"{self.robot}: {self.verdict}", self.advice)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """What was found, the gravest first ("findings"); and what the motion shows ("parameters", "joints")."""
        from steelyard.check.excitation import joint_columns, parameter_columns

        heads = ("severity", "kind", "joint", "message", "advice")
        graves = sorted(self.entries, key=lambda e: -e.rank)
        rows = [[getattr(e, head) for head in heads] for e in graves]
        out: dict[str, Callable[[], NamedColumns]] = {"findings": lambda: by_columns(heads, rows)}
        seen = self.excitation
        if seen is not None:
            out |= {"joints": lambda: joint_columns(seen), "parameters": lambda: parameter_columns(seen)}
        return out

    def to_json(self) -> dict[str, Any]:
        return explained(self)

    def page(self) -> str:
        from steelyard.check.page import check_report

        return check_report([(self.source or "log", self)], self.robot)

    def tell(self, out: Console, folder: str = "") -> None:
        from steelyard.check.page import print_check

        print_check(self, out)


def check_log(
    robot: RobotLike,
    log: LogLike,
    terms: TermsLike | None = None,
    preparation: Preparation | None = None,
    mapping: AnyMapping = None,
) -> Check:
    """Look at a log before identifying from it.

    Args:
        robot: whose log it is, as `load_robot` takes it. Where the description gives inertias, torques are compared
            with what they need.
        log: a path, a `Log`, a frame (pandas, polars, xarray) or a dict of arrays; of a long one, every piece's
            channels are looked at, and five pieces as a log of their own.
        terms: joint terms that are to be identified, by name or as objects (default: those of `identify`).
        preparation: filter, derivatives, masks; default: those of `identify`.
        mapping: what the columns of files and frames mean, as in `read_log`.
    """
    robot = as_robot(robot)
    log = as_source(log, robot, mapping)
    if not isinstance(log, Log) or not is_one_piece(log):
        return _check_long(robot, log, terms, preparation)
    try:
        study = Study.of(robot, log, terms, preparation)
    except LogError as error:
        return _unprepared(as_logged(robot, [log]), log, error)
    return check_study(study)[0]


def _check_long(robot: Robot, log: Source, terms: TermsLike | None, preparation: Preparation | None) -> Check:
    """The check of a log in pieces: one piece's own, and what others say beside that, with their rows."""
    last = max(0, round((len(log) if isinstance(log, Log) else log.row_count()) / PIECE_ROWS) - 1)
    looked = {round(k * last / (_LOOKED - 1)) for k in range(_LOOKED)}
    base: tuple[Log, Check] | None = None
    others: list[Finding] = []
    for number, piece in enumerate(pieces_of(log)):
        tell_progress("Checking", number / (last + 1), f"piece {number + 1} of {last + 1}")
        if number in looked:
            made = check_log(robot, piece, terms, preparation)
            # A robot that stands in a piece may move in others; the first that can be judged is what the rest adds to.
            if base is None or (base[1].grade == "unusable" and made.grade != "unusable"):
                base = piece, made
                continue
            others += _with_rows(piece, made.entries)
        else:
            others += found_later(as_logged(robot, [piece]), piece)
        del piece
    assert base is not None  # a file without rows is refused before
    return _told(as_logged(robot, [base[0]]), base[0], base[1].entries, base[1].excitation, others)


def found_later(robot: Robot, piece: Log) -> list[Finding]:
    """What is wrong with the channels of a later `piece` of a long log of `robot`, with its rows."""
    return _with_rows(piece, _of_channels(robot, piece))


def _with_rows(piece: Log, entries: Sequence[Finding]) -> list[Finding]:
    """The complaints among `entries` that a single piece can be blamed for, each with the rows that it is about."""
    rows = "Rows {:,} to {:,}: ".format(*piece.meta["rows"]) if "rows" in piece.meta else ""
    blamed = (e for e in entries if e.rank > 1 and e.kind not in (*FATAL, *_OF_THE_MOTION))
    return [replace(e, message=f"{rows}{e.message}") for e in blamed]


def check_study(study: Study) -> tuple[Check, ...]:
    """The check of every log of a study, with what the study has prepared already.

    Of a long log its beginning is looked at, and the channels of the rest where a pass over it did (`Study.look`).

    Args:
        study: of one robot; its terms and preparation are those of the identification.
    """
    with one_blas_thread():
        numbers = steps(range(len(study.logs)), "Checking the logs", lambda _: "", 0.85)
        return tuple(_check(study, number) for number in numbers)


def _check(study: Study, number: int) -> Check:
    log = study.beginnings[number]
    entries = _of_channels(study.robot, log)
    seen: Excitation | None = None
    if not _spoilt(entries):
        more, seen = _look(study, number)
        entries = _without_echoes([*entries, *more])
    return _told(study.robot, log, entries, seen, study.later(number))


def _unprepared(robot: Robot, log: Log, error: LogError) -> Check:
    """Of a log that no cut-off can be chosen for: what its channels tell, and the reason."""
    entries = _of_channels(robot, log)
    if not _spoilt(entries):
        entries.append(Finding("nothing_moves", "problem", str(error), "Log the robot while its joints move."))
    return _told(robot, log, entries, None)


def _of_channels(robot: Robot, log: Log) -> list[Finding]:
    cut = list(check_channels(robot, log))
    hard = {e.joint for e in cut if e.kind == "saturated"}
    hidden = [e for e in check_hidden_limit(robot, log) if e.joint not in hard]
    lost = check_drop_outs(robot, log)
    return [*check_times(log), *_needed(robot, log), *cut, *hidden, *lost, *check_limits(robot, log)]


def _spoilt(entries: Sequence[Finding]) -> bool:
    return any(e.kind in (*FATAL, *_SPOILS_ROWS) and e.severity == "problem" for e in entries)


def _told(
    robot: Robot, log: Log, entries: Sequence[Finding], seen: Excitation | None, later: Sequence[Finding] = ()
) -> Check:
    """The check of what was found, and of what is wrong `later` in the log and was not at its beginning, once each."""
    said = {(e.kind, e.joint) for e in entries if e.rank > 1}
    more = {(e.kind, e.joint): e for e in reversed(later) if (e.kind, e.joint) not in said}
    entries = [*entries, *reversed(more.values())]
    grade, sentence = verdict(entries)
    return Check(robot.name, str(log.meta.get("source", "")), grade, sentence, advices(entries), tuple(entries), seen)


def _without_echoes(entries: list[Finding]) -> list[Finding]:
    """Leave out what only repeats what another entry of the same joint says, or says better."""
    first = {(e.kind, e.joint): e for e in reversed(entries) if e.kind in ("saturated", "sign")}
    entries = [e for e in entries if first.get((e.kind, e.joint), e).message == e.message or e.severity == "ok"]
    said = {(e.kind, e.joint) for e in entries}
    better = {"unexplained": ("dead_torque", "quantised"), "velocity_limit": ("velocity_degrees",)}
    return [e for e in entries if not any((kind, e.joint) in said for kind in better.get(e.kind, ()))]


def _needed(robot: Robot, log: Log) -> list[Finding]:
    """Whether there is a torque and a motion at all."""
    if log.tau is None or log.meta.get("torque_kind") == "none":
        return [Finding("no_torque", "problem", "The log has no torque.", "Log torques, or motor currents.")]
    if log.meta.get("torque_kind") == "current":
        message = "The log holds motor currents in A, and nothing says how many N m an ampere makes."
        return [Finding("current", "problem", message, "Give torque_constants (N m per A, joint side) in the mapping.")]
    if all(np.ptp(x) < STILL[j.kind] for j, x in zip(robot.joints, log.q.T, strict=True)):
        return [Finding("nothing_moves", "problem", "No joint moves.", "Log the robot while its joints move.")]
    if not np.any(np.ptp(log.tau[:, list(robot.torque_used)], axis=0) > 0.0):
        advice = "Log the torques while the robot moves."
        return [Finding("all_dead", "problem", "No torque that is to be used ever changes.", advice)]
    return []


def _look(study: Study, number: int) -> tuple[list[Finding], Excitation | None]:
    """The checks that need prepared rows."""
    robot, log = study.robot, study.beginnings[number]
    try:
        seen = gather(study, number)
    except LogError as error:
        return [Finding("nothing_moves", "problem", str(error), "Log the robot while its joints move.")], None
    except StructureError as error:
        return [_unfit(error)], None
    velocity = list(check_velocity(robot, seen.motions, log))
    if any(e.kind in ("degrees", "clock") for e in velocity):
        return velocity, None
    if min(len(y) for y in seen.y) < seen.base.rank:
        message = f"After filtering {min(len(y) for y in seen.y)} rows remain for {seen.base.rank} base parameters."
        return [*velocity, Finding("short", "problem", message, "Log a longer motion.")], None
    fits = free_fits(seen)
    excitation = excitation_of(seen, fits)
    mixed_up = _against_physics(seen, fits)
    motion = list(check_motion(robot, excitation))
    if any(e.severity == "problem" for e in (*velocity, *mixed_up)):
        # What a motion shows is judged by a fit, and a fit to torques that are not the robot's shows nothing.
        motion = [replace(e, severity="note") if e.kind in ("hidden", "condition") else e for e in motion]
        return [*velocity, *mixed_up, *motion], excitation
    late = check_delay(seen, friction_share(seen, fits), fits)
    steps = check_rounding(log, seen)
    warming = check_warming(seen, fits)
    beyond = check_overshoot(seen, fits)
    return [*velocity, *mixed_up, *check_explained(seen, fits), *beyond, *late, *steps, *warming, *motion], excitation


def _unfit(error: StructureError) -> Finding:
    """Why there are no rows: a description that is not exact, or a log that is too short."""
    if "snap" in str(error):
        return Finding("aligned", "problem", str(error), "Make nearly right angles exact: --snap 1e-4 (snap=1e-4).")
    return Finding("short", "problem", str(error), "Log a longer motion.")


def _against_physics(seen: Evidence, fits: Mapping[int, Fit]) -> list[Finding]:
    """Gravity, order, sign and scale: the explanation that mends most comes first and keeps the others silent."""
    echoes = list(check_echo(seen))
    if not echoes and seen.robot.has_inertia:
        echoes = list(check_computed(seen))
    if echoes:
        return echoes
    coupled = list(check_coupled(seen))
    if coupled:
        return coupled
    powers = friction_power(seen, fits)
    giving_energy = list(giving(seen, fits, powers))
    if not seen.robot.has_inertia:
        return giving_energy or list(check_together(seen, fits)) or list(check_witness(seen, fits))
    every = len(giving_energy) == len(powers) > 0
    tilted = [] if every else list(check_gravity(States.of(seen)))
    if tilted:
        return tilted
    found = list(check_description(seen, powers))
    if any(e.kind == "order" for e in found):
        return found
    named = {e.joint for e in found if e.kind == "sign"}
    found = [*found, *(e for e in giving_energy if e.joint not in named)]
    if any(e.severity == "problem" for e in found):
        return found
    between = list(check_together(seen, fits))
    if any(e.severity == "problem" for e in between):
        # What mends most says it; that a single joint's torque looks too large is the same seen from elsewhere.
        return [*(e for e in found if e.kind != "torque_scale"), *between]
    if not any(e.severity == "warning" for e in (*found, *between)):
        between = [*between, *check_witness(seen, fits)]
    return [*found, *between, *(list(check_zeros(seen, fits)) or check_clock(seen))]


def advices(entries: Sequence[Finding]) -> tuple[str, ...]:
    """What to do about `entries`: at most five advices, the gravest first, joints with the same trouble together."""
    places = {kind: k for k, kind in enumerate(_ORDER)}
    graves = [e for e in entries if e.advice and e.severity in ("problem", "warning")]
    lights = [e for e in entries if e.advice and e.severity == "note" and e.kind == "hidden"]
    ranked = sorted(graves, key=lambda e: (-e.rank, places.get(e.kind, len(places)))) + lights
    out: list[str] = []
    told: set[tuple[str, str]] = set()
    for entry in ranked:
        if entry.advice in out or (entry.kind, entry.severity) in told:
            continue
        alike = [e.joint for e in ranked if e.kind == entry.kind and e.severity == entry.severity and e.joint]
        told.add((entry.kind, entry.severity))
        others = [name for name in dict.fromkeys(alike) if name != entry.joint]
        same = f" The same for {', '.join(others)}." if others and entry.joint else ""
        out.append(entry.advice + same)
    return tuple(out[:MOST_ADVICES])


def verdict(entries: Sequence[Finding]) -> tuple[Grade, str]:
    """How far a log with these `entries` can be trusted."""
    problems = [e for e in entries if e.severity == "problem"]
    warnings = [e for e in entries if e.severity == "warning"]
    fatal = [e for e in problems if e.kind in FATAL]
    if fatal:
        why = fatal[0].message
        return "unusable", f"This log cannot be identified from: {why[:1].lower()}{why[1:]}"
    if problems:
        return "mend", f"Mend {_count(problems, 'problem')} before identifying from this log."
    if warnings:
        return "usable", f"This log can be identified from, with {_count(warnings, 'reservation')}."
    return "good", "This log is fit for identification."


def _count(entries: Sequence[Finding], word: str) -> str:
    joints = list(dict.fromkeys(e.joint for e in entries if e.joint))
    many = f"{len(entries)} {word}{'s' if len(entries) > 1 else ''}"
    return f"{many} ({', '.join(joints)})" if joints else many
