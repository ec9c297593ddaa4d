"""`LogFactors`: what is kept of a log, some ten kilobytes a joint, whatever its length.

A linear fit of one log or of many, its error bars for correlated residuals, its scores and what differs from log to log
follow from small matrices per equation: the triangle of [A y], the covariance of the scores Aᵀu, and how these scatter
from stretch to stretch. They come from the one pass of `Study`, which `identify` makes, too, and those of several logs
add up. The spectra, of which they are made, are larger and are folded into them at once.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.check.check import check_study, found_later
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.files import plain
from steelyard.identification.between import LogSums
from steelyard.regression.factor import Factor, triangle
from steelyard.regression.rows import Equation
from steelyard.regression.spectra import BAND_EDGES
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding, Log
from steelyard.study import Study

# What factors were made by; a change of what they hold, or of the numbers in them, counts it up.
FACTOR_VERSION = 2
_MAGIC = b"steelyard log factors\n"
# Merged so many at a time, in their order: a tree of fixed shape, whose sums do not depend on who made which first.
FAN_IN = 8


class FactorsError(SteelyardError):
    """Bytes that are no factors, or not whole, or of another version."""


@dataclass(frozen=True, eq=False)
class LogFactors:
    """What one log leaves, or several logs merged; matrices are per equation (joint), over that equation's own columns
    (`factor.equations[e].columns`), and nothing in them is weighted.

    Attributes:
        factor: the triangle of [A y] of each equation; None where the log could not be used.
        sums: Σy of each equation.
        meat: the covariance of the score Aᵀu, with the spectrum that the residuals of the log's own fit have.
        scores: Aᵀu of each stretch of the log at its own fit, less their mean, `(stretches, columns)`; their squares
            are another covariance of the score (`scatter`), which has in it what the model lacks.
        stretches: how many stretches there were, by equation; of several logs, less one for each but the first.
        residual_squares: Σu² of the own fit.
        freedom: the degrees of freedom that this is of.
        power: of the own fit's residuals, by equation and band (`BAND_EDGES`, in cycles per row); of several logs none.
        row_period_s: the time between rows; 0 of several logs.
        samples: of the log.
        duration_s: of it.
        findings: of the check, as plain data.
        skipped: why it could not be used; "" where it was.
        logs: how many were merged.
        robot: whose log it is, by the fleet's table.
        url: where the log lies.
        date: when it was logged, seconds since 1970 (UTC).
        temperature: °C of the robot or its surroundings, as the table says.
        load: what the robot carried, as the table says.
    """

    factor: Factor | None
    sums: Array = field(default_factory=lambda: np.zeros(0))
    meat: tuple[Array, ...] = ()
    scores: tuple[Array, ...] = ()
    stretches: Array = field(default_factory=lambda: np.zeros(0))
    residual_squares: Array = field(default_factory=lambda: np.zeros(0))
    freedom: Array = field(default_factory=lambda: np.zeros(0))
    power: Array = field(default_factory=lambda: np.zeros((0, len(BAND_EDGES))))
    row_period_s: float = 0.0
    samples: int = 0
    duration_s: float = 0.0
    findings: tuple[Mapping[str, Any], ...] = ()
    skipped: str = ""
    logs: int = 1
    robot: str = ""
    url: str = ""
    date: float | None = None
    temperature: float | None = None
    load: str | None = None

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The joints' equations; none where the log could not be used."""
        return () if self.factor is None else self.factor.equations

    @property
    def rows(self) -> Array:
        """How many rows each equation has."""
        return np.array(() if self.factor is None else self.factor.rows, dtype=float)

    @property
    def residual_std(self) -> Array:
        """Of each equation in the log's own fit."""
        return np.sqrt(self.residual_squares / np.maximum(self.freedom, 1.0))

    @property
    def torque_std(self) -> Array:
        """The standard deviation of each equation's right side."""
        squares = np.array([float(r[:, -1] @ r[:, -1]) for r in self.factor.triangles] if self.factor else ())
        rows = np.maximum(self.rows, 1.0)
        return np.sqrt(np.maximum(squares / rows - (self.sums / rows) ** 2, 0.0))

    @cached_property
    def scatter(self) -> tuple[Array, ...]:
        """The scatter of the scores from stretch to stretch, over each equation's own columns."""
        return tuple(s.T @ s for s in self.scores)

    def grams(self, columns: Sequence[int]) -> Array:
        """[A y]ᵀ[A y] of each equation over `columns` of the parameter vector, such as `base.independent`,
        `(equations, columns + 1, columns + 1)`; zero where an equation has none of them."""
        blocks = [] if self.factor is None else self.factor.blocks(columns)
        return np.array([b.T @ b for b in blocks])

    def meats(self, columns: Sequence[int]) -> Array:
        """`meat` of each equation over `columns` of the parameter vector, `(equations, columns, columns)`."""
        return self._over(columns, self.meat)

    def scatters(self, columns: Sequence[int]) -> Array:
        """`scatter` of each equation over `columns` of the parameter vector, `(equations, columns, columns)`."""
        return self._over(columns, self.scatter)

    def _over(self, columns: Sequence[int], own: Sequence[Array]) -> Array:
        out = np.zeros((len(own), len(columns), len(columns)))
        for e, (equation, matrix) in enumerate(zip(self.equations, own, strict=True)):
            mine, where = equation.among(columns)
            out[e][np.ix_(where, where)] = matrix if len(mine) == len(matrix) else matrix[np.ix_(mine, mine)]
        return out

    def stated(
        self,
        robot: str,
        url: str = "",
        date: float | None = None,
        temperature: float | None = None,
        load: str | None = None,
    ) -> LogFactors:
        """The same with what the fleet's table says of the log; nothing of it is kept with the factors.

        Args:
            robot: whose log it is.
            url: where it lies.
            date: when it was logged, seconds since 1970 (UTC).
            temperature: °C.
            load: what the robot carried.
        """
        return replace(self, robot=robot, url=url, date=date, temperature=temperature, load=load)

    # ---------------------------------------------------------------- as bytes

    def to_bytes(self) -> bytes:
        """As a file: a line that says what it is and the hash of the rest, a line of JSON, then all numbers as float64
        (little endian), triangles without their zeros."""
        factor, parts = (
            self.factor,
            [self.sums, self.stretches, self.residual_squares, self.freedom, self.power.ravel()],
        )
        equations: list[dict[str, Any]] = []
        for e, equation in enumerate(self.equations):
            assert factor is not None
            whole, inner = _upper(equation.width), _upper(equation.width - 1)
            parts += [factor.triangles[e].ravel()[whole], self.meat[e].ravel()[inner], self.scores[e].ravel()]
            about = {"name": equation.name, "columns": equation.columns.tolist(), "rows": factor.rows[e]}
            equations.append({**about, "scores": len(self.scores[e])})
        about = {
            "equations": equations,
            "parameters": 0 if factor is None else factor.parameters,
            "rows": 0 if factor is None else factor.samples,
            "method": "" if factor is None else factor.method,
            "bands": self.power.shape[1],
            **{name: getattr(self, name) for name in _PLAIN},
            "findings": plain([dict(f) for f in self.findings]),
        }
        body = json.dumps(about, sort_keys=True).encode() + b"\n" + np.concatenate(parts).astype("<f8").tobytes()
        return _MAGIC + _head(body) + b"\n" + body

    @classmethod
    def from_bytes(cls, data: bytes) -> LogFactors:
        """What `to_bytes` wrote; `FactorsError` where `data` is something else, torn, or of another version."""
        line, _, body = data.removeprefix(_MAGIC).partition(b"\n")
        if not data.startswith(_MAGIC) or not line.startswith(_head(b"").partition(b",")[0]):
            raise FactorsError("These are no factors of a log, or of another version; they are made anew.")
        if line != _head(body):
            raise FactorsError("The factors are not whole; they are made anew.")
        text, _, numbers = body.partition(b"\n")
        try:
            return _made(json.loads(text), np.frombuffer(numbers, "<f8").astype(float))
        except _ODD as error:  # whole, but nothing that we wrote
            raise FactorsError(f"These are no factors of a log ({error}); they are made anew.") from None


