"""Two neighbouring motors that move one joint together: one torque contains the other, or its friction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.check._description import drive_columns
from steelyard.check._evidence import Evidence, basis
from steelyard.check.corrections import coupled_motors, turning_motor
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.signals.log import Finding

_BLOCKS = 20
# Mean of the blocks' differences over its standard error. By chance beyond 3.5 once in 800 (19 degrees of freedom).
_CERTAIN = 3.5
# Part of the remaining squares that a coupling must explain: less does no harm.
_MATTERS = 0.05
_ROWS = 600
# The torque of one motor in that of another: so near to once, and leaving so small a part of the remaining squares.
_ONCE, _LEAVES = 0.15, 0.3
# Squared correlation of two speeds above which friction cannot be assigned to one of the joints.
_TOGETHER = 0.9


def check_coupled(evidence: Evidence) -> Iterator[Finding]:
    """Report two neighbours if the torque of one contains that of the other once, as with the motors of a wrist.

    If the friction of a motor that turns with both joints explains it as well, this is reported instead: then signals
    are those of the joints, and the description lacks the coupling.

    Args:
        evidence: Prepared rows of a log.
    """
    rows, joints = evidence.thinned(_ROWS), evidence.robot.joints
    found: list[tuple[float, Finding]] = []
    for e, j in enumerate(evidence.joints):
        A, y = evidence.A[e][rows], evidence.y[e][rows]
        Q = basis(A)
        for other in (b for b in evidence.joints if abs(b - j) == 1 and joints[b].kind == joints[j].kind):
            if _correlation(evidence.dq[rows, j], evidence.dq[rows, other]) ** 2 > _TOGETHER:
                continue
            rest, beside = (x - Q @ (Q.T @ x) for x in (y, evidence.tau[rows, other]))
            share = float(beside @ rest) / max(float(beside @ beside), 1e-300)
            after = rest - share * beside
            part = float(after @ after) / max(float(rest @ rest), 1e-300)
            blocks = [np.array([np.sum(b**2) for b in np.array_split(r, _BLOCKS)]) for r in (rest, after)]
            if abs(abs(share) - 1.0) > _ONCE or part > _LEAVES or _certainty(*blocks) < _CERTAIN:
                continue
            sign = float(np.sign(share))
            speed, rise = (x[rows, other] + sign * x[rows, j] for x in (evidence.dq, evidence.ddq))
            Q2 = basis(np.column_stack([A, drive_columns(speed, rise, SMOOTHING_SPEED[joints[j].kind])]))
            rubbing = float(np.sum((y - Q2 @ (Q2.T @ y)) ** 2)) < _LEAVES * float(rest @ rest)
            names = joints[j].name, joints[other].name
            found.append((part, turning_motor(*names, sign) if rubbing else coupled_motors(*names, -sign)))
    if found:
        yield min(found, key=lambda f: f[0])[1]


def _correlation(x: Array, y: Array) -> float:
    size = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(x @ y) / size if size > 0.0 else 0.0


def _certainty(before: Array, after: Array) -> float:
    """Compute by how many standard errors blocks leave less than before; 0 if the gain does not matter."""
    gain = before - after
    if gain.sum() < _MATTERS * before.sum():
        return 0.0
    return float(gain.mean() / max(gain.std(ddof=1) / np.sqrt(len(gain)), 1e-300))
