"""What was not typed comes from the project file; the command that a run records has every option spelled out."""

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
    """Marks an option, in its annotation, as one that the project file may give.

    Args:
        keys: where it stands there, "robot" or "logs.identify"; of several the first that says something counts.
        unless: options, by their names in the program, beside which it is not taken.
    """

    keys: tuple[str, ...]
    unless: tuple[str, ...]

    def __init__(self, *keys: str, unless: Sequence[str] = ()) -> None:
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "unless", tuple(unless))


@dataclass(frozen=True)
class Filled:
    """What a command runs with: its words, what the project file gave of them (keys there), and that file."""

    words: tuple[str, ...]
    of_result: tuple[str, ...] = ()  # the words but for those that say where and how it is handed out
    taken: tuple[str, ...] = ()
    file: str = ""
    passed_over: str = ""  # the robot that the file is about, where another one was typed

    @property
    def line(self) -> str:
        """What the program says of the project file; "" where there is none."""
        if self.passed_over:
            return f"Project {self.file}: not used, it is about {self.passed_over}"
        return f"Project {self.file}: {', '.join(self.taken)}" if self.taken else ""


# What describes the robot of the file, and means nothing to a model that has its own.
_DESCRIBES = ("joints", "lock", "gravity", "snap")


def with_project(command: Any, typed: Mapping[str, Any], project: Project | None, name: str) -> Filled:
    """The words of a `command`, called `name`, with what was `typed` (Click's raw values by name) and, where nothing
    was, what the `project` says."""
    values = {p.name: v for p in command.params if not _is_missing(v := typed.get(p.name))}
    taken: dict[str, str] = {}
    if project is not None and project.robot:
        _make_room(command, values, project)
        if _is_of_another(values, project):
            return Filled(*_both(command, values), (), str(project.file), project.robot)
    if project is not None:
        for param in command.params:
            mark = command.project_keys.get(param.name)
            if mark is None or param.name in values or any(name in values for name in mark.unless):
                continue
            if param.name in _DESCRIBES and _has_its_own(values):
                continue
            for key in mark.keys:
                if found := _texts(project, key, name):
                    values[param.name] = found if param.multiple or param.nargs == -1 else found[0]
                    taken[param.name] = key
                    break
    both = _both(command, values)
    return Filled(*both, tuple(taken.values()), str(project.file)) if project is not None else Filled(*both)


def _is_missing(value: Any) -> bool:
    return value is None or value == () or type(value).__name__ == "Sentinel"


# Options that say where and how a result is handed out, or how hard the machine works: it is the same with any.
_OUTWARD = ("output", "overwrite", "as_json", "resume", "workers", "checkpoint", "fix")


def _both(command: Any, values: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    # Of --fix, --only says which findings are mended; in other commands it chooses what is looked at.
    outward = (*_OUTWARD, "only") if any(param.name == "fix" for param in command.params) else _OUTWARD
    inward = {name: value for name, value in values.items() if name not in outward}
    return tuple(_words(command, values)), tuple(_words(command, inward))


def _words(command: Any, values: Mapping[str, Any]) -> list[str]:
    """The words that give a command these `values`, arguments first."""
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


def _make_room(command: Any, values: dict[str, Any], project: Project) -> None:
    """Where the project knows the robot (or the model), a log that stands in its place moves to the logs."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    if len(arguments) < 2 or arguments[0].name not in ("robot", "model"):
        return
    head, behind = arguments[0], arguments[1]
    given = values.get(head.name)
    if (
        given is None
        or _may_be_robot(given)
        or (head.name == "model" and os.path.exists(os.path.join(given, "result.json")))
    ):
        return
    del values[head.name]
    if behind.nargs == -1:
        values[behind.name] = (given, *values.get(behind.name, ()))
    elif behind.name not in values:
        values[behind.name] = given
    else:
        values[head.name] = given


def _may_be_robot(text: str) -> bool:
    """Whether `text` can name a robot: it is a file of such a kind, or names nothing that is there."""
    return not os.path.exists(text) or (os.path.isfile(text) and text.lower().endswith(_ROBOT_FILES))


_ROBOT_FILES = (".urdf", ".xml", ".yaml", ".yml", ".toml", ".mjcf", ".xacro")


def _is_of_another(values: Mapping[str, Any], project: Project) -> bool:
    """Whether another robot than the project's was typed."""
    from steelyard.cli.options import is_run

    typed = values.get("robot") or values.get("model")
    own = project.path_of(project.robot)
    if typed is None or typed == own or (("model" in values) and is_run(typed)):
        return False
    return not (os.path.exists(typed) and os.path.exists(own) and os.path.samefile(typed, own))


def _has_its_own(values: Mapping[str, Any]) -> bool:
    """Whether the command is about a model, which has its own joints and gravity."""
    from steelyard.cli.options import is_run

    return "model" in values and is_run(values["model"])


def _texts(project: Project, key: str, name: str) -> list[str]:
    """What the `project` says at `key`, as it would be typed for the command `name`; empty where it says nothing."""
    table, _, inner = key.partition(".")
    if table == "logs":
        return _logs(project, inner)
    if table == "limits":
        return _limit(getattr(project.limits, inner))
    if table == "runs":
        return [project.path_in(project.runs, name.replace(" ", "-"))] if project.runs else []
    if table in _MADE and not getattr(project, table):
        # What an earlier command has left where this project keeps its runs.
        place = project.path_in(project.runs, _MADE[table])
        return [place] if project.runs and os.path.isdir(place) else []
    said = getattr(project, table)
    written = _WRITTEN.get(table)
    if written is not None:
        return written(project, said)
    return [project.path_of(said)] if said else []


_MADE = {"model": "identify", "motion": "excite"}


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


# How a key is typed, where it is no path.
_WRITTEN: dict[str, Callable[[Any, Any], list[str]]] = {
    "joints": _joined,
    "terms": _joined,
    "packages": lambda p, v: _joined(p, [p.path_of(one) for one in ([v] if isinstance(v, str) else v) if one]),
    "lock": lambda p, v: [f"{joint}={value!r}" for joint, value in v.items()],
    "gravity": lambda p, v: _joined(p, [repr(x) for x in v or ()]),
    "snap": lambda p, v: [] if v is None else [repr(v)],
}


def chosen_project(asked: str) -> Project | None:
    """The project file that was `asked` for, the one that is found from here upward, or None: for "none", and where
    there is none."""
    from steelyard.project import Project, project_file

    if asked == "none":
        return None
    if asked:
        return Project.load(Path(asked))
    found = project_file()
    return None if found is None else Project.load(found)
