"""DIDIM: fits the measured torque with the regressor of a simulated, noise-free motion."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard.estimation.estimate import Estimate, Estimator, Prior, Result
from steelyard.estimation.linear._free import FreeFit, nearest_theta
from steelyard.estimation.linear.least_squares import WeightedLeastSquares
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.possible.physical import PhysicallyConsistent
from steelyard.estimation.registry import estimator
from steelyard.estimation.simulation_error._closed_loop import ClosedLoop, simulate_or_retreat
from steelyard.estimation.simulation_error._start import Rounds, fit_with_weights, starting_point
from steelyard.estimation.simulation_error.experiment import Experiment
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.simulation.controllers import Controller

# Shortest steps, relative to the full one.
_MIN_STEP_SHARE = 0.125


@estimator("didim")
@dataclass(frozen=True)
class DirectInverse(Estimator[Experiment]):
    """Direct and inverse dynamic identification models (Gautier, Janot & Vandanjon 2013), which need only the torque.

    The closed loop is simulated with the present parameters. Its noise-free motion gives the regressor for the measured
    torque, and weighted least squares the next parameters. This is Gauss–Newton on ‖τ − τ_s‖ with a simulated motion
    that does not depend on the parameters, which is true if the robot follows its reference well.

    Attributes:
        iterations: Largest number of rounds.
        tolerance: Change in standard errors that ends the rounds.
        physical: Use the physically consistent fit in every round.
        scale_gains: Multiply the simulated gains by the ratio of the present inertias to those of the prior, as the
            authors
            do: the bandwidth of the loop then stays as designed for all parameters. Use it only if the gains were
            designed for the prior.
        mismatch: Largest relative difference between simulation and log.
    """

    needs = "experiment"
    family = "loop"
    about = "torque on the regressor of a simulated motion"
    needs_controller = True
    physical_form = "rounds"

    iterations: int = 20
    tolerance: float = 1e-2
    physical: bool = False
    scale_gains: bool = False
    mismatch: float = 0.25

    def fit(self, experiment: Experiment, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        start = starting_point(experiment, base, prior, self.physical)
        loop = ClosedLoop.of(experiment, base, start.theta, self.mismatch)
        theta, weights = start.theta, start.free.weights
        rounds, share, last = Rounds(self.iterations, self.tolerance), 1.0, np.inf
        for _ in rounds:
            before, data = self._rows(loop, theta, start.theta, prior)
            free = fit_with_weights(LeastSquaresProblem.of(data, base), weights)
            weights = 1.0 / np.maximum(free.residual_std, free.problem.floor)  # converge together with the parameters
            theta = self._next(data, free, base, prior)
            rounds.add(base.values(before), base.values(theta), free, residual_std=tuple(free.residual_std.tolist()))
            # Growing steps are too long, because the motion does depend on the parameters.
            share = max(0.5 * share, _MIN_STEP_SHARE) if rounds.change > last else min(1.0, 1.5 * share)
            last = rounds.change
            theta = before + share * (theta - before)
        final = (PhysicallyConsistent() if self.physical else WeightedLeastSquares()).fit(data, base, prior)
        result, notes = rounds.result, final.notes
        if result is not Result.CONVERGED:
            notes = (
                *notes,
                f"Not converged: the last round changed the parameters by {last:.2g} standard errors. The simulated "
                "motion depends too much on them for this method; use output error (clie, cloe).",
            )
        elif final.result is Result.BOUNDARY:
            result = Result.BOUNDARY
        details = {**final.details, "start": start.beta}
        return replace(final, result=result, history=tuple(rounds.history), notes=notes, details=details)

    def _rows(self, loop: ClosedLoop, theta: Array, safe: Array, prior: Prior | None) -> tuple[Array, RegressionData]:
        """Rows at θ; if the loop diverges there, half way back to the start, repeatedly."""
        theta, motions = simulate_or_retreat(theta, safe, lambda x: loop.motions(x, self._controller(loop, x, prior)))
        measured = [
            replace(m, tau=run.tau, velocity="simulated") for m, run in zip(motions, loop.experiment.runs, strict=True)
        ]
        return theta, loop.regression(measured)

    def _controller(self, loop: ClosedLoop, theta: Array, prior: Prior | None) -> Controller:
        if not self.scale_gains or prior is None:
            return loop.controller
        q = np.vstack([run.motion.q[:: max(1, len(run.t) // 100)] for run in loop.experiment.runs])
        present, reference = (
            np.mean(np.diagonal(loop.plant.smooth.mass_matrix(q, x), axis1=1, axis2=2), axis=0)
            for x in (theta, prior.theta)
        )
        ratio = np.clip(present / reference, 0.1, 10.0)
        changes = {k: getattr(loop.controller, k) * ratio for k in ("kp", "kd", "ki") if hasattr(loop.controller, k)}
        return replace(loop.controller, **changes)

    def _next(self, data: RegressionData, free: FreeFit, base: BaseParameters, prior: Prior | None) -> Array:
        if self.physical:
            return PhysicallyConsistent().fit(data, base, prior).theta
        return nearest_theta(base, free.beta, prior)
