"""`payload_at_rest`: identifies a payload from poses at rest: its mass and its centre of gravity.

If a pose was held with and without the payload, the difference of the torques is free of the arm's gravity and of
errors of its model. The friction of both is the same if the pose was approached in the same way. Otherwise the arm's
gravity is identified along with the payload, or a known model of it is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.errors import LogError
from steelyard.estimation.estimate import EstimationError
from steelyard.gravity.columns import GravityColumns
from steelyard.gravity.friction_at_rest import FrictionKind
from steelyard.gravity.identify import choose_friction, left_out_parts, link_prior, widened
from steelyard.gravity.static_fit import StaticFit, StaticRows, fit_static
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.payload.payload import Payload, frame_transfer, link_frame
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import parameters_from_com
from steelyard.signals.held_poses import HeldPoses, held_poses, join_poses
from steelyard.signals.log import Log

# Two poses count as equal within this [rad, m]: their gravity torques differ by less than a thousandth.
_SAME_POSE = 1e-3
_FEWEST_PAIRS = 3
# The mass is identifiable if the poses reduce its prior variance by more than this share.
_LEAST_REDUCTION = 0.5
# 95 % quantiles of χ²/ν for ν = 1, 2, …: larger scatter between joints is significant.
_CHANCE = (3.84, 3.00, 2.60, 2.37, 2.21, 2.10, 2.01, 1.94, 1.88, 1.83)
# kg/m³, of aluminium: a ball supplies the inertia, which poses at rest do not determine.
_DENSITY = 2700.0


def payload_at_rest(
    robot: Robot, loaded: Sequence[Log], bare: Sequence[Log], arm: Model | None = None, frame: str = ""
) -> tuple[Payload, Array]:
    """Identify mass and centre of gravity of a payload from poses at rest.

    Args:
        robot: Robot without the payload.
        loaded: Logs with the payload: a pose in each row, or a robot that is sometimes at rest.
        bare: The same without it.
        arm: Model of the bare robot, taken as exact.
        frame: Frame of the payload; default: the last link.

    Returns:
        The payload, and the standard deviation of the residuals of each joint [N m or N].
    """
    place = robot.moving_frame(frame)
    columns = GravityColumns.of(robot)
    with_it = held_poses(robot, loaded)
    without = held_poses(robot, bare) if bare else None
    _refuse_too_few(with_it, without)
    with one_blas_thread():
        problem = _problem(columns, with_it, without, arm, place.host)
        return _solve(problem, robot, place.host, frame)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rows whose first four unknowns are mass and first moments of the payload in its link's frame."""

    rows: StaticRows
    poses: HeldPoses
    center: Array
    std: Array
    how: str

    @property
    def prior(self) -> Array:
        return np.diag(self.std**-2)


def _refuse_too_few(loaded: HeldPoses, bare: HeldPoses | None) -> None:
    for poses, kind in ((loaded, "with"), (bare, "without")):
        if poses is not None and len(poses) < 3:
            raise LogError(
                f"The logs {kind} the payload have {len(poses)} poses at rest; at least 3 are needed. Hold each pose "
                "for half a second or longer."
            )


def _problem(
    columns: GravityColumns, loaded: HeldPoses, bare: HeldPoses | None, arm: Model | None, host: int
) -> _Problem:
    robot = columns.robot
    joints, used = robot.dof, np.array(robot.torque_used)
    std = link_prior(columns, loaded)[1]
    of_load, of_offsets = std[4 * host : 4 * host + 4], np.full(joints, std[-1])
    own = columns.rows(loaded.q)[:, :, 4 * host : 4 * host + 4]
    offsets = np.broadcast_to(np.eye(joints), (len(loaded), joints, joints))
    if arm is not None:
        A, y = np.concatenate([own, offsets], axis=2), loaded.tau - arm.gravity_torque(loaded.q)
        rows = StaticRows(A, y, loaded.side, used)
        return _Problem(rows, loaded, np.zeros(A.shape[2]), np.concatenate([of_load, of_offsets]), "known arm")
    if bare is None:
        raise LogError("Logs with the payload alone are not enough: give logs without it, or a model of the bare arm.")
    pairs = pairs_of_poses(loaded, bare)
    if len(pairs) >= _FEWEST_PAIRS:
        at = np.array([k for k, _ in pairs])
        y = np.array([loaded.tau[k] - bare.tau[same].mean(axis=0) for k, same in pairs])
        A = np.concatenate([own[at], offsets[at]], axis=2)
        rows = StaticRows(A, y, np.zeros_like(y), used)
        problem = _Problem(
            rows, loaded.select(at), np.zeros(A.shape[2]), np.concatenate([of_load, of_offsets]), "pairs"
        )
        if _shows_mass(problem, fit_static(rows, _noise(joints), problem.center, problem.prior)):
            return problem
    return _together(columns, loaded, bare, host, own)


def _together(columns: GravityColumns, loaded: HeldPoses, bare: HeldPoses, host: int, own: Array) -> _Problem:
    """Arm and payload in one regression; the offsets with the payload are others than those without."""
    joints, count = columns.robot.dof, len(bare) + len(loaded)
    both = join_poses([bare, loaded])
    arm = columns.base_rows(both.q)
    A = np.zeros((count, joints, 4 + arm.shape[2] + joints))
    A[len(bare) :, :, :4] = own
    A[:, :, 4 : 4 + arm.shape[2]] = arm
    A[len(bare) :, :, 4 + arm.shape[2] :] = np.eye(joints)
    middle, std = link_prior(columns, both)
    # A separate standard deviation for each base parameter, so wide that it has no influence.
    base = np.sqrt(np.einsum("ij,j->i", columns.groups**2, std**2))
    center = np.concatenate([np.zeros(4), columns.groups @ middle, np.zeros(joints)])
    widths = np.concatenate([std[4 * host : 4 * host + 4], base, np.full(joints, std[-1])])
    # Poses with and without it alternate, so that each left-out part has both.
    order = np.argsort(
        np.concatenate([np.linspace(0.0, 1.0, len(bare)), np.linspace(0.0, 1.0, len(loaded))]), kind="stable"
    )
    rows = StaticRows(A[order], both.tau[order], both.side[order], np.array(columns.robot.torque_used))
    return _Problem(rows, both.select(order), center, widths, "together")


