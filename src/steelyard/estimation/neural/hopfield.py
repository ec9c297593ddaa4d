"""`Hopfield`: a network whose state runs down the squared torque error while the motion goes by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from steelyard.estimation.estimate import Estimate, EstimationError, Prior
from steelyard.estimation.linear.free import FreeFit, prior_theta
from steelyard.estimation.neural.epoch import Epoch
from steelyard.estimation.neural.implicit import implicit_step
from steelyard.estimation.neural.network import beside, finished, repeat
from steelyard.estimation.neural.patterns import Patterns
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns
from steelyard.robot.spatial import Array

# A weight this close to its bound is held by it.
_HELD = 0.99


@dataclass(frozen=True)
class Hopfield:
    """λ̇ = (1/cβ) diag(c² − λ²) Φᵀ(τ − Φλ) along the log (Urrea & Pascal 2017, eq. 19), `passes` times over.

    In u with λ = c tanh(u/β) it is u̇ = Φᵀ(τ − Φλ), which is integrated implicitly, `substeps` per sample: whatever c, β
    and Φ, it does not blow up, and λ stays within ±c (explicit Euler needs h·(c/β)·λ_max(ΦᵀΦ) < 2). `form`
    "projection" is the linear network with its state clipped to ±c; passes that do not touch the bound are one affine
    map. `bound` is c and `gain` β; None: c = 10 in scaled units (ten times what a column would need to explain all
    torque alone), β so that h·(c/β)·λ_max = 0.1. `scaled` as for Adaline; starts from the prior, or from zero.

    Claims: clean rows give the parameters once it has converged (to 1e-6 of the largest for small robots, given the
    passes: hundreds, which are cheap in the projection form). `details["excitation"]` says whether ∩ ker Φ(t) = {0},
    without which there is no unique end; rows that show less are refused. Does not claim least squares on noisy rows
    (it follows the last of them, the more the smaller β), nor a covariance of its own: it is least squares' sandwich.
    """

    form: Literal["tanh", "projection"] = "projection"
    bound: float | None = None
    gain: float | None = None
    passes: int = 100_000
    substeps: int = 1
    scaled: bool = True
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        if self.form not in ("tanh", "projection"):
            raise EstimationError(f'form is "tanh" or "projection", not "{self.form}".')
        for name in ("bound", "gain"):
            value = getattr(self, name)
            if value is not None and not value > 0.0:
                raise EstimationError(f"{name} is {value}; it must be positive.")
        if self.passes < 1 or self.substeps < 1:
            raise EstimationError("A network needs one pass and one step per sample at least.")

    def fit(self, data: RegressionData, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.free(data, base, base.values(prior_theta(base, prior))).estimate(prior)

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
        w, count, change = run(patterns, w, length, bound, gain)
        return self._told(free, patterns, columns, w, (count, change), (bound, gain, h * bound / gain * largest))

    def _told(
        self, free: FreeFit, patterns: Patterns, columns: Columns, w: Array, end: tuple[int, float],
        used: tuple[float, float, float],
    ) -> FreeFit:  # fmt: skip
        (count, change), (bound, gain, stiffness) = end, used
        held = [name for name, x in zip(columns.names, w, strict=True) if abs(x) > _HELD * bound]
        notes = []
        if held:
            notes.append(f"The bound {bound:g} holds {', '.join(held)}: raise `bound`.")
        if change >= self.tolerance:
            notes.append(f"After {count} passes the state still moved by {change:.1e} of the largest in a pass.")
        details: dict[str, Any] = {"bound": bound, "gain": gain, "stiffness": stiffness, "passes": count}
        return finished(free, patterns.beta(w), not notes, [], notes, details)

    def _bent(self, patterns: Patterns, w: Array, length: float, bound: float, gain: float) -> tuple[Array, int, float]:
        u = gain * np.arctanh(w / bound)

        def one_pass(u: Array) -> Array:
            for rows, targets in zip(patterns.inputs, patterns.targets, strict=True):
                for _ in range(self.substeps):
                    u = implicit_step(u, rows, targets, length, bound, gain)
            return u

        u, count, change = repeat(one_pass, u, self.passes, self.tolerance)
        return bound * np.tanh(u / gain), count, change

    def _projected(
        self, patterns: Patterns, w: Array, length: float, bound: float, gain: float
    ) -> tuple[Array, int, float]:
        rate = length * bound / gain
        inputs = np.repeat(patterns.inputs, self.substeps, axis=0)
        targets = np.repeat(patterns.targets, self.substeps, axis=0)
        epoch = Epoch.of_steps(inputs, targets, rate)
        return repeat(lambda v: np.clip(epoch(v), -bound, bound), w, self.passes, self.tolerance)
