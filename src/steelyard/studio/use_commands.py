"""Commands of the forms in the stage *Use*.

No text from a browser becomes an option, and paths lead only to runs and logs of the folder.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from steelyard.studio.roles import log_named
from steelyard.studio.run_entries import run_entry
from steelyard.studio.stage import FormData
from steelyard.studio.studio_folder import StudioError, StudioFolder

_NAME = re.compile(r"\w[\w-]{0,59}")
_WORD = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
# Robot files whose meshes and names an export keeps.
_DESCRIPTIONS = (".urdf", ".xml")


def path_argument(name: str) -> str:
    """Return `name` as a path that no command takes for an option."""
    return f"./{name}" if name.startswith("-") else name


def number_of(words: str, label: str) -> float | None:
    """Read a number of a form that must not be negative; None if the field is empty.

    Args:
        words: Text of the field.
        label: Name of the field, for the message.
    """
    if not words.strip():
        return None
    try:
        value = float(words)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0.0:
        raise StudioError(f"{label}: '{words[:40]}' is not a number ≥ 0.")
    return value


def model_argument(folder: StudioFolder, name: str) -> str:
    """Return the argument for a model: that of the project, or a run with a model.

    Args:
        folder: The studio's folder.
        name: Name of the model, from a browser.
    """
    if not name or name != folder.project().model:
        run = run_entry(folder, folder.get_run(name))
        if not run.has_model:
            raise StudioError(f"{name} is a run of {run.kind}, which is not a model; choose a run of identify.")
        name = run.name
    return path_argument(name)


def _export(folder: StudioFolder, fields: FormData) -> list[str]:
    formats, name = fields.all("to"), fields.get("name", "").strip()
    if not formats or not all(_WORD.fullmatch(one) for one in formats):
        raise StudioError("No format is selected; select at least one.")
    if name and not _NAME.fullmatch(name):
        raise StudioError("The name of files and C functions may have up to 60 letters, digits, _ and -.")
    words = ["export", model_argument(folder, fields["model"]), "--to", ",".join(formats)]
    words += ["--name", name] if name else []
    robot = folder.project().robot
    if Path(robot).suffix.lower() in _DESCRIPTIONS and (folder.root / robot).is_file():
        words += ["--description", path_argument(robot)]
    return words


def _payload(folder: StudioFolder, fields: FormData) -> list[str]:
    logs_by_use: dict[str, list[str]] = {"with": [], "without": []}
    for key, value in fields.items():
        if key.startswith("log:") and value in logs_by_use:
            logs_by_use[value].append(key[4:])
    if not logs_by_use["with"]:
        raise StudioError("No log with the payload is selected; select one.")
    words = ["payload"]
    names = [_load_names(folder).get(log, "") for log in logs_by_use["with"]]
    for name, log in zip(names, _logs(folder, logs_by_use["with"]), strict=True):
        words += ["--with", f"{name}={log}" if all(names) else log]
    if fields.get("model"):
        words += ["--arm", model_argument(folder, fields["model"])]
    elif not logs_by_use["without"]:
        raise StudioError("No log without the payload is selected; select one, or use the model as the bare arm.")
    for log in _logs(folder, logs_by_use["without"]) if logs_by_use["without"] else ():
        words += ["--without", log]
    if frame := fields.get("frame"):
        if frame.startswith("-"):
            raise StudioError(f"'{frame[:40]}' is not a valid frame; choose another one.")
        words += ["--frame", frame]
    targets = fields.all("for")
    if targets and all(_WORD.fullmatch(one) for one in targets):
        words += ["--for", ",".join(targets)]
    return words


def _load_names(folder: StudioFolder) -> dict[str, str]:
    """Return the payload's name of each log, if the project names its payloads."""
    groups = folder.project().log_groups("payload")
    return {
        Path(os.path.relpath(path, folder.root)).as_posix(): name
        for name, paths in groups.items()
        for path in paths
        if not name.startswith("-")
    }


def _friction(folder: StudioFolder, fields: FormData) -> list[str]:
    robot = folder.project().robot
    if not robot:
        raise StudioError("The robot is missing; choose one in the stage Robot.")
    return ["friction", path_argument(robot), *_logs(folder, fields.all("log"))]


def _judge(folder: StudioFolder, fields: FormData) -> list[str]:
    logs, model = _logs(folder, fields.all("log")), model_argument(folder, fields["model"])
    if fields.get("how") == "predict":
        return ["predict", model, *logs]
    return ["validate", model, *(word for log in logs for word in ("--log", log))]


def _logs(folder: StudioFolder, names: Sequence[str]) -> list[str]:
    if not names:
        raise StudioError("No log is selected; select at least one.")
    return [path_argument(log_named(folder, name).text) for name in names]


# Title of the job and function for the words of the command, by form.
USE_COMMANDS: dict[str, tuple[str, Callable[[StudioFolder, FormData], list[str]]]] = {
    "export": ("Export the model", _export),
    "payload": ("Identify the payload", _payload),
    "friction": ("Identify friction", _friction),
    "judge": ("Test the model on other logs", _judge),
}
