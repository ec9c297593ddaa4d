"""The control loop during the log: controller and reference, read from a document and combined with logs."""

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
from steelyard.estimation.simulation_error.experiment import Experiment
from steelyard.ground.arrays import Array
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.read import read_log
from steelyard.simulation.controllers import CONTROLLERS, Controller
from steelyard.study import Study

_PARTS = ("position", "velocity", "acceleration")
# Numbers of a controller in a document; its model is the robot's description.
_NUMBERS = ("kp", "kd", "ki", "limit", "lag", "smoothing")


@dataclass(frozen=True, eq=False)
class ControlLoop:
    """Controller and reference, for estimators that simulate the closed loop.

    Attributes:
        controller: A controller of `steelyard.simulation`, with its gains.
        references: References: one per log, or a single one for all; each an object with `sample(t)` that gives (q, dq,
            ddq), or a tuple of these with a row per sample of the log.
        control_period: Period of the controller [s]; None: that of the log's samples.
        source: File of the document.
    """

    controller: Controller
    references: tuple[Any, ...]
    control_period: float | None = None
    source: str = ""


@dataclass(frozen=True, eq=False)
class _RecordedReference:
    """A recorded reference: q, dq and ddq at times t [s]."""

    t: Array
    parts: tuple[Array, Array, Array]
    source: str = ""

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """Interpolate (q, dq, ddq) at times t, which must be inside the record."""
        tolerance = 0.5 * float(np.median(np.diff(self.t))) if len(self.t) > 1 else 0.0
        if t[0] < self.t[0] - tolerance or t[-1] > self.t[-1] + tolerance:
            raise EstimationError(
                f"{self.source}: the reference covers t = {self.t[0]:g} to {self.t[-1]:g} s, the log {t[0]:g} to "
                f"{t[-1]:g} s; both must use the same clock."
            )
        q, dq, ddq = (np.column_stack([np.interp(t, self.t, x) for x in part.T]) for part in self.parts)
        return q, dq, ddq


def read_control_loop(path: str | os.PathLike[str], robot: Robot, with_reference: bool = True) -> ControlLoop:
    """Read a control loop from a YAML or TOML document.

    Keys: `kind` (pd, pd-gravity, computed-torque, feed-forward, pid); `kp`, `kd`, for pid `ki`, and `limit` [N m], each
    a number or one per joint; for pid `lag` [s] of its velocity; `rate` [Hz] of the controller, default that of the
    log; `reference` with `file` (or a list of files, one per log), `map` (mapping of its columns, as for logs) and
    `follows` (of position, velocity and acceleration; the others are zero). Files are relative to the document.

    Args:
        path: The document.
        robot: The robot.
        with_reference: Whether to read the references.
    """
    file = Path(path)
    root = Field(dict(read_document(file)), str(file))
    entries = root.table(
        ("kind", "kp", "reference") if with_reference else ("kind", "kp"),
        ("kd", "ki", "limit", "lag", "smoothing", "rate", "reference"),
    )
    kind = CONTROLLERS[entries["kind"].choice(tuple(CONTROLLERS))]
    field_names = {f.name for f in fields(kind)}
    values: dict[str, Any] = {"kd": 0.0}
    for name in _NUMBERS:
        if name in entries and name not in field_names:
            entries[name].fail(f"{entries['kind'].value} does not have {name}; remove it.")
        if name in entries:
            single = name in ("lag", "smoothing")
            values[name] = entries[name].number() if single else _per_joint(entries[name], robot)
    if "model" in field_names:
        if not robot.has_inertia:
            entries["kind"].fail(f"needs a model, but the description of '{robot.name}' lacks inertias.")
        values["model"] = Model.nominal(robot)
    try:
        controller = kind(**values)
    except SteelyardError as error:
        root.fail(str(error))
    rate = entries["rate"].positive() if "rate" in entries else None
    references = _references(entries["reference"], file.parent, robot) if with_reference else ()
    return ControlLoop(controller, references, None if rate is None else 1.0 / rate, file.name)


def _per_joint(entry: Field, robot: Robot) -> Array:
    values = entry.vector(robot.dof) if isinstance(entry.value, list) else [entry.number()] * robot.dof
    return np.array(values)


def _references(entry: Field, folder: Path, robot: Robot) -> tuple[_RecordedReference, ...]:
    table = entry.table(("file",), ("map", "follows"))
    names = table["file"].texts() if isinstance(table["file"].value, list) else [table["file"].text()]
    mapping = folder / table["map"].text() if "map" in table else None
    follows = [item.choice(_PARTS) for item in table["follows"].items("part")] if "follows" in table else _PARTS
    return tuple(_recorded(read_log(folder / name, robot, mapping), name, follows) for name in names)


def _recorded(log: Log, source: str, follows: Sequence[str]) -> _RecordedReference:
    dq = np.gradient(log.q, log.t, axis=0) if log.dq is None else log.dq
    ddq = np.gradient(dq, log.t, axis=0) if log.ddq is None else log.ddq
    q, dq, ddq = (
        part if name in follows else np.zeros_like(part) for name, part in zip(_PARTS, (log.q, dq, ddq), strict=True)
    )
    return _RecordedReference(log.t, (q, dq, ddq), source)


def as_control_loop(loop: str | os.PathLike[str] | ControlLoop | None, robot: Robot) -> ControlLoop | None:
    """Return a control loop, reading it if necessary.

    Args:
        loop: Control loop, or path of its document.
        robot: The robot.
    """
    return read_control_loop(loop, robot) if isinstance(loop, str | os.PathLike) else loop


def experiment_of(study: Study, loop: ControlLoop | None = None) -> Experiment:
    """Create the experiment of a study's logs, prepared as for least squares.

    Args:
        study: Study of logs in memory.
        loop: Controller and references, for estimators that simulate the closed loop.
    """
    if loop is None:
        return Experiment.of(study)
    references = loop.references * len(study.logs) if len(loop.references) == 1 else loop.references
    return Experiment.of(study, controller=loop.controller, references=references, control_period=loop.control_period)
