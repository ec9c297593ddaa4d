"""Settings of a search for a motion: fields of the form, the command that they produce, and limits."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from steelyard.excitation.excite_options import ExciteOptions
from steelyard.ground.files import write_whole
from steelyard.ground.verb_options import option_texts
from steelyard.studio.studio_folder import StudioError, StudioFolder

_SETTINGS_FILE = "motion.json"
# Columns of the table of limits: key of the project file, name, and suffix of the joint's unit (None for torques).
LIMIT_COLUMNS = (("low", "from", ""), ("high", "to", ""), ("dq", "velocity", "/s"), ("ddq", "acceleration", "/s²"),
           ("tau", "torque", None))  # fmt: skip
# Default acceleration limit over velocity limit [1/s], as in `default_limits`.
_ACCELERATION_PER_VELOCITY = 3.0
BOX_SIDES = ("x0", "x1", "y0", "y1", "z0", "z1")


@dataclass(frozen=True)
class SearchOption:
    """An option of the search.

    Attributes:
        name: Name of the field.
        option: Option of the command.
        default: Default value as text.
        label: Label of the field.
        unit: Its unit.
    """

    name: str
    option: str
    default: str
    label: str
    unit: str = ""


def _search_options() -> Iterator[SearchOption]:
    """Return the options of `excite` that the form has, with the words of the command, and a time limit."""
    texts = dict(option_texts(ExciteOptions))
    for name in (
        "duration", "criterion", "terms", "floor", "frame", "collision", "clearance", "torque_margin", "harmonics",
        "rate", "optimiser", "population", "generations", "seed",
    ):  # fmt: skip
        text = texts[name]
        default = "" if text.default is None else f"{text.default:g}" if text.kind is float else str(text.default)
        yield SearchOption(name, text.flag, default, text.label, text.unit)
    yield SearchOption("time", "--search-time", "", "Stop after", "s")


SEARCH_OPTIONS = tuple(_search_options())
_EVOLUTION = ("population", "generations")
_NUMBERS = ("duration", "floor", "clearance", "torque_margin", "harmonics", "rate", *_EVOLUTION, "seed", "time")


def read_settings(folder: StudioFolder, first: Mapping[str, str]) -> dict[str, str]:
    """Return the saved values of the form, completed by `first` and the defaults of the command.

    Args:
        folder: The studio's folder.
        first: Values for a form that was never sent.
    """
    saved: Any = {}
    with suppress(OSError, ValueError):
        saved = json.loads(folder.state_path(_SETTINGS_FILE).read_text("utf-8"))
    names = {*(option.name for option in SEARCH_OPTIONS), *BOX_SIDES}
    valid = {k: v for k, v in saved.items() if k in names and isinstance(v, str)} if isinstance(saved, dict) else {}
    return {**{option.name: option.default for option in SEARCH_OPTIONS}, **first, **valid}


def save_settings(folder: StudioFolder, form: Mapping[str, str]) -> dict[str, str]:
    """Save and return the values of a form.

    Args:
        folder: The studio's folder.
        form: Fields of the form.
    """
    names = (*(option.name for option in SEARCH_OPTIONS), *BOX_SIDES)
    settings = {name: form[name].strip() for name in names if name in form}
    write_whole(folder.state_path(_SETTINGS_FILE), json.dumps(settings))
    return settings


def search_command(settings: Mapping[str, str]) -> list[str]:
    """Return the words of the command for the `settings`."""
    words = ["excite"]
    for option in SEARCH_OPTIONS:
        value = settings.get(option.name, option.default)
        if option.name in _NUMBERS and value:
            _number(value, option.label)
        if option.name in _EVOLUTION and settings.get("optimiser", "gradient") == "gradient":
            continue
        if option.name == "frame" and not _box(settings):
            continue
        if option.name == "collision":
            words += {"yes": ["--collision"], "no": ["--no-collision"]}.get(value, [])
        elif value != option.default and value:
            words += [option.option, value]
    box = _box(settings)
    return [*words, "--box", ",".join(box)] if box else words


def _box(settings: Mapping[str, str]) -> list[str]:
    sides = [settings.get(name, "") for name in BOX_SIDES]
    if not any(sides):
        return []
    if not all(sides):
        raise StudioError("The box is incomplete: give all six numbers in m, or leave all of them empty.")
    for low, high, axis in zip(sides[::2], sides[1::2], "xyz", strict=True):
        if not _number(low, f"Box, {axis}") < _number(high, f"Box, {axis}"):
            raise StudioError(f"The box is empty along {axis}: {low} is not below {high}.")
    return sides


def _number(text: str, label: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise StudioError(f"{label}: '{text[:40]}' is not a number.")
    return value


# ------------------------------------------------------------ limits


def limits_of(form: Mapping[str, str], joints: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the table [limits] of a form; None for limits that equal those of the robot's file.

    Args:
        form: Fields of the form.
        joints: Joints from `motion_facts`.
    """
    columns: dict[str, list[float | None]] = {}
    for key, name, _ in LIMIT_COLUMNS:
        columns[key] = [_cell(form.get(f"{key}_{k}", ""), f"{joint['name']}, {name}") for k, joint in enumerate(joints)]
    for low, high, joint in zip(columns["low"], columns["high"], joints, strict=True):
        if low is not None and high is not None and not low < high:
            raise StudioError(f"{joint['name']}: the lower limit {low:g} is not below the upper limit {high:g}.")
    for key in ("dq", "ddq", "tau"):
        for value, joint in zip(columns[key], joints, strict=True):
            if value is not None and not value > 0.0:
                raise StudioError(f"{joint['name']}: a limit of {value:g} is not positive; give a positive number.")
    limits: dict[str, Any] = {}
    own = {key: [_rounded(joint["own"][key]) for joint in joints] for key, _, _ in LIMIT_COLUMNS}
    full = {key: _complete(columns[key], own[key]) for key in columns}
    same = full["low"] == own["low"] and full["high"] == own["high"]
    limits["q"] = None if same else [list(pair) for pair in zip(full["low"], full["high"], strict=True)]
    limits["dq"] = None if full["dq"] == own["dq"] else full["dq"]
    pairs = zip(full["dq"], full["ddq"], strict=True)
    is_default = all(math.isclose(_ACCELERATION_PER_VELOCITY * dq, ddq, rel_tol=1e-5) for dq, ddq in pairs)
    limits["ddq"] = None if is_default else full["ddq"]
    limits["tau"] = None if full["tau"] == own["tau"] else full["tau"]
    return limits


def write_limits(folder: StudioFolder, limits: Mapping[str, Any]) -> None:
    """Write limits to the project file.

    Args:
        folder: The studio's folder.
        limits: From `limits_of`; None removes a key.
    """

    def edit(document: Any) -> None:
        if "limits" not in document and any(x is not None for x in limits.values()):
            document["limits"] = {}
        for key, value in limits.items():
            if value is not None:
                document["limits"][key] = value
            elif key in document.get("limits", {}):
                del document["limits"][key]
        if "limits" in document and not document["limits"]:
            del document["limits"]

    folder.edit_project(edit)


def limit_text(value: float | None) -> str:
    """Format the `value` of a limit for a field; "" for none."""
    return "" if value is None else f"{value:.6g}"


def _cell(text: str, label: str) -> float | None:
    return _number(text, label) if text.strip() else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _complete(column: Sequence[float | None], own: Sequence[float | None]) -> list[Any]:
    """Complete a column with the limits of the robot's file."""
    full = [b if a is None else a for a, b in zip(column, own, strict=True)]
    if full != list(own) and None in full:
        raise StudioError("Some joints have no torque limit in the robot's file: give limits for all joints, or none.")
    return full
