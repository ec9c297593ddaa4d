"""What the stage *Robot* shows of a robot: the robot in space, sliders, tables. Made in the process aside."""

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

# How far a slider goes where a joint has no limits: rad, and m.
_FREE = {"revolute": math.pi, "prismatic": 1.0}


def robot_seen(file: str) -> dict[str, str]:
    """The robot of the project `file`, looked at: its `name`, a few `words`, and HTML to look at (`view`) and to read
    (`tables`)."""
    from steelyard.regression.inspection import inspect_robot
    from steelyard.robot.load import load_robot

    project = Project.load(file)
    robot = project.load_robot()
    everyone = robot if not (project.joints or project.lock) else load_robot(project.path_of(project.robot))
    seen = inspect_robot(robot, project.terms or None)
    return {
        "name": robot.name,
        "words": f"{_count(len(seen.joints), 'joint')}, {_count(len(seen.links), 'moving link')}",
        "warning": "" if seen.base_parameters else "which parameters can be told apart is not clear",
        "view": join(_view(project, robot), _which(everyone.joint_names, robot.joint_names)),
        "tables": _tables(project, seen),
    }


def builtin_robots() -> list[tuple[str, int, str]]:
    """Name, joints and a sentence of each built-in robot."""
    from steelyard.robot.library import catalogue

    return [(robot.name, robot.joints, robot.description) for robot in catalogue().robots]


def same_command(project: Project) -> str:
    """The command that tells the same of the robot of a `project`."""
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


def _count(how_many: int, noun: str) -> str:
    return f"{how_many} {noun}{'' if how_many == 1 else 's'}"


# ------------------------------------------------------------ to look at


def _view(project: Project, robot: Robot) -> Html:
    from steelyard.report.scene import scene_html

    packages = [project.path_of(p) for p in listed_names(project.packages)]
    scene = _scene(project, robot)
    caption = (
        "Drag it, or use the arrow keys, to turn it; + and − zoom. Blue: bodies of even density with the masses and "
        "inertias of the description. Turn the arrow of gravity if the base is mounted otherwise, with Shift freely."
    )
    missing = missing_meshes(Path(robot.source), packages) if robot.source.lower().endswith(".urdf") else []
    told = ""
    if missing:
        some = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        told = callout(
            "note", f"Meshes that the file names and that are not here: {some}. Drop them above, or a .zip of the "
            "whole folder, or say in which folders packages are; nothing but the picture needs them.",
        )  # fmt: skip
        folders = ", ".join(listed_names(project.packages))
        fields = entry("packages", "Folders that hold packages, below the studio's own", folders)
        told += form("robot/packages", f'<div class="row">{fields}<button>Look there</button></div>')
    sliders = "".join(_slider(k, joint, float(scene.rest[k])) for k, joint in enumerate(robot.joints))
    x, y, z = (f"{value:g}" for value in robot.gravity)
    fields = join(*(entry(n, n, v, kind="number", step="any") for n, v in (("x", x), ("y", y), ("z", z))))
    gravity = form(
        "robot/gravity", f'<fieldset class="row"><legend>Gravity [m/s²]</legend>{fields}</fieldset>', "",
        "robot-tables", "gravity-form", live=True,
    )  # fmt: skip
    space = scene_html(scene, f"{robot.name} in space", caption)
    return Html(
        f'<section class="robot-view" aria-label="The robot in space">{space}{told}'
        f'<fieldset class="sliders"><legend>Posture</legend>{sliders}'
        f'<button type="button" class="rest">Back to rest</button></fieldset>{gravity}</section>'
    )


def _scene(project: Project, robot: Robot) -> Scene:
    """At rest, which is zero or the nearest that limits allow, and from as far as it takes to see it move."""
    import numpy as np

    from steelyard.report.scene import Body
    from steelyard.robot.kinematics.poses import link_poses
    from steelyard.robot.shapes import inertia_ellipsoid

    made = robot_scene(project, robot)
    spans = np.array([_span(joint) for joint in robot.joints])
    rest = np.clip(np.zeros(robot.dof), spans[:, 0], spans[:, 1])
    postures = np.random.default_rng(0).uniform(spans[:, 0], spans[:, 1], (60, robot.dof))
    origins = link_poses(robot, np.vstack([rest, postures]))[1]
    bodies = tuple(
        Body(k, None, solid)
        for k, link in enumerate(robot.links)
        if (solid := inertia_ellipsoid(link.inertia, link.frame_rotation, link.frame_translation)) is not None
    )
    # How far it gets, with what of a body sticks out of its joint, but for bodies that are larger than the arm.
    away = np.linalg.norm(origins, axis=-1).max(axis=0)
    far = max(float(away.max()), made.reach)
    sizes = {b.link: float(np.linalg.norm(b.nominal.centre) + b.nominal.axes.max()) for b in bodies if b.nominal}
    far = max([far, *(float(away[link]) + min(size, 0.5 * far) for link, size in sizes.items())])
    low, high = origins.reshape(-1, 3).min(axis=0), origins.reshape(-1, 3).max(axis=0)
    middle = np.array([0.0, 0.0, 0.5 * (min(low[2], 0.0) + max(high[2], 0.0))])
    return replace(made, rest=rest, reach=0.85 * far, middle=middle, bodies=bodies)


