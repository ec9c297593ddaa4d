"""Names and units of the ten inertial parameters of a link."""

from __future__ import annotations

import numpy as np

from steelyard.parameters.terms import Parameter
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array, pseudo_inertia

INERTIAL_NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
_UNITS = ("kg", "kg m", "kg m", "kg m", *("kg m²",) * 6)


def inertial_parameters_of(robot: Robot) -> tuple[Parameter, ...]:
    """Ten parameters per link, numbered as the links are: m1, mx1, …, Izz1, m2, …"""
    return tuple(
        Parameter(f"{name}{i + 1}", unit, lower=0.0 if name in ("m", "Ixx", "Iyy", "Izz") else -np.inf)
        for i in range(len(robot.links))
        for name, unit in zip(INERTIAL_NAMES, _UNITS, strict=True)
    )


def smallest_pseudo_eigenvalues(parameters: Array) -> Array:
    """The smallest eigenvalue of each link's pseudo-inertia; a body is physically possible iff it is positive."""
    blocks = np.asarray(parameters, dtype=float).reshape(-1, 10)
    return np.array([np.linalg.eigvalsh(pseudo_inertia(block))[0] for block in blocks])
