"""Synthetic fleets: rows of random smooth regressors with friction, and noise that is correlated in time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from steelyard.estimation import LogSums
from steelyard.fleet._stacks import LogStack
from steelyard.fleet.effects import FleetDesign
from steelyard.fleet.log_factors import LogFactors
from steelyard.ground.arrays import Array
from steelyard.regression.data import RegressionData
from steelyard.regression.factor import Factor, triangle
from steelyard.regression.rows import Equation

OWN = ("viscous", "coulomb", "offset")
LINKS = 3  # base parameters of each link


def design(joints: int) -> FleetDesign:
    """Make a design with three base parameters per link, which act on all joints before it, friction and offsets."""
    kinds, of, names = [], [], []
    for j in range(joints):
        kinds += ["links"] * LINKS + list(OWN)
        of += [f"joint{j + 1}"] * (LINKS + len(OWN))
        names += [f"b{j + 1}{c}" for c in "xyz"] + [f"{kind}{j + 1}" for kind in OWN]
    units = ("kg m²", "kg m", "kg m", "N m s", "N m", "N m") * joints
    equations = tuple(f"joint{j + 1}" for j in range(joints))
    friction = ((False,) * LINKS + (True, True, False)) * joints
    return FleetDesign(tuple(names), units, tuple(range(len(names))), tuple(kinds), tuple(of), equations, friction)


@dataclass
class Truth:
    """The true mean robot, and the differences between robots."""

    joints: int
    rng: np.random.Generator
    std: dict[str, float] = field(
        default_factory=lambda: {"viscous": 0.3, "coulomb": 0.2, "offset": 0.15, "links": 0.0, "gain": 0.0}
    )
    log_std: float = 0.0
    noise: float = 0.5
    correlation: float = 0.9

    def __post_init__(self) -> None:
        self.design = design(self.joints)
        mean = {"links": 2.0, "viscous": 1.5, "coulomb": 1.0, "offset": 0.0}
        self.mean = np.array([mean[k] for k in self.design.kinds])
        links = np.array([k == "links" for k in self.design.kinds])
        self.mean[links] *= self.rng.uniform(0.3, 1.5, links.sum())

    def robot(self) -> tuple[Array, Array]:
        """Draw base parameters and gains of a robot."""
        away = np.array([self.std[k] for k in self.design.kinds]) * self.rng.normal(size=self.design.rank)
        return self.mean + away, self.std["gain"] * self.rng.normal(size=self.joints)

    def of_log(self, beta: Array) -> Array:
        """Draw a robot's parameters in one log; friction and offset vary a little."""
        return beta + self.log_std * self.design.own * self.rng.normal(size=len(beta))

    def rows(self, count: int, speed: float = 1.0, still: tuple[int, ...] = ()) -> list[Array]:
        """Make regressors of every equation with a relative `speed`; joints of `still` do not move."""
        n, p = self.joints, self.design.rank
        v = speed * _smooth(self.rng, count, n)
        v[:, list(still)] = 0.0
        out = []
        for e in range(n):
            A = np.zeros((count, p))
            for j in range(e, n):
                A[:, 6 * j : 6 * j + LINKS] = _smooth(self.rng, count, LINKS) * np.array([speed, 1.0, 1.0])
            A[:, 6 * e + 3], A[:, 6 * e + 4] = v[:, e], np.tanh(v[:, e] / 0.05)
            A[:, 6 * e + 5] = 1.0
            out.append(A)
        return out

    def log(
        self, robot: str, beta: Array, gain: Array, count: int = 600, date: float | None = None, **motion: object
    ) -> LogFactors:
        """Make the factors of a log with `count` rows in the same way as for real logs."""
        A = self.rows(count, **motion)  # type: ignore[arg-type]
        own = self.of_log(beta)
        y = [(1.0 + g) * (a @ own) + self.noise * _red(self.rng, count, self.correlation)
             for a, g in zip(A, gain, strict=True)]  # fmt: skip
        return from_rows(self.design, A, y).with_table_values(robot, date=date)


