"""`identify_bodies`: bodies without a robot, from a regressor and a description of the bodies.

The bodies may be a person with markers on force plates, an animal, or a mechanism of another program. Each row has one
measured force or moment, and its derivatives with respect to the ten parameters of every body.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import Prior
from steelyard.floating.result import FloatingIdentification, RowScore
from steelyard.floating.scores import row_score
from steelyard.floating.weighted_fit import FOLDS, fit_possible
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.rows import Equation
from steelyard.robot.free import free_coordinates
from steelyard.robot.robot import Joint, Link, Robot
from steelyard.signals.table import Table, read_table

# The ten parameters in the order of this project, with other spellings of the first moments.
_TEN = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
_SPELLINGS = {"hx": "mx", "hy": "my", "hz": "mz", "mcx": "mx", "mcy": "my", "mcz": "mz"}
_RIGHT_SIDES = ("b", "y")
_EQUATIONS = ("row_in_sample", "equation")
_SAMPLES = ("t", "time", "sample")
# Stretches of time per fold, so that error bars include the scatter between stretches.
_PARTS = 4


@short_repr
@dataclass(frozen=True, eq=False)
class BodyRows:
    """Rows b = A θ of several bodies.

    Attributes:
        A: Derivatives by the parameters, ten per body, shape (rows, 10·bodies).
        b: Measurements.
        equation: Number of the equation of each row.
        time: Time or number of the sample of each row, ascending.
        names: Names of the equations.
    """

    A: Array
    b: Array
    equation: NDArray[np.int64]
    time: Array
    names: tuple[str, ...]

    def part(self, rows: NDArray[np.bool_]) -> BodyRows:
        """Select `rows`."""
        return BodyRows(self.A[rows], self.b[rows], self.equation[rows], self.time[rows], self.names)

    def data(self) -> RegressionData:
        columns = np.arange(self.A.shape[1])
        blocks = [
            Block(e, self.A[self.equation == e], self.b[self.equation == e])
            for e in range(len(self.names))
            if np.any(self.equation == e)
        ]
        equations = tuple(Equation(name, columns) for name in self.names)
        return RegressionData(equations, self.A.shape[1], lambda: blocks, 1.0)


def is_body_table(path: str | os.PathLike[str]) -> bool:
    """Whether the file at `path` is a table of bodies: a table with a column for each of the ten parameters."""
    source = Path(path)
    if source.suffix.lower() not in (".csv", ".parquet", ".feather", ".npz", ".mat", ".h5") or not source.is_file():
        return False
    names = {_SPELLINGS.get(name, name) for name in read_table(source, stop=1).names}
    return set(_TEN) <= names


def identify_bodies(
    bodies: str | os.PathLike[str] | Robot,
    rows: str | os.PathLike[str] | BodyRows | Sequence[Any],
    validate: Sequence[Any] = (),
    *,
    holdout: float | None = None,
    holdout_blocks: str = "",
) -> FloatingIdentification:
    """Identify bodies from a regressor.

    Args:
        bodies: Table with one row per body: `body`, m, mx, my, mz (or hx …), Ixx … Izz about the body's frame; or its
            robot (`read_bodies`).
        rows: Table of rows, or several: columns `m_NAME` … `Izz_NAME` for each body (or its number from 1), the
            measurement `b` (or y), and perhaps the equation of the row (`row_in_sample`) and its time (`t`, `sample`).
        validate: Further tables, for scores.
        holdout: Share of the end of the rows for the hold-out.
        holdout_blocks: "LENGTH:K" holds out every K-th block of this length, in the unit of the time or in samples.
    """
    robot = bodies if isinstance(bodies, Robot) else read_bodies(bodies)
    several = [rows] if isinstance(rows, BodyRows | str | os.PathLike) else list(rows)
    read = [one if isinstance(one, BodyRows) else read_body_rows(one, robot) for one in several]
    fit_rows, holdout_rows = [], []
    for one in read:
        first, second = _split(one, holdout, holdout_blocks)
        fit_rows += first
        holdout_rows += second
    validation = [one if isinstance(one, BodyRows) else read_body_rows(one, robot) for one in validate]
    parts = [part.data() for stretch in fit_rows for part in _stretches(stretch, len(fit_rows))]
    theta = robot.inertial_parameters
    prior = Prior(theta)
    base = base_parameters(robot)
    fit = fit_possible(parts, base, prior)
    model = Model(robot, Terms(robot, ()), fit.estimate.theta)
    scores: list[RowScore] = []
    for name, tables in (("Hold-out", holdout_rows), ("Validation", validation)):
        if tables:
            scores.append(row_score(name, [t.data() for t in tables], base, fit.estimate.theta, theta))
    count = {"used": sum(len(x.b) for x in fit_rows)} | (
        {"held out": sum(len(x.b) for x in holdout_rows)} if holdout_rows else {}
    )
    return FloatingIdentification(
        robot, model, fit, read[0].names, tuple(scores), theta, _remarks(robot, fit.base.rank), count
    )


def _remarks(robot: Robot, rank: int) -> tuple[str, ...]:
    least = smallest_pseudo_eigenvalues(robot.inertial_parameters)
    wrong = [link.name for link, e in zip(robot.links, least, strict=True) if e <= 0.0]
    return (
        (f"The description of body {', '.join(wrong)} is physically impossible; a default body replaces it.",)
        if wrong
        else ()
    )


def read_bodies(path: str | os.PathLike[str]) -> Robot:
    """Read a table of bodies at `path` as a robot of free bodies."""
    table = read_table(path)
    columns = {_SPELLINGS.get(name, name): name for name in table.names}
    for name in _TEN:
        if name not in columns:
            raise SteelyardError(f"{path}: the column '{name}' is missing; a table of bodies has {', '.join(_TEN)}.")
    values = np.column_stack([table.numbers(columns[name]) for name in _TEN])
    names = _body_names(table)
    links: list[Link] = []
    joints: list[Joint] = []
    for name, body in zip(names, values, strict=True):
        links.append(
            Link(name, f"{name}_joint", "floating", -1, np.eye(3), np.zeros(3), np.eye(3)[2], len(joints), inertia=body)
        )
        joints += free_coordinates(f"{name}_joint", "floating")
    return Robot(Path(path).stem, tuple(joints), tuple(links), source=str(path))


def _body_names(table: Table) -> list[str]:
    own = next((name for name in ("body", "name") if name in table.names), None)
    if own is None:
        return [f"body{k + 1}" for k in range(len(table))]
    names = [_text(x) for x in table.column(own).tolist()]
    return [f"body{name}" if name.isdigit() else name for name in names]


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


def read_body_rows(path: str | os.PathLike[str], robot: Robot) -> BodyRows:
    """Read a table of rows.

    Args:
        path: File of any log format.
        robot: Bodies of the columns (`read_bodies`).
    """
    table = read_table(path)
    A = np.column_stack([table.numbers(name) for name in _regressor_columns(table, robot, str(path))])
    right = next((name for name in _RIGHT_SIDES if name in table.names), None)
    if right is None:
        raise SteelyardError(f"{path}: the column of the measurements is missing; name it b or y.")
    own = next((name for name in _EQUATIONS if name in table.names), None)
    labels = ["b"] * len(table) if own is None else [_text(x) for x in table.column(own).tolist()]
    names = sorted(set(labels))
    number = np.array([names.index(x) for x in labels], dtype=np.int64)
    clock = next((name for name in _SAMPLES if name in table.names), None)
    time = np.arange(len(table), dtype=float) if clock is None else table.numbers(clock)
    if np.any(np.diff(time) < 0.0):
        row = int(np.argmax(np.diff(time) < 0.0)) + 2
        raise SteelyardError(f"{path}: row {row}, column '{clock}': the time runs backwards; sort the rows.")
    return BodyRows(A, table.numbers(right), number, time, tuple(f"row {n}" if n.isdigit() else n for n in names))


def _regressor_columns(table: Table, robot: Robot, path: str) -> list[str]:
    """Return the columns in the order of the parameters."""
    columns_by_key: dict[tuple[str, str], str] = {}
    for name in table.names:
        if match := re.fullmatch(r"([A-Za-z]+)_(.+)", name):
            symbol = _SPELLINGS.get(match[1], match[1])
            if symbol in _TEN:
                columns_by_key[symbol, match[2].lstrip("0") or "0"] = name
    out = []
    for k, link in enumerate(robot.links, start=1):
        keys = (link.name, link.name.removeprefix("body"), str(k))
        for symbol in _TEN:
            column = next((columns_by_key[symbol, key] for key in keys if (symbol, key) in columns_by_key), None)
            if column is None:
                raise SteelyardError(
                    f"{path}: the column '{symbol}_{keys[1]}' is missing; a table of rows has one column for each of "
                    f"the ten parameters of every body."
                )
            out.append(column)
    return out


def _split(rows: BodyRows, share: float | None, blocks: str) -> tuple[list[BodyRows], list[BodyRows]]:
    """Divide rows into fit and hold-out."""
    if share is not None and blocks:
        raise SteelyardError("--holdout and --holdout-blocks exclude each other; choose one.")
    if share is None and not blocks:
        return [rows], []
    if share is not None:
        if not 0.0 < share < 1.0:
            raise SteelyardError(f"--holdout is {share:g}. Give a share between 0 and 1, for example 0.3.")
        border = np.quantile(np.unique(rows.time), 1.0 - share)
        return [rows.part(rows.time < border)], [rows.part(rows.time >= border)]
    length, _, every = blocks.partition(":")
    try:
        number = np.floor((rows.time - rows.time[0]) / float(length) + 1e-9).astype(int)
        holdout = number % int(every) == int(every) - 1
    except (ValueError, ZeroDivisionError):
        raise SteelyardError(f"--holdout-blocks is '{blocks}'. Give LENGTH:K, for example 33:2.") from None
    if holdout.all() or not holdout.any():
        raise SteelyardError(f"--holdout-blocks is '{blocks}', which leaves one part empty; give shorter blocks.")
    groups: Mapping[bool, list[BodyRows]] = {False: [], True: []}
    for k in np.unique(number):
        own = number == k
        groups[bool(holdout[own][0])].append(rows.part(own))
    return groups[False], groups[True]


def _stretches(rows: BodyRows, others: int) -> list[BodyRows]:
    """Cut rows into stretches of time, enough for the folds of all logs."""
    times = np.unique(rows.time)
    count = int(np.clip(-(-_PARTS * FOLDS // others), 1, len(times)))
    number = np.searchsorted(times, rows.time) * count // len(times)
    return [rows.part(number == k) for k in range(count)]