def _head(body: bytes) -> bytes:
    """The line that says of which version the factors are, and the hash of what follows."""
    return json.dumps({"version": FACTOR_VERSION, "sha256": hashlib.sha256(body).hexdigest()}).encode()


# What is held as it is, and its type. Others than these runs may have written it: workers of a scheduler elsewhere.
_PLAIN: dict[str, Any] = {
    "row_period_s": float | int, "samples": int, "duration_s": float | int, "skipped": str, "logs": int,
}  # fmt: skip
_ODD = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


@cache
def _equation(name: str, columns: tuple[int, ...]) -> Equation:
    """One for all logs of a model."""
    return Equation(name, np.array(columns, dtype=np.int64))


@cache
def _upper(width: int) -> NDArray[np.intp]:
    """Places of an upper triangle in a square matrix of so many rows, one row after the other."""
    rows, columns = np.triu_indices(width)
    return rows * width + columns


def _made(about: Mapping[str, Any], numbers: Array) -> LogFactors:
    at = 0

    def take(*shape: int) -> Array:
        nonlocal at
        at += math.prod(shape)
        return numbers[at - math.prod(shape) : at].reshape(shape)

    def take_triangle(width: int) -> Array:
        out = np.zeros(width * width)
        out[_upper(width)] = take(width * (width + 1) // 2)
        return out.reshape(width, width)

    odd = [name for name, kind in _PLAIN.items() if not isinstance(about[name], kind)]
    if odd or not all(isinstance(finding, dict) for finding in about["findings"]):
        raise TypeError(f"{(*odd, 'findings')[0]} is none")
    stated: Sequence[Mapping[str, Any]] = about["equations"]
    n, triangles, meat, scores = len(stated), [], [], []
    widths = [(len(e["columns"]), int(e["scores"])) for e in stated]
    expected = n * (4 + about["bands"]) + sum(
        (w + 1) * (w + 2) // 2 + w * (w + 1) // 2 + w * rows for w, rows in widths
    )
    if len(numbers) != expected:
        raise ValueError(f"{len(numbers)} numbers instead of {expected}")
    vectors = [take(n) for _ in range(4)]
    power = take(n, about["bands"])
    equations = tuple(_equation(e["name"], tuple(e["columns"])) for e in stated)
    for e, equation in zip(stated, equations, strict=True):
        triangles.append(take_triangle(equation.width))
        upper = take_triangle(equation.width - 1)
        both = upper + upper.T
        np.fill_diagonal(both, upper.diagonal())
        meat.append(both)
        scores.append(take(e["scores"], equation.width - 1))
    rows = tuple(e["rows"] for e in stated)
    factor = Factor(equations, tuple(triangles), about["rows"], about["parameters"], about["method"], rows)
    return LogFactors(
        factor if n else None,
        sums=vectors[0],
        meat=tuple(meat),
        scores=tuple(scores),
        stretches=vectors[1],
        residual_squares=vectors[2],
        freedom=vectors[3],
        power=power,
        findings=tuple(about["findings"]),
        **{name: about[name] for name in _PLAIN},
    )


# ---------------------------------------------------------------- from a log


def log_factors(
    study: Study,
    beta: Array,
    residual_std: Array,
    channels: bool = True,
    check: Callable[[LogFactors], bool] | None = None,
) -> LogFactors:
    """The factors of the one log of `study`, from the pass that `identify` makes.

    Args:
        study: of one log, with the terms, base parameters and preparation of its model.
        beta: base parameters that stand for what the log does not show.
        residual_std: of each equation, as a first guess of the weights in the log's own fit.
        channels: also look at the channels of the log, piece by piece, for what is wrong with them.
        check: says of the factors whether the log is to be looked at as `check_log` does, which takes several times as
            long as the factors; None: it is not.
    """
    first = study.beginnings[0]
    seen = [(len(first), float(first.t[-1] - first.t[0]))]

    def look(robot: Robot, piece: Log) -> Sequence[Finding]:
        seen.append((len(piece), float(piece.t[-1] - piece.t[0])))
        return found_later(robot, piece) if channels else ()

    with one_blas_thread():
        study = replace(study, look=look)
        rows = study.rows
        reduction = rows.reduction()
        sums = LogSums((rows,), study.base, beta, residual_std)
        places = [equation.among(study.base.independent)[1] for equation in rows.equations]
        theta = np.zeros(rows.parameters)
        theta[list(study.base.independent)] = sums.own[0][0]
        counts, power = reduction.spectra.residual_power(theta)
        w2 = sums.weights**2
        made = LogFactors(
            factor=reduction.factor,
            sums=reduction.sums,
            meat=tuple(sums.noise[0][e][np.ix_(own, own)] / w2[e] ** 2 for e, own in enumerate(places)),
            scores=tuple(sums.stretch_scores(0, e)[:, own] / w2[e] for e, own in enumerate(places)),
            stretches=sums.counts[0].astype(float),
            residual_squares=sums.squares(0, sums.own[0][0]),
            freedom=sums.freedom[0],
            power=power / np.maximum(counts, 1.0),
            row_period_s=rows.period,
            samples=sum(samples for samples, _ in seen),
            duration_s=sum(duration for _, duration in seen),
        )
        found: list[Finding] = []
        if check is not None and check(made):
            found = [f for f in check_study(study)[0].entries if f.severity != "ok"]
        elif channels:
            known = [f for f in first.findings if f.rank > 1]
            found = list(
                {f.key: f for f in reversed([*known, *found_later(study.robot, first), *study.later(0)])}.values()
            )
    return replace(made, findings=tuple(plain(asdict(f)) for f in found))


def skipped_log(reason: str) -> LogFactors:
    """What a log leaves that could not be used, and the `reason` in one sentence."""
    return LogFactors(None, skipped=reason)


# ---------------------------------------------------------------- together


def merge_factors(parts: Sequence[LogFactors]) -> LogFactors:
    """Those of several logs with the same equations, in their order, as a tree of fixed shape; those that were skipped
    do not count.

    Args:
        parts: the logs'.
    """
    level = [p for p in parts if p.factor is not None]
    if not level:
        return skipped_log("None of the logs could be used.")
    with one_blas_thread():
        while len(level) > 1:
            level = [_joined(level[k : k + FAN_IN]) for k in range(0, len(level), FAN_IN)]
    return level[0]


def _joined(parts: Sequence[LogFactors]) -> LogFactors:
    if len(parts) == 1:
        return parts[0]
    first = parts[0].factor
    assert first is not None
    scores = [np.vstack(own) for own in zip(*(p.scores for p in parts), strict=True)]
    return LogFactors(
        factor=first.merge(*(p.factor for p in parts[1:] if p.factor is not None)),
        sums=np.sum([p.sums for p in parts], axis=0),
        meat=tuple(np.sum(own, axis=0) for own in zip(*(p.meat for p in parts), strict=True)),
        scores=tuple(triangle(s) if len(s) > s.shape[1] else s for s in scores),
        stretches=1.0 + np.sum([p.stretches - 1.0 for p in parts], axis=0),
        residual_squares=np.sum([p.residual_squares for p in parts], axis=0),
        freedom=np.sum([p.freedom for p in parts], axis=0),
        power=np.zeros((len(first.equations), 0)),
        samples=sum(p.samples for p in parts),
        duration_s=sum(p.duration_s for p in parts),
        logs=sum(p.logs for p in parts),
        robot=parts[0].robot if len({p.robot for p in parts}) == 1 else "",
    )
