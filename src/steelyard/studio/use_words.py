"""The commands that the forms of the stage *Use* stand for. Nothing that a browser sends becomes an option, or a path
to anything but a run or a log of the folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from steelyard.studio.place import StudioError, StudioFolder
from steelyard.studio.roles import log_named
from steelyard.studio.shelf import shelved
from steelyard.studio.stage import Sent

_NAME = re.compile(r"\w[\w-]{0,59}")
_WORD = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
# Descriptions whose meshes and names an export keeps.
_DESCRIPTIONS = (".urdf", ".xml")


def as_path(name: str) -> str:
    """A path called `name`, so that no command takes it for an option."""
    return f"./{name}" if name.startswith("-") else name


def model_word(place: StudioFolder, name: str) -> str:
    """The model that a browser calls `name`: that of the project of a `place`, or a run that found one."""
    if not name or name != place.project().model:
        run = shelved(place, place.run(name))
        if not run.has_model:
            raise StudioError(f"{name} is a run of {run.kind}, which finds no model; choose one of identify.")
        name = run.name
    return as_path(name)


def _export(place: StudioFolder, sent: Sent) -> list[str]:
    formats, name = sent.all("to"), sent.get("name", "").strip()
    if not formats or not all(_WORD.fullmatch(one) for one in formats):
        raise StudioError("No format is chosen; tick at least one.")
    if name and not _NAME.fullmatch(name):
        raise StudioError("Files and C functions can be named by letters, digits, _ and -, up to 60 of them.")
    words = ["export", model_word(place, sent["model"]), "--to", ",".join(formats)]
    words += ["--name", name] if name else []
    robot = place.project().robot
    if Path(robot).suffix.lower() in _DESCRIPTIONS and (place.root / robot).is_file():
        words += ["--description", as_path(robot)]
    return words


def _payload(place: StudioFolder, sent: Sent) -> list[str]:
    chosen: dict[str, list[str]] = {"with": [], "without": []}
    for key, value in sent.items():
        if key.startswith("log:") and value in chosen:
            chosen[value].append(key[4:])
    if not chosen["with"]:
        raise StudioError("No log with the load is chosen; say which one carries it.")
    words = ["payload"]
    names = [_load_names(place).get(log, "") for log in chosen["with"]]
    for name, log in zip(names, _logs(place, chosen["with"]), strict=True):
        words += ["--with", f"{name}={log}" if all(names) else log]
    if sent.get("model"):
        words += ["--arm", model_word(place, sent["model"])]
    elif not chosen["without"]:
        raise StudioError("No log without the load is chosen; say which one, or take the model as the bare arm.")
    for log in _logs(place, chosen["without"]) if chosen["without"] else ():
        words += ["--without", log]
    if frame := sent.get("frame"):
        if frame.startswith("-"):
            raise StudioError(f"'{frame[:40]}' is no name that a command can be given.")
        words += ["--frame", frame]
    targets = sent.all("for")
    if targets and all(_WORD.fullmatch(one) for one in targets):
        words += ["--for", ",".join(targets)]
    return words


def _load_names(place: StudioFolder) -> dict[str, str]:
    """The load that each log carries, where the project names its loads."""
    groups = place.project().log_groups("payload")
    return {
        Path(os.path.relpath(path, place.root)).as_posix(): name
        for name, paths in groups.items()
        for path in paths
        if not name.startswith("-")
    }


def _friction(place: StudioFolder, sent: Sent) -> list[str]:
    robot = place.project().robot
    if not robot:
        raise StudioError("There is no robot; choose one in the stage Robot.")
    return ["friction", as_path(robot), *_logs(place, sent.all("log"))]


def _judge(place: StudioFolder, sent: Sent) -> list[str]:
    logs, model = _logs(place, sent.all("log")), model_word(place, sent["model"])
    if sent.get("how") == "predict":
        return ["predict", model, *logs]
    return ["validate", model, *(word for log in logs for word in ("--log", log))]


def _logs(place: StudioFolder, names: Sequence[str]) -> list[str]:
    if not names:
        raise StudioError("No log is chosen; tick at least one.")
    return [as_path(log_named(place, name).text) for name in names]


# By the form that stands for it: what its job is called, and the words of its command.
USE_COMMANDS: dict[str, tuple[str, Callable[[StudioFolder, Sent], list[str]]]] = {
    "export": ("Export the model", _export),
    "payload": ("Weigh the load", _payload),
    "friction": ("Measure friction", _friction),
    "judge": ("Try the model on other logs", _judge),
}
