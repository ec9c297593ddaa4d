"""`LogFactors`: the part of a log that a fleet needs, some ten kilobytes per joint whatever the length of the log.

Fits of one or many logs, error bars for correlated residuals, scores and differences between logs follow from small
matrices per equation: the triangle of [A y], the covariance of the scores Aᵀu, and their scatter between stretches of
the log. One pass of `Study`, as in `identify`, computes them; those of several logs are added.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.check.check import check_later_piece, check_study
from steelyard.errors import SteelyardError
from steelyard.estimation.linear.log_sums import LogSums
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.files import plain
from steelyard.regression.factor import Factor, triangle
from steelyard.regression.rows import Equation
from steelyard.regression.spectra import BAND_EDGES
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding, Log
from steelyard.study import Study

# Version of the factors; increased when their content or their numbers change.
FACTOR_VERSION = 2
_MAGIC = b"steelyard log factors\n"
# Number of factors merged at a time: a tree of fixed shape, so that sums do not depend on the order of the work.
FAN_IN = 8


class FactorsError(SteelyardError):
    """The bytes are not factors, are damaged, or have another version."""


@dataclass(frozen=True, eq=False)
class LogFactors:
    """Factors of one log, or of several logs merged.

    Matrices are unweighted and have one entry per equation (joint), over its own columns
    (`factor.equations[e].columns`).

    Attributes:
        factor: Triangle of [A y] of each equation; None if the log could not be used.
        sums: Σy of each equation.
        meat: Covariance of the score Aᵀu by the spectrum of the residuals of the log's own fit.
        scores: Centred Aᵀu of each stretch of the log at its own fit, shape (stretches, columns). Their squares are
            another covariance of the score, which includes structural error.
        stretches: Number of stretches by equation; for several logs one is subtracted for each but the first.
        residual_squares: Σu² of the own fit.
        freedom: Degrees of freedom of the own fit.
        power: Power of the own fit's residuals by equation and band (`BAND_EDGES`, in cycles per row); empty for
            several logs.
        row_period_s: Time between rows [s]; 0 for several logs.
        samples: Number of samples.
        duration_s: Length of the log [s].
        findings: Findings of the check as plain data.
        skipped: Reason why the log could not be used; "" if it was used.
        logs: Number of logs merged.
        robot: Name of the robot in the fleet's table.
        url: Location of the log.
        date: Date of the log, seconds since 1970 (UTC).
        temperature: Temperature of the robot or its surroundings in the table [°C].
        load: Load of the robot in the table.
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
        """The joints' equations; empty if the log could not be used."""
        return () if self.factor is None else self.factor.equations

    @property
    def rows(self) -> Array:
        """Number of rows of each equation."""
        return np.array(() if self.factor is None else self.factor.rows, dtype=float)

    @property
    def residual_std(self) -> Array:
        """Residual standard deviation of each equation in the log's own fit."""
        return np.sqrt(self.residual_squares / np.maximum(self.freedom, 1.0))

    @property
    def torque_std(self) -> Array:
        """Standard deviation of each equation's right side."""
        squares = np.array([float(r[:, -1] @ r[:, -1]) for r in self.factor.triangles] if self.factor else ())
        rows = np.maximum(self.rows, 1.0)
        return np.sqrt(np.maximum(squares / rows - (self.sums / rows) ** 2, 0.0))

    def with_table_values(
        self,
        robot: str,
        url: str = "",
        date: float | None = None,
        temperature: float | None = None,
        load: str | None = None,
    ) -> LogFactors:
        """Add the values of the fleet's table, which are not stored with the factors.

        Args:
            robot: Name of the robot.
            url: Location of the log.
            date: Date of the log, seconds since 1970 (UTC).
            temperature: Temperature [°C].
            load: Load of the robot.
        """
        return replace(self, robot=robot, url=url, date=date, temperature=temperature, load=load)

    # ---------------------------------------------------------------- as bytes

    def to_bytes(self) -> bytes:
        """Serialise: a line with version and hash, a line of JSON, then all numbers as little-endian float64."""
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
        """Read what `to_bytes` wrote; `FactorsError` if `data` is something else, damaged, or of another version."""
        line, _, body = data.removeprefix(_MAGIC).partition(b"\n")
        if not data.startswith(_MAGIC) or not line.startswith(_head(b"").partition(b",")[0]):
            raise FactorsError("These are not factors of a log, or of another version; they are computed again.")
        if line != _head(body):
            raise FactorsError("The factors are damaged; they are computed again.")
        text, _, numbers = body.partition(b"\n")
        try:
            return _parse(json.loads(text), np.frombuffer(numbers, "<f8").astype(float))
        except _PARSE_ERRORS as error:  # a correct hash, but not our content
            raise FactorsError(f"These are not factors of a log ({error}); they are computed again.") from None


