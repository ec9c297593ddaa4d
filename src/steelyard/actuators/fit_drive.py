"""`fit_drive`: output error over whole rollouts, with exact sensitivities, bounds and a robust loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.actuators.drive_structure import FIRST_POSITION, FIRST_VELOCITY, DriveStructure
from steelyard.actuators.rollout import MOST_DELAY, Rollouts
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array, one_blas_thread

# Typical values, for scaling and for effects that the linear start does not have. They only define the start of a
# search: friction of a tenth of the largest load, a Stribeck velocity of a slow motion, a filter of one 50 Hz frame.
_USUAL = {
    "load_friction": 0.1, "load_friction_motor": 0.1, "load_friction_external": 0.1, "load_friction_stribeck": 0.05,
    "load_friction_motor_stribeck": 0.05, "load_friction_external_stribeck": 0.05, "stribeck_velocity": 0.3,
    "goal_time": 0.02, "delay": 0.005, "feedback_delay": 0.005, "backlash": 0.01, "offset": 0.02, "kp_gain": 1.0,
    "kd_gain": 1.0, "no_load_speed": 15.0,
}  # fmt: skip
# With load-dependent friction above the load itself, the joint would hold any load.
_HIGHEST = {name: 0.98 for name in _USUAL if name.startswith("load_friction")} | {
    "delay": MOST_DELAY, "feedback_delay": MOST_DELAY, "goal_time": 0.5, "backlash": 0.5,
}  # fmt: skip
_LOWEST = {"stribeck_velocity": 1e-2, "goal_time": 1e-3, "offset": -math.pi, "no_load_speed": 0.1}
# Residuals beyond twice the typical one count less: 95 % efficient for normal noise, like Huber's choice.
_SOFT = 2.0
# Range of first positions and velocities, in standard deviations of their estimates.
_START = 4.0


@dataclass(frozen=True)
class DriveFit:
    """A fitted structure.

    Args:
        structure: Structure.
        values: All parameters.
        free: Names of the estimated parameters.
        residual: Simulated minus measured positions [rad].
        jacobian: Sensitivities of the residual to the free parameters.
        starts: Sensitivities to the first position and velocity of each sample's run, `(samples, 2)`; None: they are
            not estimated.
        scale: Scale of the robust loss [rad]; beyond it the loss grows linearly.
        cost: Robust cost per sample, comparable between starts.
        evaluations: Number of simulations with sensitivities.
    """

    structure: DriveStructure
    values: dict[str, float]
    free: tuple[str, ...]
    residual: Array
    jacobian: Array
    starts: Array | None
    scale: float
    cost: float
    evaluations: int


def usual_values(rollouts: Rollouts) -> dict[str, float]:
    """Return a typical value of every parameter, from the largest torque and inertia of the loads of `rollouts`."""
    torque = max(max(log.load.gravity for log in rollouts.logs), 1e-3)
    inertia = max(max(log.load.inertia for log in rollouts.logs), 1e-6)
    volts = max(rollouts.volts, 1e-3)
    return {
        **_USUAL, "friction_base": 0.05 * torque, "friction_stribeck": 0.05 * torque, "friction_viscous": 0.02 * torque,
        "armature": 0.2 * inertia, "torque_per_volt": torque / volts, "back_emf": 0.1 * torque, "duty_gain": 1.0,
        "stiffness": 5.0 * torque, "damping": 0.2 * torque, "torque_limit": 1.5 * torque,
        "load_friction_quad": 0.1 / torque, "load_friction_motor_quad": 0.05 / torque,
        "load_friction_external_quad": 0.05 / torque,
    }  # fmt: skip


def fit_drive(
    structure: DriveStructure, rollouts: Rollouts, start: Mapping[str, float], given: Mapping[str, float],
    scale: float | None = None, most: int = 60, tolerance: float = 1e-6, free_starts: bool = False,
) -> DriveFit:  # fmt: skip
    """Fit the parameters of a structure to runs.

    Args:
        structure: Structure.
        rollouts: Runs.
        start: First values of parameters; the others start at typical values.
        given: Known parameters.
        scale: Scale of the robust loss [rad]; default: from the residuals of a first fit.
        most: Largest number of evaluations.
        tolerance: Relative change of the cost that ends the search.
        free_starts: Also estimate the first position and velocity of each run, within the noise of the encoder.
            Otherwise a sticking joint would keep the error of the first sample.
    """
    search = _Search(structure, rollouts, start, given, free_starts)
    if scale is None:
        # An error of 0.1 rad matters in any use of a drive; larger residuals must not dominate the first fit.
        first = search.run(search.x0, 0.1, most, tolerance)
        residual = search.residual(first.x)
        scale = robust_scale(residual, rollouts)
        last = search.run(first.x, scale, most, tolerance)
        evaluations = first.nfev + last.nfev
    else:
        last = search.run(search.x0, scale, most, tolerance)
        evaluations = last.nfev
    return search.result(last.x, scale, evaluations)


def robust_scale(residual: Array, rollouts: Rollouts) -> float:
    """Return twice the standard deviation of the residuals, estimated by their median.

    Args:
        residual: Residuals [rad].
        rollouts: Their runs; the resolution of the encoder is the smallest scale.
    """
    return max(_SOFT * 1.4826 * float(np.median(np.abs(residual))), rollouts.resolution, 1e-6)


class _Search:
    def __init__(
        self, structure: DriveStructure, rollouts: Rollouts, start: Mapping[str, float], given: Mapping[str, float],
        free_starts: bool,
    ) -> None:  # fmt: skip
        self.structure, self.rollouts, self.given = structure, rollouts, dict(given)
        usual = usual_values(rollouts)
        self.free = tuple(n for n in structure.names if n not in given)
        self._least = np.array([_LOWEST.get(n, 0.0) for n in self.free])
        self._most = np.array([_HIGHEST.get(n, math.inf) for n in self.free])
        x0 = np.array([start.get(n, 0.0 if n == "offset" else usual[n]) for n in self.free])
        usual_size = np.array([usual[n] for n in self.free])
        self.unit = np.clip(np.abs(x0), 0.1 * usual_size, 1e3 * usual_size)
        lanes = len(rollouts.noise) if free_starts else 0
        self._starts = lanes
        noise = np.maximum(np.concatenate([rollouts.noise, rollouts.speeds[:, 1]])[: 2 * lanes], 1e-9)
        first = np.concatenate([np.zeros(lanes), rollouts.speeds[:lanes, 0]])
        self._least = np.concatenate([self._least, first - _START * noise])
        self._most = np.concatenate([self._most, first + _START * noise])
        self.unit = np.concatenate([self.unit, noise])
        self.x0 = self._inside(np.concatenate([x0, first]), 1e-3)
        self._last: tuple[bytes, Array, Array] | None = None

    def _inside(self, x: Array, margin: float) -> Array:
        """Move a point into the bounds: the search requires a feasible start."""
        return np.clip(x, self._least + margin * self.unit, self._most - margin * self.unit)

    def values(self, x: Array) -> dict[str, float]:
        both = {**self.given, **dict(zip(self.free, (float(v) for v in x), strict=False))}
        return {name: both[name] for name in self.structure.names}

    def both(self, x: Array) -> tuple[Array, Array]:
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            p, starts = len(self.free), x[len(self.free) :].reshape(2, -1) if self._starts else None
            wrt = (*self.free, FIRST_POSITION, FIRST_VELOCITY) if self._starts else self.free
            q, jacobian = self.rollouts.simulate(self.structure, self.values(x), wrt, starts)
            if self._starts:
                own = self.rollouts.stretch[:, None] == np.arange(self._starts)
                jacobian = np.concatenate([jacobian[:, :p], own * jacobian[:, p, None], own * jacobian[:, p + 1, None]],
                                          axis=1)  # fmt: skip
            # A drive with extreme values may diverge; the search must reject such a step and not crash.
            residual = np.nan_to_num(q - self.rollouts.measured, nan=1e3, posinf=1e3, neginf=-1e3)
            self._last = key, np.clip(residual, -1e3, 1e3), np.clip(np.nan_to_num(jacobian), -1e9, 1e9)
        return self._last[1], self._last[2]

    def residual(self, x: Array) -> Array:
        return self.both(x)[0]

    def run(self, x0: Array, scale: float, most: int, tolerance: float) -> Any:
        from scipy.optimize import least_squares

        if not self.free:
            raise SteelyardError("All parameters of the drive are given; there is nothing to estimate.")
        with one_blas_thread():
            return least_squares(
                self.residual, self._inside(x0, 1e-6),
                jac=lambda x: self.both(x)[1], bounds=(self._least, self._most), x_scale=self.unit, loss="soft_l1",
                f_scale=scale, max_nfev=most, ftol=tolerance, xtol=1e-3 * tolerance**0.5,
            )  # fmt: skip

    def result(self, x: Array, scale: float, evaluations: int) -> DriveFit:
        residual, jacobian = self.both(x)
        p, starts = len(self.free), None
        if self._starts:
            # Each sample depends on the start of its own run.
            starts = jacobian[:, p:].reshape(len(residual), 2, -1).sum(axis=2)
        return DriveFit(
            self.structure,
            self.values(x),
            self.free,
            residual,
            jacobian[:, :p],
            starts,
            scale,
            robust_cost(residual, scale),
            evaluations,
        )


def robust_cost(residual: Array, scale: float) -> float:
    """Return the mean of the loss over samples [rad²].

    Args:
        residual: Residuals [rad].
        scale: Scale of the loss [rad]; beyond it the loss grows linearly.
    """
    return float(np.mean(2.0 * scale**2 * (np.sqrt(1.0 + (residual / scale) ** 2) - 1.0)))
