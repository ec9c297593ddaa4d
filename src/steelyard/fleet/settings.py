"""`ModelSettings`: what all logs of one model are mapped with, chosen once from a handful of them, and kept.

Factors merge only where their rows are alike: the same terms, columns, filter. `identify` chooses these for a few logs
of different robots, which a rule draws that does not depend on their order; whoever maps a log takes them as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError
from steelyard.fleet.mapped import FACTOR_VERSION, LogFactors
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.ground.schema import build
from steelyard.identification.identify import identify
from steelyard.parameters.term import make_term
from steelyard.parameters.terms import Terms
from steelyard.regression.rows import Rows
from steelyard.regression.schemes import make_scheme
from steelyard.robot.robot import Robot
from steelyard.robot.transmission import Transmission
from steelyard.signals.excerpt import part_of
from steelyard.signals.log import Log, refuse_without_torque
from steelyard.signals.mounted import as_logged
from steelyard.signals.prepare import Preparation
from steelyard.signals.repeats import without_repeats
from steelyard.signals.source import Source, pieces_of
from steelyard.study import Study

# Settings are chosen from so many logs at most: a search by more would take longer, and no robot would count more.
CHOSEN_FROM = 8
# From so many that can be read, of which those are left out that plain terms explain worse than the median by more than
# this factor (of squares).
TRIED, _UNLIKE_MEDIAN = 12, 4.0
# Rows of each that count.
_ROWS = 30_000
# A log whose own fit leaves more than this many times what the settings' fit left, on some joint, is looked at in full;
_SUSPICIOUS = 1.5
# so is one of which the settings' parameters leave more than this part of some joint's torque.
_UNLIKE = 0.8
_SCHEMA = "steelyard.fleet-settings/1"
_T = TypeVar("_T")


@dataclass(frozen=True)
class FittedTerm:
    """A joint term as plain data: its kind, what it acts on, the joints (None: all), its options."""

    kind: str
    on: str
    where: tuple[str, ...] | None
    options: Mapping[str, Any]


@dataclass(frozen=True)
class ModelSettings:
    """How the logs of one model are made ready and written as rows.

    Attributes:
        model: its name.
        robot: a hash of the robot's description.
        gravity: in the base frame, m/s², as the logs say that the robots are mounted.
        torque_used: of each joint, whether its torque can be trusted.
        coupling: of motors and joints, as `Transmission` has it, where the logs' mapping states one; else empty.
        motors: their names.
        terms: the joint terms.
        preparation: filter, derivatives, masks.
        cutoff_hz: of the low-pass that acts on both sides of the rows.
        scheme: how the physics is written.
        theta: the parameters that were found with them: what joints carry, for terms that go by it, and where the fit
            of a log stands along what the log does not show.
        residual_std: of each equation, in that fit.
        independent: the columns of the base parameters.
        structure_std: of each base parameter, how far it hangs on the choice of the terms, which no more logs
            change.
        chosen_from: the logs that decided.
    """

    model: str
    robot: str
    gravity: tuple[float, ...]
    torque_used: tuple[bool, ...]
    coupling: tuple[tuple[float, ...], ...]
    motors: tuple[str, ...]
    terms: tuple[FittedTerm, ...]
    preparation: Preparation
    cutoff_hz: float
    scheme: str
    theta: tuple[float, ...]
    residual_std: tuple[float, ...]
    independent: tuple[int, ...]
    structure_std: tuple[float, ...] = ()
    chosen_from: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """The hash of all that decides the factors of a log, but for the log and its mapping."""
        own = {k: v for k, v in asdict(self).items() if k not in ("model", "chosen_from", "structure_std")}
        return content_key("settings", FACTOR_VERSION, own)

    def to_json(self) -> dict[str, Any]:
        """As a document holds it."""
        return {"schema": _SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, document: Any, source: str) -> ModelSettings:
        """What `to_json` wrote: the `document`, read from `source`."""
        own = dict(document) if isinstance(document, Mapping) else {}
        if own.pop("schema", None) != _SCHEMA:
            raise SteelyardError(f"{source}: these are no settings of a fleet, or of another version.")
        return build(cls, Field(own, source, error=SteelyardError))


@dataclass(frozen=True, eq=False)
class ModelStudy:
    """The physics that all logs of one model share: traced, reduced to base parameters and compiled once.

    Args:
        described: the robot as its description has it.
        settings: of its model.
    """

    described: Robot
    settings: ModelSettings

    @cached_property
    def study(self) -> Study:
        """A study without logs."""
        own, robot = self.settings, self.described
        if robot_key(robot) != own.robot:
            raise SteelyardError(f"The settings of '{own.model}' are of another description; choose them again.")
        used = [name for name, yes in zip(robot.joint_names, own.torque_used, strict=True) if yes]
        if not np.array_equal(robot.gravity, own.gravity):
            robot = robot.with_gravity(own.gravity)
        if robot.torque_used != own.torque_used:
            robot = robot.with_torque_used(used)
        if own.coupling:
            robot = replace(robot, transmission=Transmission(np.array(own.coupling), own.motors))
        made = (make_term(t.kind, on=t.on, where=t.where, **t.options) for t in own.terms)
        terms = Terms(robot, tuple(made))
        study = Study(robot, (), (), terms, own.preparation, own.cutoff_hz, make_scheme(own.scheme))
        study = replace(study, reference=Model(robot, terms, np.array(own.theta)))
        if study.base.independent != own.independent:
            raise SteelyardError(f"The base parameters of '{own.model}' are not those of its settings; choose again.")
        # Now, and not when enough samples have come: no log may depend on which ones were before it, to the last bit.
        Rows.cached(study.dynamics, study.base.independent).evaluator.compile()
        return replace(study, known_base=study.base)

    @property
    def beta(self) -> Array:
        """The base parameters of the settings' own fit."""
        return self.study.base.values(self.settings.theta)

    def is_unlike(self, log: LogFactors) -> bool:
        """Whether a `log` is not explained as those were that the settings were chosen from."""
        assert log.factor is not None
        errors = log.factor.residual_sums(self.beta, self.study.base.independent) / np.maximum(log.rows, 1.0)
        worse = log.residual_std > _SUSPICIOUS * np.array(self.settings.residual_std)
        return bool(np.any(worse | (errors > (_UNLIKE * log.torque_std) ** 2)))

    def study_of(self, source: Source) -> Study:
        """The same question to one log, `source`; `LogError` where it does not belong to the others."""
        log = without_repeats(source) if isinstance(source, Log) else source
        made = replace(self.study, _prepared={}).judged_on([log])  # what is prepared goes away with the log
        refuse_without_torque(made.beginnings)
        mounted, robot = as_logged(made.robot, made.beginnings), made.robot
        alike = np.allclose(mounted.gravity, robot.gravity) and mounted.torque_used == robot.torque_used
        if not alike or (mounted.transmission is None) != (robot.transmission is None):
            name = made.beginnings[0].meta.get("source", "The log")
            raise LogError(
                f"{name}: states another mounting, coupling or use of torques than the logs of '{self.settings.model}' "
                "that its settings were chosen from; list such robots as a model of their own."
            )
        return made