def from_rows(made: FleetDesign, A: list[Array], y: list[Array]) -> LogFactors:
    """Make factors from rows as `log_factors` does."""
    rows = RegressionData.from_arrays(made.equations, range(made.rank), A, y, made.rank)
    reduction = rows.reduction()
    sums = LogSums((rows,), made, np.zeros(made.rank), np.ones(len(A)))  # type: ignore[arg-type]
    w2 = sums.weights**2
    return LogFactors(
        factor=reduction.factor,
        sums=reduction.sums,
        meat=tuple(sums.noise[0][e] / w2[e] ** 2 for e in range(len(A))),
        scores=tuple(sums.stretch_scores(0, e) / w2[e] for e in range(len(A))),
        stretches=sums.counts[0].astype(float),
        residual_squares=sums.squares(0, sums.own[0][0]),
        freedom=sums.freedom[0],
        samples=len(y[0]),
        duration_s=0.01 * len(y[0]),
    )


class QuickLogs:
    """Draws the sums of logs instead of their rows, so that thousands of logs take a second.

    The score of a log has a known covariance. All logs have the motion of one of a few logs made from rows.
    """

    def __init__(self, truth: Truth, motions: int = 4, count: int = 600) -> None:
        self.truth, n = truth, truth.design.rank
        self.made = [truth.log("", truth.mean, np.zeros(truth.joints), count) for _ in range(motions)]
        self.parts = []  # by motion and equation: columns that are there, root of H over them, root of the meat
        for one in self.made:
            stack = LogStack.of([one], range(n))
            H, M = stack.grams[0, :, :n, :n], stack.meats[0]
            own = [np.flatnonzero(np.diag(h) > 0.0) for h in H]
            self.parts.append([(k, np.linalg.cholesky(h[np.ix_(k, k)]).T, np.linalg.cholesky(m[np.ix_(k, k)]))
                               for k, h, m in zip(own, H, M, strict=True)])  # fmt: skip

    def log(self, robot: str, beta: Array, gain: Array, date: float | None = None, **table: object) -> LogFactors:
        """Draw the factors of a log of a robot with the parameters `beta`."""
        truth = self.truth
        rng, n = truth.rng, truth.design.rank
        k = int(rng.integers(len(self.made)))
        one, own = self.made[k], truth.of_log(beta)
        triangles, equations = [], []
        for e, (columns, root, meat) in enumerate(self.parts[k]):
            z = (1.0 + gain[e]) * root @ own[columns]
            z += np.linalg.solve(root.T, meat @ rng.normal(size=len(columns)))
            m = len(columns)
            whole = np.zeros((m + 1, m + 1))
            whole[:m, :m], whole[:m, m], whole[m, m] = root, z, np.sqrt(max(one.residual_squares[e], 0.0))
            triangles.append(triangle(whole))
            equations.append(Equation(truth.design.equations[e], columns))
        old = one.factor
        assert old is not None
        # The estimated noise has the degrees of freedom of its stretches.
        known = np.sqrt(rng.chisquare(30.0, len(gain)) / 30.0)
        return LogFactors(
            Factor(tuple(equations), tuple(triangles), old.samples, n, "qr", old.rows),
            one.sums,
            tuple(m[np.ix_(p[0], p[0])] * s**2 for m, s, p in zip(one.meat, known, self.parts[k], strict=True)),
            tuple(c[:, p[0]] * s for c, s, p in zip(one.scores, known, self.parts[k], strict=True)),
            one.stretches,
            one.residual_squares * known**2,
            one.freedom,
            samples=one.samples,
            duration_s=one.duration_s,
        ).with_table_values(robot, date=date, **table)  # type: ignore[arg-type]


def _smooth(rng: np.random.Generator, count: int, columns: int) -> Array:
    """Make sums of slow sines with random phases and variance one."""
    t = np.arange(count)[:, None, None]
    rate = rng.uniform(0.01, 0.2, (5, columns))
    return np.asarray(np.sin(t * rate + rng.uniform(0.0, 6.3, (5, columns))).sum(axis=1) * np.sqrt(0.4))


def _red(rng: np.random.Generator, count: int, correlation: float) -> Array:
    """Make first-order noise of variance one."""
    out, white = np.empty(count), rng.normal(size=count)
    out[0] = white[0]
    for k in range(1, count):
        out[k] = correlation * out[k - 1] + np.sqrt(1.0 - correlation**2) * white[k]
    return out
