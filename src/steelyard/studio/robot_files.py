"""Files of a robot that a browser sent, put where its description looks for them. All of it works in the process aside,
in the studio's folder: what is dropped may be damaged, or made to do damage."""

from __future__ import annotations

import posixpath
import re
import shutil
import stat
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import RobotError, SteelyardError
from steelyard.project import Project, listed_names

if TYPE_CHECKING:
    from steelyard.ground.arrays import Array
    from steelyard.report.scene import Scene
    from steelyard.robot.robot import Robot

# Where they go.
ROBOT_FOLDER = "robot"
DESCRIPTIONS = (".urdf", ".xml", ".yaml", ".yml", ".toml")
MESHES = (".stl", ".obj", ".dae", ".ply", ".glb", ".off")
# Of an archive: files, and bytes when unpacked.
_MOST_FILES, _MOST_BYTES = 3000, 1_000_000_000
_PIECE = 1 << 20


def take_files(files: Sequence[str], robot: str) -> str:
    """The robot's description among `files` of `robot/`, after all of them were moved to a folder of their own; meshes
    alone are put beside `robot`, the description that is there already. What describes no robot is not kept.

    Args:
        files: what was sent, relative to the studio's folder.
        robot: the description of the project; "" if there is none, or no file.
    """
    from steelyard.robot.load import load_robot

    sent = [Path(file) for file in files]
    if not sent:
        raise RobotError("No file came; drop a URDF, an MJCF or a DH table.")
    if robot.lower().endswith(".urdf") and all(path.suffix.lower() in MESHES for path in sent):
        _place_meshes(Path(robot), sent)
        _remove(sent)
        return robot
    home = _free_folder(_named_after(sent).stem)
    try:
        for path in sent:
            if path.suffix.lower() == ".zip":
                _unpack(path, home)
            else:
                shutil.copyfile(path, home / path.name)
        found = list(descriptions(home))
        if not found:
            load_robot(_named_after(sent))  # says in its own words why it is none
        first: SteelyardError | None = None
        for path in found:
            try:
                load_robot(path)
            except SteelyardError as error:
                first = first or error
                continue
            _place_meshes(path, [p for p in home.rglob("*") if p.suffix.lower() in MESHES])
            return path.as_posix()
        raise first or RobotError("None of these files describes a robot; drop a URDF, an MJCF or a DH table.")
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    finally:
        _remove(sent)


def descriptions(folder: Path) -> Iterator[Path]:
    """What may describe a robot in a `folder` and below it, URDF first, the shortest paths first."""
    found = [path for path in sorted(folder.rglob("*"))[:_MOST_FILES] if path.suffix.lower() in DESCRIPTIONS]
    yield from sorted(found, key=lambda path: (DESCRIPTIONS.index(path.suffix.lower()), len(path.parts)))


def _named_after(sent: Sequence[Path]) -> Path:
    """The file after which the folder is called."""
    ranks = (*DESCRIPTIONS, ".zip")
    return min(sent, key=lambda p: ranks.index(p.suffix.lower()) if p.suffix.lower() in ranks else len(ranks))


def _free_folder(stem: str) -> Path:
    k = 1
    while True:
        folder = Path(ROBOT_FOLDER, stem if k == 1 else f"{stem}-{k}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            k += 1


def _remove(sent: Sequence[Path]) -> None:
    for path in sent:
        with suppress(OSError):
            path.unlink()


def _unpack(archive: Path, home: Path) -> None:
    """Descriptions and meshes of an archive, below `home`: nothing else, nowhere else, and no more than is bearable."""
    room = _MOST_BYTES
    try:
        with zipfile.ZipFile(archive) as file:
            members = [m for m in file.infolist() if m.filename.lower().endswith(DESCRIPTIONS + MESHES)]
            if len(members) > _MOST_FILES:
                raise RobotError(f"{archive}: {len(members)} files are more than the {_MOST_FILES} that are read.")
            for member in members:
                name = posixpath.normpath(member.filename.replace("\\", "/"))
                parts = name.split("/")
                odd = any(part.startswith(".") or ":" in part or len(part) > 200 for part in parts)
                if name.startswith("/") or odd or stat.S_ISLNK(member.external_attr >> 16) or parts[0] == "__MACOSX":
                    continue
                target = home.joinpath(*parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                with file.open(member) as source, target.open("xb") as out:
                    while piece := source.read(_PIECE):
                        room -= len(piece)
                        if room < 0:
                            raise RobotError(f"{archive}: it unpacks to more than {_MOST_BYTES / 1e9:g} GB.")
                        out.write(piece)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise RobotError(f"{archive}: this archive cannot be read ({error}); pack it anew.") from None


def robot_scene(project: Project, robot: Robot, motions: Sequence[tuple[str, Array, Array]] = ()) -> Scene:
    """The `robot` of a `project` to be drawn, with what moves it (`motions` as in `scene_of`): no mesh is read but from
    the studio's folder, in which this works, and from the project's packages, whatever its description names."""
    from steelyard.robot.shapes import scene_of

    packages = [Path(project.path_of(name)) for name in listed_names(project.packages)]
    return scene_of(robot, motions, packages, folders=[Path(), *packages])


def missing_meshes(urdf: Path, packages: Sequence[str] = ()) -> list[str]:
    """What a `urdf` names and is not there, neither beside it nor in `packages`."""
    from steelyard.robot.meshes import mesh_path
    from steelyard.robot.shapes import named_meshes

    return [name for name in named_meshes(urdf) if mesh_path(name, urdf, packages) is None]


def _place_meshes(urdf: Path, files: Sequence[Path]) -> None:
    """Copies of `files` where a `urdf` looks for meshes of the same name."""
    if urdf.suffix.lower() != ".urdf":
        return
    here = {_plain(path.name): path for path in files}
    for name in missing_meshes(urdf):
        way = posixpath.normpath(name.replace("\\", "/").rpartition("://")[2])
        found = here.get(_plain(posixpath.basename(way)))
        if found is None or way.startswith(("/", "..")):
            continue
        target = urdf.parent / way
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copyfile(found, target)


def _plain(name: str) -> str:
    """A name as it survives the way through a browser."""
    return re.sub(r"[^\w.+-]", "_", name).lower()