def beginning_of(source: Source) -> Log:
    """As much of the beginning of a log, `source`, as settings are chosen by: several are held at once, by a process
    that may not grow with the length of logs."""
    first = next(iter(pieces_of(source)))
    return (part_of(first, [(0, _ROWS)]) or first) if len(first) > _ROWS else first


def choose_settings(model: str, robot: Robot, logs: Sequence[tuple[str, Log]], **options: Any) -> ModelSettings:
    """The settings that `identify` finds for a few logs together.

    Args:
        model: its name.
        robot: as described.
        logs: name and beginning of each.
        options: of `identify`, such as `terms`, `plain` or `preparation`.
    """
    beginnings, names = [log for _, log in logs], [name for name, _ in logs]
    found = identify(robot, beginnings, check=False, files=False, names=names, **options)
    mounted, coupled = found.robot, found.robot.transmission if robot.transmission is None else None
    return ModelSettings(
        model=model,
        robot=robot_key(robot),
        gravity=tuple(float(g) for g in mounted.gravity),
        torque_used=tuple(bool(u) for u in mounted.torque_used),
        coupling=() if coupled is None else tuple(tuple(map(float, row)) for row in coupled.matrix),
        motors=() if coupled is None else tuple(coupled.motors),
        terms=tuple(FittedTerm(t.name, t.on, t.where, t.options) for t in found.model.terms.terms),
        preparation=found.settings.preparation,
        cutoff_hz=found.cutoff_hz,
        scheme=found.settings.scheme,
        theta=tuple(float(x) for x in found.model.theta),
        residual_std=tuple(float(x) for x in found.free.residual_std),
        independent=tuple(int(k) for k in found.base.independent),
        structure_std=tuple(float(x) for x in found.free.details.get("structure_error", ())),
        chosen_from=tuple(name for name, _ in logs),
    )


