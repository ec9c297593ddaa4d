"""Estimate the direction of gravity from a log, together with all parameters.

Torques are linear in gravity. So the sums of the rows are needed once, and each Gauss-Newton step is small algebra.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.check.left_out import LeftOutFits
from steelyard.ground.arrays import Array

# Gauss-Newton steps of gravity's direction, and the step [m/s²] that ends them.
_STEPS, _SHORT = 8, 0.01
_EARTH = 9.81


def gravity_directions(fits: LeftOutFits) -> Iterator[Array]:
    """Estimate the direction of gravity from the stated start and from the axes, and return each result [m/s²].

    The size of gravity stays, since it is not identifiable together with the masses.

    Args:
        fits: Fits of all parameters of the links to a log.
    """
    size = float(np.linalg.norm(fits.channels.gravity)) or _EARTH
    sums = _GravitySums(fits)
    starts = [size * s * axis for axis in np.eye(3) for s in (1.0, -1.0)]
    for start in (fits.channels.gravity, *starts):
        gravity = np.array(start)
        for _ in range(_STEPS if np.any(gravity) else 0):
            step = sums.step(gravity)
            gravity = size * (gravity + step) / np.linalg.norm(gravity + step)
            if np.linalg.norm(step) < _SHORT:
                break
        if np.any(gravity):
            yield gravity


class _GravitySums:
    """Weighted sums of products of the columns [A₀ y ∂A/∂g_x ∂A/∂g_y ∂A/∂g_z], where A₀ are the rows without gravity.

    Args:
        fits: Fits of all parameters of the links.
    """

    def __init__(self, fits: LeftOutFits) -> None:
        self.fits, self.size, self.links = fits, len(fits.columns), fits.robot.inertial_count
        self._pulls = [self.size + 1 + axis * self.links for axis in range(3)]
        total = self.size + 1 + 3 * self.links
        self.sums = np.zeros((total, total))
        without = fits.rows(fits.channels.with_signals(gravity=np.zeros(3)))
        for joint, table, equation, weight in zip(
            fits.evidence.joints, without, fits.equations, fits.weights, strict=True
        ):
            own, places = equation.among(fits.columns)
            links = [place for place in places if place < self.links]
            pulls = fits.pulls[:, joint][:, links] * fits.channels.moving[:, joint, None, None]
            rows = weight * np.hstack([table[:, [*own, -1]], *np.moveaxis(pulls, 2, 0)])
            at = np.array([*places, self.size, *(first + link for first in self._pulls for link in links)])
            self.sums[at[:, None], at] += rows.T @ rows

    def step(self, gravity: Array) -> Array:
        """Compute a Gauss-Newton step of the direction of gravity [m/s²], together with all parameters.

        Args:
            gravity: The present estimate [m/s²].
        """
        rows = np.zeros((len(self.sums), self.size + 1))
        rows[: self.size + 1] = np.eye(self.size + 1)
        for first, part in zip(self._pulls, gravity, strict=True):
            rows[first : first + self.links, : self.links] = part * np.eye(self.links)
        x = self._parameters(rows)
        across = np.linalg.svd(gravity[None])[2][1:].T
        slopes = np.zeros((len(self.sums), across.shape[1]))
        for first, part in zip(self._pulls, across, strict=True):
            slopes[first : first + self.links] = np.outer(x[: self.links], part)
        columns = np.hstack([rows[:, :-1], slopes])
        left = rows[:, -1] - rows[:, :-1] @ x
        products = columns.T @ self.sums
        normal, right = products @ columns, products @ left
        scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
        # A direction that no torque shows, such as any one about vertical axes, stays as it is.
        scaled = normal / np.outer(scale, scale) + 1e-9 * np.eye(len(normal))
        return np.asarray(across @ (np.linalg.solve(scaled, right / scale) / scale)[self.size :])

    def _parameters(self, rows: Array) -> Array:
        """Fit all parameters to the rows that `rows` combines from the columns."""
        sums = self.fits.empty_sums(1)
        sums.grams[0][0] = rows.T @ self.sums @ rows  # weighted already, of all joints
        return self.fits.parameters(sums, np.ones(len(self.fits.weights)))
