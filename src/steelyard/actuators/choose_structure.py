"""`choose_structure`: friction model and effects of a drive, by errors on groups of runs that a fit leaves out.

`equal_friction` names larger friction models whose terms these runs would not show at their usual size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from steelyard.actuators.actuator_identification import Inseparable, Structure
from steelyard.actuators.command_log import CommandLog
from steelyard.actuators.drive_model import DRIVE_FRICTION, DRIVE_PARAMETERS
from steelyard.actuators.drive_structure import DriveStructure
from steelyard.actuators.fit_drive import DriveFit, robust_cost, usual_values
from steelyard.actuators.growth import Growth
from steelyard.actuators.rollout import QUICK_STEP, Rollouts
from steelyard.actuators.uncertainty import covariance_of, memory_of
from steelyard.ground.arrays import Array

# A larger structure must predict better by this share, or its gain must be certain; otherwise the smaller one is
# chosen. A few groups of runs determine their mean error to about a tenth, and the difference between two structures
# to about half of that.
_GAIN = 0.05
_LARGER = {"M1": ("M2", "M3", "M4"), "M2": ("M4",), "M3": ("M4",), "M4": ("M5", "M6"), "M5": ("M6",), "M6": ()}
# Residuals with a longer memory, in samples, contain errors of the model, which any further term may imitate; chance is
# then no measure of a gain.
_WHITE = 2.0
# Effects that imitate others; they are tried when nothing else helps.
_RARE = ("feedback_delay", "backlash")


@dataclass
class ChosenDrive:
    """The chosen structure.

    Args:
        structure: Structure.
        fit: Its fit to all runs.
        rollouts: Runs of that fit.
        tried: All candidate structures with their errors on left-out runs.
        left_out: Mean absolute error [rad] of each run for the fit without its group, by name.
        folds: Fits of the folds, by group.
        equal: Larger friction models that these runs cannot tell from the chosen one.
    """

    structure: DriveStructure
    fit: DriveFit
    rollouts: Rollouts
    tried: list[Structure] = field(default_factory=list)
    left_out: dict[str, float] = field(default_factory=dict)
    folds: dict[str, DriveFit] = field(default_factory=dict)
    equal: list[Inseparable] = field(default_factory=list)


@dataclass(frozen=True)
class _Fold:
    group: str
    growth: Growth
    others: Rollouts


class _Chooser:
    def __init__(
        self, logs: Sequence[CommandLog], supply: Sequence[Array], groups: Sequence[str], given: Mapping[str, float],
        stride: int, seed: int,
    ) -> None:  # fmt: skip
        self.growth = Growth(logs, supply, given, stride, seed)
        self.folds = []
        names = list(dict.fromkeys(groups))
        for name in names if len(names) > 1 else []:
            inside = [k for k, g in enumerate(groups) if g != name]
            outside = [k for k, g in enumerate(groups) if g == name]
            fitted = Growth(
                [logs[k] for k in inside], [supply[k] for k in inside], given, stride, seed, self.growth
            )  # fmt: skip
            others = Rollouts([logs[k] for k in outside], [supply[k] for k in outside], QUICK_STEP, stride)
            self.folds.append(_Fold(name, fitted, others))
        self.scores: dict[DriveStructure, tuple[float, float, dict[str, float]]] = {}

    def score(self, s: DriveStructure) -> float:
        """The mean error of a structure on left-out runs; without groups, on all runs with a penalty per parameter."""
        if s not in self.scores:
            if not self.folds:
                fit = self.growth.fit(s)
                price = (1.0 + _GAIN) ** len(fit.free)
                self.scores[s] = float(np.mean(np.abs(fit.residual))) * price, math.nan, {}
            else:
                errors: dict[str, float] = {}
                for fold in self.folds:
                    fit = fold.growth.fit(s)
                    errors |= run_errors(fold.others, s, fit.values)
                # The geometric mean over runs, so that a single unpredictable run does not decide the choice. Errors
                # of the fit to all runs count as well: a structure that does not explain its own runs is wrong.
                inside = run_errors(self.growth.rollouts, s, self.growth.fit(s).values)
                both = [math.sqrt(max(errors[name], 1e-9) * max(e, 1e-9)) for name, e in inside.items()]
                logarithms = np.log(both)
                score = float(np.exp(np.mean(logarithms)))
                self.scores[s] = score, score * float(np.std(logarithms)) / math.sqrt(len(logarithms)), errors
        return self.scores[s][0]

    def certain(self, parent: DriveStructure, s: DriveStructure) -> bool:
        """Whether the runs show an effect beyond chance, also in fits with the fine step of the result."""
        quick, fine = self.growth.rollouts, self.growth.fine
        if not beyond_chance(self.growth.fit(parent), self.growth.fit(s), quick):
            return False
        return beyond_chance(self.growth.fine_fit(parent), self.growth.fine_fit(s), fine)


def beyond_chance(small: DriveFit, large: DriveFit, rollouts: Rollouts) -> bool:
    """Whether a larger structure fits better beyond chance: Schwarz' criterion, if its residuals are independent.

    Args:
        small: Fit of the smaller structure.
        large: Fit of the larger structure.
        rollouts: Runs of both fits.
    """
    scale = min(small.scale, large.scale)
    memory = memory_of(large, rollouts)
    if memory > _WHITE:
        return False
    count = len(large.residual) / memory
    before, after = (max(robust_cost(fit.residual, scale), 1e-300) for fit in (small, large))
    return count * math.log(before / after) > (len(large.free) - len(small.free)) * math.log(max(count, 2.0))


def run_errors(rollouts: Rollouts, structure: DriveStructure, values: Mapping[str, float]) -> dict[str, float]:
    """Return the mean absolute position error [rad] of each run, by its name.

    Args:
        rollouts: Runs.
        structure: Structure of the drive.
        values: Its parameters.
    """
    q, _ = rollouts.simulate(structure, values)
    # A wrong drive may diverge; half a turn is the largest error that a prediction can have.
    error = np.minimum(np.nan_to_num(np.abs(q - rollouts.measured), nan=math.pi), math.pi)
    return {log.name: float(np.mean(error[rollouts.run == k])) for k, log in enumerate(rollouts.logs)}


def choose_structure(
    logs: Sequence[CommandLog], supply: Sequence[Array], groups: Sequence[str], given: Mapping[str, float],
    kinds: Sequence[str], friction: str, effects: Sequence[str] | None, stride: int, seed: int,
) -> ChosenDrive:  # fmt: skip
    """Choose the structure of a drive; the search starts from the simplest one.

    Args:
        logs: Runs.
        supply: Voltage of each run [V].
        groups: Group of each run; each fold leaves one group out.
        given: Known parameters.
        kinds: Kinds of drive to try.
        friction: Friction model; "": choose it.
        effects: Effects; None: choose them.
        stride: Number of samples between two compared positions.
        seed: The same seed gives the same starts.
    """
    chooser = _Chooser(logs, supply, groups, given, stride, seed)
    always = ("delay",) if effects is None else tuple(effects)
    at = [DriveStructure(kind, friction or "M1", always) for kind in kinds]
    if len(kinds) > 1 and effects is None and "torque_limit" not in given:
        # The duty of a voltage drive has a limit; a loop without one would lose against it at large errors.
        at += [replace(s, effects=(*s.effects, "torque_limit")) for s in at if s.kind == "position-loop"]
    best = _fewest(chooser, at)
    while True:
        larger = _larger(best, friction, effects is None, given)
        rare = [s for s in larger if set(s.effects) & set(_RARE) - set(best.effects)]
        candidates = _better(chooser, best, [s for s in larger if s not in rare]) or _better(chooser, best, rare)
        if not candidates:
            break
        best = _fewest(chooser, candidates)
    best = _simplest(chooser, best, friction, effects is None, (1.0 + _GAIN) * chooser.score(best))
    if "friction_stribeck" in DRIVE_FRICTION[best.friction]:
        other = replace(best, stribeck_exponent=3 - best.stribeck_exponent)
        if chooser.score(other) < (1.0 - _GAIN) * chooser.score(best):
            best = other
    fit, fine = chooser.growth.final(best, [fold.growth.fit(best).values for fold in chooser.folds])
    tried = [
        Structure(_label(s, kinds), len(chooser.growth.fit(s).free), score, deviation, s == best)
        for s, (score, deviation, _) in chooser.scores.items()
    ]
    others = [] if friction else [chooser.growth.fit(replace(best, friction=m)) for m in _LARGER[best.friction]]
    equal = equal_friction(chooser.growth.fit(best), others, chooser.growth.rollouts)
    return ChosenDrive(
        best, fit, fine, tried, chooser.scores[best][2] if best in chooser.scores else {},
        {fold.group: fold.growth.fit(best) for fold in chooser.folds}, equal,
    )  # fmt: skip


def _fewest(chooser: _Chooser, candidates: Sequence[DriveStructure]) -> DriveStructure:
    """Among the structures with about the smallest error, the one with the fewest parameters."""
    lowest = min(map(chooser.score, candidates))
    near = [s for s in candidates if (1.0 - _GAIN) * chooser.score(s) <= lowest]
    return min(near, key=lambda s: (len(s.names), chooser.score(s)))


def _label(s: DriveStructure, kinds: Sequence[str]) -> str:
    exponent = ", squared fading" if s.stribeck_exponent == 2 else ""
    return (s.label if len(kinds) == 1 else f"{s.kind}: {s.label}") + exponent


def _larger(s: DriveStructure, friction: str, free: bool, given: Mapping[str, float]) -> list[DriveStructure]:
    """Structures with one more effect, or the next friction models."""
    out = [replace(s, friction=m) for m in _LARGER[s.friction]] if not friction else []
    if free:
        more = ["torque_limit", "load_friction_quad", "feedback_delay", "backlash"]
        if s.kind != "torque":
            more.append("goal_time")
        if "torque_limit" in s.effects and s.kind != "voltage":
            more.append("no_load_speed")
        out += [replace(s, effects=(*s.effects, e)) for e in more if e not in s.effects and e not in given]
    return out


def _better(chooser: _Chooser, best: DriveStructure, larger: Sequence[DriveStructure]) -> list[DriveStructure]:
    worth = [s for s in larger if _worth(chooser, best, s)]
    return [s for s in worth if chooser.score(s) <= _needed(chooser, best, s)]


def _simplest(chooser: _Chooser, s: DriveStructure, friction: str, free: bool, most: float) -> DriveStructure:
    """The structure without the terms that an effect found later has made superfluous."""
    optional = [e for e in s.effects if e != "delay"] if free else []
    smaller = [replace(s, effects=tuple(e for e in s.effects if e != name)) for name in optional[:-1]]
    if not friction and optional:
        smaller += [replace(s, friction=m) for m, larger in _LARGER.items() if s.friction in larger]
    for other in smaller:
        chooser.growth.fit(other, chooser.growth.fit(s).values)
        if chooser.score(other) <= most and not chooser.certain(other, s):
            return _simplest(chooser, other, friction, free, most)
    return s


def _worth(chooser: _Chooser, parent: DriveStructure, s: DriveStructure) -> bool:
    """Whether a larger structure reduces the error on the runs of its fit; otherwise the folds are not fitted."""
    before, after = chooser.growth.fit(parent), chooser.growth.fit(s)
    lower = float(np.mean(np.abs(after.residual))) < (1.0 - _GAIN) * float(np.mean(np.abs(before.residual)))
    return lower or chooser.certain(parent, s)


def _needed(chooser: _Chooser, parent: DriveStructure, s: DriveStructure) -> float:
    """The largest score of a larger structure with which it replaces its parent."""
    before = chooser.score(parent)
    return before if chooser.folds and chooser.certain(parent, s) else (1.0 - _GAIN) * before


# A term is visible if it exceeds its standard error by this factor, once in 40 by chance.
_VISIBLE = 2.0
# The terms that a friction model adds; of two terms, their difference.
_TERMS = {
    "M2": (("friction_stribeck",),),
    "M3": (("load_friction",),),
    "M4": (("friction_stribeck",), ("load_friction",), ("load_friction_stribeck",)),
    "M5": (
        ("load_friction_motor", "load_friction_external"),
        ("load_friction_motor_stribeck", "load_friction_external_stribeck"),
    ),
    "M6": (("load_friction_motor_quad",), ("load_friction_external_quad",)),
}
_EXPERIMENT = {
    "friction_stribeck": "A slow motion with reversals, such as a sine of 0.1 Hz.",
    "load_friction": "The same motions with a second mass, of half or double the torque.",
    "load_friction_stribeck": "A slow sine of 0.1 Hz with a second mass, of half or double the torque.",
    "load_friction_motor": "Slow lifting and lowering, and a free fall with the drive off, with two masses.",
    "load_friction_motor_stribeck": "Slow lifting and lowering of two masses, with pauses.",
    "load_friction_motor_quad": "Slow lowering of two masses, with pauses, at low gains.",
    "load_friction_external_quad": "Slow lifting of two masses, with pauses.",
}


def equal_friction(chosen: DriveFit, larger: Sequence[DriveFit], rollouts: Rollouts) -> list[Inseparable]:
    """Return the larger friction models that the runs cannot separate from the chosen one; none if all are visible.

    Args:
        chosen: Fit of the chosen structure.
        larger: Fits of structures with larger friction models.
        rollouts: Runs of all fits.
    """
    hidden = {fit.structure.friction: each for fit in larger if (each := _hidden(chosen, fit, rollouts))}
    if not hidden:
        return []
    terms, smallest = next(iter(hidden.values()))
    unit = DRIVE_PARAMETERS[terms[0]].unit
    what = f"{terms[0]} below" if len(terms) == 1 else f"a difference of {terms[0]} and {terms[1]} below"
    own = chosen.structure.friction
    reason = (
        f"Friction {own} cannot be separated from {' and '.join(hidden)}: these runs do not show {what} "
        f"{smallest:.2g}{f' {unit}' if unit else ''}."
    )
    return [Inseparable(terms, reason, _EXPERIMENT[terms[0]], f"{own}, the simplest")]


def _hidden(chosen: DriveFit, larger: DriveFit, rollouts: Rollouts) -> tuple[tuple[str, ...], float] | None:
    """The first additional term that is hidden at its usual size, and its smallest visible size."""
    usual = usual_values(rollouts)
    covariance, _ = covariance_of(larger, rollouts)
    for terms in _TERMS[larger.structure.friction]:
        if set(terms) <= set(chosen.structure.names) or any(n not in larger.free for n in terms):
            continue
        slope = np.array([(n == terms[0]) - (n in terms[1:]) for n in larger.free], dtype=float)
        smallest = _VISIBLE * math.sqrt(max(float(slope @ covariance @ slope), 0.0))
        if smallest > usual[terms[0]]:
            return terms, smallest
    return None
