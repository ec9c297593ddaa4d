"""The ledger of assumptions for a log alone: test the assumptions of a plain fit, and report refuted ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from steelyard.assumptions.correct import vanishes
from steelyard.assumptions.examine import examine_assumptions
from steelyard.assumptions.harm import MOST_OF_THE_ERROR
from steelyard.assumptions.ledger import Entry, Ledger
from steelyard.assumptions.suspect_table import tilt_axes
from steelyard.check._channels import STILL
from steelyard.check._evidence import Evidence
from steelyard.check.corrections import coupled_motors, wrong_clock, wrong_scale, wrong_zero
from steelyard.check.left_out import LeftOutFits
from steelyard.check.mistakes import name_rivals
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding
from steelyard.study import Study

# `check_delay` looks at these more closely.
_ELSEWHERE = ("delay", "smoothing")


def ledger_of_log(study: Study, evidence: Evidence) -> Ledger | None:
    """Test the assumptions of weighted least squares with the usual terms; None if the log is too short.

    Args:
        study: Study of one log.
        evidence: Its prepared rows.
    """
    opening = study.opening
    model, rmse = opening.quick_fit()
    deviations = np.array([np.std(y) for y in evidence.y])
    moving = sum(np.ptp(evidence.q[:, j]) > STILL[evidence.robot.joints[j].kind] for j in evidence.joints)
    # Joints bear witness for one another while they move; on a joint that stands, friction holds any torque.
    if not np.all(deviations > 0.0) or moving < min(2, len(evidence.joints)):
        return None
    # The errors of parameters are unknown here, so only changes of the torque count as harm.
    unknown = np.zeros(evidence.base.rank)
    return examine_assumptions(opening, model, opening.for_validation([]), rmse, 100.0 * rmse / deviations, unknown)


def findings_of(ledger: Ledger | None, fits: LeftOutFits) -> Iterator[Finding]:
    """Report the assumptions that a log refutes.

    Args:
        ledger: Ledger of the log.
        fits: Fits of the log that judge discrete mistakes.
    """
    robot = fits.robot
    if ledger is not None and ledger.contradiction:
        yield Finding("inconsistent", "warning", ledger.contradiction, joint=ledger.contradicting)
    for entry in () if ledger is None else ledger.refuted:
        if entry.suspect.kind in _ELSEWHERE or entry.estimate is None or entry.standard_error is None:
            continue
        finding = _correction(entry, entry.estimate, robot)
        # Terms that a plain fit lacks change its numbers by some per cent. Smaller mistakes are left to `identify`,
        # which searches for these terms and has validation logs.
        clear = finding.severity == "problem" and entry.harmful and entry.least_harm_percent > MOST_OF_THE_ERROR
        # With two joints, it is not identifiable which of them has the wrong scale.
        clear = clear and not (entry.suspect.kind == "torque scale" and sum(robot.torque_used) < 3)
        message, fix = entry.evidence, finding.fix if clear else None
        if clear and (rivals := name_rivals(fits, 0.01 * entry.gain_percent)):
            message, fix = f"{message} It may also be: {', '.join(rivals)}.", None
        yield replace(finding, severity="problem" if clear else "note", message=message, fix=fix)


def _correction(entry: Entry, value: float, robot: Robot) -> Finding:
    suspect = entry.suspect
    name, kind = suspect.joint, suspect.kind
    if kind == "zero":
        return wrong_zero(name, -value)
    if kind == "torque scale" and name and not vanishes(suspect, value, entry.standard_error or 0.0):
        return wrong_scale(name, 1.0 / (1.0 + value))
    if kind == "clock scale":
        return wrong_clock(1.0 + value)
    if kind == "torque coupling" and abs(abs(value) - 1.0) < 2.0 * (entry.standard_error or 0.0):
        return coupled_motors(name, suspect.other, -float(np.sign(value)))
    if suspect.family == "gravity":
        gravity = _turned_gravity(np.asarray(robot.gravity, dtype=float), kind, value)
        return Finding("gravity", "problem", "", suspect.fix, fix={"gravity": [round(float(x), 3) for x in gravity]})
    if kind == "change of the friction":
        return Finding("warming", "note", "", suspect.fix, name)
    return Finding(kind.replace(" ", "_"), "problem", "", suspect.fix, name or None)


def _turned_gravity(gravity: Array, kind: str, value: float) -> Array:
    if kind == "size of gravity":
        return gravity * (1.0 + value)
    axis = tilt_axes(gravity)[kind.removeprefix("tilt of gravity about ")]
    size = np.linalg.norm(gravity)
    turned = gravity + value * np.cross(axis, gravity)
    return np.asarray(turned * size / np.linalg.norm(turned))
