"""`FilterPath`: what a filter saw on its way, and whether it stayed on it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.spatial import Array
from steelyard.simulation.plant import Plant

# A position beyond this (rad, m) has run away.
_RUNAWAY = 1e3


@dataclass(eq=False)
class FilterPath:
    """Samples since the last check, and what is kept of the others: time, parameters, squared innovations."""

    base: BaseParameters
    plant: Plant
    check_mass: bool
    times: list[float] = field(default_factory=list)
    betas: list[Array] = field(default_factory=list)
    states: list[Array] = field(default_factory=list)
    misses: float = 0.0
    measured: int = 0
    trouble: str = ""
    checked: int = 0

    def add(self, t: float, beta: Array, x: Array, miss: float) -> None:
        self.times.append(t)
        self.betas.append(beta.copy())
        self.states.append(x.copy())
        self.misses += miss
        self.measured += len(x) // 2

    def healthy(self) -> bool:
        """Checks all samples since the last call; the first bad one is named in `trouble`."""
        betas, states = np.array(self.betas[self.checked :]), np.array(self.states[self.checked :])
        times = self.times[self.checked :]
        if not len(betas):
            return True
        n = states.shape[1] // 2
        wild = ~(np.all(np.isfinite(betas), axis=1) & np.all(np.abs(states[:, :n]) < _RUNAWAY, axis=1))
        wild |= ~np.all(np.isfinite(states), axis=1)
        reason = "the state ran away"
        if not wild.any() and self.check_mass:
            wild = smallest_masses(self.base, self.plant, betas, states[:, :n]) <= 0.0
            reason = "the mass matrix lost its positive definiteness"
        if wild.any():
            first = int(np.argmax(wild))
            self.trouble = f"{reason} at t = {times[first]:.4g} s"
            del self.times[self.checked + first :], self.betas[self.checked + first :]
            del self.states[self.checked + first :]
            return False
        self.checked = len(self.betas)
        return True

    @property
    def consistency(self) -> float:
        """The mean squared innovation over what the filter expected: 1 where it knows how good it is."""
        return self.misses / max(self.measured, 1)


def smallest_masses(base: BaseParameters, plant: Plant, betas: Array, q: Array) -> Array:
    """The smallest eigenvalue of the mass matrix for each pair of parameters and positions."""
    theta = np.zeros((len(betas), len(base.parameters)))
    theta[:, list(base.independent)] = betas
    return np.asarray(np.linalg.eigvalsh(plant.smooth.mass_matrix(q, theta))[:, 0])
