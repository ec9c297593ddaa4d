"""Takes missing options from the project file, and writes out the complete command for run folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.project import Project


@dataclass(frozen=True, init=False)
class FromProject:
    """Annotation of an option that the project file may set.

    Args:
        keys: Keys in the file, such as "robot" or "logs.identify"; the first with a value is used.
        unless: Options, by their names in the program, that exclude this one.
    """

    keys: tuple[str, ...]
    unless: tuple[str, ...]

    def __init__(self, *keys: str, unless: Sequence[str] = ()) -> None:
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "unless", tuple(unless))


@dataclass(frozen=True)
class CommandWords:
    """The complete words of a command.

    Attributes:
        words: All words.
        of_result: Words without options that only affect the output.
        keys: Keys that came from the project file.
        file: Path of the project file.
        other_robot: Robot of the project file, if the command names another one.
    """

    words: tuple[str, ...]
    of_result: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    file: str = ""
    other_robot: str = ""

    @property
    def note(self) -> str:
        """Message about the project file; "" without one."""
        if self.other_robot:
            return f"Project {self.file}: not used, it is for {self.other_robot}"
        return f"Project {self.file}: {', '.join(self.keys)}" if self.keys else ""


# Options of a robot's description; they do not apply to a model, which contains these values.
_DESCRIPTION = ("joints", "lock", "gravity", "snap")


def with_project(command: Any, typed: Mapping[str, Any], project: Project | None, name: str) -> CommandWords:
    """Complete a command with values of the project file.

    Args:
        command: Click's command.
        typed: Click's raw values by name.
        project: Project file, if any.
        name: Name of the command.
    """
    values = {p.name: v for p in command.params if not _is_missing(v := typed.get(p.name))}
    from_file: dict[str, str] = {}
    if project is not None and project.robot:
        _move_log(command, values)
        if _names_other_robot(values, project):
            return CommandWords(*_both(command, values), (), str(project.file), project.robot)
    if project is not None:
        for param in command.params:
            mark = command.project_keys.get(param.name)
            if mark is None or param.name in values or any(name in values for name in mark.unless):
                continue
            if param.name in _DESCRIPTION and _is_model(values):
                continue
            for key in mark.keys:
                if texts := _texts(project, key, name):
                    values[param.name] = texts if param.multiple or param.nargs == -1 else texts[0]
                    from_file[param.name] = key
                    break
    both = _both(command, values)
    return CommandWords(*both, tuple(from_file.values()), str(project.file)) if project else CommandWords(*both)


def _is_missing(value: Any) -> bool:
    return value is None or value == () or type(value).__name__ == "Sentinel"


# Options that do not change the result: output, and use of the machine.
_NO_EFFECT = ("output", "overwrite", "as_json", "resume", "workers", "checkpoint", "fix")


def _both(command: Any, values: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    # In `check`, --only selects problems for --fix and does not change the result; in other commands it does.
    no_effect = (*_NO_EFFECT, "only") if any(param.name == "fix" for param in command.params) else _NO_EFFECT
    of_result = {name: value for name, value in values.items() if name not in no_effect}
    return tuple(_words(command, values)), tuple(_words(command, of_result))


def _words(command: Any, values: Mapping[str, Any]) -> list[str]:
    """Words of a command with these `values`, arguments first."""
    first: list[str] = []
    out: list[str] = []
    for param in command.params:
        if param.name not in values:
            continue
        value = values[param.name]
        each = list(value) if isinstance(value, list | tuple) else [value]
        if param.param_type_name == "argument":
            first += map(str, each)
            continue
        for one in each:
            if getattr(param, "is_flag", False):
                out.append(param.opts[0] if one else param.secondary_opts[0])
            elif str(one).startswith("-") and param.opts[0].startswith("--"):
                out.append(f"{param.opts[0]}={one}")
            else:
                out += [param.opts[0], str(one)]
    return [*out, "--", *first] if any(word.startswith("-") for word in first) else [*first, *out]


def _move_log(command: Any, values: dict[str, Any]) -> None:
    """Move a log that was typed in the position of the robot or model to the logs."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    if len(arguments) < 2 or arguments[0].name not in ("robot", "model"):
        return
    first, second = arguments[0], arguments[1]
    text = values.get(first.name)
    if (
        text is None
        or _may_be_robot(text)
        or (first.name == "model" and os.path.exists(os.path.join(text, "result.json")))
    ):
        return
    del values[first.name]
    if second.nargs == -1:
        values[second.name] = (text, *values.get(second.name, ()))
    elif second.name not in values:
        values[second.name] = text
    else:
        values[first.name] = text


