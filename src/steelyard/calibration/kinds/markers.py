"""Points of the tool seen by a tracker, and whole poses seen by a camera."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard.calibration.chain import Tips, exponential, rotation_vectors, skews
from steelyard.calibration.measurement import (
    MEASUREMENTS,
    LinearReadings,
    Measurement,
    Setup,
    base_names,
    by_base,
    by_tip,
)
from steelyard.calibration.weights import products
from steelyard.errors import LogError
from steelyard.ground.arrays import Array, IndexArray

# Rounds of reweighting of the first fit, and the smallest residual that counts [m]: a first fit needs no more.
_ROUNDS, _FINEST = 12, 1e-5
# A matrix of rotation and scale has equal singular values; errors of a robot change them by a few per cent.
_EVEN = 0.8


@MEASUREMENTS.register("points")
@dataclass(frozen=True, eq=False)
class PointReadings(Measurement):
    """One or several points of the tool, in the frame of a tracker."""

    name, about = "points", "points of the tool: laser tracker, motion capture"

    @property
    def seen(self) -> Array:
        """Measured points [m], shape (poses, points, 3)."""
        return self.readings["points"]

    @property
    def blocks(self) -> tuple[tuple[slice, str], ...]:
        return tuple((slice(3 * k, 3 * k + 3), "position") for k in range(self.seen.shape[1]))

    def start(self, tips: Tips) -> list[Setup]:
        fits = [first_base(tips, self.seen[own], own) for own in self._by_session()]
        points = fits[int(np.argmax([len(own) for own in self._by_session()]))][2]
        return [
            Setup(np.array([f[0] for f in fits]), np.array([f[1] for f in fits]), points, np.eye(3), np.zeros((0, 0)))
        ]

    def _by_session(self) -> list[IndexArray]:
        return [np.flatnonzero(self.sessions == k) for k in range(self.session_count)]

    def residuals(self, setup: Setup, tips: Tips) -> Array:
        own, place = setup.base_rotation[self.sessions], setup.base_position[self.sessions]
        inside = tips.position[:, None] + np.einsum("nij,kj->nki", tips.rotation, setup.points)
        outside = np.einsum("nij,nkj->nki", own, inside) + place[:, None]
        return np.asarray(outside - self.seen).reshape(len(self), -1)

    def linear(self, setup: Setup, tips: Tips) -> LinearReadings:
        own, count = setup.base_rotation[self.sessions], len(setup.points)
        twist, base = np.zeros((len(self), 3 * count, 6)), []
        tool = np.zeros((len(self), 3 * count, 3 * count))
        for k, point in enumerate(setup.points):
            arm = tips.rotation @ point
            twist[:, 3 * k : 3 * k + 3] = by_tip(own, arm)
            base.append(by_base(self, setup, tips.position + arm))
            tool[:, 3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = own @ tips.rotation
        return LinearReadings(twist, np.concatenate([np.concatenate(base, axis=1), tool], axis=2))

    def moved(self, setup: Setup, step: Array) -> Setup:
        count = 6 * len(setup.base_rotation)
        next_setup = setup.moved_base(step[:count].reshape(-1, 6))
        return replace(next_setup, points=setup.points + step[count:].reshape(-1, 3))

    def setup_names(self, setup: Setup) -> tuple[str, ...]:
        count = len(setup.points)
        label = ["tool"] if count == 1 else [f"point {k + 1}" for k in range(count)]
        return (*base_names(len(setup.base_rotation)), *(f"{name}.{x}" for name in label for x in "xyz"))


@MEASUREMENTS.register("pose")
@dataclass(frozen=True, eq=False)
class PoseReadings(Measurement):
    """Position and orientation of a frame of the tool, in the frame of a camera or of a board."""

    name, about = "pose", "pose of the tool: camera, motion capture"

    @property
    def blocks(self) -> tuple[tuple[slice, str], ...]:
        return (slice(0, 3), "position"), (slice(3, 6), "rotation")

    def start(self, tips: Tips) -> list[Setup]:
        # Four points of the measured frame give its pose; their distance weighs angles against lengths.
        arm = max(float(np.ptp(tips.position, axis=0).max()), 1e-3) / 2.0
        corners = arm * np.vstack([np.zeros(3), np.eye(3)])
        out: Setup | None = None
        for k in range(self.session_count):
            own = np.flatnonzero(self.sessions == k)
            corner_points = self.readings["position"][own][:, None] + np.einsum(
                "nij,kj->nki", self.readings["rotation"][own], corners
            )
            rotation, position, points = first_base(tips, corner_points, own)
            tool_rotation = nearest_rotation(np.asarray((points[1:] - points[0]).T / arm, dtype=float))[0]
            if out is None:
                out = Setup(rotation[None], position[None], points[:1], tool_rotation, np.zeros((0, 0)))
            else:
                out = replace(
                    out,
                    base_rotation=np.concatenate([out.base_rotation, rotation[None]]),
                    base_position=np.vstack([out.base_position, position]),
                )
        assert out is not None
        return [out]

    def as_predicted(self, setup: Setup, tips: Tips) -> PoseReadings:
        rotations = setup.base_rotation[self.sessions] @ tips.rotation @ setup.tool_rotation
        return replace(self, readings={**self.readings, "rotation": rotations})

    def residuals(self, setup: Setup, tips: Tips) -> Array:
        own, place = setup.base_rotation[self.sessions], setup.base_position[self.sessions]
        inside = tips.position + tips.rotation @ setup.points[0]
        outside = np.einsum("nij,nj->ni", own, inside) + place
        rotations = self.readings["rotation"]
        finite = np.asarray(np.isfinite(rotations).all(axis=(1, 2)))
        turn = (
            own
            @ tips.rotation
            @ setup.tool_rotation
            @ np.swapaxes(np.where(finite[:, None, None], rotations, np.eye(3)), 1, 2)
        )
        vectors = np.where(finite[:, None], rotation_vectors(turn), np.nan)
        return np.hstack([outside - self.readings["position"], vectors])

    def linear(self, setup: Setup, tips: Tips) -> LinearReadings:
        n, own = len(self), setup.base_rotation[self.sessions]
        arm = tips.rotation @ setup.points[0]
        # The left Jacobian of the residual rotation, to second order: residuals are small angles.
        half = skews(np.nan_to_num(self.residuals(setup, tips)[:, 3:]))
        turn = (np.eye(3) - 0.5 * half + half @ half / 12.0) @ own
        zero = np.zeros((n, 3, 3))
        twist = np.concatenate([by_tip(own, arm), np.concatenate([zero, turn], axis=2)], axis=1)
        sessions = len(setup.base_rotation)
        base = np.zeros((n, 6, sessions, 6))
        base[:, :3] = by_base(self, setup, tips.position + arm).reshape(n, 3, sessions, 6)
        base[np.arange(n), 3:, self.sessions, 3:] = turn
        tool = np.zeros((n, 6, 6))
        tool[:, :3, :3] = own @ tips.rotation
        tool[:, 3:, 3:] = turn @ tips.rotation @ setup.tool_rotation
        return LinearReadings(twist, np.concatenate([base.reshape(n, 6, -1), tool], axis=2))

    def moved(self, setup: Setup, step: Array) -> Setup:
        count = 6 * len(setup.base_rotation)
        next_setup = setup.moved_base(step[:count].reshape(-1, 6))
        return replace(
            next_setup,
            points=setup.points + step[None, count : count + 3],
            tool_rotation=setup.tool_rotation @ exponential(step[count + 3 :]),
        )

    def setup_names(self, setup: Setup) -> tuple[str, ...]:
        return (*base_names(len(setup.base_rotation)), *(f"tool.{part}" for part in ("x", "y", "z", "rx", "ry", "rz")))


def first_base(tips: Tips, measured: Array, rows: IndexArray) -> tuple[Array, Array, Array]:
    """Compute the base in the sensor's frame and the points on the tool by one linear fit.

    With M the inverse rotation of the base, M y − c − R p = t is linear in M, c and the points p. Residuals enter by
    their size, not by their square, so that wrong readings do little harm.

    Args:
        tips: Nominal poses of the tool.
        measured: Measured points [m], shape (rows, points, 3).
        rows: Poses to use.
    """
    count = measured.shape[1]
    finite = np.isfinite(measured).all(axis=2)
    pose, point = np.nonzero(finite)
    y = measured[pose, point]
    if len(np.unique(pose)) < 4:
        raise LogError(f"Only {len(np.unique(pose))} poses have a measured point; measure at least 4, better 30.")
    centre = np.median(y, axis=0)
    size = max(float(np.median(np.abs(y - centre))), 1e-9)
    rotation, target = tips.rotation[rows][pose], tips.position[rows][pose]
    A = np.zeros((len(y), 3, 12 + 3 * count))
    for axis in range(3):
        A[:, axis, 3 * axis : 3 * axis + 3] = (y - centre) / size
        A[:, axis, 9 + axis] = -1.0
    for k in range(count):
        A[point == k, :, 12 + 3 * k : 15 + 3 * k] = -rotation[point == k]
    weights = np.ones(len(y))
    for _ in range(_ROUNDS):
        gram = products(-target, A, np.repeat(weights[:, None], 3, axis=1))
        x = np.linalg.lstsq(gram[:-1, :-1], -gram[:-1, -1], rcond=1e-12)[0]
        away = np.linalg.norm(A @ x - target, axis=1)
        weights = 1.0 / np.maximum(away, max(_FINEST, 0.1 * float(np.median(away))))
    matrix = np.asarray(x[:9].reshape(3, 3) / size, dtype=float)
    sensor_turn, scale = nearest_rotation(matrix)
    sizes = np.linalg.svd(matrix, compute_uv=False)
    if sizes[-1] > _EVEN * sizes[0]:  # otherwise the poses do not show the scale
        refuse_units(scale)
    base = sensor_turn.T
    points = np.asarray(x[12:].reshape(count, 3), dtype=float)
    inside = target + np.einsum("nij,nj->ni", rotation, points[point])
    place = np.asarray(np.median(y - inside @ base.T, axis=0), dtype=float)
    return base, place, points


def nearest_rotation(matrix: Array) -> tuple[Array, float]:
    """Compute the rotation next to a `matrix`, and the scale of the matrix; negative if it mirrors."""
    u, s, v = np.linalg.svd(matrix)
    mirrored = np.linalg.det(u @ v) < 0.0
    turned = u @ np.diag([1.0, 1.0, -1.0 if mirrored else 1.0]) @ v
    return turned, float(np.cbrt(np.prod(s))) * (-1.0 if mirrored else 1.0)


def refuse_units(scale: float) -> None:
    """Refuse readings in other units than metres, by the `scale` that fits them to the robot."""
    for factor, unit, suffix in ((1e-3, "millimetres", "_mm"), (1e-2, "centimetres", "_cm"), (0.0254, "inches", "_in")):
        if abs(abs(scale) / factor - 1.0) < 0.2:
            raise LogError(
                f"The readings are in {unit}; name the columns with the suffix {suffix}, or convert them to metres."
            )
