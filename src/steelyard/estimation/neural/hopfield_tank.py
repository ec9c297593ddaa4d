"""`HopfieldTank`: the recurrent network whose weights are the log's normal equations, run until it rests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.estimation.estimate import Estimate, EstimationError, Prior
from steelyard.estimation.linear.free import FreeFit, prior_theta
from steelyard.estimation.neural.implicit import implicit_step
from steelyard.estimation.neural.network import beside, finished
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns
from steelyard.robot.spatial import Array

_HELD = 0.99


@dataclass(frozen=True)
class HopfieldTank:
    """u̇ = Aᵀ(y − Aλ), λ = c tanh(u/β), all rows at once (Hopfield & Tank 1985).

    The network's weights −AᵀA and currents Aᵀy come from the triangle of [A y], never squared; its steps are implicit
    and grow tenfold, so that it comes to rest in a few dozen of them. `bound` is c in scaled units (columns and torques
    of unit size), `gain` β.

    Claims: where it rests inside the bound, it is ordinary least squares. Error bars are the sandwich of that.
    """

    bound: float = 100.0
    gain: float = 100.0
    steps: int = 60
    tolerance: float = 1e-12

    def __post_init__(self) -> None:
        if not (self.bound > 0.0 and self.gain > 0.0 and self.steps > 0):
            raise EstimationError("bound, gain and steps must be positive.")

    def fit(self, data: RegressionData, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.free(data, base, base.values(prior_theta(base, prior))).estimate(prior)

    def free(self, data: RegressionData, columns: Columns, start: Array | None = None) -> FreeFit:
        free = beside(data, columns)
        norms = np.linalg.norm(free.joined, axis=0)
        size = float(norms[-1]) or 1.0
        R, y = free.joined[:, :-1] / norms[:-1], free.joined[:, -1] / size
        w = np.zeros(columns.rank) if start is None else np.asarray(start) * norms[:-1] / size
        u = self.gain * np.arctanh(np.clip(w / self.bound, -_HELD, _HELD))
        length, change, count = 1.0, np.inf, 0
        while count < self.steps and change >= self.tolerance:
            new = implicit_step(u, R, y, length, self.bound, self.gain)
            change = float(np.abs(new - u).max() / max(float(np.abs(new).max()), 1e-300)) / length
            u, length, count = new, min(10.0 * length, 1e18), count + 1
        w = self.bound * np.tanh(u / self.gain)
        held = [name for name, x in zip(columns.names, w, strict=True) if abs(x) > _HELD * self.bound]
        notes = [f"The bound {self.bound:g} holds {', '.join(held)}: raise `bound`."] if held else []
        if change >= self.tolerance:
            notes.append(f"After {count} steps the state still moved at {change:.1e}.")
        return finished(free, w * size / norms[:-1], not notes, [], notes, {"steps": count})
