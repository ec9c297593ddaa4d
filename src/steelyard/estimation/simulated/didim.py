"""`DirectInverse` (DIDIM): the measured torque on the regressor of a simulated, noise-free motion."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard.estimation.estimate import Estimate, Estimator, Prior, Result
from steelyard.estimation.linear._free import FreeFit, nearest_theta
from steelyard.estimation.linear.least_squares import WeightedLeastSquares
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.possible.physical import PhysicallyConsistent
from steelyard.estimation.registry import estimator
from steelyard.estimation.simulated._closed_loop import ClosedLoop, simulated_near
from steelyard.estimation.simulated._start import Rounds, reweighted, starting_point
from steelyard.estimation.simulated.experiment import Experiment
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.simulation.controllers import Controller

# Steps are never shortened to less than this part.
_SHORTEST = 0.125


@estimator("didim")
@dataclass(frozen=True)
class DirectInverse(Estimator[Experiment]):
    """Direct and inverse dynamic identification models (Gautier, Janot & Vandanjon 2013): torque alone is needed.

    The closed loop is simulated with the parameters at hand; its motion, free of noise, makes the regressor for the
    measured torque; weighted least squares gives the next parameters. It is Gauss–Newton on ‖τ − τ_s‖ in which
    the simulated motion is taken not to change, true where the robot follows its reference well.

    `iterations` at most; it ends when no parameter moves by more than `tolerance` standard errors. With `physical`
    every fit is the physically consistent one. `scale_gains` multiplies the simulated gains by the ratio of the
    inertias at hand to the prior's, as the authors do: the loop then stays as fast as it was designed for, however
    far off the parameters are. Use it only where the prior is the model that the gains were chosen for.
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
            taken, data = self._rows(loop, theta, start.theta, prior)
            free = reweighted(LeastSquaresProblem.of(data, base), weights)
            weights = 1.0 / np.maximum(free.residual_std, free.problem.floor)  # settle together with the parameters
            theta = self._next(data, free, base, prior)
            rounds.moved(base.values(taken), base.values(theta), free, residual_std=tuple(free.residual_std.tolist()))
            # Steps that grow go too far: the motion does change with the parameters.
            share = max(0.5 * share, _SHORTEST) if rounds.change > last else min(1.0, 1.5 * share)
            last = rounds.change
            theta = taken + share * (theta - taken)
        made = (PhysicallyConsistent() if self.physical else WeightedLeastSquares()).fit(data, base, prior)
        result, notes = rounds.result, made.notes
        if result is not Result.CONVERGED:
            notes = (
                *notes,
                f"The parameters still moved by {last:.2g} standard errors in the last round: the simulated motion "
                "depends on them too much for this method; output error (clie, cloe) allows for that.",
            )
        elif made.result is Result.BOUNDARY:
            result = Result.BOUNDARY
        details = {**made.details, "start": start.beta}
        return replace(made, result=result, history=tuple(rounds.history), notes=notes, details=details)

    def _rows(self, loop: ClosedLoop, theta: Array, safe: Array, prior: Prior | None) -> tuple[Array, RegressionData]:
        """Rows at θ; where its loop runs away, half way back to the start until it does not."""
        theta, motions = simulated_near(theta, safe, lambda x: loop.motions(x, self._controller(loop, x, prior)))
        measured = [
            replace(m, tau=run.tau, velocity="simulated") for m, run in zip(motions, loop.experiment.runs, strict=True)
        ]
        return theta, loop.regression(measured)

    def _controller(self, loop: ClosedLoop, theta: Array, prior: Prior | None) -> Controller:
        if not self.scale_gains or prior is None:
            return loop.controller
        q = np.vstack([run.motion.q[:: max(1, len(run.t) // 100)] for run in loop.experiment.runs])
        now, then = (
            np.mean(np.diagonal(loop.plant.smooth.mass_matrix(q, x), axis1=1, axis2=2), axis=0)
            for x in (theta, prior.theta)
        )
        ratio = np.clip(now / then, 0.1, 10.0)
        changes = {k: getattr(loop.controller, k) * ratio for k in ("kp", "kd", "ki") if hasattr(loop.controller, k)}
        return replace(loop.controller, **changes)

    def _next(self, data: RegressionData, free: FreeFit, base: BaseParameters, prior: Prior | None) -> Array:
        if self.physical:
            return PhysicallyConsistent().fit(data, base, prior).theta
        return nearest_theta(base, free.beta, prior)