def _span(joint: Joint) -> tuple[float, float]:
    """From where to where its slider goes."""
    free = _FREE[joint.kind]
    low = joint.lower if math.isfinite(joint.lower) else min(-free, joint.upper - 2.0 * free)
    high = joint.upper if math.isfinite(joint.upper) else max(free, joint.lower + 2.0 * free)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (-free, free)


def _slider(k: int, joint: Joint, at: float) -> Html:
    low, high = _span(joint)
    known = math.isfinite(joint.lower) and math.isfinite(joint.upper)
    limits = f"{number(low)} … {number(high)} {joint.unit}" if known else "no limit"
    return Html(
        f'<label><span class="named">{text(joint.name)}</span><input type="range" data-coordinate="{k}" '
        f'data-unit="{joint.unit}" min="{low:.6g}" max="{high:.6g}" step="any" value="{at:.6g}"><output></output>'
        f'<span class="limits">{limits}</span></label>'
    )


def _which(everyone: Sequence[str], moving: Sequence[str]) -> Html:
    """Which joints move: the others are held at zero."""
    ticks = "".join(
        f'<label class="tick"><input type="checkbox" name="joint" value="{attribute(name)}"'
        f"{' checked' if name in moving else ''}> {text(name)}</label>"
        for name in everyone
    )
    count = f'<input type="hidden" name="of" value="{len(everyone)}">'
    inside = f"{count}{ticks}<div><button>Only these move</button></div>"
    return Html(f'<details id="which"><summary>Which joints move</summary>{form("robot/joints", inside)}</details>')


# ------------------------------------------------------------ to read


def _tables(project: Project, seen: Inspection) -> Html:
    notes = [callout("warning", note) for note in seen.notes]
    if seen.base_parameters is None and project.snap is None:
        notes.append(button("robot/snap", "Make nearly right angles exact", "main"))
    return join(*notes, _base(seen), _joints(seen), _drives(seen), _links(seen), command_line(same_command(project)))


def _chooser(words: str, links: Sequence[str]) -> Html:
    """A button that shows bodies in space."""
    named = attribute(json.dumps(list(links), ensure_ascii=False))
    return Html(
        f'<button type="button" class="bodies" aria-pressed="false" data-bodies="{named}">{text(words)}</button>'
    )


def _base(seen: Inspection) -> Html:
    base = seen.base_parameters
    if base is None:
        return Html("<h2>Base parameters</h2><p>Their number cannot be decided; the note above says why.</p>")
    rows = [
        [k, _chooser(p.formula, p.links), p.unit, p.nominal, ", ".join(p.links)]
        for k, p in enumerate(base.parameters, start=1)
    ]
    told = (
        "What the motion of this robot can show: of its masses, first moments and inertias these combinations, and no "
        "others. Choose one to see the bodies that take part in it."
    )
    with_terms = f" with {', '.join(seen.terms)}" if seen.terms else ""
    table = table_html(
        ["#", "formula", "unit", "nominal", "bodies"], rows, f"{base.count} base parameters{with_terms}",
        "The description does not give all of its parts.", tall=True,
    )  # fmt: skip
    return Html(f"<h2>Base parameters</h2><p>{told}</p>{table}")


def _joints(seen: Inspection) -> Html:
    moved = {joint.name: [link.name for link in seen.links if link.joint == joint.name] for joint in seen.joints}
    rows: list[list[Any]] = [
        [_chooser(j.name, moved[j.name]), j.kind, j.unit, j.lower, j.upper, j.velocity, j.effort, j.torque_used]
        for j in seen.joints
    ]
    columns: list[TableColumn | str] = [
        "joint", "type", "unit", "lower", "upper", "velocity", TableColumn("effort", "N m, N"), "torque used",
    ]  # fmt: skip
    return Html("<h2>Joints</h2>" + table_html(columns, rows, "Joints and limits", "The description gives no limit."))


def _drives(seen: Inspection) -> Html:
    if not seen.transmission:
        return Html("")
    names = [joint.name for joint in seen.joints]
    rows = [[t.motor, t.moves(names), t.ratio if t.ratio is not None else "by posture"] for t in seen.transmission]
    return table_html(["motor", "moves", "ratio"], rows, "Drives")


def _links(seen: Inspection) -> Html:
    rows: list[list[Any]] = [
        [
            _chooser(link.name, [link.name]),
            link.parent or "base",
            link.mass,
            None if link.center_of_mass is None else ", ".join(f"{x:.3g}" for x in link.center_of_mass),
            {True: "yes", False: "no", None: "unknown"}[link.physically_possible],
        ]
        for link in seen.links
    ]
    columns: list[TableColumn | str] = [
        "link",
        "on",
        TableColumn("mass", "kg"),
        TableColumn("centre of mass", "m"),
        "possible body",
    ]
    return Html("<h2>Links</h2>" + table_html(columns, rows, "Links", "The description does not say."))
