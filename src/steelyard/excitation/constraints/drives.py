"""Limits of the drives: torque and power, of the nominal model with its friction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.dynamics.function import trace
from steelyard.dynamics.model import Model
from steelyard.excitation.constraints.limits import Limits
from steelyard.excitation.constraints.traced_limit import TracedLimit
from steelyard.excitation.error import ExcitationError
from steelyard.excitation.trajectories import Family
from steelyard.robot.spatial import Array
from steelyard.scalars import Vector


def torque_limit(
    model: Model, limits: Limits, families: Sequence[Family], grid: Array, margin: float = 0.0, lazy: bool = False
) -> TracedLimit:
    """|τ_j| ≤ (1 − margin)·limit_j; the margin is for what the nominal model does not know."""
    _check_margin(margin)
    allowed = (1.0 - margin) * limits.tau
    theta = model.theta.tolist()

    def torque(q: Vector, dq: Vector, ddq: Vector) -> dict[tuple[int, ...], Any]:
        values = model.dynamics.inverse_over_scalars(q, dq, ddq, theta)
        return {(j,): v for j, v in enumerate(values) if np.isfinite(allowed[j])}

    return _limit(
        "torque limits",
        torque,
        model,
        allowed,
        families,
        grid,
        lazy,
        "allow more torque (limits['tau'], None lifts it)",
    )


def power_limit(
    model: Model, limits: Limits, families: Sequence[Family], grid: Array, margin: float = 0.0, lazy: bool = False
) -> TracedLimit:
    """|τ_j q̇_j| ≤ (1 − margin)·limit_j."""
    _check_margin(margin)
    allowed = (1.0 - margin) * limits.power
    theta = model.theta.tolist()

    def power(q: Vector, dq: Vector, ddq: Vector) -> dict[tuple[int, ...], Any]:
        values = model.dynamics.inverse_over_scalars(q, dq, ddq, theta)
        return {(j,): v * dq[j] for j, v in enumerate(values) if np.isfinite(allowed[j])}

    return _limit(
        "power limits", power, model, allowed, families, grid, lazy, "allow more power (limits['power'], None lifts it)"
    )


def _limit(
    name: str,
    body: Any,
    model: Model,
    allowed: Array,
    families: Sequence[Family],
    grid: Array,
    lazy: bool,
    advice: str,
) -> TracedLimit:
    n = model.robot.dof
    function = trace(name, {"q": n, "dq": n, "ddq": n}, body, (n,))
    scale = np.where(np.isfinite(allowed), allowed, 1.0)
    return TracedLimit(name, function, -allowed, allowed, scale, families, grid, advice, lazy)


def _check_margin(margin: float) -> None:
    if not 0.0 <= margin < 1.0:
        raise ExcitationError(f"The margin is {margin:g}; give the share of the limit to keep free, 0 ≤ margin < 1.")
