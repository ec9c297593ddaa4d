"""Write designed motions as a run folder: tables for controllers, ROS messages, via-point programs, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from steelyard.excitation.designed import Designed
from steelyard.excitation.interpolator import program_text, program_to_dict
from steelyard.excitation.plan import Plan
from steelyard.ground.files import run_folder
from steelyard.report.designed import designed_report


def write_designed(made: Designed, folder: str | Path, *, overwrite: bool = False) -> Path:
    """The folder appears whole or not at all; files of a second motion are named …-2, and so on."""
    with run_folder(folder, overwrite) as aside:
        for k, plan in enumerate(made.plans):
            _write_plan(plan, aside, "" if k == 0 else f"-{k + 1}")
        for k, found in enumerate(made.programs):
            if found is not None:
                end = "" if k == 0 else f"-{k + 1}"
                (aside / f"program{end}.txt").write_text(program_text(found[0], made.robot), "utf-8")
                (aside / f"program{end}.json").write_text(_json(program_to_dict(found[0])), "utf-8")
        (aside / "result.json").write_text(_json(made.to_json()), "utf-8")
        (aside / "report.html").write_text(designed_report(made), "utf-8")
    return Path(folder)


def _write_plan(plan: Plan, aside: Path, end: str) -> None:
    (aside / f"trajectory{end}.json").write_text(plan.to_json(), "utf-8")
    lines = (",".join(x if isinstance(x, str) else f"{x:.10g}" for x in row) for row in plan.csv_rows())
    (aside / f"trajectory{end}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    message = plan.to_ros()
    (aside / f"joint_trajectory{end}.json").write_text(json.dumps(message) + "\n", "utf-8")
    (aside / f"joint_trajectory{end}.yaml").write_text(_yaml(message), "utf-8")


def _yaml(message: dict[str, Any]) -> str:
    """The message as YAML with one line per field of a point, as `ros2 topic pub` reads it."""
    lines = [f"joint_names: {json.dumps(message['joint_names'], ensure_ascii=False)}", "points:"]
    for point in message["points"]:
        first = "- "
        for name in ("positions", "velocities", "accelerations"):
            lines.append(f"{first}{name}: [{', '.join(_number(x) for x in point[name])}]")
            first = "  "
        at = point["time_from_start"]
        lines.append(f"  time_from_start: {{sec: {at['sec']}, nanosec: {at['nanosec']}}}")
    return "\n".join(lines) + "\n"


def _number(x: float) -> str:
    """Always with a point: YAML 1.1 takes 1e-05 for a word."""
    text = f"{x:.10g}"
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
