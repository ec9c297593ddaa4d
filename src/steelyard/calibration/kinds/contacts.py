"""Contacts of one point of the tool: planes, spheres, and holes that it meets repeatedly; and wires to anchors.

The fit includes the unknown places of planes, spheres, holes and anchors in the robot's base.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from steelyard.calibration.chain import Tips, skews
from steelyard.calibration.measurement import MEASUREMENTS, LinearReadings, Measurement, Setup
from steelyard.errors import LogError
from steelyard.ground.arrays import Array, IndexArray

# First guesses of the tool's point are on the axes of its frame, at these parts of the extent of the poses.
_GUESSES = (0.0, 0.1, 0.3)
_ROUNDS = 10


@dataclass(frozen=True, eq=False)
class _Contact(Measurement):
    """One point of the tool and some surfaces with equally many numbers each."""

    @property
    def surface(self) -> IndexArray:
        """Index of the surface of every pose."""
        return self.readings["surface"].astype(np.intp)

    @property
    def surface_count(self) -> int:
        return int(self.surface.max()) + 1

    @property
    def blocks(self) -> tuple[tuple[slice, str], ...]:
        return ((slice(0, 1), "distance"),)

    @abstractmethod
    def fitted(self, points: Array) -> Array:
        """Fit the surfaces to points in the base (`points`)."""

    @abstractmethod
    def toward(self, points: Array, surfaces: Array) -> tuple[Array, Array, Array]:
        """Compute residuals and their derivatives by the point and by the numbers of the surfaces.

        Args:
            points: Points of the tool in the base, shape (poses, 3).
            surfaces: Numbers of the surfaces.
        """

    def start(self, tips: Tips) -> list[Setup]:
        out = []
        for point in self._guesses(tips):
            for _ in range(_ROUNDS):
                places = tips.position + tips.rotation @ point
                surfaces = self.fitted(places)
                r, by_point, _ = self.toward(places, surfaces)
                rows = np.einsum("nri,nij->nrj", by_point, tips.rotation)
                finite = np.isfinite(r)
                step = np.linalg.lstsq(rows[finite], -r[finite], rcond=1e-6)[0]
                point = point + 0.5 * step
            out.append(Setup.plain(point[None], self.fitted(tips.position + tips.rotation @ point)))
        return sorted(out, key=lambda s: float(np.nanmedian(np.abs(self.residuals(s, tips)))))[:3]

    def _guesses(self, tips: Tips) -> Iterator[Array]:
        size = float(np.ptp(tips.position, axis=0).max())
        yield np.zeros(3)
        for part, axis, sign in product(_GUESSES[1:], range(3), (1.0, -1.0)):
            yield sign * part * size * np.eye(3)[axis]

    def residuals(self, setup: Setup, tips: Tips) -> Array:
        return self.toward(tips.position + tips.rotation @ setup.points[0], setup.surfaces)[0]

    def linear(self, setup: Setup, tips: Tips) -> LinearReadings:
        arm = tips.rotation @ setup.points[0]
        _, by_point, by_surface = self.toward(tips.position + arm, setup.surfaces)
        twist = np.concatenate([by_point, -by_point @ skews(arm)], axis=2)
        return LinearReadings(twist, np.concatenate([by_point @ tips.rotation, by_surface], axis=2))

    def moved(self, setup: Setup, step: Array) -> Setup:
        return replace(
            setup, points=setup.points + step[None, :3],
            surfaces=self.displaced(setup.surfaces, step[3:].reshape(len(setup.surfaces), -1)),
        )  # fmt: skip

    def displaced(self, surfaces: Array, step: Array) -> Array:
        """Change the numbers of the surfaces.

        Args:
            surfaces: Numbers.
            step: Change.
        """
        return np.asarray(surfaces + step)

    def setup_names(self, setup: Setup) -> tuple[str, ...]:
        return (
            *(f"tool.{x}" for x in "xyz"),
            *(f"{self.name} {k + 1}.{x}" for k in range(len(setup.surfaces)) for x in "xyz"),
        )

    def spread_over(self, columns: Array) -> Array:
        """Place derivatives by the numbers of each pose's own surface among those of all (`columns`)."""
        n, rows, width = columns.shape
        out = np.zeros((n, rows, self.surface_count, width))
        out[np.arange(n), :, self.surface] = columns
        return out.reshape(n, rows, -1)

    def of_surface(self, k: int, least: int) -> IndexArray:
        """Poses on one surface.

        Args:
            k: Index of the surface.
            least: Smallest number of poses.
        """
        own = np.flatnonzero(self.surface == k)
        if len(own) < least:
            raise LogError(f"{self.name.capitalize()} {k + 1} has {len(own)} poses; {least} or more determine it.")
        return own