def _may_be_robot(text: str) -> bool:
    """Whether `text` can name a robot: a file with a suffix of robots, or a path that does not exist."""
    return not os.path.exists(text) or (os.path.isfile(text) and text.lower().endswith(_ROBOT_FILES))


_ROBOT_FILES = (".urdf", ".xml", ".yaml", ".yml", ".toml", ".mjcf", ".xacro")


def _names_other_robot(values: Mapping[str, Any], project: Project) -> bool:
    """Whether the command names another robot than the project file."""
    from steelyard.cli.options import is_run

    typed = values.get("robot") or values.get("model")
    own = project.path_of(project.robot)
    if typed is None or typed == own or (("model" in values) and is_run(typed)):
        return False
    return not (os.path.exists(typed) and os.path.exists(own) and os.path.samefile(typed, own))


def _is_model(values: Mapping[str, Any]) -> bool:
    """Whether the command has a model, which contains its joints and gravity."""
    from steelyard.cli.options import is_run

    return "model" in values and is_run(values["model"])


def _texts(project: Project, key: str, name: str) -> list[str]:
    """Return command-line words for a key of the project file and the command `name`; empty if it has no value."""
    table, _, inner = key.partition(".")
    if table == "logs":
        return _logs(project, inner)
    if table == "limits":
        return _limit(getattr(project.limits, inner))
    if table == "runs":
        return [project.path_in(project.runs, name.replace(" ", "-"))] if project.runs else []
    if table in _DEFAULT_RUNS and not getattr(project, table):
        # The result of an earlier command in the project's folder of runs.
        folder = project.path_in(project.runs, _DEFAULT_RUNS[table])
        return [folder] if project.runs and os.path.isdir(folder) else []
    value = getattr(project, table)
    writer = _WRITERS.get(table)
    if writer is not None:
        return writer(project, value)
    return [project.path_of(value)] if value else []


_DEFAULT_RUNS = {"model": "identify", "motion": "excite"}


def _logs(project: Project, role: str) -> list[str]:
    if role == "all":
        return project.log_paths()
    groups = project.log_groups(role)
    return [f"{load}={path}" if load else path for load, paths in groups.items() for path in paths]


def _joined(project: Project, names: Any) -> list[str]:
    return [",".join(names) if not isinstance(names, str) else names] if names else []


def _limit(value: Any) -> list[str]:
    if value is None:
        return []
    each = value if isinstance(value, tuple) else (value,)
    return [",".join(":".join(f"{x!r}" for x in one) if isinstance(one, tuple) else str(one) for one in each)]


# Converts the value of a key to words of the command; other keys are paths.
_WRITERS: dict[str, Callable[[Any, Any], list[str]]] = {
    "joints": _joined,
    "terms": _joined,
    "packages": lambda p, v: _joined(p, [p.path_of(one) for one in ([v] if isinstance(v, str) else v) if one]),
    "lock": lambda p, v: [f"{joint}={value!r}" for joint, value in v.items()],
    "gravity": lambda p, v: _joined(p, [repr(x) for x in v or ()]),
    "snap": lambda p, v: [] if v is None else [repr(v)],
}


def chosen_project(name: str) -> Project | None:
    """Load the project file `name`; "" is the nearest one here or above, "none" is no file."""
    from steelyard.project import Project, project_file

    if name == "none":
        return None
    if name:
        return Project.load(Path(name))
    nearest = project_file()
    return None if nearest is None else Project.load(nearest)
