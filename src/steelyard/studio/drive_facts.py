"""Command logs of a drive in a studio's folder, read in the helper process: runs, their properties, and hold-outs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.errors import SteelyardError
from steelyard.project import Project
from steelyard.signals.table import has_reader, read_table
from steelyard.studio.containment import is_inside
from steelyard.studio.log_folders import is_plain_folder
from steelyard.studio.studio_folder import StudioFolder

if TYPE_CHECKING:
    from steelyard.actuators import CommandLog
    from steelyard.robot.robot import Robot

# Upload folder for command logs, and the endings of BAM's files.
DRIVES = "drives"
_JSON = ".json"
_MOST_FILES = 200
# Columns that number the runs, in tables with one row per run and in logs.
_RUN_COLUMNS = ("log", "run", "episode")
# Properties of runs that may divide them, before those of the table of runs; most values of a choice.
_PROPERTIES = ("kp", "mass", "trajectory", "kd", "length")
_MOST_VALUES = 12


def drive_files(folder: StudioFolder) -> list[str]:
    """List the command logs and tables of runs in a `folder`, relative to it."""
    names = []
    with suppress(OSError):
        for path in sorted((folder.root / DRIVES).iterdir()):
            named = has_reader(path) or path.suffix.lower() == _JSON
            known = is_plain_folder(path) if path.is_dir() else named and path.is_file()
            if known and not path.name.startswith(".") and is_inside(folder.root, path):
                names.append(folder.relative(path))
    return names[:_MOST_FILES]


def drive_facts(
    project: str, files: Sequence[str], runs: str, settings: Mapping[str, Any], units: Mapping[str, str],
    joint: str = "",
) -> dict[str, Any]:  # fmt: skip
    """Read command logs: `tables` of runs among the files, `runs`, `holdouts` to choose from, `joints`, and an `error`.

    Args:
        project: Path of the project file.
        files: Paths of all files.
        runs: Path of the table with a row per run; "" to take the first one among the files.
        settings: Mass, length and further keyword arguments of `read_command_logs`, for all runs.
        units: Units by signal.
        joint: Joint of the project's robot that is the load; "" for a pendulum.
    """
    from steelyard.actuators import Load, read_command_logs

    tables = [file for file in files if _is_table_of_runs(Path(file))]
    table = runs if runs in tables else next(iter(tables), "")
    logs = [file for file in files if file not in tables]
    out: dict[str, Any] = {"tables": tables, "table": table, "logs": logs, "runs": [], "holdouts": [], "error": ""}
    robot = _robot(project)
    out["joints"] = list(robot.joint_names) if robot is not None else []
    found: list[CommandLog] = []
    try:
        load = Load.of_joint(robot, joint) if robot is not None and joint else None
        for file in logs:
            found += read_command_logs(
                file, joint=joint or None, load=load, settings=table or None, units=units or None, **settings
            )
    except SteelyardError as error:
        return {**out, "error": str(error)}
    out["runs"] = [
        {
            "name": run.name, "seconds": run.duration, "rate": 1.0 / run.period, "kp": _finite(run.kp),
            "mass": _finite(run.load.mass), "length": _finite(run.load.length), "motion": run.trajectory,
        }
        for run in found
    ]  # fmt: skip
    names = dict.fromkeys((*_PROPERTIES, *(name for run in found for name in run.labels)))
    for name in names:
        values = {_word(run.label(name)) for run in found if name in run.labels or name in _PROPERTIES}
        if 2 <= len(values - {""}) <= _MOST_VALUES:
            out["holdouts"] += [f"{name}={value}" for value in sorted(values - {""}, key=_order)]
    return out


def _is_table_of_runs(path: Path) -> bool:
    """Whether a table has one row per run: a column that numbers runs, without repetition, and no goal."""
    if path.is_dir() or not has_reader(path):
        return False
    with suppress(SteelyardError):
        table = read_table(path)
        column = next((name for name in table.names if name.lower() in _RUN_COLUMNS), None)
        if column is not None:
            values = table.column(column).tolist()
            return len(values) < 10_000 and len(set(values)) == len(values)
    return False


def _robot(project: str) -> Robot | None:
    """Load the project's robot, a joint of which may be the load of the drive; None without one."""
    with suppress(SteelyardError, OSError):
        return Project.load(project).load_robot()
    return None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _word(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}" if math.isfinite(value) else ""
    return str(value)


def _order(word: str) -> tuple[int, float, str]:
    with suppress(ValueError):
        return 0, float(word), word
    return 1, 0.0, word