@MEASUREMENTS.register("plane")
@dataclass(frozen=True, eq=False)
class PlaneContacts(_Contact):
    """Touches of planes: a flat table, the faces of a cube. A plane has a normal and a distance."""

    name, about = "plane", "touches of planes with one point of the tool: touch probe"
    has_length = False

    def fitted(self, points: Array) -> Array:
        out = []
        for k in range(self.surface_count):
            own = points[self.of_surface(k, 4)]
            centre = own.mean(axis=0)
            normal = np.linalg.svd(own - centre)[2][-1]
            out.append(np.append(normal, normal @ centre))
        return np.array(out)

    def toward(self, points: Array, surfaces: Array) -> tuple[Array, Array, Array]:
        own = surfaces[self.surface]
        r = np.einsum("ni,ni->n", own[:, :3], points) - own[:, 3]
        # Two turns of the normal, and the distance.
        columns = np.stack(
            [np.einsum("ni,ni->n", _sides(own[:, :3])[k], points) for k in (0, 1)] + [-np.ones(len(points))], axis=1
        )
        return r[:, None], own[:, None, :3], self.spread_over(columns[:, None])

    def displaced(self, surfaces: Array, step: Array) -> Array:
        u, v = _sides(surfaces[:, :3])
        normal = surfaces[:, :3] + step[:, :1] * u + step[:, 1:2] * v
        return np.column_stack([normal / np.linalg.norm(normal, axis=1)[:, None], surfaces[:, 3] + step[:, 2]])


def _sides(normals: Array) -> tuple[Array, Array]:
    """Two unit vectors across each normal."""
    least = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
    u = np.cross(normals, least)
    u /= np.linalg.norm(u, axis=1)[:, None]
    return u, np.cross(normals, u)


@MEASUREMENTS.register("contact")
@dataclass(frozen=True, eq=False)
class RepeatedPoints(_Contact):
    """A point of the tool that meets the same hole in several postures."""

    name, about = "contact", "the same point met in several postures: pin in a hole"
    has_length = False

    @property
    def blocks(self) -> tuple[tuple[slice, str], ...]:
        return ((slice(0, 3), "position"),)

    def fitted(self, points: Array) -> Array:
        return np.array([np.median(points[self.of_surface(k, 2)], axis=0) for k in range(self.surface_count)])

    def toward(self, points: Array, surfaces: Array) -> tuple[Array, Array, Array]:
        one = np.broadcast_to(np.eye(3), (len(points), 3, 3))
        return points - surfaces[self.surface], one, self.spread_over(-one)


@MEASUREMENTS.register("sphere")
@dataclass(frozen=True, eq=False)
class SphereContacts(_Contact):
    """Touches of balls. Their radius, with that of the probe, is known."""

    name, about = "sphere", "touches of balls of known radius with one point of the tool: touch probe"

    @property
    def radius(self) -> Array:
        """Radius of every pose's ball [m]."""
        if "radius" not in self.readings:
            raise LogError("A ball needs its radius, that of the probe included; add a column radius_m.")
        return self.readings["radius"]

    def fitted(self, points: Array) -> Array:
        out = []
        for k in range(self.surface_count):
            own = self.of_surface(k, 4)
            p, r = points[own], self.radius[own]
            A = np.column_stack([2.0 * p, np.ones(len(p))])
            out.append(np.linalg.lstsq(A, np.sum(p**2, axis=1) - r**2, rcond=1e-9)[0][:3])
        return np.array(out)

    def toward(self, points: Array, surfaces: Array) -> tuple[Array, Array, Array]:
        away = points - surfaces[self.surface]
        length = np.maximum(np.linalg.norm(away, axis=1), 1e-12)
        direction = (away / length[:, None])[:, None]
        return (length - self.radius)[:, None], direction, self.spread_over(-direction)


@MEASUREMENTS.register("distances")
@dataclass(frozen=True, eq=False)
class WireDistances(_Contact):
    """Distances of one point of the tool to fixed anchors: draw-wire encoders, laser rangers."""

    name, about = "distances", "distances of one point of the tool to fixed anchors: draw-wire encoder"

    @property
    def lengths(self) -> Array:
        """Measured distances [m], shape (poses, anchors)."""
        return self.readings["distances"]

    @property
    def blocks(self) -> tuple[tuple[slice, str], ...]:
        return tuple((slice(k, k + 1), "distance") for k in range(self.lengths.shape[1]))

    def fitted(self, points: Array) -> Array:
        out = []
        for length in self.lengths.T:
            finite = np.isfinite(length)
            if finite.sum() < 8:
                raise LogError(f"An anchor has {int(finite.sum())} distances; 8 or more determine it.")
            p = points[finite]
            A = np.column_stack([2.0 * p, -np.ones(len(p))])
            out.append(np.linalg.lstsq(A, np.sum(p**2, axis=1) - length[finite] ** 2, rcond=1e-9)[0][:3])
        return np.array(out)

    def toward(self, points: Array, surfaces: Array) -> tuple[Array, Array, Array]:
        away = points[:, None] - surfaces
        length = np.maximum(np.linalg.norm(away, axis=2), 1e-12)
        direction = away / length[..., None]
        n, count = length.shape
        by_anchor = np.zeros((n, count, count, 3))
        for k in range(count):
            by_anchor[:, k, k] = -direction[:, k]
        return length - self.lengths, direction, by_anchor.reshape(n, count, -1)
