"""What the page of a motion asks the process aside: about the robot, and how a motion of it looks. All of it is plain
data, and the large rooms are imported when they are asked, so that the server stays light."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

# A floor is proposed where the first joint stands at least so high above it, m.
_STANDS = 0.02
# Curves of a page have no more points than this.
_POINTS = 1500


def motion_facts(project_file: str) -> dict[str, Any]:
    """The robot of a `project_file` as the form of a motion needs it: its joints with their `own` limits and those that
    hold (`now`), links, criteria, and the controllers a motion can be written for."""
    from steelyard.errors import SteelyardError
    from steelyard.excitation.constraints.limits import default_limits, limits_from
    from steelyard.excitation.criteria import CRITERIA
    from steelyard.project import Project

    project = Project.load(project_file)
    robot = project.load_robot()
    given: Any = {k: None if v == "none" else v for k, v in vars(project.limits).items() if v is not None}
    own, wrong = default_limits(robot), ""
    try:
        now = limits_from(robot, given or None)
    except SteelyardError as error:  # the form mends it
        now, wrong = own, str(error)
    names = {"low": "lower", "high": "upper", "dq": "dq", "ddq": "ddq", "tau": "tau"}
    joints = [
        {
            "name": joint.name,
            "unit": joint.unit,
            "effort_unit": joint.effort_unit,
            "own": {key: _finite(getattr(own, name)[k]) for key, name in names.items()},
            "now": {key: _finite(getattr(now, name)[k]) for key, name in names.items()},
        }
        for k, joint in enumerate(robot.joints)
    ]
    path = Path(robot.source)
    urdf = path.suffix.lower() == ".urdf" and path.is_file()
    return {
        "robot": robot.name,
        "fingerprint": robot.fingerprint,
        "joints": joints,
        "wrong": wrong,
        "links": list(robot.link_names),
        "collision": urdf and "<collision" in path.read_text("utf-8", "replace"),
        "floor": _floor(robot),
        "criteria": [(c.name, c.of) for c in CRITERIA.values()],
        "targets": _targets(robot),
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _floor(robot: Any) -> str:
    """The height of a floor that is proposed: that of the base, where the arm stands upright on it."""
    up = robot.gravity[2] < 0.0 and abs(robot.gravity[0]) + abs(robot.gravity[1]) < 1e-6
    return "0" if up and robot.links[0].translation[2] > _STANDS else ""


def _targets(robot: Any) -> list[dict[str, str]]:
    """Controllers, and why one of them does not suit this robot."""
    from steelyard.errors import SteelyardError
    from steelyard.excitation.controllers.target import MOTION_TARGETS

    found = []
    for name, target in MOTION_TARGETS.items():
        why = ""
        try:
            target.check(name, robot)
        except SteelyardError as error:
            why = str(error)
        found.append({"name": name, "title": target.title, "why": why})
    return found


def motion_shown(project_file: str, run: str) -> str:
    """HTML of the arm of a `project_file` in the motion of a `run`, and of its joints over time."""
    from steelyard.excitation.motion_design import read_design
    from steelyard.excitation.page import joint_motion
    from steelyard.project import Project
    from steelyard.report.elements import figure_html, join
    from steelyard.report.scene import scene_html
    from steelyard.studio.robot_files import robot_scene

    project = Project.load(project_file)
    robot = project.load_robot()
    read = read_design(run, robot)
    motions = [(f"motion {k + 1}", m.times(50.0), m) for k, m in enumerate(read.trajectories)]
    scene = robot_scene(project, robot, [(name, t, m.derivative(t, 0)) for name, t, m in motions])
    parts = [scene_html(scene, "The arm", "▶ plays the motion; drag to turn the arm.")]
    for name, _, motion in motions:
        t = motion.times(100.0)
        figure = joint_motion(t, *motion.sample(t), read.limits, robot.joint_names)
        figure.clock = name
        said = "Positions (from the middle of their range), velocities and accelerations as shares of their limits."
        parts.append(figure_html(figure, "Joints", said))
    return str(join(*parts))


def search_curve(events: str) -> list[dict[str, Any]]:
    """What a search has told so far, from the file of its `events`: every better value, and some between."""
    found: list[dict[str, Any]] = []
    try:
        with Path(events).open("rb") as file:
            for line in file:
                try:
                    seen = json.loads(line).get("seen")
                except ValueError:
                    continue  # its end is being written
                if isinstance(seen, dict) and seen.get("of") in ("motion", "rehearsal"):
                    found.append(seen)
    except OSError:
        return []
    best = None
    kept, step = [], max(1, len(found) // _POINTS)
    for k, seen in enumerate(found):
        if seen.get("best") != best or k % step == 0 or k == len(found) - 1 or seen.get("of") == "rehearsal":
            kept.append(seen)
        best = seen.get("best")
    return kept
