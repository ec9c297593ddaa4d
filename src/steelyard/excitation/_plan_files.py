"""Files of a plan: JSON, CSV, and a ROS message as JSON and YAML."""

from __future__ import annotations

import json
import math
from typing import Any

from steelyard.excitation.plan import Plan
from steelyard.ground.files import csv_text


def plan_files(plan: Plan) -> dict[tuple[str, str], str]:
    """Return the text of every file by its name and ending."""
    rows = ([x if isinstance(x, str) else f"{x:.10g}" for x in row] for row in plan.csv_rows())
    message = plan.to_ros()
    return {
        ("trajectory", "json"): plan.to_json(),
        ("trajectory", "csv"): csv_text(rows),
        **({} if plan.fitness is None else {("fitness", "csv"): plan.fitness.csv()}),
        ("joint_trajectory", "json"): json.dumps(message) + "\n",
        ("joint_trajectory", "yaml"): _yaml(message),
    }


def _yaml(message: dict[str, Any]) -> str:
    """Return the message as YAML with one line per field of a point, as `ros2 topic pub` reads it."""
    import yaml

    named = {"joint_names": message["joint_names"]}
    head = yaml.safe_dump(named, default_flow_style=None, allow_unicode=True, width=math.inf)
    lines = [head.rstrip("\n"), "points:"]
    for point in message["points"]:
        first = "- "
        for name in ("positions", "velocities", "accelerations"):
            lines.append(f"{first}{name}: [{', '.join(_number(x) for x in point[name])}]")
            first = "  "
        at = point["time_from_start"]
        lines.append(f"  time_from_start: {{sec: {at['sec']}, nanosec: {at['nanosec']}}}")
    return "\n".join(lines) + "\n"


def _number(x: float) -> str:
    """Format a number with a decimal point: YAML 1.1 reads 1e-05 as a string."""
    text = f"{x:.10g}"
    return text.replace("e", ".0e") if "e" in text and "." not in text else text
