"""`RobotTypeSettings`: terms, filters and columns for all logs of one robot type, chosen once from a few of them.

Factors can be merged only if their rows agree in terms, columns and filter. `identify` chooses these from a few logs of
different robots. The draw of these logs does not depend on their order.
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
from steelyard.fleet.log_factors import FACTOR_VERSION, LogFactors
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
from steelyard.signals.prepare import Preparation
from steelyard.signals.repeats import without_repeats
from steelyard.signals.robot_setup import apply_log_setup
from steelyard.signals.source import Source, pieces_of
from steelyard.study import Study

# Largest number of logs that determine settings; more would take longer without more information per robot.
CHOSEN_FROM = 8
# Number of readable logs that are compared first. Those whose unexplained squares exceed the median by this factor are
# left out.
MAX_CANDIDATES, _UNLIKE_MEDIAN = 12, 4.0
# Largest number of rows of each log.
_ROWS = 30_000
# A log is checked in full if the residual of its own fit exceeds that of the settings' fit by this factor on a joint,
_SUSPICIOUS = 1.5
# or if the settings' parameters leave more than this part of a joint's torque unexplained.
_UNLIKE = 0.8
_SCHEMA = "steelyard.fleet-settings/1"
_T = TypeVar("_T")


@dataclass(frozen=True)
class FittedTerm:
    """A joint term as plain data: its kind, what it acts on, its joints (None: all) and its options."""

    kind: str
    on: str
    where: tuple[str, ...] | None
    options: Mapping[str, Any]


@dataclass(frozen=True)
class RobotTypeSettings:
    """Settings for the logs of one robot type.

    Attributes:
        model: Name of the robot type.
        robot: Hash of the robot's description.
        gravity: Gravity in the base frame by the mounting that the logs state [m/s^2].
        torque_used: Whether the torque of each joint is used.
        coupling: Matrix of `Transmission` if the mapping of the logs states one; else empty.
        motors: Names of the coupled motors.
        terms: Joint terms.
        preparation: Filter, derivatives and masks.
        cutoff_hz: Cut-off of the low-pass on both sides of the rows [Hz].
        scheme: Form of the equations.
        theta: Parameters of the settings' fit. They give the joint loads to terms that depend on load, and the values
            of parameters that a log does not identify.
        residual_std: Residual standard deviation of each equation in that fit.
        independent: Columns of the base parameters.
        structure_std: Standard deviation of each base parameter due to the choice of the terms.
        chosen_from: Logs that the settings were chosen from.
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
        """Hash of everything that determines the factors of a log, except the log and its mapping."""
        own = {k: v for k, v in asdict(self).items() if k not in ("model", "chosen_from", "structure_std")}
        return content_key("settings", FACTOR_VERSION, own)

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON document."""
        return {"schema": _SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, document: Any, source: str) -> RobotTypeSettings:
        """Read what `to_json` wrote.

        Args:
            document: The document.
            source: Location of the document, for messages.
        """
        own = dict(document) if isinstance(document, Mapping) else {}
        if own.pop("schema", None) != _SCHEMA:
            raise SteelyardError(f"{source}: is not a settings file of a fleet, or has another version.")
        return build(cls, Field(own, source, error=SteelyardError))


@dataclass(frozen=True, eq=False)
class RobotTypeStudy:
    """Compiled equations that all logs of one robot type share.

    Args:
        described: Robot as described.
        settings: Settings of its type.
    """

    described: Robot
    settings: RobotTypeSettings

    @cached_property
    def study(self) -> Study:
        """A study without logs."""
        own, robot = self.settings, self.described
        if robot_key(robot) != own.robot:
            raise SteelyardError(
                f"The settings of '{own.model}' belong to another description; choose them again (--choose-again)."
            )
        used = [name for name, yes in zip(robot.joint_names, own.torque_used, strict=True) if yes]
        if not np.array_equal(robot.gravity, own.gravity):
            robot = robot.with_gravity(own.gravity)
        if robot.torque_used != own.torque_used:
            robot = robot.with_torque_used(used)
        if own.coupling:
            robot = replace(robot, transmission=Transmission(np.array(own.coupling), own.motors))
        terms = Terms(robot, tuple(make_term(t.kind, on=t.on, where=t.where, **t.options) for t in own.terms))
        study = Study(robot, (), (), terms, own.preparation, own.cutoff_hz, make_scheme(own.scheme))
        study = replace(study, reference=Model(robot, terms, np.array(own.theta)))
        if study.base.independent != own.independent:
            raise SteelyardError(
                f"The base parameters of '{own.model}' differ from those of its settings; choose them again "
                "(--choose-again)."
            )
        # Compile now, not after many samples, so that results do not depend on the logs before, to the last bit.
        Rows.cached(study.dynamics, study.base.independent).evaluator.compile()
        return replace(study, known_base=study.base)

    @property
    def beta(self) -> Array:
        """Base parameters of the settings' own fit."""
        return self.study.base.values(self.settings.theta)

    def is_unlike(self, log: LogFactors) -> bool:
        """Whether a `log` is explained much worse than the logs that the settings were chosen from."""
        assert log.factor is not None
        errors = log.factor.residual_sums(self.beta, self.study.base.independent) / np.maximum(log.rows, 1.0)
        worse = log.residual_std > _SUSPICIOUS * np.array(self.settings.residual_std)
        return bool(np.any(worse | (errors > (_UNLIKE * log.torque_std) ** 2)))

    def study_of(self, source: Source) -> Study:
        """Make the study of one log, `source`; `LogError` if it does not fit the settings."""
        log = without_repeats(source) if isinstance(source, Log) else source
        own = self.study.cache.without_motions()  # freed with the log
        made = replace(self.study, cache=own).for_validation([log])
        refuse_without_torque(made.beginnings)
        mounted, robot = apply_log_setup(made.robot, made.beginnings), made.robot
        alike = np.allclose(mounted.gravity, robot.gravity) and mounted.torque_used == robot.torque_used
        if not alike or (mounted.transmission is None) != (robot.transmission is None):
            name = made.beginnings[0].meta.get("source", "The log")
            raise LogError(
                f"{name}: states another mounting, coupling or use of torques than the logs of '{self.settings.model}' "
                "that its settings were chosen from; list such robots as a separate robot type."
            )
        return made


