"""Comparison of designed and random motions: the same simulated robot, sensors and identification."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import steelyard as sy
from steelyard.excitation import SearchSettings
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.excite_options import ExciteOptions
from steelyard.excitation.motion_design import expected_noise
from steelyard.excitation.search_problem import comparison_motion, requirements
from steelyard.excitation.trajectories import Fourier
from steelyard.parameters.terms import identification_terms
from steelyard.rehearsal.rehearse import rehearse, true_model


@dataclass
class Comparison:
    """Errors of base parameters (seeds, parameters) and of hold-out torques (seeds, joints) for both motions."""

    designed: np.ndarray
    random: np.ndarray
    designed_holdout: np.ndarray
    random_holdout: np.ndarray
    designed_se: np.ndarray
    random_se: np.ndarray
    predicted: np.ndarray
    condition: tuple[float, float]

    @property
    def predicted_gain(self) -> float:
        """Median ratio, over parameters, of the standard errors predicted by WᵀW."""
        return float(np.median(self.predicted))

    @property
    def stated_gain(self) -> float:
        """Median ratio of the standard errors that the identifications report."""
        return float(np.median(np.median(self.random_se, axis=0) / np.median(self.designed_se, axis=0)))

    @property
    def true_gain(self) -> float:
        """Median ratio of the true errors (RMS over seeds)."""
        return float(np.median(_rms(self.random) / _rms(self.designed)))

    @property
    def holdout_gain(self) -> float:
        """Ratio of the errors of predicted torques: geometric mean over joints, RMS over seeds."""
        return float(np.exp(np.mean(np.log(_rms(self.random_holdout) / _rms(self.designed_holdout)))))


def compare(name: str, seeds: range, search: SearchSettings | None = None) -> Comparison:
    robot = sy.load_robot(name)
    terms = identification_terms(robot)
    limits, noise = limits_from(robot, None), expected_noise(robot)
    used = np.flatnonzero(robot.torque_used)
    plan = sy.excite(robot, terms=terms, criterion="d", weights=1.0 / noise[used], search=search)
    families = (Fourier(5, 10.0),) * robot.dof
    needs = requirements(robot, families, limits, ExciteOptions())[1:]
    base = sy.base_parameters(robot, terms)
    own = plan.standard_errors(noise[used])
    sums: dict[str, list[np.ndarray]] = {x: [] for x in ("d", "r", "dh", "rh", "ds", "rs", "p")}
    worst = []
    for seed in seeds:
        other = comparison_motion(families, limits, seed, needs)
        holdout = comparison_motion(families, limits, 1000 + seed, needs)
        truth = true_model(robot, terms, "perturbed", 0.1, seed)
        signals = holdout.sample(holdout.times(50.0))
        W = base.regressor_columns(truth.dynamics.torque_regressor(*other.sample(other.times(100.0))))
        information = np.einsum("njk,njl,j->kl", W[:, used], W[:, used], 1.0 / noise[used] ** 2)
        sums["p"].append(np.sqrt(np.diag(np.linalg.inv(information))) / own)
        worst.append(np.linalg.cond(W[:, used].reshape(-1, W.shape[2])))
        for key, motion in (("d", plan.trajectory), ("r", other)):
            rehearsal = rehearse(robot, motion, terms=terms, truth=truth, seed=seed, seeds=1, limits=limits)
            fit = rehearsal.identification.free
            sums[key].append(fit.beta - base.values(truth.theta))
            sums[key + "s"].append(fit.standard_errors)
            model = sy.Model(robot, terms, fit.theta)
            error = (model.torque(*signals) - truth.torque(*signals))[:, used]
            sums[key + "h"].append(np.sqrt(np.mean(error**2, axis=0)))
    arrays = {key: np.array(x) for key, x in sums.items()}
    return Comparison(
        arrays["d"], arrays["r"], arrays["dh"], arrays["rh"], arrays["ds"], arrays["rs"],
        np.median(arrays["p"], axis=0), (plan.condition_number, float(np.median(worst))),
    )  # fmt: skip


def _rms(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(x**2, axis=0))
