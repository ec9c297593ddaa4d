"""Compare the torques with those that the described inertias need, to detect a wrong unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from steelyard.check._channels import STILL
from steelyard.check._evidence import Evidence, basis
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding


def nominal_torque(robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    """Compute the torque that the described links need, without friction and rotors [N m, N].

    Args:
        robot: Robot with inertias.
        q: Positions [rad, m], shape (samples, joints).
        dq: Velocities [rad/s, m/s].
        ddq: Accelerations [rad/s², m/s²].
    """
    return robot.dynamics.inverse_dynamics(q, dq, ddq, robot.inertial_parameters)


def drive_columns(dq: Array, ddq: Array, slow: float) -> Array:
    """Compute the columns of a drive: rotor, viscous and dry friction, offset.

    Args:
        dq: Velocities of a joint [rad/s, m/s].
        ddq: Accelerations [rad/s², m/s²].
        slow: Speed below which dry friction is rounded off [rad/s, m/s].
    """
    return np.column_stack([ddq, dq, np.tanh(dq / slow), np.ones_like(dq)])


_ROWS = 400
# The description counts for a joint if it explains this share of the residual of the drive's columns,
_TELLING = 0.6
# and if no more than this share of the torque's variance is then left.
_WELL = 0.3
# All torques together: nearer to 1 than this, inertias that were estimated from a drawing may be the reason.
_COMMON_SCALE = (0.67, 1.9)


@dataclass(frozen=True, eq=False)
class States:
    """A thinned motion with its torques."""

    robot: Robot
    q: Array
    dq: Array
    ddq: Array
    tau: Array

    @classmethod
    def of(cls, evidence: Evidence, most: int = _ROWS) -> States:
        """Thin out the rows of a log.

        Args:
            evidence: Prepared rows.
            most: Number of rows at most.
        """
        rows = evidence.thinned(most)
        return cls(evidence.robot, evidence.q[rows], evidence.dq[rows], evidence.ddq[rows], evidence.tau[rows])


def check_scale(evidence: Evidence) -> Iterator[Finding]:
    """Report that all torques are the same multiple of those that the description needs.

    Heavier links have the same effect as a common factor, so only the description shows it. The ledger of assumptions
    tests the scale of single torques.

    Args:
        evidence: Prepared rows of a log.
    """
    slopes = np.abs([s for s in _slopes(States.of(evidence)) if s is not None])
    middle = float(np.median(slopes)) if len(slopes) > 1 else 1.0
    if _COMMON_SCALE[0] < middle < _COMMON_SCALE[1]:
        return
    if middle > 1.0:
        message = f"All torques are some {middle:.3g} times what the description's inertias need."
        advice = "Check the unit and side (motor or joint) of the torque, and whether the inertias are placeholders."
    else:
        message = f"All torques are some {middle:.3g} times what the description's inertias need: amperes?"
        advice = "If these are currents, name them as current and give torque_constants; else check unit and side."
    yield Finding("torque_scale", "warning", message, advice)


def _slopes(states: States) -> Iterator[float | None]:
    """Slope of every measured torque over the described one; None where the description does not explain the torque."""
    robot = states.robot
    nominal = nominal_torque(robot, states.q, states.dq, states.ddq)
    for j in range(robot.dof):
        y, x, kind = states.tau[:, j], nominal[:, j], robot.joints[j].kind
        total = float(np.sum((y - y.mean()) ** 2))
        # The torque of a joint at rest is undetermined within its dry friction.
        moved = np.ptp(states.q[:, j]) >= STILL[kind]
        if not (robot.torque_used[j] and moved and total > 0.0 and np.ptp(x) > 0.0):
            yield None
            continue
        Q = basis(drive_columns(states.dq[:, j], states.ddq[:, j], SMOOTHING_SPEED[kind]))
        rest, own = (signal - Q @ (Q.T @ signal) for signal in (y, x))
        power = float(own @ own)
        slope = float(own @ rest) / power if power > 1e-16 * float(x @ x) else 0.0
        alone, left = float(rest @ rest) / total, float(np.sum((rest - slope * own) ** 2)) / total
        yield slope if alone > 0.02 and left < min((1.0 - _TELLING) * alone, _WELL) else None
