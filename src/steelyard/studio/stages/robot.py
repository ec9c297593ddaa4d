"""The stage *Robot*: what is to be identified."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from steelyard.errors import SteelyardError
from steelyard.ground.files import plain, write_whole
from steelyard.project import Project
from steelyard.report.elements import Html, text
from steelyard.studio.page import button, choice, drop_zone, form, trouble
from steelyard.studio.place import StudioError, StudioFolder
from steelyard.studio.robot_files import DESCRIPTIONS, MESHES, ROBOT_FOLDER, descriptions, take_files
from steelyard.studio.robot_page import builtin_robots, robot_seen
from steelyard.studio.stage import STUDIO_STAGES, Action, Desk, Sent, Stage, Standing

# What in the project file is about one robot, and not about another.
_OF_ONE = ("packages", "joints", "lock", "snap", "gravity")
_STRONGEST = 1e4
# What the library advises where angles were written with few digits.
_SNAP = 1e-4
_MOST_FILES = 60


class RobotStage(Stage):
    """Which robot it is, how it stands, and what its motion can show."""

    name = "robot"
    title = "Robot"
    scripts = ("later.js", "posture.js", "folder.js")

    async def standing(self, desk: Desk) -> Standing:
        try:
            robot = desk.place.project().robot
        except SteelyardError:
            return Standing("bad", "the project file cannot be read")
        if not robot:
            return Standing("empty", "drop a file, or pick one")
        kept = _kept(desk.place)
        if kept is None:
            return Standing("done", robot)
        if "error" in kept:
            return Standing("bad", "cannot be read")
        if kept["warning"]:
            return Standing("warning", kept["warning"])
        return Standing("done", f"{kept['name']}: {kept['words'].partition(',')[0]}")

    async def body(self, desk: Desk, query: Sent) -> Html:
        project = desk.place.project()
        if not project.robot:
            return Html(
                "<h1>Robot</h1><p>Everything begins with the kinematics: which joint turns what. Masses and inertias "
                f"need not be known; finding them is what comes next.</p>{_drop(desk.place)}{_builtins()}"
            )
        kept = _kept(desk.place)
        another = Html(
            f'<details id="another"><summary>Another robot, or its meshes</summary>{_drop(desk.place)}{_builtins()}'
            "</details>"
        )
        if kept is None:
            seen = (
                f'<div data-later="/data/robot/seen" aria-busy="true"><p class="hint">Reading {text(project.robot)} …'
                "</p></div>"
            )
        else:
            seen = _seen_html(kept)
        return Html(f"<h1>Robot</h1>{another}{seen}")

    async def data(self, desk: Desk, what: str, query: Sent) -> str:
        """What takes a moment: the robot `seen`, and the `builtins`."""
        if what == "builtins":
            return _picker(await desk.aside.ask(builtin_robots), desk.place.project().robot)
        if what == "seen":
            return _seen_html(await _look(desk))
        raise StudioError("There is nothing of this name.")

    def actions(self) -> Mapping[str, Action]:
        return {
            "files": _files, "file": _file, "builtin": _builtin, "gravity": _gravity, "joints": _joints,
            "snap": _snap, "packages": _packages,
        }  # fmt: skip


STUDIO_STAGES.register("robot")(RobotStage())


# ------------------------------------------------------------ what was looked at is kept


def _key(place: StudioFolder, project: Project) -> str:
    """Of all that a look depends on."""
    told = [getattr(project, name) for name in ("robot", "terms", *_OF_ONE)]
    stamps = []
    path = place.root / project.robot
    for one in (path, path.parent) if os.path.isfile(path) else ():
        stamps.append((one.stat().st_mtime_ns, one.stat().st_size))
    text = json.dumps([plain(told), stamps, version("steelyard")], default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _kept(place: StudioFolder) -> dict[str, str] | None:
    """What was seen of the robot of the project as it is now; None where nobody has looked."""
    try:
        kept = json.loads(place.own("robot.json").read_text("utf-8"))
        return dict(kept["seen"]) if kept["key"] == _key(place, place.project()) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def _look(desk: Desk) -> dict[str, str]:
    key = _key(desk.place, desk.place.project())
    try:
        seen: dict[str, str] = await desk.aside.ask(robot_seen, desk.place.project_file.name)
    except StudioError as error:
        seen = {"error": str(error)}
    write_whole(desk.place.own("robot.json"), json.dumps({"key": key, "seen": seen}))
    return seen


# ------------------------------------------------------------ what is shown


def _seen_html(seen: Mapping[str, str]) -> Html:
    if "error" in seen:
        return trouble(seen["error"])
    return Html(
        f'<h2 class="words">{text(seen["name"])}: {text(seen["words"])}</h2>{seen["view"]}'
        f'<div id="robot-tables">{seen["tables"]}</div>'
    )


def _drop(place: StudioFolder) -> Html:
    zone = drop_zone(
        ROBOT_FOLDER, "robot/files", "A robot: URDF, MJCF (.xml) or a DH table (.yaml, .toml), with its meshes",
        ",".join((*DESCRIPTIONS, *MESHES, ".zip")),
    )  # fmt: skip
    here = [place.relative(path) for path in descriptions(place.root / ROBOT_FOLDER)][:_MOST_FILES]
    again = ""
    if here:
        menu = choice("file", "Or one of the files that are here", [(name, name) for name in here])
        again = form("robot/file", f'<div class="row">{menu}<button>Take it</button></div>')
    return Html(
        f'{zone}<p class="hint">A whole folder can be dropped, too, or a .zip of it: then meshes are found as '
        f'<code>package://</code> names them. <label class="folder">Or choose a folder: <input type="file" '
        f"webkitdirectory></label></p>{again}"
    )


def _builtins() -> Html:
    return Html(
        '<h2>Or a built-in one</h2><div data-later="/data/robot/builtins" aria-busy="true"><p class="hint">Reading '
        "the list …</p></div>"
    )


def _picker(robots: list[tuple[str, int, str]], current: str) -> Html:
    cards = "".join(
        f'<div class="card"><strong>{text(name)}</strong>, {joints} joints<p>{text(words)}</p>'
        f"{button('robot/builtin', 'Taken' if name == current else f'Take {name}', name=name)}</div>"
        for name, joints, words in robots
    )
    return Html(f'<div class="cards">{cards}</div>')


# ------------------------------------------------------------ what is done


def _set_robot(place: StudioFolder, robot: str) -> None:
    """Another robot: what was said of the one before does not hold for it."""
    forget = {} if place.project().robot == robot else dict.fromkeys(_OF_ONE)
    place.set(robot=robot, **forget)
    place.own("robot.json").unlink(missing_ok=True)  # meshes may have come


async def _files(desk: Desk, sent: Sent) -> None:
    """Files that were dropped."""
    paths = [desk.place.relative(desk.place.inside(text)) for text in sent.all("file")]
    if any(Path(path).parent.as_posix() != ROBOT_FOLDER for path in paths):
        raise StudioError(f"Files of a robot go to {ROBOT_FOLDER}.")
    current = desk.place.project().robot
    known = current if (desk.place.root / current).is_file() else ""
    _set_robot(desk.place, await desk.aside.ask(take_files, paths, known))


async def _file(desk: Desk, sent: Sent) -> None:
    """A file that is here already."""
    path = desk.place.inside(sent["file"])
    if not path.is_file() or path.suffix.lower() not in DESCRIPTIONS:
        raise StudioError(f"'{sent['file']}' is no description of a robot.")
    _set_robot(desk.place, desk.place.relative(path))


async def _builtin(desk: Desk, sent: Sent) -> None:
    if sent["name"] not in [name for name, _, _ in await desk.aside.ask(builtin_robots)]:
        raise StudioError(f"There is no built-in robot '{sent['name'][:60]}'.")
    _set_robot(desk.place, sent["name"])


async def _gravity(desk: Desk, sent: Sent) -> Html:
    try:
        vector = [float(sent[axis]) for axis in ("x", "y", "z")]
    except ValueError:
        raise StudioError("Gravity is three numbers in m/s², such as 0, 0 and -9.81.") from None
    if not all(math.isfinite(x) and abs(x) <= _STRONGEST for x in vector):
        raise StudioError(f"Gravity is three numbers of at most {_STRONGEST:g} m/s².")
    desk.place.set(gravity=vector)
    seen = await _look(desk)
    return trouble(seen["error"]) if "error" in seen else Html(seen["tables"])


async def _joints(desk: Desk, sent: Sent) -> None:
    chosen = sent.all("joint")
    if not chosen:
        raise StudioError("At least one joint must move.")
    held = {name: value for name, value in desk.place.project().lock.items() if name not in chosen}
    desk.place.set(joints=None if sent["of"] == str(len(chosen)) else chosen, lock=held or None)


async def _snap(desk: Desk, sent: Sent) -> None:
    """Angles that were written with few digits."""
    desk.place.set(snap=_SNAP)


async def _packages(desk: Desk, sent: Sent) -> None:
    """Where `package://` leads to."""
    names = [name.strip() for name in sent["packages"].split(",") if name.strip()]
    folders = [desk.place.inside(name) for name in names]
    for name, folder in zip(names, folders, strict=True):
        if not folder.is_dir():
            raise StudioError(f"'{name}' is no folder below that of this studio.")
    desk.place.set(packages=[desk.place.relative(folder) for folder in folders] or None)
