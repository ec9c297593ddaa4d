"""`Hopfield`: a network whose state runs down the squared torque error while the motion goes by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.linear._free import FreeFit
from steelyard.estimation.neural._network import Epoch, Network, Patterns, Way, beside, finished, repeat
from steelyard.estimation.registry import estimator
from steelyard.ground.arrays import Array
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns

# A step of a Hopfield network that no stiffness can break: implicit Euler, solved in the space of the rows.


_NEWTON_STEPS = 50
_HALVINGS = 40


def _implicit_step(u: Array, rows: Array, targets: Array, length: float, bound: float, gain: float) -> Array:
    """u' with u' = u + l Φᵀ(y − Φ λ(u')), λ = c tanh(u/β).

    With r = y − Φλ(u') this is g(r) = r + Φ λ(u + l Φᵀr) − y = 0, the gradient of a strictly convex function: its
    Hessian I + l Φ (c/β) diag(1 − tanh²) Φᵀ is never singular, and Newton's method with a line search always ends.
    """
    r = targets - rows @ (bound * np.tanh(u / gain))
    moved = u + length * rows.T @ r
    miss = _miss(r, moved, rows, targets, bound, gain)
    size = float(miss @ miss)
    goal = 1e-26 * (float(targets @ targets) + 1e-300)
    for _ in range(_NEWTON_STEPS):
        if size <= goal:
            break
        slope = bound / gain * (1.0 - np.tanh(moved / gain) ** 2)
        hessian = np.eye(len(r)) + length * (rows * slope) @ rows.T
        direction = np.linalg.solve(hessian, miss)
        share = 1.0
        for _ in range(_HALVINGS):
            trial = r - share * direction
            there = u + length * rows.T @ trial
            new = _miss(trial, there, rows, targets, bound, gain)
            if float(new @ new) < size:
                break
            share *= 0.5
        else:
            break  # nothing but rounding is left
        r, moved, miss, size = trial, there, new, float(new @ new)
    return np.asarray(moved)


def _miss(r: Array, u: Array, rows: Array, targets: Array, bound: float, gain: float) -> Array:
    return np.asarray(r + rows @ (bound * np.tanh(u / gain)) - targets)


# A weight this close to its bound is held by it.
_HELD = 0.99
# Passes of the projection form, each one product; and steps of the "tanh" form, each a Newton iteration of 60 µs or so
# for a small arm: a minute at most.
_MOST_PASSES, _MOST_STEPS = 100_000, 500_000


@estimator("hopfield")
@dataclass(frozen=True)
class Hopfield(Network):
    """λ̇ = (1/cβ) diag(c² − λ²) Φᵀ(τ − Φλ) along the log (Urrea & Pascal 2017, eq. 19), `passes` times over.

    In u with λ = c tanh(u/β) it is u̇ = Φᵀ(τ − Φλ), which is integrated implicitly, `substeps` per sample: whatever c, β
    and Φ, it does not blow up, and λ stays within ±c (explicit Euler needs h·(c/β)·λ_max(ΦᵀΦ) < 2). `form`
    "projection" is the linear network with its state clipped to ±c; passes that do not touch the bound are one affine
    map. `bound` is c and `gain` β; None: c = 10 in scaled units (ten times what a column would need to explain all
    torque alone), β so that h·(c/β)·λ_max = 0.1. `history` has up to `moments` moments of the way: of the passes, and
    in the "tanh" form also within them. `passes` None: 100,000; in the "tanh" form as many as 500,000 steps of samples
    are, one at least (`tolerance` ends both earlier). `scaled` as for Adaline; starts from the prior, or from zero.

    Claims: clean rows give the parameters once it has converged (to 1e-6 of the largest for small robots, given the
    passes: hundreds, which are cheap in the projection form). `details["excitation"]` says whether ∩ ker Φ(t) = {0},
    without which there is no unique end; rows that show less are refused. Does not claim least squares on noisy rows
    (it follows the last of them, the more the smaller β), nor a covariance of its own: it is least squares' sandwich.
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
            raise EstimationError("A network needs one pass and one step per sample at least.")

    def free(self, data: RegressionData, columns: Columns, start: Array | None = None) -> FreeFit:
        """For any named columns, such as the paper's own eight."""
        free = beside(data, columns)
        patterns = Patterns.of(data, columns, free, self.scaled)
        bound = self.bound or 10.0 * (1.0 if self.scaled else float(np.abs(free.beta).max()) or 1.0)
        w = patterns.weights(np.zeros(columns.rank) if start is None else start)
        if float(np.abs(w).max(initial=0.0)) >= bound:
            raise EstimationError(f"The start exceeds the network's bound {bound:g}; raise `bound`.")
        # Samples are unit steps of time unless the user chose a gain, which then is in seconds.
        h = data.period if self.gain is not None else 1.0
        length = h / self.substeps
        largest = float(np.linalg.norm(patterns.inputs, 2, axis=(1, 2)).max()) ** 2
        gain = self.gain or 10.0 * h * bound * max(largest, 1e-300)
        run = self._projected if self.form == "projection" else self._bent
        way = Way(self.moments)
        way.add((0.0, w))
        w, count, change = run(patterns, w, length, bound, gain, way)
        return self._told(free, patterns, columns, way, (count, change), (bound, gain, h * bound / gain * largest))

    def _told(
        self, free: FreeFit, patterns: Patterns, columns: Columns, way: Way, end: tuple[int, float],
        used: tuple[float, float, float],
    ) -> FreeFit:  # fmt: skip
        (count, change), (bound, gain, stiffness), w = end, used, way.all[-1][1]
        held = [name for name, x in zip(columns.names, w, strict=True) if abs(x) > _HELD * bound]
        notes = []
        if held:
            notes.append(f"The bound {bound:g} holds {', '.join(held)}: raise `bound`.")
        if change >= self.tolerance:
            notes.append(f"After {count} passes the state still moved by {change:.1e} of the largest in a pass.")
        details: dict[str, Any] = {"bound": bound, "gain": gain, "stiffness": stiffness, "passes": count}
        return finished(free, patterns.beta(w), not notes, patterns.history(way), notes, details)

    def _bent(
        self, patterns: Patterns, w: Array, length: float, bound: float, gain: float, way: Way
    ) -> tuple[Array, int, float]:
        u, instants, seen = gain * np.arctanh(w / bound), len(patterns.inputs), 0

        def one_pass(u: Array) -> Array:
            nonlocal seen
            for rows, targets in zip(patterns.inputs, patterns.targets, strict=True):
                for _ in range(self.substeps):
                    u = _implicit_step(u, rows, targets, length, bound, gain)
                seen += 1
                way.add((seen / instants, bound * np.tanh(u / gain)))
            return u

        fit = max(1, _MOST_STEPS // (instants * self.substeps))
        u, count, change = repeat(one_pass, u, self.passes or min(fit, _MOST_PASSES), self.tolerance)
        return bound * np.tanh(u / gain), count, change

    def _projected(
        self, patterns: Patterns, w: Array, length: float, bound: float, gain: float, way: Way
    ) -> tuple[Array, int, float]:
        rate = length * bound / gain
        inputs = np.repeat(patterns.inputs, self.substeps, axis=0)
        targets = np.repeat(patterns.targets, self.substeps, axis=0)
        epoch = Epoch.of_steps(inputs, targets, rate)
        passes = self.passes or _MOST_PASSES
        return repeat(lambda v: np.clip(epoch(v), -bound, bound), w, passes, self.tolerance, way)


@estimator("hopfield-tank")
@dataclass(frozen=True)
class HopfieldTank(Network):
    """u̇ = Aᵀ(y − Aλ), λ = c tanh(u/β), all rows at once (Hopfield & Tank 1985).

    The network's weights −AᵀA and currents Aᵀy come from the triangle of [A y], never squared; its steps are implicit
    and grow tenfold, so that it comes to rest in a few dozen of them. `bound` is c in scaled units (columns and torques
    of unit size), `gain` β.

    Claims: where it rests inside the bound, it is ordinary least squares. Error bars are the sandwich of that.
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
        free = beside(data, columns)
        norms = np.linalg.norm(free.joined, axis=0)
        size = float(norms[-1]) or 1.0
        R, y = free.joined[:, :-1] / norms[:-1], free.joined[:, -1] / size
        w = np.zeros(columns.rank) if start is None else np.asarray(start) * norms[:-1] / size
        u = self.gain * np.arctanh(np.clip(w / self.bound, -_HELD, _HELD))
        length, change, count = 1.0, np.inf, 0
        way = [w]
        while count < self.steps and change >= self.tolerance:
            new = _implicit_step(u, R, y, length, self.bound, self.gain)
            change = float(np.abs(new - u).max() / max(float(np.abs(new).max()), 1e-300)) / length
            u, length, count = new, min(10.0 * length, 1e18), count + 1
            way.append(self.bound * np.tanh(u / self.gain))
        w = self.bound * np.tanh(u / self.gain)
        held = [name for name, x in zip(columns.names, w, strict=True) if abs(x) > _HELD * self.bound]
        notes = [f"The bound {self.bound:g} holds {', '.join(held)}: raise `bound`."] if held else []
        if change >= self.tolerance:
            notes.append(f"After {count} steps the state still moved at {change:.1e}.")
        history = [{"step": k, "beta": tuple((v * size / norms[:-1]).tolist())} for k, v in enumerate(way)]
        return finished(free, w * size / norms[:-1], not notes, history, notes, {"steps": count})
