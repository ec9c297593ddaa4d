"""`read_command_logs`: runs of a drive from BAM's, SAGE's and LeRobot's files, and from tables."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.actuators.command_columns import CommandColumns
from steelyard.actuators.command_log import CommandLog
from steelyard.actuators.drive_load import Load
from steelyard.errors import LogError, shortened

if TYPE_CHECKING:
    from steelyard.actuators.command_columns import Code

# Recognised recorders and their files, for help texts and the guide.
COMMAND_FILES: dict[str, str] = {
    "bam": "BAM's JSON, raw or processed, or a folder of them",
    "sage": "SAGE's folder with control.csv and state_motor.csv, or a folder of such folders",
    "lerobot": "a LeRobot data set's folder (action and observation.state), one run per episode",
    "table": "CSV, Parquet and the other formats of logs, with columns for goal and position",
}
# Largest number of files in a folder; a folder with more does not contain the runs of one drive.
_MOST_FILES = 2_000
_MOST_NAME = 60


def read_command_logs(
    path: str | os.PathLike[str], *, joint: str | None = None, load: Load | None = None,
    mass: float | None = None, length: float | None = None, kp: float | None = None, kd: float | None = None,
    volts: float | None = None, duty_gain: float | None = None, units: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None, codes: Mapping[str, Code] | None = None,
    duty_full_scale: float | None = None, arm_mass: float | None = None, rest_angle: float | None = None,
    settings: str | os.PathLike[str] | None = None, episodes: str | None = None,
) -> tuple[CommandLog, ...]:  # fmt: skip
    """Read the runs of one drive: goals, positions, and the other signals of the files.

    BAM's JSON, SAGE's folders, LeRobot's data sets, and tables (CSV, Parquet, …) are recognised. Arguments have
    priority over the values in the files.

    Args:
        path: File or folder.
        joint: Joint of the drive, if the files have several.
        load: Load of the drive; default: the pendulum of mass and length.
        mass: Mass of the pendulum [kg].
        length: Length of the pendulum [m].
        kp: Position gain of the firmware.
        kd: Velocity gain of the firmware.
        volts: Nominal supply voltage [V].
        duty_gain: Duty per unit of kp and radian, from the manual.
        units: Units by signal: position (also of the goal), velocity, duty, voltage, time, …
        columns: Columns of a table by signal.
        codes: How registers of a table store negative numbers: "signed", "int16", "bit10" or "bit15", by signal.
        duty_full_scale: Number of BAM's register `load` at full supply voltage.
        arm_mass: Mass of the pendulum's arm [kg].
        rest_angle: Position [rad] of the load hanging at rest.
        settings: Table with one row per run: its number or name, and mass, length, kp, kd, volts, motor, trajectory, ….
        episodes: Episodes of a LeRobot data set, such as "0-4,7".
    """
    from steelyard.actuators.recorders.command_table import settings_table

    source = Path(path)
    runs = _columns(source, joint, units or {}, columns, codes, duty_full_scale, episodes)
    extra = {} if settings is None else settings_table(Path(settings))
    stated = {
        "mass": mass, "length": length, "kp": kp, "kd": kd, "supply": volts, "duty_gain": duty_gain,
        "arm_mass": arm_mass, "rest_angle": rest_angle,
    }  # fmt: skip
    known = {name: float(value) for name, value in stated.items() if value is not None}
    names = _names(runs)
    out = []
    for name, run in zip(names, runs, strict=True):
        numbers, words = dict(run.numbers), dict(run.words)
        if extra:
            more = extra.get(_label(run.source))
            if more is None:
                raise LogError(f"{settings}: has no row for run '{_label(run.source)}' of {source}; add it.")
            numbers, words = {**numbers, **more[0]}, {**words, **more[1]}
        out.append(_log(name, run, {**numbers, **known}, words, load))
    return tuple(log.checked() for log in out)


def _columns(
    source: Path, joint: str | None, units: Mapping[str, str], columns: Mapping[str, str] | None,
    codes: Mapping[str, Code] | None, duty_full_scale: float | None, episodes: str | None,
) -> list[CommandColumns]:  # fmt: skip
    from steelyard.actuators.recorders.bam_log import is_bam, read_bam
    from steelyard.actuators.recorders.command_table import is_lerobot, read_table_runs
    from steelyard.actuators.recorders.sage_folder import is_sage, read_sage

    position = units.get("position", "rad")
    if is_bam(source):
        return [read_bam(source, duty_full_scale)]
    if source.is_dir():
        if is_sage(source):
            return [read_sage(source, joint, position)]
        if is_lerobot(source):
            return read_table_runs(source, joint, units, columns, codes, episodes)
        inside = sorted(source.iterdir())[: _MOST_FILES + 1]
        if len(inside) > _MOST_FILES:
            raise LogError(f"{source}: has more than {_MOST_FILES} files; give a folder with the runs of one drive.")
        if folders := [p for p in inside if p.is_dir() and is_sage(p)]:
            return [read_sage(p, joint, position) for p in folders]
        if files := [p for p in inside if is_bam(p)]:
            return [read_bam(p, duty_full_scale) for p in files]
        if files := [p for p in inside if p.suffix.lower() in (".csv", ".parquet") and p.is_file()]:
            return [run for p in files for run in read_table_runs(p, joint, units, columns, codes)]
        raise LogError(f"{source}: contains no command logs; give {'; '.join(COMMAND_FILES.values())}.")
    return read_table_runs(source, joint, units, columns, codes)


def _label(source: str) -> str:
    """Number or name of a run, from its source."""
    for match in re.finditer(r" (?:log|run|episode|episode_index|trial|file) ", source):
        if Path(source[: match.start()]).exists():  # the path itself may contain such a word
            return source[match.end() :]
    return Path(source).stem


def _names(runs: Sequence[CommandColumns]) -> list[str]:
    """A short and unique name for each run."""
    names = [shortened(_label(run.source), _MOST_NAME) for run in runs]
    return [f"{name} ({k + 1})" if names.count(name) > 1 else name for k, name in enumerate(names)]


def _log(
    name: str, run: CommandColumns, numbers: Mapping[str, float], words: Mapping[str, str], load: Load | None
) -> CommandLog:
    rest_angle = numbers.get("rest_angle", 0.0)
    if load is None and "inertia" in numbers:
        load = Load(numbers["inertia"], numbers.get("gravity_torque", 0.0), rest_angle)
    if load is None:
        if not {"mass", "length"} <= set(numbers):
            raise LogError(
                f"{run.source}: the load is not known; state mass [kg] and length [m] of the pendulum, or the robot "
                "and the joint."
            )
        load = Load.pendulum(numbers["mass"], numbers["length"], numbers.get("arm_mass", 0.0), rest_angle)
    return CommandLog(
        name=name, time=run.time, goal=run.goal, position=run.position, load=load, velocity=run.velocity,
        duty=run.duty, supply=run.voltage, current=run.current, torque_enable=run.enabled, feedforward=run.feedforward,
        kp=numbers.get("kp", math.nan), kd=numbers.get("kd", math.nan), volts=numbers.get("supply", math.nan),
        duty_gain=numbers.get("duty_gain", math.nan), trajectory=words.get("trajectory", ""),
        labels={k: v for k, v in words.items() if k != "trajectory"}, source=run.source, notes=run.notes,
    )  # fmt: skip
