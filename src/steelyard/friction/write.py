"""Write friction curves as a run folder."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from steelyard.friction.measure import FrictionCurves
from steelyard.ground.files import run_folder
from steelyard.robot.robot import Robot


def write_friction(found: FrictionCurves, robot: Robot, folder: Path, *, overwrite: bool = False) -> None:
    """result.json, report.html and points.csv; the folder appears whole or not at all."""
    from steelyard.report.friction_and_load import friction_report

    with run_folder(folder, overwrite) as aside:
        text = json.dumps(found.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        (aside / "result.json").write_text(text + "\n", "utf-8")
        (aside / "report.html").write_text(friction_report(found, robot), "utf-8")
        (aside / "points.csv").write_text(_table(found), "utf-8")


def _table(found: FrictionCurves) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["joint", "velocity", "torque", "standard_error", "temperature"])
    for joint in found.joints:
        for p in joint.points:
            writer.writerow(
                [joint.joint, p.velocity, p.torque, p.error, "" if p.temperature is None else p.temperature]
            )
    return out.getvalue()
