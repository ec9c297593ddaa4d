"""Functions of the stage *Motion* for the helper process: data of the robot, and plots of a motion.

Large packages are imported inside the functions to keep the server small.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

# A floor is proposed if the first joint is at least this far above the base [m].
_BASE_HEIGHT = 0.02
# Largest number of points of the search curve.
_MOST_POINTS = 1500


def motion_facts(project_file: str) -> dict[str, Any]:
    """Return the data that the form needs about the robot of a `project_file`.

    Joints have the limits of the robot's file (`own`) and those of the project (`now`). The rest: links, criteria and
    the controllers that a motion can be written for.
    """
    from steelyard.errors import SteelyardError
    from steelyard.excitation.constraints.limits import default_limits, limits_from
    from steelyard.excitation.criteria import CRITERIA
    from steelyard.project import Project

    project = Project.load(project_file)
    robot = project.load_robot()
    limits: Any = {k: None if v == "none" else v for k, v in vars(project.limits).items() if v is not None}
    own, wrong = default_limits(robot), ""
    try:
        now = limits_from(robot, limits or None)
    except SteelyardError as error:  # the user can fix it in the form
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
    """Propose the height of the floor: that of the base if the arm is upright on it, else none."""
    is_upright = robot.gravity[2] < 0.0 and abs(robot.gravity[0]) + abs(robot.gravity[1]) < 1e-6
    return "0" if is_upright and robot.links[0].translation[2] > _BASE_HEIGHT else ""


def _targets(robot: Any) -> list[dict[str, str]]:
    """List the controllers, with the reason if one does not suit this robot."""
    from steelyard.errors import SteelyardError
    from steelyard.excitation.controller_formats.target import MOTION_TARGETS

    targets = []
    for name, target in MOTION_TARGETS.items():
        why = ""
        try:
            target.check(name, robot)
        except SteelyardError as error:
            why = str(error)
        targets.append({"name": name, "title": target.title, "why": why})
    return targets


def motion_view(project_file: str, run: str) -> str:
    """Render the arm in a motion, and its joints over time.

    Args:
        project_file: Path of the project file.
        run: Folder of the motion.
    """
    from steelyard.excitation.motion_design import read_design
    from steelyard.excitation.page import joint_motion
    from steelyard.project import Project
    from steelyard.report.elements import figure_html, join
    from steelyard.report.scene import scene_html
    from steelyard.studio.robot_files import robot_scene

    project = Project.load(project_file)
    robot = project.load_robot()
    designed = read_design(run, robot)
    motions = [(f"motion {k + 1}", m.times(50.0), m) for k, m in enumerate(designed.trajectories)]
    scene = robot_scene(project, robot, [(name, t, m.derivative(t, 0)) for name, t, m in motions])
    parts = [scene_html(scene, "The arm", "▶ plays the motion; drag to rotate the view.")]
    for name, _, motion in motions:
        t = motion.times(100.0)
        figure = joint_motion(t, *motion.sample(t), designed.limits, robot.joint_names)
        figure.clock = name
        caption = "Positions (from the middle of their range), velocities and accelerations as shares of their limits."
        parts.append(figure_html(figure, "Joints", caption))
    return str(join(*parts))


def search_curve(events: str) -> list[dict[str, Any]]:
    """Read the progress of a search from its file of `events`: every improvement, and some points in between."""
    points: list[dict[str, Any]] = []
    try:
        with Path(events).open("rb") as file:
            for line in file:
                try:
                    seen = json.loads(line).get("seen")
                except ValueError:
                    continue  # an incomplete last line
                if isinstance(seen, dict) and seen.get("of") in ("motion", "rehearsal"):
                    points.append(seen)
    except OSError:
        return []
    best = None
    curve, step = [], max(1, len(points) // _MOST_POINTS)
    for k, seen in enumerate(points):
        if seen.get("best") != best or k % step == 0 or k == len(points) - 1 or seen.get("of") == "rehearsal":
            curve.append(seen)
        best = seen.get("best")
    return curve
