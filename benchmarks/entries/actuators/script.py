"""A script of the usual kind: gain, damping, torque limit, rotor, dry friction and offset by simulation and SciPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from entries.problem import Array, DriveProblem, MissingError, Run

_STEP = 0.005
# Dry friction as a ramp [rad/s], so that the step stays stable.
_RAMP = 0.1


class Entry:
    name = "script"

    def fit(self, problem: DriveProblem) -> None:
        try:
            from scipy.optimize import least_squares
        except ImportError as error:
            raise MissingError("pip install scipy") from error
        runs = problem.runs
        torque = max(run.gravity for run in runs)
        # Stiffness by which the load leaves an error of 0.05 rad; damping, limit and friction of a usual size with it.
        stiffness = torque / 0.05 / float(np.median([run.gain for run in runs]))
        inertia = max(run.inertia for run in runs)
        start = np.log([stiffness, 0.1 * torque, 3.0 * torque, 0.3 * inertia, 0.05 * torque])

        def error(x: Array) -> Array:
            return np.concatenate([r - run.position for r, run in zip(_rollouts(x, runs), runs, strict=True)])

        found = least_squares(error, np.append(start, 0.0), loss="soft_l1", f_scale=0.05, x_scale=1.0, max_nfev=60)
        self.x = found.x

    def predict(self, run: Run) -> Array:
        return _rollouts(self.x, [run])[0]


def _rollouts(x: Array, runs: Sequence[Run]) -> list[Array]:
    """Simulate all runs together in fixed steps, from rest at their first positions."""
    with np.errstate(over="ignore"):
        stiffness, damping, limit, rotor, dry = np.exp(np.clip(x[:5], -20.0, 20.0))
    gain = stiffness * np.array([run.gain for run in runs])
    inertia = rotor + np.array([run.inertia for run in runs])
    gravity = np.array([run.gravity for run in runs])
    grid = np.arange(0.0, max(run.t[-1] - run.t[0] for run in runs) + _STEP, _STEP)
    goal = np.array([np.interp(grid, run.t - run.t[0], np.nan_to_num(run.goal)) for run in runs])
    on = np.array([np.interp(grid, run.t - run.t[0], run.on) > 0.5 for run in runs])
    q = np.array([run.position[0] for run in runs])
    dq = np.zeros(len(runs))
    out = np.empty((len(grid), len(runs)))
    for k in range(len(grid)):
        out[k] = q
        drive = np.where(on[:, k], np.clip(gain * (goal[:, k] - q), -limit, limit), 0.0)
        torque = drive - gravity * np.sin(q) + x[5]
        # Damping and the ramp of dry friction are implicit.
        dq = dq + _STEP * torque / inertia
        dq = dq / (1.0 + _STEP * (damping + dry / np.maximum(np.abs(dq), _RAMP)) / inertia)
        q = np.clip(q + _STEP * dq, -50.0, 50.0)
    return [np.interp(run.t - run.t[0], grid, out[:, i]) for i, run in enumerate(runs)]