def pairs_of_poses(loaded: HeldPoses, bare: HeldPoses) -> list[tuple[int, NDArray[np.intp]]]:
    """Find the common poses with and without the payload.

    Args:
        loaded: Poses with it.
        bare: Poses without it.

    Returns:
        Index of each such pose with it, and the indices of the same one without it.
    """
    out = []
    for k, q in enumerate(loaded.q):
        same = np.flatnonzero(np.max(np.abs(bare.q - q), axis=1) <= _SAME_POSE)
        if len(same):
            out.append((k, same))
    return out


def _noise(joints: int) -> tuple[FrictionKind, ...]:
    each: FrictionKind = "noise"
    return (each,) * joints


def _shows_mass(problem: _Problem, fit: StaticFit) -> bool:
    return bool(fit.covariance[0, 0] < _LEAST_REDUCTION * problem.std[0] ** 2)


def _solve(problem: _Problem, robot: Robot, host: int, frame: str) -> tuple[Payload, Array]:
    rows, center, prior = problem.rows, problem.center, problem.prior
    parts = left_out_parts(problem.poses)
    kinds = choose_friction(rows, parts, center, prior)
    fit = fit_static(rows, kinds, center, prior)
    if not _shows_mass(problem, fit):
        raise EstimationError(
            "The mass of the payload is not identifiable from these poses; hold poses in which it loads two "
            "joints with different lever arms."
        )
    covariance = widened(fit, [fit_static(rows.select(~out), kinds, center, prior, fit) for out in parts])[:4, :4]
    covariance, degrees = _between_joints(problem, kinds, fit, covariance)
    mass, moment = float(fit.beta[0]), fit.beta[1:4]
    error = float(np.sqrt(covariance[0, 0]))
    if mass < -3.0 * error:
        raise EstimationError(
            f"The mass of the payload would be {mass:.3g} ± {error:.2g} kg: the logs with and without it seem to be "
            "exchanged; give the logs with it as --with (with_load)."
        )
    how = {"pairs": f"{len(problem.poses)} poses held with and without it", "known arm": "the arm's model",
           "together": "arm and payload together"}[problem.how]  # fmt: skip
    notes = [
        f"Mass and centre of gravity come from poses at rest ({how}). Poses at rest do not show the inertia: the "
        "exported inertia is that of an aluminium ball of the same mass."
    ]
    if mass < 2.0 * error:
        notes.append(
            f"The mass, {mass:.3g} ± {error:.2g} kg, is not significantly above zero; there may be no payload."
        )
    seen = [bool(covariance[k, k] < _LEAST_REDUCTION * problem.std[k] ** 2) for k in range(4)]
    if not all(seen):
        hidden = ", ".join(n for n, s in zip("xyz", seen[1:], strict=True) if not s)
        notes.append(f"These poses do not show the centre of gravity along {hidden} of the link's frame.")
    ten, wide = _ten(max(mass, 1e-9), moment), np.zeros((10, 10))
    wide[:4, :4] = covariance
    place = robot.frame(frame)
    transfer = frame_transfer(link_frame(robot.links[host], host), place)
    residual = np.array([f.half_width / HALF_WIDTH_95 for f in fit.friction])
    name = frame or robot.link_names[host]
    load = Payload(
        name, transfer @ ten, transfer @ wide @ transfer.T, (*seen, *[False] * 6), degrees, False, tuple(notes)
    )
    return load, residual


def _ten(mass: float, moment: Array) -> Array:
    radius = (3.0 * mass / (4.0 * np.pi * _DENSITY)) ** (1.0 / 3.0)
    return np.asarray(parameters_from_com(mass, moment / mass, 0.4 * mass * radius**2 * np.eye(3)))


def _between_joints(
    problem: _Problem, kinds: Sequence[FrictionKind], fit: StaticFit, covariance: Array
) -> tuple[Array, float]:
    """Widen the covariance by the scatter of fits that each leave out a joint.

    An error of a torque channel's scale is the same at all poses, so that left-out poses do not show it.
    """
    rows, out = problem.rows, []
    for j in np.flatnonzero(rows.used):
        if not np.any(rows.A[:, j, :4]):
            continue
        used = rows.used.copy()
        used[j] = False
        one = fit_static(replace(rows, used=used), kinds, problem.center, problem.prior)
        if _shows_mass(problem, one):
            out.append(one.beta[:4])
    degrees = max(fit.degrees, 1.0)
    # A joint without any say about the mass gives the same estimate again.
    count = sum(bool(np.abs(x[0] - fit.beta[0]) > 1e-3 * np.sqrt(covariance[0, 0])) for x in out)
    if count < 2:
        return covariance, degrees
    each = np.array(out)
    scatter = (count - 1) / count * np.sum((each - each.mean(axis=0)) ** 2, axis=0)
    now = np.diag(covariance)
    if scatter[0] <= _CHANCE[min(count - 1, len(_CHANCE)) - 1] * now[0]:
        return covariance, degrees
    factor = np.sqrt(np.maximum(scatter / now, 1.0))
    return covariance * np.outer(factor, factor), float(count - 1)
