"""The stage *Robot*: the robot of the project, its gravity and its moving joints."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shlex
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from steelyard.errors import SteelyardError
from steelyard.ground.files import plain, write_whole
from steelyard.project import Project
from steelyard.report.elements import Html, text
from steelyard.studio.calibration_section import (
    CALIBRATION_ACTIONS,
    calibrate_words,
    calibration_html,
    pose_form,
)  # fmt: skip
from steelyard.studio.example import EXAMPLE_LOGS, EXAMPLE_ROBOT, write_example
from steelyard.studio.page import button, choice, command_line, drop_zone, form, trouble
from steelyard.studio.robot_files import DESCRIPTIONS, MESHES, ROBOT_FOLDER, descriptions, take_files
from steelyard.studio.robot_page import builtin_robots, robot_view
from steelyard.studio.roles import LOGS, listed_logs, set_role
from steelyard.studio.stage import STUDIO_STAGES, Action, FormData, Stage, StageContext, StageStatus
from steelyard.studio.studio_folder import StudioError, StudioFolder

# Keys of the project file that hold for one robot only.
_ROBOT_KEYS = ("packages", "joints", "lock", "snap", "gravity")
_LARGEST_GRAVITY = 1e4  # m/s²
# Tolerance for angles that are written with few digits [rad].
_SNAP = 1e-4
_MOST_FILES = 60


class RobotStage(Stage):
    """Chooses and shows the robot."""

    name = "robot"
    title = "Robot"
    scripts = ("lazy.js", "posture.js", "folder.js", "command_preview.js")

    async def status(self, context: StageContext) -> StageStatus:
        try:
            robot = context.folder.project().robot
        except SteelyardError:
            return StageStatus("bad", "the project file cannot be read")
        if not robot:
            return StageStatus("empty", "choose a robot")
        view = _saved_view(context.folder)
        if view is None:
            return StageStatus("done", robot)
        if "error" in view:
            return StageStatus("bad", "cannot be read")
        if view["warning"]:
            return StageStatus("warning", view["warning"])
        return StageStatus("done", f"{view['name']}: {view['words'].partition(',')[0]}")

    async def body(self, context: StageContext, query: FormData) -> Html:
        project = context.folder.project()
        if not project.robot:
            return Html(
                "<h1>Robot</h1><p>Choose a robot file with the kinematics. Masses and inertias may be missing; they "
                'are identified later. For a single servo or drive, go to <a href="/drives">Drives</a>.</p>'
                f"{_drop(context.folder)}{_example(context.folder)}{_builtins()}"
            )
        view = _saved_view(context.folder)
        another = Html(
            f'<details id="another"><summary>Another robot, or its meshes</summary>{_drop(context.folder)}{_builtins()}'
            "</details>"
        )
        if view is None:
            html = (
                f'<div data-lazy="/data/robot/seen" aria-busy="true"><p class="hint">Reading {text(project.robot)} …'
                "</p></div>"
            )
        else:
            html = _view_html(view, calibration_html(context))
        return Html(f"<h1>Robot</h1>{another}{html}")

    async def data(self, context: StageContext, what: str, query: FormData) -> str:
        """Return HTML that takes a while: the robot (`seen`), built-in robots (`builtins`), or a form (`poses`)."""
        if what == "builtins":
            return _picker(await context.helper.ask(builtin_robots), context.folder.project().robot)
        if what == "seen":
            return _view_html(await _render_view(context), calibration_html(context))
        if what == "poses":
            return await pose_form(context, query)
        if what == "words":
            return _command_html(context, query)
        raise StudioError("There is nothing of this name.")

    def actions(self) -> Mapping[str, Action]:
        return {
            "files": _files, "file": _file, "example": _use_example, "builtin": _builtin, "gravity": _gravity,
            "joints": _joints, "snap": _snap, "packages": _packages, **CALIBRATION_ACTIONS,
        }  # fmt: skip


STUDIO_STAGES.register("robot")(RobotStage())


# ------------------------------------------------------------ saved view


def _key(folder: StudioFolder, project: Project) -> str:
    """Return a hash of everything that the view depends on."""
    values = [getattr(project, name) for name in ("robot", "terms", *_ROBOT_KEYS)]
    stamps = []
    path = folder.root / project.robot
    for one in (path, path.parent) if os.path.isfile(path) else ():
        stamps.append((one.stat().st_mtime_ns, one.stat().st_size))
    text = json.dumps([plain(values), stamps, version("steelyard")], default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _saved_view(folder: StudioFolder) -> dict[str, str] | None:
    """Return the saved view of the project's robot; None if it is missing or out of date."""
    try:
        saved = json.loads(folder.state_path("robot.json").read_text("utf-8"))
        return dict(saved["seen"]) if saved["key"] == _key(folder, folder.project()) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def _render_view(context: StageContext) -> dict[str, str]:
    key = _key(context.folder, context.folder.project())
    try:
        view: dict[str, str] = await context.helper.ask(robot_view, context.folder.project_file.name)
    except StudioError as error:
        view = {"error": str(error)}
    write_whole(context.folder.state_path("robot.json"), json.dumps({"key": key, "seen": view}))
    return view


