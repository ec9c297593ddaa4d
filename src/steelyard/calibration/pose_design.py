"""`design_poses`: held poses that determine the geometry best, within limits and without collisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.calibration.chain import Chain
from steelyard.calibration.deviation_fit import Problem
from steelyard.calibration.joint_effects import Deviations, postures_of
from steelyard.calibration.kinds.markers import PointReadings, PoseReadings
from steelyard.calibration.measurement import Setup
from steelyard.errors import SteelyardError
from steelyard.excitation.constraints._space import options_in_space
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.excite_options import ExciteOptions
from steelyard.excitation.search_problem import requirements
from steelyard.excitation.static_poses import exchange_postures, feasible_postures, order_by_distance
from steelyard.excitation.trajectories.fixed_pieces import Idle
from steelyard.ground.arrays import Array
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, Outcome
from steelyard.ground.short_repr import short_repr
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.load import RobotLike, load_robot

if TYPE_CHECKING:
    from rich.console import Console

# Half the thickness of links of usual arms, as a part of the robot's size; places along a line of sight to look at.
_THICKNESS, _SAMPLES = 0.05, 40
# Distance of reflectors from the tool frame, as a part of the robot's size, if none are stated.
_ARM = 0.1
_SIDE = (1.0, 0.7, 0.5)  # not along any axis of the frame, which may be that of the last joint


@short_repr
@dataclass(frozen=True, eq=False)
class CalibrationPoses(Outcome):
    """Poses to hold and measure.

    Attributes:
        q: Postures in an order of short ways [rad, m], shape (poses, joints).
        joint_names: Names of the joints.
        unknowns: Number of unknowns that they determine.
        expected: Standard deviation of the tool's position from the parameters alone, all over the limits, per standard
            deviation of a reading.
    """

    q: Array
    joint_names: tuple[str, ...]
    unknowns: int
    expected: float

    @property
    def enough_poses(self) -> int:
        """Number of poses needed so that the parameters add less than half of a reading's standard deviation."""
        return int(np.ceil(len(self.q) * (self.expected / 0.5) ** 2))

    def to_json(self) -> dict[str, Any]:
        return {"joints": list(self.joint_names), "postures": self.q.tolist(), "unknowns": self.unknowns,
                "tool_std_per_reading_std": self.expected, "enough_poses": self.enough_poses}  # fmt: skip

    def files(self) -> dict[str, Content]:
        """Return poses.csv: a row per posture, a column per joint [rad, m]."""
        return {"poses.csv": csv_text([self.joint_names, *([f"{x:.10g}" for x in row] for row in self.q)])}

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.ground.numbers import number
        from steelyard.report.terminal import say, table

        rows = [[str(k + 1), *(number(x) for x in q)] for k, q in enumerate(self.q)]
        names = list(self.joint_names)
        out.print(table("Poses to hold and measure, rad (m)", ["", *names], rows, right=names))
        say(
            out,
            f"They determine {self.unknowns} unknowns. With a sensor error of 0.1 mm the parameters alone move the "
            f"tool by {number(0.1 * self.expected, 2)} mm (mean over the joint range). About {self.enough_poses} such "
            "poses are enough.",
        )
        if folder:
            say(out, f"\nWritten to {folder}: poses.csv, result.json.")


def _in_sight(chain: Chain, q: Array, spots: Array, sensor: Array) -> Array:
    """Whether the sensor sees all points: no link, a rod between two joints, is near the line of sight."""
    tips = chain.tips(q)
    points = tips.position[:, None] + np.einsum("nij,kj->nki", tips.rotation, spots)
    _, origins = link_poses(chain.robot, q)
    hosts = chain.robot.ancestors(chain.place.host)
    joints = np.concatenate([np.zeros((len(q), 1, 3)), origins[:, list(hosts)]], axis=1)
    along = np.linspace(0.0, 1.0, _SAMPLES)[:, None]
    near = np.full(len(q), np.inf)
    for k in range(points.shape[1]):
        # The first part of the line passes the tool itself.
        line = points[:, k, None] + along[1:] * (sensor - points[:, k, None])
        for a, b in pairwise(np.moveaxis(joints, 1, 0)):
            rod = b - a
            size = np.maximum(np.einsum("ni,ni->n", rod, rod), 1e-18)
            part = np.einsum("nsi,ni->ns", line - a[:, None], rod) / size[:, None]
            gap = line - a[:, None] - np.clip(part, 0.0, 1.0)[..., None] * rod[:, None]
            near = np.minimum(near, np.linalg.norm(gap, axis=2).min(axis=1))
    return np.asarray(near > _THICKNESS * chain.size)


