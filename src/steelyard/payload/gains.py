"""`drive_gains`: estimates the scale factors of the torque channels from a known payload.

The scale of the torques is not identifiable without one: doubling all torques and all masses gives the same log. A
known payload fixes it (Gautier & Briot 2014, "Global identification of joint drive gains and dynamic parameters of
robots"): with y_e = c_e A_e (β + K θ_payload) on channel e, logs with and without the payload determine β and every
c_e. The noise is on the channels, so Gauss–Newton on the small triangles solves for c_e = 1/gain and β.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.linear.least_squares import WeightedLeastSquares
from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Content, Outcome
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.terms import TermsLike
from steelyard.payload._plan import Plan
from steelyard.payload.identify import prepare_rows
from steelyard.payload.payload import Payload, frame_transfer, link_frame
from steelyard.regression.unknowns import Part, Unknowns, substitute
from steelyard.robot.load import RobotLike, as_robot
from steelyard.signals.as_logs import LogsLike, as_logs
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
    """

    joints: tuple[str, ...]
    values: Array
    standard_errors: Array

    def to_json(self) -> dict[str, Any]:
        each = zip(self.joints, self.values.tolist(), self.standard_errors.tolist(), strict=True)
        return {"torque_scale": [{"joint": j, "value": v, "standard_error": e} for j, v, e in each]}

    def files(self) -> dict[str, Content]:
        """gains.toml: a line for the mapping of logs of this robot."""
        values = ", ".join(f"{x:.6g}" for x in self.values)
        return {"gains.toml": f"torque_scale = [{values}]\n"}

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


def drive_gains(
    robot: RobotLike,
    with_load: LogsLike,
    without: LogsLike,
    load: Payload,
    *,
    terms: TermsLike | None = None,
    preparation: Preparation | None = None,
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
        mapping: Meaning of the columns of files and frames, as in `read_log`.
    """
    robot = as_robot(robot)
    loaded, bare = as_logs(with_load, robot, mapping), as_logs(without, robot, mapping)
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
    c, errors = _gauss_newton(fit.problem.blocks, fit.weights, fit.beta / fit.beta[0], len(used))
    return DriveGains(used, 1.0 / c, errors * np.sqrt(inflation) / c**2)


def _gauss_newton(blocks: Sequence[Array], weights: Array, start: Array, joints: int) -> tuple[Array, Array]:
    """Minimise Σ ‖w (c_e B x − y)‖² over c and x with x₁ = 1 and w = 1/σ; return c and its standard deviations."""
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
            return c, np.sqrt(np.diag(np.linalg.inv(information)))[:joints] / lengths[:joints]
    raise EstimationError("The gains did not converge; check that all logs are of one robot, with the known payload.")