# ------------------------------------------------------------ HTML


def _view_html(view: Mapping[str, str], below: str) -> Html:
    """Render the saved view of the robot with the section `below` it, and the tables."""
    if "error" in view:
        return trouble(view["error"])
    return Html(
        f'<h2 class="words">{text(view["name"])}: {text(view["words"])}</h2>{view["view"]}{below}'
        f'<div id="robot-tables">{view["tables"]}</div>'
    )


def _drop(folder: StudioFolder) -> Html:
    zone = drop_zone(
        ROBOT_FOLDER, "robot/files", "Robot file: URDF, MJCF (.xml) or DH table (.yaml, .toml), with its meshes",
        ",".join((*DESCRIPTIONS, *MESHES, ".zip")),
    )  # fmt: skip
    files = [folder.relative(path) for path in descriptions(folder.root / ROBOT_FOLDER)][:_MOST_FILES]
    choose = ""
    if files:
        menu = choice("file", "Or a file of this folder", [(name, name) for name in files])
        choose = form("robot/file", f'<div class="row">{menu}<button>Use</button></div>')
    return Html(
        f'{zone}<p class="hint">You can also drop a folder or a .zip with the meshes that <code>package://</code> '
        f'paths name. <label class="folder">Or choose a folder: <input type="file" '
        f"webkitdirectory></label></p>{choose}"
    )


def _example(folder: StudioFolder) -> Html:
    """Offer the example in a folder without logs."""
    if listed_logs(folder):
        return Html("")
    return Html(
        '<div class="card example"><h2>No robot or log at hand?</h2><p>Two logs of a simulated seven-axis arm, with '
        "noise and friction; its true masses differ from its description.</p>"
        f"{button('robot/example', 'Try the example', 'main')}</div>"
    )


def _builtins() -> Html:
    return Html(
        '<h2>Built-in robots</h2><div data-lazy="/data/robot/builtins" aria-busy="true"><p class="hint">Reading '
        "the list …</p></div>"
    )


def _picker(robots: list[tuple[str, int, str]], current: str) -> Html:
    cards = "".join(
        f'<div class="card"><strong>{text(name)}</strong>, {joints} joints<p>{text(words)}</p>'
        f"{button('robot/builtin', 'In use' if name == current else f'Use {name}', name=name)}</div>"
        for name, joints, words in robots
    )
    return Html(f'<div class="cards">{cards}</div>')


def _command_html(context: StageContext, fields: FormData) -> Html:
    """Show the command of the form of a calibration; an error is only a hint, since the form was not sent yet."""
    try:
        words = calibrate_words(context.folder, fields)
    except StudioError as error:
        return Html(f'<p class="hint">{text(str(error))}</p>')
    output = context.folder.new_run("calibrate", context.jobs.outputs())
    return command_line(shlex.join(["steelyard", *words, "-o", output]))


