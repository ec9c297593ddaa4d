"""`read_plan`: the movements of a sequential identification from a document, with the logs that stand beside it."""

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
from steelyard.parameters.terms import Terms, identification_terms, nominal_terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.robot import Robot
from steelyard.signals.read import read_log


@dataclass(frozen=True)
class _WrittenMovement:
    """A movement as a document has it: its logs by name."""

    name: str
    logs: tuple[str, ...] | str
    moves: tuple[str, ...]
    finds: tuple[str, ...] | dict[str, str | dict[str, float]]
    equations: tuple[str, ...] | None = None
    known: tuple[str, ...] | None = None
    neglects: tuple[str, ...] | Literal["rest"] = ()


@dataclass(frozen=True)
class _Written:
    """A document of movements."""

    movements: tuple[_WrittenMovement, ...]
    terms: tuple[str, ...] | Literal["nominal", "default"] = ()
    known: dict[str, tuple[float, float]] = field(default_factory=dict)
    scheme: str = "dynamic"
    estimator: str = "wls"
    signals: Literal["filtered", "as logged"] = "filtered"
    map: str = ""


@dataclass(frozen=True, eq=False)
class SequentialPlan:
    """Movements, in order, the base parameters they are about, and how these are identified: what
    `identify_sequentially` takes."""

    base: BaseParameters
    movements: tuple[Movement, ...]
    known: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    scheme: str = "dynamic"
    estimator: str = "wls"
    as_logged: bool = False

    def identify(self) -> SequentialIdentification:
        """Movement by movement, by `identify_sequentially`."""
        return identify_sequentially(
            self.base.robot, self.movements, base=self.base, known=self.known, scheme=self.scheme,
            estimator=self.estimator, preparation="as logged" if self.as_logged else None,
        )  # fmt: skip


def read_plan(path: str | os.PathLike[str], robot: Robot) -> SequentialPlan:
    """The plan of a sequential identification of `robot` from the YAML, JSON or TOML file at `path`.

    Keys: `movements`, a list of tables with `name`, `logs` (files, looked for beside the document), and as in
    `Movement` `moves`, `finds` (names, or names of one's own with a parameter or a table of coefficients), `equations`,
    `known`, `neglects` (names, or rest); `terms` (a list of joint terms, `nominal`: those of the robot's description,
    `default`: those of `identify`; without, links alone); `known`, a table of parameters with [value, standard error];
    `scheme`; `estimator`; `signals` (filtered, or "as logged" where the logs hold accelerations); `map`, the file that
    says what the logs' columns mean.
    """
    source = Path(path)
    whole = Field(read_document(source, EstimationError), str(source), error=EstimationError)
    written = build(_Written, whole)
    base = base_parameters(robot, _terms(written, robot))
    for name in written.known:
        _check(whole.inside(None, "known"), functional, base, name)
    mapping = source.parent / written.map if written.map else None
    movements = []
    entries = whole.inside(whole.value["movements"], "movements").items("entry")
    for entry, one in zip(entries, written.movements, strict=True):
        names = (one.logs,) if isinstance(one.logs, str) else one.logs
        for key in ("moves", "finds", "logs"):
            if not getattr(one, key):
                entry.fail(f"'{key}' is empty; name one or more.")
        made = Movement(one.name, (), one.moves, one.finds, one.equations, one.known, one.neglects)
        _check(entry.inside(None, "moves"), coordinates, robot, made.moves)
        _check(entry.inside(None, "equations"), coordinates, robot, made.equations or made.moves)
        for combination in made.combinations.values():
            _check(entry.inside(None, "finds"), functional, base, combination)
        movements.append(replace(made, log=[read_log(source.parent / name, robot, mapping) for name in names]))
    if not movements:
        whole.fail("'movements' is empty; describe one or more.")
    return SequentialPlan(
        base, tuple(movements), written.known, written.scheme, written.estimator, written.signals == "as logged"
    )


def _terms(written: _Written, robot: Robot) -> Terms:
    if written.terms == "nominal":
        return nominal_terms(robot)[0]
    return identification_terms(robot, None if written.terms == "default" else written.terms)


def _check(entry: Field, look: Callable[..., object], *arguments: Any) -> None:
    """Let `look` refuse a name, at its place in the document."""
    try:
        look(*arguments)
    except SteelyardError as error:
        entry.fail(str(error))
