"""Reads the plan of a sequential identification from a document, with its logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.sequential.identify import SequentialIdentification, identify_sequentially
from steelyard.estimation.sequential.movement import Movement, coordinates, functional
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.ground.schema import build
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.terms import Terms, identification_terms, nominal_terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.robot import Robot
from steelyard.signals.read import read_log


@dataclass(frozen=True)
class _MovementEntry:
    """A movement in a document, with the names of its logs."""

    name: str
    logs: tuple[str, ...] | str
    moves: tuple[str, ...]
    finds: tuple[str, ...] | dict[str, str | dict[str, float]]
    equations: tuple[str, ...] | None = None
    known: tuple[str, ...] | None = None
    neglects: tuple[str, ...] | Literal["rest"] = ()


@dataclass(frozen=True)
class _PlanDocument:
    """The document of a plan."""

    movements: tuple[_MovementEntry, ...]
    terms: tuple[str, ...] | Literal["nominal", "default"] = ()
    known: dict[str, tuple[float, float]] = field(default_factory=dict)
    scheme: str = "dynamic"
    estimator: str = "wls"
    signals: Literal["filtered", "as logged"] = "filtered"
    map: str = ""


@short_repr
@dataclass(frozen=True, eq=False)
class SequentialPlan:
    """A plan for `identify_sequentially`.

    Attributes:
        base: Base parameters.
        movements: Movements in order.
        known: Known parameters: value and standard error by name.
        scheme: Scheme of the rows.
        estimator: Estimator of each movement.
        as_logged: Whether the signals of the logs are used without filter.
    """

    base: BaseParameters
    movements: tuple[Movement, ...]
    known: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    scheme: str = "dynamic"
    estimator: str = "wls"
    as_logged: bool = False

    def identify(self) -> SequentialIdentification:
        """Identify movement by movement."""
        return identify_sequentially(
            self.base.robot, self.movements, base=self.base, known=self.known, scheme=self.scheme,
            estimator=self.estimator, preparation="as logged" if self.as_logged else None,
        )  # fmt: skip


def read_plan(path: str | os.PathLike[str], robot: Robot) -> SequentialPlan:
    """Read the plan of a sequential identification from a YAML, JSON or TOML file.

    Keys: `movements`, a list of tables with `name`, `logs` (files relative to the document), and as in `Movement`
    `moves`, `finds` (names, or new names with a parameter or a table of coefficients), `equations`, `known`,
    `neglects` (names, or rest); `terms` (a list of joint terms; `nominal`: those of the description; `default`: those
    of `identify`; default: links only); `known`, a table of parameters with [value, standard error]; `scheme`;
    `estimator`; `signals` (filtered, or "as logged" if the logs contain accelerations); `map`, the file with the
    mapping of the logs' columns.

    Args:
        path: The file.
        robot: The robot.
    """
    source = Path(path)
    root = Field(read_document(source, EstimationError), str(source), error=EstimationError)
    document = build(_PlanDocument, root)
    base = base_parameters(robot, _terms(document, robot))
    for name in document.known:
        _check(root.inside(None, "known"), functional, base, name)
    mapping = source.parent / document.map if document.map else None
    movements = []
    entries = root.inside(root.value["movements"], "movements").items("entry")
    for entry, one in zip(entries, document.movements, strict=True):
        names = (one.logs,) if isinstance(one.logs, str) else one.logs
        for key in ("moves", "finds", "logs"):
            if not getattr(one, key):
                entry.fail(f"'{key}' is empty; give at least one name.")
        movement = Movement(one.name, (), one.moves, one.finds, one.equations, one.known, one.neglects)
        _check(entry.inside(None, "moves"), coordinates, robot, movement.moves)
        _check(entry.inside(None, "equations"), coordinates, robot, movement.equations or movement.moves)
        for combination in movement.combinations.values():
            _check(entry.inside(None, "finds"), functional, base, combination)
        movements.append(replace(movement, log=[read_log(source.parent / name, robot, mapping) for name in names]))
    if not movements:
        root.fail("'movements' is empty; add at least one.")
    return SequentialPlan(
        base, tuple(movements), document.known, document.scheme, document.estimator, document.signals == "as logged"
    )


def _terms(document: _PlanDocument, robot: Robot) -> Terms:
    if document.terms == "nominal":
        return nominal_terms(robot)[0]
    return identification_terms(robot, None if document.terms == "default" else document.terms)


def _check(entry: Field, function: Callable[..., object], *arguments: Any) -> None:
    """Call a function and report its error at this place in the document."""
    try:
        function(*arguments)
    except SteelyardError as error:
        entry.fail(str(error))