def beginning_of(source: Source) -> Log:
    """Return the part of a log, `source`, that settings are chosen from; bounded, since several are held in memory."""
    first = next(iter(pieces_of(source)))
    return (part_of(first, [(0, _ROWS)]) or first) if len(first) > _ROWS else first


def choose_settings(model: str, robot: Robot, logs: Sequence[tuple[str, Log]], **options: Any) -> RobotTypeSettings:
    """Choose settings with `identify` from a few logs together.

    Args:
        model: Name of the robot type.
        robot: Robot as described.
        logs: Name and beginning of each log.
        options: Options of `identify`, such as `terms`, `plain` or `preparation`.
    """
    beginnings, names = [log for _, log in logs], [name for name, _ in logs]
    found = identify(robot, beginnings, check=False, files=False, names=names, **options)
    mounted, coupled = found.robot, found.robot.transmission if robot.transmission is None else None
    return RobotTypeSettings(
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


def select_similar_logs(robot: Robot, logs: Sequence[tuple[str, Log]]) -> list[tuple[str, Log]]:
    """Select the first `CHOSEN_FROM` logs that the default terms explain about as well as the median log.

    This keeps logs with a wrong mapping or of another arm from influencing the settings.

    Args:
        robot: Robot as described.
        logs: Name and log.
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


def draw_logs(items: Sequence[_T], robot: Callable[[_T], str], name: Callable[[_T], str], most: int) -> list[_T]:
    """Draw items of as many robots as possible, by hashes of names, so that the draw does not depend on their order.

    Args:
        items: Logs.
        robot: Returns the robot of a log.
        name: Returns the name of a log.
        most: Largest number of items.
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
    """Return the SHA-256 of the content of `parts`: plain data, dataclasses and arrays."""
    return hashlib.sha256(json.dumps(_canonical(parts), sort_keys=True).encode()).hexdigest()


def robot_key(robot: Robot) -> str:
    """Hash the description of a `robot`, independent of where it was read from."""
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
