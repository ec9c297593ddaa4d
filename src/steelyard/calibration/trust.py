"""`verdict_of`: state whether a calibration is reliable, and in which volume."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.calibration.choose import surely_better
from steelyard.calibration.weights import shown_error
from steelyard.ground.numbers import number
from steelyard.report.html import Verdict

if TYPE_CHECKING:
    from steelyard.calibration.calibration import Calibration

# Errors of calibrated robots are below a per cent of the measured volume; a tenth indicates another robot or other
# columns.
_STRANGE = 0.1
# Orientations of a calibrated robot are right to a degree; this angle [rad] is another convention.
_STRANGE_TURN = 0.2


def verdict_of(calibration: Calibration) -> Verdict:
    """Judge a `calibration` by its left-out poses."""
    nominal, full = calibration.left_out["nominal"], calibration.left_out["full"]
    points = [
        f"{c.capitalize()} on left-out poses: {shown_error(nominal.mean[c], c)} before, "
        f"{shown_error(full.mean[c], c)} after (mean)."
        for c in full.mean
    ]
    if calibration.holdout is not None:
        before, after = (calibration.errors(calibration.holdout, s) for s in ("nominal", "full"))
        points += [
            f"Hold-out of {len(calibration.holdout)} poses: {shown_error(before[c].mean, c)} before, "
            f"{shown_error(after[c].mean, c)} after (mean)."
            for c in after
        ]
        points += _beyond(calibration)
    few = calibration.few_poses
    helps = surely_better(nominal, full)
    if few:
        points.append(
            f"Left-out poses have {number(100 * (calibration.overfit - 1), 2)} % more error than fitted ones: "
            f"{len(calibration.table)} poses are too few. Measure about {calibration.enough_poses}."
        )
    volume = calibration.volume
    channel = next(iter(full.mean))
    local = calibration.local
    if local:
        sizes = " × ".join(f"{number(1e3 * s, 3)}" for s in volume["box"][1] - volume["box"][0])
        points.append(
            f"The poses fill a box of {sizes} mm. The calibration holds there. Elsewhere in the workspace the "
            f"parameters alone add an error of about {shown_error(volume['outside'], channel)}."
        )
    claimed = [e for e in calibration.effects if e not in ("offsets", "axes")]
    sure = [e for e in claimed if calibration.shown(e)]
    if sure:
        points.append(
            f"Left-out poses show {', '.join(sure)}, which a URDF cannot state; result.json has the parameters."
        )
    if not calibration.table.measurement.has_length:
        points.append(
            "These contacts have no length: the size of the robot stays as described. With the coordinates of the "
            "touched places as points (p1x_m, p1y_m, p1z_m), the fit also determines the size."
        )
    if calibration.unmoved:
        points.append(
            f"Joint {', '.join(calibration.unmoved)} did not move: its errors cannot be separated from those of its "
            "neighbours."
        )
    points += [*calibration.findings, *calibration.table.notes]
    size = float(np.max(volume["box"][1] - volume["box"][0]))
    turned = full.mean.get("rotation", 0.0) > _STRANGE_TURN
    if turned or (channel != "rotation" and full.mean[channel] > _STRANGE * size):
        points.insert(0, "Compare columns, units and signs with the description, and the order of the rows.")
        return Verdict("bad", "The readings do not fit the joint positions.", tuple(points))
    if calibration.choice.rejected or (few and not helps):
        return Verdict("bad", "These poses are too few to correct the robot's geometry.", tuple(points))
    if not helps:
        return Verdict("bad", "These poses do not improve the robot's geometry.", tuple(points))
    if few:
        return Verdict("warning", "The robot is calibrated, but from too few poses.", tuple(points))
    if local:
        return Verdict("warning", "The robot is calibrated within the measured volume only.", tuple(points))
    return Verdict("good", "The robot is calibrated.", tuple(points))


def _beyond(calibration: Calibration) -> list[str]:
    """Sentence about hold-out poses outside of the joint ranges of the fitted poses."""
    judged, fitted = calibration.holdout, calibration.table.q
    assert judged is not None
    beyond = np.any((judged.q < fitted.min(axis=0)) | (judged.q > fitted.max(axis=0)), axis=1)
    if not beyond.any() or beyond.all():
        return []
    channel = next(iter(calibration.choice.chosen.mean))
    there, elsewhere = (calibration.errors(judged.rows(rows))[channel].mean for rows in (beyond, ~beyond))
    return [
        f"{int(beyond.sum())} poses of the hold-out exceed the joint ranges of the fitted poses: "
        f"{shown_error(there, channel)} there, {shown_error(elsewhere, channel)} at the others (mean)."
    ]
