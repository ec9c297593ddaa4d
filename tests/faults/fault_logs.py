"""Faults planted into sound logs, their effects on a model, and the verdict on it.

A fault is a small function from a log to a log (or from a whole case to another). It is *harmful* if the model that is
found from it has a base parameter more than three of its stated standard errors away from where the sound logs put it,
and predicts the torque of a sound log of another motion by more than a tenth worse. It *moves a parameter* if one is
farther than two standard errors away, those of both models taken together: its 95 % bar no longer holds. No fault that
does either may end in "The model can be trusted".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from log_faults import log_changes, shaken, thinned
from sound_logs import Array, Base, Case

from steelyard.assessment.score import score
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.robot.spatial import rotation_about
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation

MOVED, WORSE = 3.0, 1.1
STATED = 2.0  # standard errors, of the sound model and of the faulty one together, within which 95 % lie


@dataclass(frozen=True, eq=False)
class Planted:
    """A case with one fault in it. `known` says that it must not be called good, however little it moved."""

    name: str
    where: str
    case: Case
    known: bool = False


def planted(base: Base) -> Iterator[Planted]:
    """All faults: each log fault in the fit's log, in the judging one and in both; then those of whole cases."""
    sound = base.case
    for name, change in log_changes(sound.robot):
        fit, judge = tuple(map(change, sound.fit)), tuple(map(change, sound.judge))
        yield Planted(name, "fit", Case(sound.robot, fit, sound.judge))
        yield Planted(name, "both", Case(sound.robot, fit, judge))
        yield Planted(name, "validation", Case(sound.robot, sound.fit, judge))
    yield from _of_cases(base)


def _of_cases(base: Base) -> Iterator[Planted]:
    sound, down = base.case, np.asarray(base.case.robot.gravity)

    def mounted(gravity: Array) -> Case:
        return Case(sound.robot.with_gravity(tuple(gravity)), sound.fit, sound.judge)

    for angle in (10, 15, 25, 90):
        for k, axis in enumerate("xy"):
            yield Planted(f"gravity tilted by {angle}° about {axis}", "robot",
                          mounted(rotation_about(np.eye(3)[k], np.deg2rad(angle)) @ down))  # fmt: skip
    yield Planted("gravity forgotten", "robot", mounted(0.0 * down))
    yield Planted("gravity upside down", "robot", mounted(-down))
    (fit,), (judge,) = sound.fit, sound.judge
    yield Planted("a load that nobody described", "fit", replace(sound, fit=(base.loaded,)))
    yield Planted("a load that nobody described", "validation", replace(sound, judge=(base.loaded,)))
    yield Planted("one log of two carries a load", "fit", replace(sound, fit=(fit, base.loaded)))
    yield Planted("log of another robot", "fit", replace(sound, fit=(base.foreign,)))
    yield Planted(
        "log of another robot", "both", replace(sound, fit=(base.foreign,), judge=(thinned(2)(base.foreign),))
    )
    yield Planted("log of another robot", "validation", replace(sound, judge=(base.foreign,)))
    yield Planted("one log of two is of another robot", "fit", replace(sound, fit=(fit, base.foreign)))
    for name, copy in (
        ("judged by its own log", fit),
        ("judged by a copy of its own log", replace(fit, meta={"source": "other.csv"})),
        ("judged by its own log, shaken", shaken(fit)),
        ("judged by its own log, every second row", thinned(2)(fit)),
        ("judged by a piece of its own log", _piece(fit, 0.3, 0.8)),
    ):
        yield Planted(name, "validation", replace(sound, judge=(copy,)), known=True)
    yield Planted("judged by its own log and another", "validation", replace(sound, judge=(judge, fit)), known=True)


def _piece(log: Log, first: float, last: float) -> Log:
    rows = slice(int(first * len(log)), int(last * len(log)))
    signals = {n: x[rows] for n, x in log.signals.items() if x is not None}
    return replace(log, t=log.t[rows], segments=(), **signals)


# What a fault did.


@dataclass(frozen=True)
class Told:
    """Effects of a planted fault: how far it moved a parameter (stated errors), how much worse the torque of a sound
    log of another motion is predicted (1: as before), and the verdict. A refusal has the grade "refused". `beyond` is
    how far `which` parameter moved in errors of both models together. `condition` says whether the verdict names the
    fault as something that these logs cannot show."""

    name: str
    where: str
    moved: float
    worse: float
    grade: str
    reasons: tuple[str, ...]
    known: bool = False
    beyond: float = 0.0
    which: str = ""
    condition: bool = False

    @property
    def trusted(self) -> bool:
        """Whether the model is called good without a condition that names what is wrong."""
        return self.grade == "good" and not self.condition

    @property
    def harmful(self) -> bool:
        return self.moved > MOVED and self.worse > WORSE

    @property
    def moves(self) -> bool:
        """Whether a parameter went beyond its stated 95 % error."""
        return self.beyond > STATED

    @property
    def missed(self) -> bool:
        """Whether the model is called good though it must not be."""
        return self.trusted and (self.harmful or self.known)


def _is_condition(fault: Planted, found: Identification) -> bool:
    """Whether the verdict's sentence names the assumption that a fault breaks."""
    match = re.match(r"(zero|torque) of joint (\d)", fault.name)
    if match is None or found.assumptions is None:
        return False
    kind, joint = "zero" if match[1] == "zero" else "torque scale", found.robot.joint_names[int(match[2]) - 1]
    return any((e.suspect.kind, e.suspect.joint) == (kind, joint) for e in found.assumptions.conditions)


class Bench:
    """A base, the model that its sound logs give, and what every fault makes of it."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.sound = identify(base.case.robot, base.case.fit, base.case.judge)
        self._error = self._error_of(self.sound)

    def _error_of(self, found: Identification) -> float:
        """Error of the witness' torque, mean over joints, % of its standard deviation, with its true mounting."""
        model = Model(self.base.case.robot, found.model.terms, found.model.theta)
        cutoff = self.sound.cutoff_hz if hasattr(self, "sound") else found.cutoff_hz
        return score(model, self.base.witness, Preparation(), cutoff, cutoff).mean_nrmse_percent

    def tell(self, fault: Planted) -> Told:
        try:
            found = identify(fault.case.robot, fault.case.fit, fault.case.judge)
        except SteelyardError as error:
            return Told(fault.name, fault.where, 0.0, 1.0, "refused", (str(error),), fault.known)
        shifts = list(self._shifts(found))
        moved = max((abs(shift) / theirs for _, shift, _, theirs in shifts), default=0.0)
        beyond, which = max(((abs(x) / np.hypot(a, b), name) for name, x, a, b in shifts), default=(0.0, ""))
        said = found.verdict
        return Told(fault.name, fault.where, float(moved), self._error_of(found) / self._error, said.grade,
                    said.reasons, fault.known, float(beyond), which, _is_condition(fault, found))  # fmt: skip

    def _shifts(self, found: Identification) -> Iterator[tuple[str, float, float, float]]:
        """Of every base parameter that both models have: its name, how far it went, and the stated errors of both."""
        ours, theirs = (
            {n: (b, s) for n, b, s in zip(x.base.names, x.estimate.beta, x.estimate.standard_errors, strict=True)}
            for x in (self.sound, found)
        )
        for name in ours.keys() & theirs.keys():
            (value, error), (other, its) = ours[name], theirs[name]
            if 0.0 < error < np.inf and 0.0 < its < np.inf:
                yield name, float(other - value), float(error), float(its)
