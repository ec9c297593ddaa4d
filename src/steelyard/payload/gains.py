"""`drive_gains`: scale factors of the torque channels from a known payload; `scale_at_rest`: from poses at rest.

Without a known weight the scale of the torques is not identifiable: doubling all torques and all masses gives the same
log. A known payload fixes it (Gautier & Briot 2014, "Global identification of joint drive gains and dynamic parameters
of robots"): with y_e = c_e A_e (β + K θ_payload) on channel e, logs with and without the payload determine β and every
c_e. The noise is on the channels, so Gauss–Newton on the small triangles solves for c_e = 1/gain and β.

At rest, a weight of known mass at a known place fixes the scale of currents, of PWM, and of the distance of a servo to
its goal, whose scale is its stiffness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LogError, printable
from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.linear.least_squares import WeightedLeastSquares
from steelyard.gravity.columns import GravityColumns
from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Content, Outcome
from steelyard.ground.short_repr import short_repr
from steelyard.ground.student import quantile
from steelyard.parameters.terms import TermsLike
from steelyard.payload._plan import Plan
from steelyard.payload.held_payload import pairs_of_poses
from steelyard.payload.identify import prepare_rows
from steelyard.payload.payload import Payload, frame_transfer, link_frame
from steelyard.regression.unknowns import Part, Unknowns, substitute
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.as_logs import LogsLike
from steelyard.signals.held_poses import HeldPoses, held_poses, logs_or_poses, rows_are_poses
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import AnyMapping

if TYPE_CHECKING:
    from rich.console import Console


_ITERATIONS = 50


@short_repr
@dataclass(frozen=True, eq=False)
class DriveGains(Outcome):
    """Scale factors of the torque channels.

    Attributes:
        joints: Names of the joints.
        values: Factor for the torque channel of each joint.
        standard_errors: Standard errors of the factors.
        robot_joints: All joints of the robot, if the data show the factors of some only; theirs stay 1 in gains.toml.
    """

    joints: tuple[str, ...]
    values: Array
    standard_errors: Array
    robot_joints: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        each = zip(self.joints, self.values.tolist(), self.standard_errors.tolist(), strict=True)
        return {"torque_scale": [{"joint": j, "value": v, "standard_error": e} for j, v, e in each]}

    def files(self) -> dict[str, Content]:
        """gains.toml: a line for the mapping of logs of this robot."""
        known = dict(zip(self.joints, self.values, strict=True))
        values = ", ".join(f"{known.get(joint, 1.0):.6g}" for joint in self.robot_joints or self.joints)
        open_ones = [joint for joint in self.robot_joints if joint not in known]
        note = f"# Not identifiable, left at 1: {plain_names(open_ones)}.\n" if open_ones else ""
        return {"gains.toml": f"{note}torque_scale = [{values}]\n"}

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.ground.numbers import Known, number
        from steelyard.report.terminal import say, table

        rows = [
            [j, str(Known(v, e)), number(e, 2)]
            for j, v, e in zip(self.joints, self.values.tolist(), self.standard_errors.tolist(), strict=True)
        ]
        columns = ["joint", "torque × this", "± standard error"]
        out.print(table("Scale factors of the torque channels", columns, rows, right=columns[1:]))
        if folder:
            say(out, f"\nWritten to {folder}: gains.toml (a line for --map), result.json.")


def plain_names(names: Sequence[str]) -> str:
    """Join `names` for a comment: on one line, without characters that control it."""
    return printable(", ".join(names)).replace("\n", " ")


def drive_gains(
    robot: RobotLike,
    with_load: LogsLike,
    without: LogsLike,
    load: Payload,
    *,
    terms: TermsLike | None = None,
    preparation: Preparation | None = None,
    at_rest: bool | None = None,
    mapping: AnyMapping = None,
) -> DriveGains:
    """Estimate the scale factors of all torque channels.

    Args:
        robot: Robot without the payload, as `load_robot` takes it.
        with_load: Logs with the payload.
        without: Logs without it.
        load: The payload, with all ten parameters known.
        terms: Joint terms, as for `identify`.
        preparation: As for `identify`.
        at_rest: As for `identify_payload`.
        mapping: Meaning of the columns of files and frames, as in `read_log`.
    """
    robot = as_robot(robot)
    loaded, bare = logs_or_poses(with_load, robot, mapping), logs_or_poses(without, robot, mapping)
    if at_rest or (at_rest is None and all(rows_are_poses(robot, log) for log in (*loaded, *bare))):
        return scale_at_rest(robot, loaded, bare, load)
    rows = prepare_rows(robot, [loaded], bare, terms, preparation)
    place = rows.robot.moving_frame(load.frame)
    own = frame_transfer(place, link_frame(rows.robot.links[place.host], place.host)) @ load.parameters
    plan = Plan(rows.base, rows.carried, place.host, 1, "own", None)
    parts, names = plan.parts(rows.data), plan.names
    # The ten unknowns of the payload become one column with the known factor 1.
    joined = [
        Part(p.data, p.columns, np.column_stack([p.matrix[:, :10] @ own, p.matrix[:, 10:]]), p.known) for p in parts
    ]
    unknowns = Unknowns(("the known load", *names[10:]))
    fit = WeightedLeastSquares().free(substitute(joined, unknowns), unknowns)
    inflation = float(np.mean(fit.covariance.inflation))
    used = tuple(e.name for e in rows.data[0].equations)
    c, errors, _ = gauss_newton(fit.problem.blocks, fit.weights, fit.beta / fit.beta[0], len(used))
    return DriveGains(used, 1.0 / c, errors * np.sqrt(inflation) / c**2)


def gauss_newton(blocks: Sequence[Array], weights: Array, start: Array, joints: int) -> tuple[Array, Array, Array]:
    """Minimise Σ ‖w (c_e B x − y)‖² over c and x with x₁ = 1.

    Args:
        blocks: [B y] of each log and joint, joints innermost.
        weights: w = 1/σ of each block.
        start: First x.
        joints: Number of joints.

    Returns:
        c, its standard deviations, and x.
    """
    x, c = start.copy(), np.ones(joints)
    for _ in range(_ITERATIONS):
        jacobian, rest = [], []
        for k, (block, weight) in enumerate(zip(blocks, weights, strict=True)):
            e, B, y = k % joints, block[:, :-1], block[:, -1]
            row = np.zeros((len(B), joints + len(x) - 1))
            row[:, e] = B @ x
            row[:, joints:] = c[e] * B[:, 1:]
            jacobian.append(weight * row)
            rest.append(weight * (y - c[e] * (B @ x)))
        J = np.vstack(jacobian)
        lengths = np.linalg.norm(J, axis=0)
        step, _, rank, _ = np.linalg.lstsq(J / lengths, np.concatenate(rest), rcond=1e-10)
        if rank < J.shape[1]:
            raise EstimationError("The gains are not identifiable; the payload must change the torque of every joint.")
        step = step / lengths
        c, x[1:] = c + step[:joints], x[1:] + step[joints:]
        if np.all(np.abs(step[:joints]) < 1e-10 * np.abs(c)):
            information = (J / lengths).T @ (J / lengths)
            return c, np.sqrt(np.diag(np.linalg.inv(information)))[:joints] / lengths[:joints], x
    raise EstimationError("The gains did not converge; check that all logs are of one robot, with the known payload.")


_FEWEST_PAIRS = 3


def scale_at_rest(robot: Robot, loaded: Sequence[Log], bare: Sequence[Log], load: Payload) -> DriveGains:
    """Identify the scale of each torque channel from poses with and without a known payload.

    Joints that the payload does not load are left out.

    Args:
        robot: Robot without the payload.
        loaded: Logs with the payload.
        bare: Logs without it.
        load: The payload; mass and centre of gravity count.
    """
    columns = GravityColumns.of(robot, ("offset",))
    with_it, without = held_poses(robot, loaded), held_poses(robot, bare)
    place = robot.moving_frame(load.frame)
    own = frame_transfer(place, link_frame(robot.links[place.host], place.host)) @ load.parameters
    weight = columns.rows(with_it.q)[:, :, 4 * place.host : 4 * place.host + 4] @ own[:4]
    pairs = pairs_of_poses(with_it, without)
    if len(pairs) >= _FEWEST_PAIRS:
        at = np.array([k for k, _ in pairs])
        change = np.array([with_it.tau[k] - without.tau[same].mean(axis=0) for k, same in pairs])
        return _by_joint(robot, weight[at], change)
    return _together(columns, with_it, without, weight)


def scale_from_model(model: Model, logs: Sequence[Log]) -> DriveGains:
    """Identify the scale of each torque channel from poses at rest and a model whose gravity torque is exact.

    Args:
        model: Model, such as that of a description with masses.
        logs: Logs with poses at rest.
    """
    poses = held_poses(model.robot, logs)
    return _by_joint(model.robot, model.gravity_torque(poses.q), poses.tau)


def _by_joint(robot: Robot, torque: Array, channel: Array) -> DriveGains:
    """Fit channel = c torque + offset joint by joint; the scale is 1/c. The noise is on the channel."""
    if len(torque) < 3:
        raise LogError(f"There are {len(torque)} poses at rest; at least 3 are needed.")
    names, values, errors = [], [], []
    for j, name in enumerate(robot.joint_names):
        x, y = torque[:, j] - torque[:, j].mean(), channel[:, j] - channel[:, j].mean()
        power = float(x @ x)
        if not robot.torque_used[j] or power <= 1e-12 * max(float(np.sum(torque**2)), 1e-300):
            continue
        c = float(x @ y) / power
        left = len(x) - 2
        error = float(np.sqrt(np.sum((y - c * x) ** 2) / left / power))
        # A joint whose scale may be infinite carries too little of the known torque.
        if abs(c) > quantile(0.95, left) * error:
            names.append(name)
            values.append(1.0 / c)
            errors.append(error / c**2)
    if not names:
        raise EstimationError("The known torque does not show at any joint; hold poses where it loads the joints.")
    return DriveGains(tuple(names), np.array(values), np.array(errors), robot.joint_names)


def _together(columns: GravityColumns, loaded: HeldPoses, bare: HeldPoses, weight: Array) -> DriveGains:
    """Fit scales and the gravity of the arm together, where the poses with and without the payload differ."""
    robot = columns.robot
    gravity = [k for k, c in enumerate(columns.independent) if c < 4 * len(robot.links)]
    carrying = [j for j in range(robot.dof) if robot.torque_used[j] and np.ptp(weight[:, j]) > 1e-6 * np.ptp(weight)]
    blocks = []
    for j in carrying:
        parts = []
        for poses, own in ((bare, np.zeros(len(bare))), (loaded, weight[:, j])):
            one = np.zeros((len(poses), robot.dof))
            one[:, j] = 1.0
            arm = columns.base_rows(poses.q)[:, j][:, gravity]
            parts.append(np.column_stack([own, arm, one, poses.tau[:, j]]))
        blocks.append(np.vstack(parts))
    used = np.any(np.vstack(blocks)[:, :-1] != 0.0, axis=0)
    blocks = [np.column_stack([b[:, :-1][:, used], b[:, -1]]) for b in blocks]
    start = np.linalg.lstsq(np.vstack(blocks)[:, :-1], np.vstack(blocks)[:, -1], rcond=None)[0]
    weights = np.array([1.0 / max(float(b[:, -1].std()), 1e-12) for b in blocks])
    for _ in range(3):
        c, errors, x = gauss_newton(blocks, weights, start / start[0], len(carrying))
        start = x
        weights = np.array(
            [1.0 / max(float(np.std(b[:, -1] - c[k] * (b[:, :-1] @ x))), 1e-12) for k, b in enumerate(blocks)]
        )
    names = tuple(robot.joint_names[j] for j in carrying)
    return DriveGains(names, 1.0 / c, errors / c**2, robot.joint_names)
