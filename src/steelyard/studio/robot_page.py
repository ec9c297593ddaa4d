"""HTML of a robot for the stage *Robot*: 3D view, sliders and tables; rendered in the helper process."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.ground.numbers import number
from steelyard.project import Project, listed_names
from steelyard.report.elements import Html, TableColumn, callout, join, table_html, text
from steelyard.studio.page import attribute, button, command_line, entry, form
from steelyard.studio.robot_files import missing_meshes, robot_scene

if TYPE_CHECKING:
    from steelyard.regression.inspection import Inspection
    from steelyard.report.scene import Scene
    from steelyard.robot.robot import Joint, Robot

# Range of the sliders of joints without limits [rad, m].
_FREE_RANGE = {"revolute": math.pi, "prismatic": 1.0}


def robot_view(file: str) -> dict[str, str]:
    """Inspect the robot of the project `file`: `name`, `words`, `warning`, and HTML of its `view` and `tables`."""
    from steelyard.regression.inspection import inspect_robot
    from steelyard.robot.load import load_robot

    project = Project.load(file)
    robot = project.load_robot()
    full = robot if not (project.joints or project.lock) else load_robot(project.path_of(project.robot))
    inspection = inspect_robot(robot, project.terms or None)
    return {
        "name": robot.name,
        "words": f"{_count(len(inspection.joints), 'joint')}, {_count(len(inspection.links), 'moving link')}",
        "warning": "" if inspection.base_parameters else "number of base parameters unclear",
        "view": join(_view(project, robot), _joint_choice(full.joint_names, robot.joint_names)),
        "tables": _tables(project, inspection),
    }


def builtin_robots() -> list[tuple[str, int, str]]:
    """List the built-in robots: name, number of joints, description."""
    from steelyard.robot.library import catalogue

    return [(robot.name, robot.joints, robot.description) for robot in catalogue().robots]


def same_command(project: Project) -> str:
    """Return the command that prints the same about the robot of a `project`."""
    words = ["steelyard", "inspect", project.robot]
    if project.joints:
        words += ["--joints", ",".join(listed_names(project.joints))]
    for name, value in project.lock.items():
        words += ["--lock", f"{name}={value:g}"]
    if project.gravity is not None:
        words += ["--gravity", ",".join(f"{x:g}" for x in project.gravity)]
    if project.snap is not None:
        words += ["--snap", f"{project.snap:g}"]
    if project.terms:
        words += ["--terms", ",".join(listed_names(project.terms))]
    return shlex.join(words)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


# ------------------------------------------------------------ view


def _view(project: Project, robot: Robot) -> Html:
    from steelyard.report.scene import scene_html

    packages = [project.path_of(p) for p in listed_names(project.packages)]
    scene = _scene(project, robot)
    caption = (
        "Drag or use the arrow keys to rotate the view; + and − zoom. Blue: bodies of uniform density with the masses "
        "and inertias of the robot's file. If the base is not level, turn the arrow of gravity; hold Shift to turn it "
        "freely."
    )
    missing = missing_meshes(Path(robot.source), packages) if robot.source.lower().endswith((".urdf", ".xml")) else []
    notice = ""
    if missing:
        some = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        notice = callout(
            "note", f"Missing meshes: {some}. Drop them above, or a .zip of the whole folder, or give the folders of "
            "the packages. Only the picture needs them.",
        )  # fmt: skip
        folders = ", ".join(listed_names(project.packages))
        fields = entry("packages", "Package folders, inside the studio's folder", folders)
        notice += form("robot/packages", f'<div class="row">{fields}<button>Search there</button></div>')
    sliders = "".join(_slider(k, joint, float(scene.rest[k])) for k, joint in enumerate(robot.joints))
    x, y, z = (f"{value:g}" for value in robot.gravity)
    fields = join(*(entry(n, n, v, kind="number", step="any") for n, v in (("x", x), ("y", y), ("z", z))))
    gravity = form(
        "robot/gravity", f'<fieldset class="row"><legend>Gravity [m/s²]</legend>{fields}</fieldset>', "",
        "robot-tables", "gravity-form", live=True,
    )  # fmt: skip
    space = scene_html(scene, f"{robot.name} in space", caption)
    return Html(
        f'<section class="robot-view" aria-label="3D view of the robot">{space}{notice}'
        f'<fieldset class="sliders"><legend>Posture</legend>{sliders}'
        f'<button type="button" class="rest">Reset posture</button></fieldset>{gravity}</section>'
    )


def _scene(project: Project, robot: Robot) -> Scene:
    """Return the scene in the posture nearest to zero, sized so that all postures are visible."""
    import numpy as np

    from steelyard.report.scene import Body
    from steelyard.robot.kinematics.poses import link_poses
    from steelyard.robot.shapes import inertia_ellipsoid

    scene = robot_scene(project, robot)
    spans = np.array([_span(joint) for joint in robot.joints])
    rest = np.clip(np.zeros(robot.dof), spans[:, 0], spans[:, 1])
    postures = np.random.default_rng(0).uniform(spans[:, 0], spans[:, 1], (60, robot.dof))
    origins = link_poses(robot, np.vstack([rest, postures]))[1]
    bodies = tuple(
        Body(k, None, solid)
        for k, link in enumerate(robot.links)
        if (solid := inertia_ellipsoid(link.inertia, link.frame_rotation, link.frame_translation)) is not None
    )
    # Reach of the joints plus the size of the bodies; a body larger than half the reach is cut to that.
    distances = np.linalg.norm(origins, axis=-1).max(axis=0)
    reach = max(float(distances.max()), scene.reach)
    sizes = {b.link: float(np.linalg.norm(b.nominal.centre) + b.nominal.axes.max()) for b in bodies if b.nominal}
    reach = max([reach, *(float(distances[link]) + min(size, 0.5 * reach) for link, size in sizes.items())])
    low, high = origins.reshape(-1, 3).min(axis=0), origins.reshape(-1, 3).max(axis=0)
    middle = np.array([0.0, 0.0, 0.5 * (min(low[2], 0.0) + max(high[2], 0.0))])
    return replace(scene, rest=rest, reach=0.85 * reach, middle=middle, bodies=bodies)


def _span(joint: Joint) -> tuple[float, float]:
    """Return the range of a joint's slider."""
    free = _FREE_RANGE[joint.kind]
    low = joint.lower if math.isfinite(joint.lower) else min(-free, joint.upper - 2.0 * free)
    high = joint.upper if math.isfinite(joint.upper) else max(free, joint.lower + 2.0 * free)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (-free, free)


