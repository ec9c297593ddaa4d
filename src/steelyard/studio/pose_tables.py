"""Tables of held poses in a studio's folder, and facts about them from the helper process."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from steelyard.signals.table import has_reader
from steelyard.studio.containment import is_inside
from steelyard.studio.studio_folder import StudioError, StudioFolder

# Upload folder for tables of poses.
POSES = "poses"
_MOST_TABLES = 200


def pose_tables(folder: StudioFolder) -> list[str]:
    """List the tables of poses in a `folder`, relative to it, newest first."""
    files = []
    with suppress(OSError):
        for path in (folder.root / POSES).iterdir():
            if path.is_file() and not path.name.startswith(".") and has_reader(path) and is_inside(folder.root, path):
                files.append((-path.stat().st_mtime_ns, folder.relative(path)))
    return [name for _, name in sorted(files)[:_MOST_TABLES]]


def pose_table_named(folder: StudioFolder, text: str) -> str:
    """Return a table of `pose_tables`, or raise a StudioError.

    Args:
        folder: The studio's folder.
        text: Path of the table, from a browser.
    """
    if text not in pose_tables(folder):
        raise StudioError(f"'{text[:120]}' is not a table of poses in the folder {POSES}; drop it there.")
    return text


def pose_facts(project: str, table: str) -> dict[str, Any]:
    """Read a table of poses with the project's robot, in the helper process.

    Returns the number of `poses`, the `kind` of measurement, prefixes of `points`, columns that are true or false
    (`flags`), whether there are `torques`, and `notes`.

    Args:
        project: Path of the project file.
        table: Path of the table.
    """
    import re

    from steelyard.calibration import read_poses
    from steelyard.project import Project
    from steelyard.signals.table import read_table

    robot = Project.load(project).load_robot(snap=0.0)
    poses = read_poses(table, robot)
    raw = read_table(table)
    points = dict.fromkeys(found[1] for name in raw.names if (found := re.fullmatch(r"(p\d+)[xyz](_\w+)?", name)))
    return {
        "poses": len(poses),
        "kind": poses.measurement.name,
        "points": list(points),
        "flags": [name for name in raw.names if raw.column(name).dtype.kind == "b"],
        "torques": any(re.match(r"tau", name) for name in raw.names),
        "sigma": "sigma" in poses.measurement.readings,
        "notes": list(poses.notes),
    }
