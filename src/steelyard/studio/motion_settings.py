"""What a search for a motion is asked for: the fields of the form, and the command that they make."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from steelyard.ground.files import write_whole
from steelyard.studio.place import StudioError, StudioFolder

_KEPT = "motion.json"
# Columns of the table of limits: key of the project file, name, what it is per unit of the joint ("" for torques).
LIMIT_COLUMNS = (("low", "from", ""), ("high", "to", ""), ("dq", "velocity", "/s"), ("ddq", "acceleration", "/s²"),
           ("tau", "torque", None))  # fmt: skip
# Accelerations that nobody states follow from the velocities, as in `default_limits`.
_SPEED_UPS_PER_SECOND = 3.0
BOX_SIDES = ("x0", "x1", "y0", "y1", "z0", "z1")


@dataclass(frozen=True)
class Asked:
    """One option of the search: its `name` in the form, the `option` of the command, what it is when nothing is said
    (`usual`, as typed), and how people call it, with its `unit`."""

    name: str
    option: str
    usual: str
    label: str
    unit: str = ""


ASKED = (
    Asked("duration", "--duration", "10", "Length", "s"),
    Asked("criterion", "--criterion", "cond", "What is made small"),
    Asked("terms", "--terms", "", "Parameters to show"),
    Asked("floor", "--floor", "", "Floor at height", "m"),
    Asked("frame", "--frame", "", "Box is for link"),
    Asked("collision", "", "", "Collisions of the arm with itself"),
    Asked("clearance", "--clearance", "0.02", "Clearance", "m"),
    Asked("torque_margin", "--torque-margin", "0", "Torque kept free", "share"),
    Asked("harmonics", "--harmonics", "5", "Harmonics"),
    Asked("rate", "--rate", "100", "Samples", "Hz"),
    Asked("optimiser", "--optimiser", "gradient", "Search by"),
    Asked("population", "--population", "150", "Population"),
    Asked("generations", "--generations", "100", "Generations"),
    Asked("seed", "--seed", "0", "Seed"),
    Asked("time", "--time", "", "Stop after", "s"),
)
_BRED = ("population", "generations")
_NUMBERS = ("duration", "floor", "clearance", "torque_margin", "harmonics", "rate", *_BRED, "seed", "time")


def read_settings(place: StudioFolder, first: Mapping[str, str]) -> dict[str, str]:
    """What the form of a `place` held last; where it says nothing, what it holds `first`, or the command's own."""
    kept: Any = {}
    with suppress(OSError, ValueError):
        kept = json.loads(place.own(_KEPT).read_text("utf-8"))
    known = {*(a.name for a in ASKED), *BOX_SIDES}
    good = {k: v for k, v in kept.items() if k in known and isinstance(v, str)} if isinstance(kept, dict) else {}
    return {**{a.name: a.usual for a in ASKED}, **first, **good}


def keep_settings(place: StudioFolder, form: Mapping[str, str]) -> dict[str, str]:
    """Keep what a `form` holds in its `place`, and return it."""
    given = {name: form[name].strip() for name in (*(a.name for a in ASKED), *BOX_SIDES) if name in form}
    write_whole(place.own(_KEPT), json.dumps(given))
    return given


def search_words(given: Mapping[str, str]) -> list[str]:
    """The words of the command that searches as the settings `given` say."""
    words = ["excite"]
    for a in ASKED:
        value = given.get(a.name, a.usual)
        if a.name in _NUMBERS and value:
            _number(value, a.label)
        if a.name in _BRED and given.get("optimiser", "gradient") == "gradient":
            continue
        if a.name == "frame" and not _box(given):
            continue
        if a.name == "collision":
            words += {"yes": ["--collision"], "no": ["--no-collision"]}.get(value, [])
        elif value != a.usual and value:
            words += [a.option, value]
    box = _box(given)
    return [*words, "--box", ",".join(box)] if box else words


def _box(given: Mapping[str, str]) -> list[str]:
    sides = [given.get(name, "") for name in BOX_SIDES]
    if not any(sides):
        return []
    if not all(sides):
        raise StudioError("The box lacks a side: give all six numbers in m, or leave all of them empty.")
    for low, high, axis in zip(sides[::2], sides[1::2], "xyz", strict=True):
        if not _number(low, f"Box, {axis}") < _number(high, f"Box, {axis}"):
            raise StudioError(f"The box is empty along {axis}: {low} is not below {high}.")
    return sides


def _number(text: str, label: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise StudioError(f"{label}: '{text[:40]}' is no number.")
    return found


# ------------------------------------------------------------ limits


def limits_of(form: Mapping[str, str], joints: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The table [limits] that a `form` says, for `joints` as `motion_facts` tells of them; None for what is the
    robot's own."""
    columns: dict[str, list[float | None]] = {}
    for key, name, _ in LIMIT_COLUMNS:
        columns[key] = [_cell(form.get(f"{key}_{k}", ""), f"{joint['name']}, {name}") for k, joint in enumerate(joints)]
    for low, high, joint in zip(columns["low"], columns["high"], joints, strict=True):
        if low is not None and high is not None and not low < high:
            raise StudioError(f"{joint['name']} has no room to move: {low:g} is not below {high:g}.")
    for key in ("dq", "ddq", "tau"):
        for value, joint in zip(columns[key], joints, strict=True):
            if value is not None and not value > 0.0:
                raise StudioError(f"{joint['name']}: a limit of {value:g} leaves nothing; give a positive number.")
    made: dict[str, Any] = {}
    own = {key: [_rounded(joint["own"][key]) for joint in joints] for key, _, _ in LIMIT_COLUMNS}
    given = {key: _filled(columns[key], own[key]) for key in columns}
    same = given["low"] == own["low"] and given["high"] == own["high"]
    made["q"] = None if same else [list(pair) for pair in zip(given["low"], given["high"], strict=True)]
    made["dq"] = None if given["dq"] == own["dq"] else given["dq"]
    pairs = zip(given["dq"], given["ddq"], strict=True)
    follows = all(math.isclose(_SPEED_UPS_PER_SECOND * dq, ddq, rel_tol=1e-5) for dq, ddq in pairs)
    made["ddq"] = None if follows else given["ddq"]
    made["tau"] = None if given["tau"] == own["tau"] else given["tau"]
    return made


def write_limits(place: StudioFolder, limits: Mapping[str, Any]) -> None:
    """Write `limits` to the project file of a `place`; what is None goes."""

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

    place.change(edit)


def limit_text(value: float | None) -> str:
    """The `value` of a limit as a field holds it; "" for none."""
    return "" if value is None else f"{value:.6g}"


def _cell(text: str, label: str) -> float | None:
    return _number(text, label) if text.strip() else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _filled(column: Sequence[float | None], own: Sequence[float | None]) -> list[Any]:
    """A column with the robot's own where nothing is said."""
    filled = [b if a is None else a for a, b in zip(column, own, strict=True)]
    if filled != list(own) and None in filled:
        raise StudioError("The robot's file states no torque limit of some joints: give one for all joints, or none.")
    return filled