def _slider(k: int, joint: Joint, at: float) -> Html:
    low, high = _span(joint)
    is_limited = math.isfinite(joint.lower) and math.isfinite(joint.upper)
    limits = f"{number(low)} … {number(high)} {joint.unit}" if is_limited else "no limit"
    return Html(
        f'<label><span class="named">{text(joint.name)}</span><input type="range" data-coordinate="{k}" '
        f'data-unit="{joint.unit}" min="{low:.6g}" max="{high:.6g}" step="any" value="{at:.6g}"><output></output>'
        f'<span class="limits">{limits}</span></label>'
    )


def _joint_choice(joints: Sequence[str], moving: Sequence[str]) -> Html:
    """Render boxes that select the moving joints; the others are locked at zero."""
    ticks = "".join(
        f'<label class="tick"><input type="checkbox" name="joint" value="{attribute(name)}"'
        f"{' checked' if name in moving else ''}> {text(name)}</label>"
        for name in joints
    )
    count = f'<input type="hidden" name="of" value="{len(joints)}">'
    inside = f"{count}{ticks}<div><button>Use only these joints</button></div>"
    return Html(f'<details id="which"><summary>Moving joints</summary>{form("robot/joints", inside)}</details>')


# ------------------------------------------------------------ tables


def _tables(project: Project, inspection: Inspection) -> Html:
    notes = [callout("warning", note) for note in inspection.notes]
    if inspection.base_parameters is None and project.snap is None:
        notes.append(button("robot/snap", "Round nearly right angles to exact ones", "main"))
    tables = (_base(inspection), _joints(inspection), _drives(inspection), _links(inspection))
    return join(*notes, *tables, command_line(same_command(project)))


def _highlight_button(words: str, links: Sequence[str]) -> Html:
    """Render a button that highlights bodies in the 3D view."""
    names = attribute(json.dumps(list(links), ensure_ascii=False))
    return Html(
        f'<button type="button" class="bodies" aria-pressed="false" data-bodies="{names}">{text(words)}</button>'
    )


def _base(inspection: Inspection) -> Html:
    base = inspection.base_parameters
    if base is None:
        return Html("<h2>Base parameters</h2><p>Their number is not clear; the warning above gives the reason.</p>")
    rows = [
        [k, _highlight_button(p.formula, p.links), p.unit, p.nominal, ", ".join(p.links)]
        for k, p in enumerate(base.parameters, start=1)
    ]
    about = (
        "The combinations of masses, first moments and inertias that are identifiable with this robot. Select one to "
        "highlight its bodies."
    )
    with_terms = f" with {', '.join(inspection.terms)}" if inspection.terms else ""
    table = table_html(
        ["#", "formula", "unit", "nominal", "bodies"], rows, f"{base.count} base parameters{with_terms}",
        "The robot's file does not give all of its parts.", tall=True,
    )  # fmt: skip
    return Html(f"<h2>Base parameters</h2><p>{about}</p>{table}")


def _joints(inspection: Inspection) -> Html:
    links = {j.name: [link.name for link in inspection.links if link.joint == j.name] for j in inspection.joints}
    rows: list[list[Any]] = [
        [
            _highlight_button(j.name, links[j.name]), j.kind, j.unit, j.lower, j.upper, j.velocity, j.effort,
            j.torque_used,
        ]
        for j in inspection.joints
    ]  # fmt: skip
    columns: list[TableColumn | str] = [
        "joint", "type", "unit", "lower", "upper", "velocity", TableColumn("effort", "N m, N"), "torque used",
    ]  # fmt: skip
    return Html("<h2>Joints</h2>" + table_html(columns, rows, "Joints and limits", "The robot's file has no limit."))


def _drives(inspection: Inspection) -> Html:
    if not inspection.transmission:
        return Html("")
    names = [joint.name for joint in inspection.joints]
    rows = [
        [t.motor, t.moves(names), t.ratio if t.ratio is not None else "depends on posture"]
        for t in inspection.transmission
    ]
    return table_html(["motor", "moves", "ratio"], rows, "Drives")


def _links(inspection: Inspection) -> Html:
    rows: list[list[Any]] = [
        [
            _highlight_button(link.name, [link.name]),
            link.parent or "base",
            link.mass,
            None if link.center_of_mass is None else ", ".join(f"{x:.3g}" for x in link.center_of_mass),
            {True: "yes", False: "no", None: "unknown"}[link.physically_possible],
        ]
        for link in inspection.links
    ]
    columns: list[TableColumn | str] = [
        "link",
        "parent",
        TableColumn("mass", "kg"),
        TableColumn("centre of mass", "m"),
        "physically possible",
    ]
    return Html("<h2>Links</h2>" + table_html(columns, rows, "Links", "Not in the robot's file."))