# ------------------------------------------------------------ actions


def _set_robot(folder: StudioFolder, robot: str) -> None:
    """Set the robot of the project; a new robot removes the keys of the previous one."""
    removed = {} if folder.project().robot == robot else dict.fromkeys(_ROBOT_KEYS)
    folder.set_keys(robot=robot, **removed)
    folder.state_path("robot.json").unlink(missing_ok=True)  # there may be new meshes


async def _files(context: StageContext, fields: FormData) -> None:
    """Store uploaded files and use the robot among them."""
    paths = [context.folder.relative(context.folder.path_inside(text)) for text in fields.all("file")]
    if any(Path(path).parent.as_posix() != ROBOT_FOLDER for path in paths):
        raise StudioError(f"Files of a robot must be in {ROBOT_FOLDER}; drop them again.")
    robot = context.folder.project().robot
    current = robot if (context.folder.root / robot).is_file() else ""
    _set_robot(context.folder, await context.helper.ask(take_files, paths, current))


async def _file(context: StageContext, fields: FormData) -> None:
    """Use a robot file of the folder."""
    path = context.folder.path_inside(fields["file"])
    if not path.is_file() or path.suffix.lower() not in DESCRIPTIONS:
        raise StudioError(f"'{fields['file']}' is not a robot file; choose a URDF, MJCF or DH table.")
    _set_robot(context.folder, context.folder.relative(path))


async def _builtin(context: StageContext, fields: FormData) -> None:
    if fields["name"] not in [name for name, _, _ in await context.helper.ask(builtin_robots)]:
        raise StudioError(f"'{fields['name'][:60]}' is not a built-in robot; choose one from the list.")
    _set_robot(context.folder, fields["name"])


async def _use_example(context: StageContext, fields: FormData) -> None:
    """Write the logs of the example and use its robot."""
    folder = context.folder
    if folder.project().robot or listed_logs(folder):
        raise StudioError("This folder has a robot or logs already; the example needs an empty folder.")
    paths = {role: folder.relative(folder.free_path(LOGS, name)) for role, name in EXAMPLE_LOGS.items()}
    await context.helper.ask(write_example, list(paths.values()), seconds=120.0)
    _set_robot(folder, EXAMPLE_ROBOT)
    for role, path in paths.items():
        set_role(folder, path, role)


async def _gravity(context: StageContext, fields: FormData) -> Html:
    try:
        vector = [float(fields[axis]) for axis in ("x", "y", "z")]
    except ValueError:
        raise StudioError("Gravity must be three numbers in m/s², such as 0, 0 and -9.81.") from None
    if not all(math.isfinite(x) and abs(x) <= _LARGEST_GRAVITY for x in vector):
        raise StudioError(f"Gravity must be three numbers of at most {_LARGEST_GRAVITY:g} m/s².")
    context.folder.set_keys(gravity=vector)
    view = await _render_view(context)
    return trouble(view["error"]) if "error" in view else Html(view["tables"])


async def _joints(context: StageContext, fields: FormData) -> None:
    selected = fields.all("joint")
    if not selected:
        raise StudioError("No joint is selected; select at least one.")
    locked = {name: value for name, value in context.folder.project().lock.items() if name not in selected}
    context.folder.set_keys(joints=None if fields["of"] == str(len(selected)) else selected, lock=locked or None)


async def _snap(context: StageContext, fields: FormData) -> None:
    """Round angles that were written with few digits."""
    context.folder.set_keys(snap=_SNAP)


async def _packages(context: StageContext, fields: FormData) -> None:
    """Set the package folders."""
    names = [name.strip() for name in fields["packages"].split(",") if name.strip()]
    folders = [context.folder.path_inside(name) for name in names]
    for name, folder in zip(names, folders, strict=True):
        if not folder.is_dir():
            raise StudioError(f"'{name}' is not a folder inside the studio's folder.")
    context.folder.set_keys(packages=[context.folder.relative(folder) for folder in folders] or None)