def alike_logs(robot: Robot, logs: Sequence[tuple[str, Log]]) -> list[tuple[str, Log]]:
    """The first `CHOSEN_FROM` of some logs of `robot` that plain terms explain about as well as they do most: one that
    is mapped wrongly, or of another arm, is not to decide what all are asked for.

    Args:
        robot: as described.
        logs: name and log.
    """
    shares: list[float] = []
    for _, log in logs:
        try:
            study = Study.of(robot, log)
            left = study.quick_fit()[1]
            squares = [float(r[:, -1] @ r[:, -1]) for r in study.rows.factor().triangles]
            shares.append(float(np.mean(left**2 * study.rows.factor().rows / np.maximum(squares, 1e-300))))
        except SteelyardError:
            shares.append(np.inf)
    finite = [x for x in shares if np.isfinite(x)]
    most = _UNLIKE_MEDIAN * float(np.median(finite)) if finite else 0.0
    return [log for log, share in zip(logs, shares, strict=True) if share <= most][:CHOSEN_FROM]


def drawn(items: Sequence[_T], robot: Callable[[_T], str], name: Callable[[_T], str], most: int) -> list[_T]:
    """At most so many (`most`) of `items`, of as many robots as there are, by the hashes of their names: whatever their
    order, and however many others there are, the same ones.

    Args:
        items: logs.
        robot: whose a log is.
        name: of a log.
        most: how many.
    """
    ranked = sorted(items, key=lambda item: content_key("drawn", name(item)))
    rounds: dict[str, int] = {}
    order: list[tuple[int, int, _T]] = []
    for item in ranked:  # the first of every robot, then the second of every robot, …
        rounds[robot(item)] = turn = rounds.get(robot(item), 0) + 1
        order.append((turn, len(order), item))
    return [item for _, _, item in sorted(order, key=lambda entry: entry[:2])[:most]]


# ---------------------------------------------------------------- hashes


def content_key(*parts: Any) -> str:
    """The SHA-256 of `parts`, plain data, dataclasses and arrays: what they say, not how they are held."""
    return hashlib.sha256(json.dumps(_canonical(parts), sort_keys=True).encode()).hexdigest()


def robot_key(robot: Robot) -> str:
    """The hash of what a description says of a `robot`, wherever it was read from."""
    return content_key("robot", replace(robot, source=""))


def _canonical(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, {f.name: _canonical(getattr(value, f.name)) for f in fields(value) if f.compare}]
    if isinstance(value, Mapping):
        return {str(k): _canonical(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(v) for v in value]
    return repr(value) if isinstance(value, float) else value
