"""Hopfield networks, whose state descends the squared torque error along the motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.linear._free import FreeFit
from steelyard.estimation.neural._network import (
    Epoch,
    Network,
    Patterns,
    WeightHistory,
    least_squares_fit,
    network_fit,
    repeat,
)
from steelyard.estimation.registry import estimator
from steelyard.ground.arrays import Array
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns

_NEWTON_STEPS = 50
_HALVINGS = 40


def _implicit_step(u: Array, rows: Array, targets: Array, length: float, bound: float, gain: float) -> Array:
    """Solve u' = u + l Φᵀ(y − Φ λ(u')), λ = c tanh(u/β): an implicit step that is stable for any stiffness.

    With r = y − Φλ(u') this is g(r) = r + Φ λ(u + l Φᵀr) − y = 0, the gradient of a strictly convex function: its
    Hessian I + l Φ (c/β) diag(1 − tanh²) Φᵀ is never singular, so Newton's method with a line search always ends.
    """
    r = targets - rows @ (bound * np.tanh(u / gain))
    state = u + length * rows.T @ r
    error = _equation_error(r, state, rows, targets, bound, gain)
    size = float(error @ error)
    goal = 1e-26 * (float(targets @ targets) + 1e-300)
    for _ in range(_NEWTON_STEPS):
        if size <= goal:
            break
        slope = bound / gain * (1.0 - np.tanh(state / gain) ** 2)
        hessian = np.eye(len(r)) + length * (rows * slope) @ rows.T
        direction = np.linalg.solve(hessian, error)
        share = 1.0
        for _ in range(_HALVINGS):
            trial = r - share * direction
            trial_state = u + length * rows.T @ trial
            new = _equation_error(trial, trial_state, rows, targets, bound, gain)
            if float(new @ new) < size:
                break
            share *= 0.5
        else:
            break  # the rest is rounding
        r, state, error, size = trial, trial_state, new, float(new @ new)
    return np.asarray(state)


def _equation_error(r: Array, u: Array, rows: Array, targets: Array, bound: float, gain: float) -> Array:
    return np.asarray(r + rows @ (bound * np.tanh(u / gain)) - targets)


# Share of the bound above which a weight counts as limited by it.
_LIMIT_SHARE = 0.99
# Largest number of passes of the projection form (one product each) and of steps of the "tanh" form (a Newton iteration
# of about 60 µs for a small arm: at most a minute).
_MAX_PASSES, _MAX_STEPS = 100_000, 500_000


@estimator("hopfield")
@dataclass(frozen=True)
class Hopfield(Network):
    """λ̇ = (1/cβ) diag(c² − λ²) Φᵀ(τ − Φλ) along the log (Urrea & Pascal 2017, eq. 19), for several passes.

    In u with λ = c tanh(u/β) it is u̇ = Φᵀ(τ − Φλ). Implicit integration is stable for any c, β and Φ, and λ stays
    within ±c (explicit Euler needs h·(c/β)·λ_max(ΦᵀΦ) < 2). It starts from the prior, or from zero.

    Properties: without noise the converged parameters are exact (to 1e-6 of the largest for small robots after
    hundreds of passes, which are fast in the projection form). `details["excitation"]` reports whether ∩ ker Φ(t) =
    {0}, which a unique solution requires; rank-deficient rows are refused. With noise the result differs from least
    squares (it follows the last rows, more for smaller β). Error bars are the sandwich covariance of least squares.

    Attributes:
        form: "projection": the linear network with its state clipped to ±c; passes without clipping are one affine map.
            "tanh": the form above.
        bound: c; None: 10 in scaled units (ten times what a column needs to explain all torque alone).
        gain: β [s]; None: such that h·(c/β)·λ_max = 0.1.
        passes: Largest number of passes; None: 100,000, in the "tanh" form at most 500,000 steps of samples.
        substeps: Steps per sample.
        scaled: Learn with columns and torques of unit size.
        tolerance: Change of the state, relative to the largest, that ends the passes.
        moments: Largest number of steps in `history`: passes, in the "tanh" form also parts of passes.
    """

    about = "a network that runs down the torque error along the log"
    order_matters, honest_errors = True, False

    form: Literal["tanh", "projection"] = "projection"
    bound: float | None = None
    gain: float | None = None
    passes: int | None = None
    substeps: int = 1
    scaled: bool = True
    tolerance: float = 1e-10
    moments: int = 256

    def __post_init__(self) -> None:
        if self.form not in ("tanh", "projection"):
            raise EstimationError(f'form is "tanh" or "projection", not "{self.form}".')
        for name in ("bound", "gain"):
            value = getattr(self, name)
            if value is not None and not value > 0.0:
                raise EstimationError(f"{name} is {value}; it must be positive.")
        if (self.passes is not None and self.passes < 1) or self.substeps < 1:
            raise EstimationError("passes and substeps must be at least 1.")

    def free(self, data: RegressionData, columns: Columns, start: Array | None = None) -> FreeFit:
        """Fit any named columns, such as the eight of the paper.

        Args:
            data: The rows.
            columns: The unknowns.
            start: Initial values of the unknowns; None: zero.
        """
        free = least_squares_fit(data, columns)
        patterns = Patterns.of(data, columns, free, self.scaled)
        bound = self.bound or 10.0 * (1.0 if self.scaled else float(np.abs(free.beta).max()) or 1.0)
        w = patterns.weights(np.zeros(columns.rank) if start is None else start)
        if float(np.abs(w).max(initial=0.0)) >= bound:
            raise EstimationError(f"The initial values exceed the network's bound {bound:g}; increase `bound`.")
        # A sample is a unit of time, except with a gain from the user, which is in seconds.
        h = data.period if self.gain is not None else 1.0
        length = h / self.substeps
        largest = float(np.linalg.norm(patterns.inputs, 2, axis=(1, 2)).max()) ** 2
        gain = self.gain or 10.0 * h * bound * max(largest, 1e-300)
        run = self._run_projection if self.form == "projection" else self._run_tanh
        history = WeightHistory(self.moments)
        history.add((0.0, w))
        w, count, change = run(patterns, w, length, bound, gain, history)
        return self._result(
            free, patterns, columns, history, (count, change), (bound, gain, h * bound / gain * largest)
        )

    def _result(
        self, free: FreeFit, patterns: Patterns, columns: Columns, history: WeightHistory, end: tuple[int, float],
        used: tuple[float, float, float],
    ) -> FreeFit:  # fmt: skip
        (count, change), (bound, gain, stiffness), w = end, used, history.all[-1][1]
        limited = [name for name, x in zip(columns.names, w, strict=True) if abs(x) > _LIMIT_SHARE * bound]
        notes = []
        if limited:
            notes.append(f"The bound {bound:g} limits {', '.join(limited)}: increase `bound`.")
        if change >= self.tolerance:
            notes.append(
                f"Not converged: the last of {count} passes still changed the state by {change:.1e} of the largest."
            )
        details: dict[str, Any] = {"bound": bound, "gain": gain, "stiffness": stiffness, "passes": count}
        return network_fit(free, patterns.beta(w), not notes, patterns.history(history), notes, details)

    def _run_tanh(
        self, patterns: Patterns, w: Array, length: float, bound: float, gain: float, history: WeightHistory
    ) -> tuple[Array, int, float]:
        u, instants, done = gain * np.arctanh(w / bound), len(patterns.inputs), 0

        def one_pass(u: Array) -> Array:
            nonlocal done
            for rows, targets in zip(patterns.inputs, patterns.targets, strict=True):
                for _ in range(self.substeps):
                    u = _implicit_step(u, rows, targets, length, bound, gain)
                done += 1
                history.add((done / instants, bound * np.tanh(u / gain)))
            return u

        fit = max(1, _MAX_STEPS // (instants * self.substeps))
        u, count, change = repeat(one_pass, u, self.passes or min(fit, _MAX_PASSES), self.tolerance)
        return bound * np.tanh(u / gain), count, change

    def _run_projection(
        self, patterns: Patterns, w: Array, length: float, bound: float, gain: float, history: WeightHistory
    ) -> tuple[Array, int, float]:
        rate = length * bound / gain
        inputs = np.repeat(patterns.inputs, self.substeps, axis=0)
        targets = np.repeat(patterns.targets, self.substeps, axis=0)
        epoch = Epoch.of_steps(inputs, targets, rate)
        passes = self.passes or _MAX_PASSES
        return repeat(lambda v: np.clip(epoch(v), -bound, bound), w, passes, self.tolerance, history)


@estimator("hopfield-tank")
@dataclass(frozen=True)
class HopfieldTank(Network):
    """u̇ = Aᵀ(y − Aλ), λ = c tanh(u/β), all rows at once (Hopfield & Tank 1985).

    The network's weights −AᵀA and currents Aᵀy come from the triangle of [A y], without squaring it. Its steps are
    implicit and grow tenfold, so that it converges in a few dozen steps. Inside the bound the result is ordinary least
    squares, and error bars are its sandwich covariance.

    Attributes:
        bound: c in scaled units (columns and torques of unit size).
        gain: β.
        steps: Largest number of steps.
        tolerance: Rate of change that ends the steps.
    """

    about = "a network whose weights are the normal equations"

    bound: float = 100.0
    gain: float = 100.0
    steps: int = 60
    tolerance: float = 1e-12

    def __post_init__(self) -> None:
        if not (self.bound > 0.0 and self.gain > 0.0 and self.steps > 0):
            raise EstimationError("bound, gain and steps must be positive.")

    def free(self, data: RegressionData, columns: Columns, start: Array | None = None) -> FreeFit:
        free = least_squares_fit(data, columns)
        norms = np.linalg.norm(free.triangle, axis=0)
        size = float(norms[-1]) or 1.0
        R, y = free.triangle[:, :-1] / norms[:-1], free.triangle[:, -1] / size
        w = np.zeros(columns.rank) if start is None else np.asarray(start) * norms[:-1] / size
        u = self.gain * np.arctanh(np.clip(w / self.bound, -_LIMIT_SHARE, _LIMIT_SHARE))
        length, change, count = 1.0, np.inf, 0
        history = [w]
        while count < self.steps and change >= self.tolerance:
            new = _implicit_step(u, R, y, length, self.bound, self.gain)
            change = float(np.abs(new - u).max() / max(float(np.abs(new).max()), 1e-300)) / length
            u, length, count = new, min(10.0 * length, 1e18), count + 1
            history.append(self.bound * np.tanh(u / self.gain))
        w = self.bound * np.tanh(u / self.gain)
        limited = [name for name, x in zip(columns.names, w, strict=True) if abs(x) > _LIMIT_SHARE * self.bound]
        notes = [f"The bound {self.bound:g} limits {', '.join(limited)}: increase `bound`."] if limited else []
        if change >= self.tolerance:
            notes.append(f"Not converged: after {count} steps the rate of change is {change:.1e}.")
        steps = [{"step": k, "beta": tuple((v * size / norms[:-1]).tolist())} for k, v in enumerate(history)]
        return network_fit(free, w * size / norms[:-1], not notes, steps, notes, {"steps": count})
