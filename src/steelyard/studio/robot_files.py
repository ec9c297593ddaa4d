"""Stores uploaded files of a robot: unpacks archives and puts meshes where the robot's file looks for them.

All functions run in the helper process, in the studio's folder, because uploaded files may be damaged or hostile.
"""

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

# Upload folder for robots.
ROBOT_FOLDER = "robot"
DESCRIPTIONS = (".urdf", ".xml", ".yaml", ".yml", ".toml")
# Descriptions that name meshes.
_WITH_MESHES = (".urdf", ".xml")
MESHES = (".stl", ".obj", ".dae", ".ply", ".glb", ".off")
# Limits of an archive: number of files, and unpacked size [bytes].
_MOST_FILES, _MOST_BYTES = 3000, 1_000_000_000
_PIECE = 1 << 20


def take_files(files: Sequence[str], robot: str) -> str:
    """Move uploaded files to a new folder and return the path of the robot description among them.

    Meshes alone are copied to the places where the robot file of the project looks for them. If no file describes a
    robot, all uploaded files are removed.

    Args:
        files: Paths of the uploaded files, relative to the studio's folder.
        robot: Robot file of the project; "" if none.
    """
    from steelyard.robot.load import load_robot

    sent = [Path(file) for file in files]
    if not sent:
        raise RobotError("No file was sent; drop a URDF, an MJCF or a DH table.")
    if robot.lower().endswith(_WITH_MESHES) and all(path.suffix.lower() in MESHES for path in sent):
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
        candidates = list(descriptions(home))
        if not candidates:
            load_robot(_named_after(sent))  # raises the error of the reader
        first: SteelyardError | None = None
        for path in candidates:
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
    """Yield files below a `folder` that may describe a robot, by file type (URDF first) and path length."""
    files = [path for path in sorted(folder.rglob("*"))[:_MOST_FILES] if path.suffix.lower() in DESCRIPTIONS]
    yield from sorted(files, key=lambda path: (DESCRIPTIONS.index(path.suffix.lower()), len(path.parts)))


def _named_after(sent: Sequence[Path]) -> Path:
    """Return the file that gives the new folder its name."""
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
    """Unpack descriptions and meshes of an archive below `home`, with limits on paths, number and size."""
    room = _MOST_BYTES
    try:
        with zipfile.ZipFile(archive) as file:
            members = [m for m in file.infolist() if m.filename.lower().endswith(DESCRIPTIONS + MESHES)]
            if len(members) > _MOST_FILES:
                raise RobotError(f"{archive}: has {len(members)} files; the limit is {_MOST_FILES}.")
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
                            raise RobotError(f"{archive}: unpacks to more than the limit of {_MOST_BYTES / 1e9:g} GB.")
                        out.write(piece)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise RobotError(f"{archive}: this archive cannot be read ({error}); create it again.") from None


def robot_scene(project: Project, robot: Robot, motions: Sequence[tuple[str, Array, Array]] = ()) -> Scene:
    """Return the scene of a robot; meshes are read only from the studio's folder and the project's packages.

    Args:
        project: The project.
        robot: Its robot.
        motions: Motions, as in `scene_of`.
    """
    from steelyard.robot.shapes import scene_of

    packages = [Path(project.path_of(name)) for name in listed_names(project.packages)]
    return scene_of(robot, motions, packages, folders=[Path(), *packages])


def missing_meshes(urdf: Path, packages: Sequence[str] = ()) -> list[str]:
    """List the meshes that a URDF or MJCF names but that do not exist.

    Args:
        urdf: Path of the URDF.
        packages: Folders of packages.
    """
    from steelyard.robot.meshes import mesh_path
    from steelyard.robot.shapes import named_meshes

    return [name for name in named_meshes(urdf) if mesh_path(name, urdf, packages) is None]


def _place_meshes(urdf: Path, files: Sequence[Path]) -> None:
    """Copy `files` to where the URDF or MJCF looks for meshes of the same name."""
    if urdf.suffix.lower() not in _WITH_MESHES:
        return
    by_name = {_plain(path.name): path for path in files}
    for name in missing_meshes(urdf):
        path = posixpath.normpath(name.replace("\\", "/").rpartition("://")[2])
        mesh = by_name.get(_plain(posixpath.basename(path)))
        if mesh is None or path.startswith(("/", "..")):
            continue
        target = urdf.parent / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copyfile(mesh, target)


def _plain(name: str) -> str:
    """Return a file name as an upload changes it."""
    return re.sub(r"[^\w.+-]", "_", name).lower()
