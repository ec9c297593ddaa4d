"""`ControlLoop`: what moved the robot while it was logged; read from a small document, and joined with the logs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.simulated.experiment import Experiment
from steelyard.ground.arrays import Array
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.read import read_log
from steelyard.simulation.controllers import CONTROLLERS, Controller
from steelyard.study import Study

_PARTS = ("position", "velocity", "acceleration")
# Of these a document may speak; a controller's model is the robot's description.
_NUMBERS = ("kp", "kd", "ki", "limit", "lag", "smoothing")


@dataclass(frozen=True, eq=False)
class ControlLoop:
    """What estimators that simulate the closed loop must know besides the log.

    Attributes:
        controller: one of `steelyard.simulation`, with its gains.
        references: what it was told: one per log, or a single one for all; each an object with `sample(t)` that gives
            (q, dq, ddq), or a tuple of these with a row per sample of the log.
        control_period: time between two control instants, s; None: those of the log's samples.
        source: where it was read from.
    """

    controller: Controller
    references: tuple[Any, ...]
    control_period: float | None = None
    source: str = ""


@dataclass(frozen=True, eq=False)
class _Recorded:
    """A reference as it was recorded: q, dq and ddq at times t, s."""

    t: Array
    parts: tuple[Array, Array, Array]
    source: str = ""

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """(q, dq, ddq) at times t, which must lie within the record."""
        beyond = 0.5 * float(np.median(np.diff(self.t))) if len(self.t) > 1 else 0.0
        if t[0] < self.t[0] - beyond or t[-1] > self.t[-1] + beyond:
            raise EstimationError(
                f"{self.source}: the reference covers t = {self.t[0]:g} to {self.t[-1]:g} s, the log {t[0]:g} to "
                f"{t[-1]:g} s; both must stand on one clock."
            )
        q, dq, ddq = (np.column_stack([np.interp(t, self.t, x) for x in part.T]) for part in self.parts)
        return q, dq, ddq


def read_control_loop(path: str | os.PathLike[str], robot: Robot, with_reference: bool = True) -> ControlLoop:
    """Read the control loop of `robot` from the YAML or TOML at `path`; without its references where others are
    followed (`with_reference` False).

    Keys: `kind` (pd, pd-gravity, computed-torque, feed-forward, pid); `kp`, `kd`, for pid `ki`, and `limit` (N m), each
    a number or one per joint; for pid `lag` (s) of the velocity that it sees; `rate` (Hz) of the control instants,
    default that of the log; `reference` with `file` (or a list of files, one per log), `map` (which columns hold it, as
    for logs) and `follows` (of position, velocity and acceleration; what it does not follow is zero). Files are looked
    for beside the document.
    """
    place = Path(path)
    whole = Field(dict(read_document(place)), str(place))
    entries = whole.table(
        ("kind", "kp", "reference") if with_reference else ("kind", "kp"),
        ("kd", "ki", "limit", "lag", "smoothing", "rate", "reference"),
    )
    kind = CONTROLLERS[entries["kind"].choice(tuple(CONTROLLERS))]
    known = {f.name for f in fields(kind)}
    given: dict[str, Any] = {"kd": 0.0}
    for name in _NUMBERS:
        if name in entries and name not in known:
            entries[name].fail(f"{entries['kind'].value} has no {name}; leave it out.")
        if name in entries:
            single = name in ("lag", "smoothing")
            given[name] = entries[name].number() if single else _per_joint(entries[name], robot)
    if "model" in known:
        if not robot.has_inertia:
            entries["kind"].fail(f"needs a model, and the description of '{robot.name}' has no inertias.")
        given["model"] = Model.nominal(robot)
    try:
        made = kind(**given)
    except SteelyardError as error:
        whole.fail(str(error))
    rate = entries["rate"].positive() if "rate" in entries else None
    told = _references(entries["reference"], place.parent, robot) if with_reference else ()
    return ControlLoop(made, told, None if rate is None else 1.0 / rate, place.name)


def _per_joint(entry: Field, robot: Robot) -> Array:
    values = entry.vector(robot.dof) if isinstance(entry.value, list) else [entry.number()] * robot.dof
    return np.array(values)


def _references(entry: Field, folder: Path, robot: Robot) -> tuple[_Recorded, ...]:
    told = entry.table(("file",), ("map", "follows"))
    names = told["file"].texts() if isinstance(told["file"].value, list) else [told["file"].text()]
    mapping = folder / told["map"].text() if "map" in told else None
    follows = [item.choice(_PARTS) for item in told["follows"].items("part")] if "follows" in told else _PARTS
    return tuple(_recorded(read_log(folder / name, robot, mapping), name, follows) for name in names)


def _recorded(log: Log, source: str, follows: Sequence[str]) -> _Recorded:
    dq = np.gradient(log.q, log.t, axis=0) if log.dq is None else log.dq
    ddq = np.gradient(dq, log.t, axis=0) if log.ddq is None else log.ddq
    q, dq, ddq = (
        part if name in follows else np.zeros_like(part) for name, part in zip(_PARTS, (log.q, dq, ddq), strict=True)
    )
    return _Recorded(log.t, (q, dq, ddq), source)


def as_control_loop(given: str | os.PathLike[str] | ControlLoop | None, robot: Robot) -> ControlLoop | None:
    """A loop of `robot` as it is `given`, or read from its document."""
    return read_control_loop(given, robot) if isinstance(given, str | os.PathLike) else given


def experiment_of(study: Study, loop: ControlLoop | None = None) -> Experiment:
    """The experiment of a study's logs, prepared as for least squares.

    Args:
        study: of logs in memory.
        loop: controller and references, for estimators that simulate the closed loop.
    """
    if loop is None:
        return Experiment.of(study)
    references = loop.references * len(study.logs) if len(loop.references) == 1 else loop.references
    return Experiment.of(study, controller=loop.controller, references=references, control_period=loop.control_period)
