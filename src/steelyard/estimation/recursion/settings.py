"""The settings of recursive least squares, and what they mean for a robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError, SteelyardError
from steelyard.estimation.estimate import EstimationError, Prior
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.spatial import Array


@dataclass(frozen=True, eq=False)
class Settings:
    """What `recursive` was asked for, checked."""

    P0: ArrayLike
    theta0: ArrayLike | None
    noise: ArrayLike
    reset_every: int | None
    every: int
    window: int
    tolerance: float
    moments: int

    def __post_init__(self) -> None:
        for name in ("every", "window", "reset_every"):
            value = getattr(self, name)
            if value is not None and not (value == int(value) and value >= 1):
                raise EstimationError(f"{name} is {value}; it counts samples or updates, from 1 on.")

    def __repr__(self) -> str:  # what a continued run must share
        noise = np.asarray(self.noise, dtype=float).tolist()
        reset = f"{self.reset_every} to {np.asarray(self.P0, dtype=float).tolist()}" if self.reset_every else "never"
        return f"noise {noise} reset {reset} window {self.window} {self.tolerance} moments {self.moments}"

    def start(self, base: BaseParameters) -> tuple[Array, Prior | None]:
        """The base parameters to begin with, and the full ones where they were given."""
        theta0 = self.theta0
        if theta0 is None:
            return np.zeros(base.rank), None
        given = np.asarray(theta0, dtype=float)
        if not np.all(np.isfinite(given)):
            raise EstimationError("theta0 is not finite; leave it out where nothing is known.")
        if given.shape == (len(base.parameters),):
            return base.values(given), Prior(given)
        if given.shape == (base.rank,):
            return given, None
        counts = f"{base.rank} base parameters or {len(base.parameters)} full ones"
        raise ShapeError(f"theta0 has shape {given.shape}; {counts} are needed.")

    def spreads(self, equations: int) -> Array:
        """The rows' standard deviation by equation."""
        given = np.asarray(self.noise, dtype=float)
        if given.shape not in ((), (equations,)) or not np.all(np.isfinite(given) & (given > 0.0)):
            raise SteelyardError(f"noise must be a positive number, or {equations} of them (one per equation).")
        return np.broadcast_to(given, (equations,)).astype(float)
