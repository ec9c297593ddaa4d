"""Which way is down? The direction of gravity that the torques ask for, with the description's inertias."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.check.description import States
from steelyard.check.entry import Entry
from steelyard.check.fitted import fit
from steelyard.check.nominal import drive_columns, gravity_columns, nominal_torque
from steelyard.identification_terms import SMOOTHING
from steelyard.robot.spatial import Array

# Degrees between the stated and the found direction that inaccurate inertias do not explain.
AWRY = 25.0
# The found direction must explain the torques, and much better than the stated one: shares of the weighted sum.
LEAVES, BETTER = 0.3, 0.5
# A pull that far from the earth's is no gravity, but something else that the fit put there.
STRENGTH = (0.5, 2.0)
# A direction counts if turning gravity that way changes the torques by this part of what the strongest way does.
SEEN = 0.05


def check_gravity(states: States) -> Iterator[Entry]:
    """Compare the stated direction with the one that fits best."""
    robot = states.robot
    stated = np.asarray(robot.gravity)
    columns = gravity_columns(robot, states.q)
    rest = nominal_torque(robot, states.q, states.dq, states.ddq) - columns @ stated
    G, y = [], []
    for j in range(robot.dof):
        spread = float(np.std(states.tau[:, j]))
        if not robot.torque_used[j] or spread == 0.0:
            continue
        drive = drive_columns(states.dq[:, j], states.ddq[:, j], SMOOTHING[robot.joints[j].kind])
        # What the drive's own terms can explain counts for no direction; an offset is none of gravity's.
        free = [_without(drive, x) / spread for x in (*columns[:, j].T, states.tau[:, j] - rest[:, j])]
        G.append(np.column_stack(free[:3]))
        y.append(free[3])
    if not G:
        return
    found, before, after, total = _direction(np.concatenate(G), np.concatenate(y), stated)
    size = float(np.linalg.norm(found))
    if size == 0.0 or after > LEAVES * total or after > BETTER * before:
        return
    if not STRENGTH[0] < size / 9.81 < STRENGTH[1]:
        return
    length = float(np.linalg.norm(stated))
    angle = float(np.degrees(np.arccos(np.clip(found @ stated / (size * length), -1.0, 1.0)))) if length else 180.0
    if angle < AWRY:
        return
    vector = ", ".join(f"{x:.1f}" for x in found)
    message = (
        f"The torques ask for gravity along ({vector}) m/s², {angle:.0f}° from the stated "
        f"({', '.join(f'{x:.4g}' for x in stated)})."
    )
    advice = f"State how the robot is mounted: gravity = [{vector}] in the mapping, rounded to the true direction."
    yield Entry("gravity", "problem", message, advice)


def _direction(G: Array, y: Array, stated: Array) -> tuple[Array, float, float, float]:
    """Gravity that fits, and the sums of squares left by the stated one, by the found one, and by none.

    Only directions that show in the torques are changed; the others stay as stated.
    """
    U, s, V = np.linalg.svd(G, full_matrices=False)
    shown = s > SEEN * s[0]
    change = V.T @ np.where(shown, (U.T @ (y - G @ stated)) / np.where(shown, s, 1.0), 0.0)
    found = stated + change
    sums = [float(np.sum((y - G @ g) ** 2)) for g in (stated, found, np.zeros(3))]
    return found, sums[0], sums[1], sums[2]


def _without(columns: Array, x: Array) -> Array:
    return fit(columns, x).residual if np.ptp(x) > 0.0 else np.zeros_like(x)