def design_poses(
    robot: RobotLike,
    count: int,
    *,
    frame: str = "",
    kind: str = "points",
    effects: Sequence[str] = ("offsets", "axes"),
    points: ArrayLike | None = None,
    sensor: Sequence[float] | None = None,
    limits: Mapping[str, ArrayLike] | None = None,
    box: Sequence[float] | None = None,
    floor: float | None = None,
    collision: bool | None = None,
    clearance: float = 0.02,
    packages: Sequence[str | Path] = (),
    srdf: str | Path | None = None,
    seed: int = 0,
) -> CalibrationPoses:
    """Choose poses that maximise the determinant of the information on geometry, sensor and tool.

    Random postures within the limits are exchanged one by one for better ones (Fedorov 1972).

    Args:
        robot: Robot, as `load_robot` takes it.
        count: Number of poses.
        frame: Frame that carries the tool; default: the last link.
        kind: "points" or "pose".
        effects: Effects to determine.
        points: Places of the reflectors in the tool frame [m], shape (reflectors, 3); default: one near its origin.
        sensor: Place of the sensor in the robot's base [m]; no link may hide a reflector from it.
        limits: Limits of the positions, as in `excite`: {"q": …}.
        box: Box that the tool must not leave [m]: in the view of the sensor.
        floor: Lowest height of any link [m].
        collision: Avoid collisions; None: if the description has bodies.
        clearance: Smallest distance between bodies [m].
        packages: Folders of meshes.
        srdf: MoveIt's file with pairs of bodies to ignore.
        seed: Seed.
    """
    described = load_robot(robot, snap=0.0)
    if kind not in ("points", "pose"):
        raise SteelyardError(f"Poses can be designed for points and pose, not for '{kind}'.")
    chain = Chain(described, described.moving_frame(frame))
    bounds = limits_from(described, limits)
    space = ExciteOptions(
        box=box, floor=floor, frame=frame, collision=collision, clearance=clearance, packages=packages, srdf=srdf
    )
    still = (Idle(1.0, None),) * described.dof
    needs = requirements(described, still, bounds, options_in_space(described, space)[0])
    candidates = feasible_postures(bounds, needs, seed)
    spots = _ARM * chain.size * np.array([_SIDE]) if points is None else np.atleast_2d(np.asarray(points, float))
    if sensor is not None:
        candidates = candidates[_in_sight(chain, candidates, spots, np.asarray(sensor, dtype=float))]
    if len(candidates) < 2:
        raise SteelyardError("No posture within the limits shows all reflectors to the sensor; place it elsewhere.")
    n = len(candidates)
    sessions = np.zeros(n, dtype=np.intp)
    if kind == "pose":
        readings = {"position": np.zeros((n, 3)), "rotation": np.broadcast_to(np.eye(3), (n, 3, 3)).copy()}
        measurement: PointReadings | PoseReadings = PoseReadings(readings, sessions)
        tips = chain.tips(candidates)
        readings["rotation"][:] = tips.rotation
    else:
        measurement = PointReadings({"points": np.zeros((n, len(spots), 3))}, sessions)
    setup = Setup.plain(spots[:1] if kind == "pose" else spots)
    # Both directions of approach occur; the first design may use either sign.
    signs = np.random.default_rng([seed, 3]).choice((-1.0, 1.0), size=candidates.shape)
    problem = Problem.of(Deviations.of(chain, effects), postures_of(chain, candidates, signs), measurement)
    _, J = problem.jacobian(setup, np.zeros(len(problem.deviations)))
    if kind == "pose":
        J[:, 3:] *= _ARM * chain.size  # convert rotations to displacements of the tool
    rows = J
    flat = rows.reshape(-1, rows.shape[2])
    sizes = np.maximum(np.linalg.norm(flat, axis=0), 1e-300)
    _, s, v = np.linalg.svd(flat / sizes, full_matrices=False)
    nonzero = s > 1e-9 * s[0]
    directions = v[nonzero].T / sizes[:, None]
    least = -(-int(nonzero.sum()) // rows.shape[1])
    if count < least:
        raise SteelyardError(f"{count} poses are too few for {int(nonzero.sum())} unknowns; give {least} or more.")
    selection = exchange_postures(rows @ directions, count, np.random.default_rng([seed, 2]), repeats=False)
    gram = np.einsum("nij,nik->jk", rows[selection] @ directions, rows[selection] @ directions)
    position_rows = rows[:, :3] @ directions
    variances = np.einsum("nij,jk,nik->n", position_rows, np.linalg.inv(gram), position_rows)
    q = order_by_distance(candidates[selection], bounds)
    return CalibrationPoses(q, described.joint_names, int(nonzero.sum()), float(np.sqrt(np.mean(variances) / 3.0)))
