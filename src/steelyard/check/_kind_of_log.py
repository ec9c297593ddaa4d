"""What kind of log it is: a motion, held poses, or joints that all move in the same way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.check._channels import STILL
from steelyard.check._evidence import Evidence
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding, Log

# Squared correlation of two velocities, beyond which a tenth of one motion at most is its own.
_SAME_MOTION = 0.9
_FEWEST_ROWS = 8


def check_held_poses(robot: Robot, log: Log) -> Iterator[Finding]:
    """Report rows that are poses at rest and not samples of a motion.

    Two signs: positions have most of their power above half of the Nyquist frequency, so that nothing is known of what
    happens between two rows; or velocities are zero throughout and the time counts the rows.

    Args:
        robot: Robot of the log.
        log: The log.
    """
    moved = [k for k, j in enumerate(robot.joints) if np.ptp(log.q[:, k]) > STILL[j.kind]]
    if len(log) < _FEWEST_ROWS or not moved:
        return
    counted = np.allclose(np.diff(log.t), 1.0) and log.dq is not None and not log.dq.any()
    shares = [_share_above_half(log.q[:, k]) for k in moved]
    if counted or np.median(shares) > 0.5:
        message = "The rows are held poses, not samples of a motion: between two rows nothing is known."
        advice = (
            "Held poses show gravity and offsets alone (masses and first moments): do not differentiate them. Log a "
            "motion, at ten samples or more for each of its periods, to identify inertias and friction."
        )
        yield Finding("held_poses", "problem", message, advice)


def _share_above_half(x: Array) -> float:
    """Share of a signal's power above half of the Nyquist frequency."""
    # The window keeps a trend from leaking to all frequencies.
    power = np.abs(np.fft.rfft((x - x.mean()) * np.hanning(len(x)))) ** 2
    return float(power[len(power) // 2 :].sum() / max(float(power[1:].sum()), 1e-300))


def check_collinear(evidence: Evidence) -> Iterator[Finding]:
    """Report joints that all move in the same way at all times, as in one chirp for all.

    Args:
        evidence: Prepared rows of the log.
    """
    moved = [k for k, j in enumerate(evidence.robot.joints) if np.ptp(evidence.q[:, k]) > STILL[j.kind]]
    if len(moved) < 3:
        return
    products = evidence.dq[:, moved].T @ evidence.dq[:, moved]
    sizes = np.maximum(np.diag(products), 1e-300)
    alike = (products**2 / np.outer(sizes, sizes))[np.triu_indices(len(moved), 1)]
    if np.median(alike) > _SAME_MOTION:
        yield Finding(
            "collinear",
            "warning",
            f"The joints move together: {100 * np.median(alike):.0f} % of one joint's velocity is that of another.",
            "Move the joints independently (`steelyard excite`): gear ratios, couplings and most inertias of one joint "
            "look like those of another.",
        )