def _head(body: bytes) -> bytes:
    """Make the line with the version and the hash of the body."""
    return json.dumps({"version": FACTOR_VERSION, "sha256": hashlib.sha256(body).hexdigest()}).encode()


# Fields that are stored as they are, with their types. The bytes may come from workers of a foreign scheduler.
_PLAIN: dict[str, Any] = {
    "row_period_s": float | int, "samples": int, "duration_s": float | int, "skipped": str, "logs": int,
}  # fmt: skip
_PARSE_ERRORS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


@cache
def _equation(name: str, columns: tuple[int, ...]) -> Equation:
    """Share one equation between all logs of a robot type."""
    return Equation(name, np.array(columns, dtype=np.int64))


@cache
def _upper(width: int) -> NDArray[np.intp]:
    """Return the flat indices of the upper triangle of a square matrix, row by row."""
    rows, columns = np.triu_indices(width)
    return rows * width + columns


def _parse(about: Mapping[str, Any], numbers: Array) -> LogFactors:
    at = 0

    def take(*shape: int) -> Array:
        nonlocal at
        at += math.prod(shape)
        return numbers[at - math.prod(shape) : at].reshape(shape)

    def take_triangle(width: int) -> Array:
        out = np.zeros(width * width)
        out[_upper(width)] = take(width * (width + 1) // 2)
        return out.reshape(width, width)

    wrong = [name for name, kind in _PLAIN.items() if not isinstance(about[name], kind)]
    if wrong or not all(isinstance(finding, dict) for finding in about["findings"]):
        raise TypeError(f"{(*wrong, 'findings')[0]} has a wrong type")
    entries: Sequence[Mapping[str, Any]] = about["equations"]
    n, triangles, meat, scores = len(entries), [], [], []
    widths = [(len(e["columns"]), int(e["scores"])) for e in entries]
    expected = n * (4 + about["bands"]) + sum(
        (w + 1) * (w + 2) // 2 + w * (w + 1) // 2 + w * rows for w, rows in widths
    )
    if len(numbers) != expected:
        raise ValueError(f"{len(numbers)} numbers instead of {expected}")
    vectors = [take(n) for _ in range(4)]
    power = take(n, about["bands"])
    equations = tuple(_equation(e["name"], tuple(e["columns"])) for e in entries)
    for e, equation in zip(entries, equations, strict=True):
        triangles.append(take_triangle(equation.width))
        upper = take_triangle(equation.width - 1)
        both = upper + upper.T
        np.fill_diagonal(both, upper.diagonal())
        meat.append(both)
        scores.append(take(e["scores"], equation.width - 1))
    rows = tuple(e["rows"] for e in entries)
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
    """Compute the factors of the one log of a study in one pass.

    Args:
        study: Study of one log, with terms, base parameters and preparation of its robot type.
        beta: Base parameters for directions that the log does not identify.
        residual_std: Residual standard deviation of each equation, a first guess of the weights in the log's own fit.
        channels: Also check the channels of the log, piece by piece.
        check: Decides by the factors whether to check the log in full as `check_log` does, which takes several times
            as long as the factors; None: never.
    """
    first = study.beginnings[0]
    sizes = [(len(first), float(first.t[-1] - first.t[0]))]

    def look(robot: Robot, piece: Log) -> Sequence[Finding]:
        sizes.append((len(piece), float(piece.t[-1] - piece.t[0])))
        return check_later_piece(robot, piece) if channels else ()

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
            samples=sum(samples for samples, _ in sizes),
            duration_s=sum(duration for _, duration in sizes),
        )
        found: list[Finding] = []
        if check is not None and check(made):
            found = [f for f in check_study(study)[0].entries if f.severity != "ok"]
        elif channels:
            known = [f for f in first.findings if f.rank > 1]
            found = list(
                {f.key: f for f in reversed([*known, *check_later_piece(study.robot, first), *study.later(0)])}.values()
            )
    return replace(made, findings=tuple(plain(asdict(f)) for f in found))


def skipped_log(reason: str) -> LogFactors:
    """Make the factors of a log that could not be used, with the `reason` in one sentence."""
    return LogFactors(None, skipped=reason)


# ---------------------------------------------------------------- together


def merge_factors(parts: Sequence[LogFactors]) -> LogFactors:
    """Merge the factors of several logs with the same equations, in their order, in a tree of fixed shape.

    Args:
        parts: Factors of the logs; skipped ones are left out.
    """
    level = [p for p in parts if p.factor is not None]
    if not level:
        return skipped_log("None of the logs could be used.")
    with one_blas_thread():
        while len(level) > 1:
            level = [_join(level[k : k + FAN_IN]) for k in range(0, len(level), FAN_IN)]
    return level[0]


def _join(parts: Sequence[LogFactors]) -> LogFactors:
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
