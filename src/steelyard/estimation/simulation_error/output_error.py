"""Output error (CLOE, CLIE): the parameters whose simulated closed loop matches the robot's positions or torques."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior
from steelyard.estimation.linear._free import FreeFit, nearest_theta
from steelyard.estimation.linear.least_squares import weighted
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.registry import estimator
from steelyard.estimation.simulation_error._closed_loop import ClosedLoop, ClosedLoopError, Signal, block_means
from steelyard.estimation.simulation_error._start import Rounds, starting_point
from steelyard.estimation.simulation_error.experiment import Experiment
from steelyard.ground.arrays import Array
from steelyard.parameters.inertial import LogCholesky
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.rows import Equation

_SIGNALS: dict[str, Signal] = {"position": "q", "torque": "tau"}
# Largest number of halvings of a step.
_HALVINGS = 12


@estimator("cloe", "the simulated closed loop moves like the robot", signal="position")
@estimator("clie", "the simulated closed loop pulls like the robot", signal="torque")
@dataclass(frozen=True)
class OutputError(Estimator[Experiment]):
    """min Σ_j N_j log ‖x_j − x_j,sim(β)‖², x the positions (CLOE) or the controller's torques (CLIE).

    This is the likelihood for white noise of unknown size on every joint. Gauss–Newton with exact sensitivities: each
    round is a weighted least-squares fit of the residuals on ∂x_sim/∂β, and the step is halved until the likelihood
    increases. Residuals and sensitivities are averaged over the rows' period. After Landau et al. 2011 and, for
    robots, Brunot, Janot & Young 2018.

    Attributes:
        signal: "position" or "torque".
        iterations: Largest number of rounds.
        tolerance: Change in standard errors that ends the rounds.
        physical: Search the full parameters in log-Cholesky coordinates x, so that they are physically possible, with
            the penalty `strength`·‖x − x⁰‖² on the distance from the start (the physically consistent fit).
        strength: Weight of that penalty; it decides what the data do not determine.
        mismatch: Largest relative difference between simulation and log.
    """

    needs = "experiment"
    family = "loop"
    needs_controller = True
    physical_form = "rounds"

    signal: Literal["position", "torque"] = "position"
    iterations: int = 30
    tolerance: float = 1e-2
    physical: bool = False
    strength: float = 1e-2
    mismatch: float = 0.25

    def fit(self, experiment: Experiment, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        if self.signal not in _SIGNALS:
            raise EstimationError(f'signal is "position" or "torque", not "{self.signal}".')
        if not self.strength > 0.0:
            raise EstimationError(f"strength must be positive, not {self.strength}.")
        start = starting_point(experiment, base, prior, self.physical)
        loop = ClosedLoop.of(experiment, base, start.theta, self.mismatch)
        search = _Search(loop, _SIGNALS[self.signal], prior)
        space = _Space.of(base, start.theta, self.strength) if self.physical else None
        beta, theta = start.beta, start.theta
        value = search.cost(theta)
        rounds = Rounds(self.iterations, self.tolerance)
        for _ in rounds:
            free = search.fit(beta, theta)
            goal = free.beta if space is None else space.nearest(theta, free)
            before, beta, theta, value = search.line_search(goal, beta, theta, value, space)
            rounds.add(before, beta, free, cost=value)
        # The last linear fit is for the error bars; the parameters are those whose loop was simulated.
        final = search.fit(beta, theta)
        std = final.problem.residual_std(beta, final.triangle, final.weights)
        fitted = replace(final, beta=beta, residual_std=std, details={"start": start.beta}, **rounds.outcome)
        estimate = fitted.estimate(prior)
        return replace(estimate, theta=theta, physical=True) if self.physical else estimate


@dataclass(frozen=True, eq=False)
class _Search:
    """Residuals of the simulated loop, their derivatives and their likelihood."""

    loop: ClosedLoop
    signal: Signal
    prior: Prior | None

    @property
    def joints(self) -> list[int]:
        robot = self.loop.experiment.robot
        return [j for j in range(robot.dof) if self.signal == "q" or robot.torque_used[j]]

    def _measured(self) -> list[Array]:
        return [run.q if self.signal == "q" else run.tau for run in self.loop.experiment.runs]

    def cost(self, theta: Array) -> float:
        """Σ N_j log ‖residual‖²; infinite if the loop diverges."""
        try:
            motions = self.loop.motions(theta)
        except ClosedLoopError:
            return np.inf
        sums, rows = 0.0, 0.0
        for motion, x in zip(motions, self._measured(), strict=True):
            r = block_means(x - getattr(motion, self.signal), motion.keep)[:, self.joints]
            sums, rows = sums + np.sum(r**2, axis=0), rows + len(r)
        return float(rows * np.sum(np.log(np.maximum(sums, 1e-300))))

    def fit(self, beta: Array, theta: Array) -> FreeFit:
        """Fit the residuals at β, linearised in the parameters: rows r + Jβ = J β_new, weighted least squares."""
        base, robot = self.loop.base, self.loop.experiment.robot
        blocks = []
        simulations = self.loop.sensitivities(theta, self.signal)
        for x, (simulated, slopes), run in zip(self._measured(), simulations, self.loop.runs, strict=True):
            r = block_means(x - simulated, run.keep)
            J = block_means(np.moveaxis(slopes, 0, -1), run.keep)
            blocks += [Block(e, J[:, j], r[:, j] + J[:, j] @ beta) for e, j in enumerate(self.joints)]
        columns = np.asarray(base.independent, dtype=np.int64)
        equations = tuple(Equation(robot.joint_names[j], columns) for j in self.joints)
        period = self.loop.experiment.runs[0].motion.row_period
        data = RegressionData(equations, len(base.parameters), lambda: blocks, period)
        return weighted(LeastSquaresProblem.of(data, base), 100, 1e-8)

    def line_search(
        self, goal: Array, beta: Array, theta: Array, value: float, space: _Space | None
    ) -> tuple[Array, Array, Array, float]:
        """Return (old β, β, θ, cost) of the longest halved step that does not increase the cost."""
        share = 1.0
        first = None if space is None else space.map.coordinates(theta)
        for _ in range(_HALVINGS):
            if space is None or first is None:
                new = beta + share * (goal - beta)
                full = nearest_theta(self.loop.base, new, self.prior)
            else:
                full = space.map.parameters(first + share * (goal - first))[0]
                new = self.loop.base.values(full)
            cost = self.cost(full)
            if cost <= value + 1e-9 * abs(value):
                return beta, new, full, cost
            share *= 0.5
        return beta, beta, theta, value


@dataclass(frozen=True, eq=False)
class _Space:
    """Log-Cholesky coordinates with a penalty on the distance from `x0`."""

    base: BaseParameters
    map: LogCholesky
    x0: Array
    strength: float

    @classmethod
    def of(cls, base: BaseParameters, theta: Array, strength: float) -> _Space:
        map_ = LogCholesky.of(base.parameters, len(base.robot.links))
        return cls(base, map_, map_.coordinates(theta), strength)

    def nearest(self, theta: Array, free: FreeFit) -> Array:
        """min_x ‖R (β(x) − β̂)‖²/σ² + strength ‖(x − x⁰)/scale‖², by Levenberg–Marquardt; it needs no simulation."""
        from scipy.optimize import least_squares

        R = free.triangle[:-1, :-1] / max(free.noise, 1e-300)
        scale = np.where(np.array([*[False] * 10 * self.map.links, *[not p for p in self.map.positive]]),
                         np.maximum(np.abs(self.x0), 1.0), 1.0)  # fmt: skip
        penalty = np.sqrt(self.strength) / scale

        def residual(x: Array) -> Array:
            return np.concatenate(
                [R @ (self.base.values(self.map.parameters(x)[0]) - free.beta), penalty * (x - self.x0)]
            )

        def slope(x: Array) -> Array:
            return np.vstack([R @ self.base.matrix @ self.map.parameters(x)[1], np.diag(penalty)])

        solution = least_squares(residual, self.map.coordinates(theta), slope, method="trf", max_nfev=100, xtol=1e-10)
        return np.asarray(solution.x)
