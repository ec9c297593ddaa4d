"""Refine the LuGre parameters of a single joint until its simulated motion is the measured one (output error)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SimulationError, UnknownNameError
from steelyard.robot.spatial import Array
from steelyard.signals.log import Log
from steelyard.simulation.lugre import LuGre, simulate_lugre

NAMES = tuple(f.name for f in fields(LuGre))


@dataclass(frozen=True, eq=False)
class LuGreFit:
    """What was found: the parameters, the standard errors of the free ones (as for white noise), and the misfit."""

    friction: LuGre
    standard_errors: dict[str, float]
    rmse: float
    start_rmse: float


def refine_lugre(
    model: Model, log: Log, start: LuGre, free: Sequence[str] = NAMES, *, step: float = 1e-3, scale: float = 1e-3
) -> LuGreFit:
    """Fit `free` parameters to a log of a robot with one joint (`load_robot(…, joints=[…])`), driven by its torques.

    Positions of the whole log are predicted from its first state and its torques alone. Parameters move on a
    logarithmic scale, so that they stay positive; `scale` (rad, m) is the misfit beyond which samples count less: after
    a break-away at the wrong moment everything is wrong, and should not rule the fit.
    """
    if model.robot.dof != 1:
        raise SimulationError(f"'{model.robot.name}' has {model.robot.dof} joints; lock all but one.")
    if log.tau is None or log.dq is None:
        raise LogError("The log has no torque or no velocity; both are needed to predict a motion.")
    for name in free:
        if name not in NAMES:
            raise UnknownNameError("LuGre parameter", name, NAMES)
    first = np.array([float(getattr(start, name)[0]) for name in free])
    if np.any(first <= 0.0):
        raise SimulationError("Parameters to be fitted must start above zero.")
    tau, speed = log.tau[:-1], log.dq[0]

    def predicted(x: Array) -> Array:
        friction = _with(start, free, first * np.exp(x))
        run = simulate_lugre(model, friction, tau, times=log.t, step=step, q0=log.q[0], dq0=speed)
        return np.asarray(run.simulation.q[:, 0] - log.q[:, 0])

    from scipy.optimize import least_squares  # takes a tenth of a second to import

    settings: dict[str, Any] = {"loss": "soft_l1", "f_scale": scale, "diff_step": 1e-3, "xtol": 1e-4, "ftol": 1e-6}
    found = least_squares(predicted, np.zeros(len(free)), bounds=(-3.0, 3.0), **settings)
    rest = predicted(found.x)
    spread = float(np.sqrt(np.mean(rest**2)))
    covariance = np.linalg.pinv(found.jac.T @ found.jac) * spread**2
    values = first * np.exp(found.x)
    errors = dict(zip(free, (values * np.sqrt(np.diag(covariance))).tolist(), strict=True))
    begun = float(np.sqrt(np.mean(predicted(np.zeros(len(free))) ** 2)))
    return LuGreFit(_with(start, free, values), errors, spread, begun)


def _with(start: LuGre, free: Sequence[str], values: Array) -> LuGre:
    changes: dict[str, Any] = {name: np.array([value]) for name, value in zip(free, values, strict=True)}
    # On its way a fit may try static friction below Coulomb's, which is no LuGre model: they are then the same.
    static, coulomb = changes.get("static", start.static), changes.get("coulomb", start.coulomb)
    return replace(start, **{**changes, "static": np.maximum(static, coulomb)})
