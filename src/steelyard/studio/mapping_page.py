"""What the columns of a log mean, on a page: a proposal with its reasons, and a menu for each column."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.ground.files import write_whole
from steelyard.ground.numbers import number
from steelyard.report.elements import Html, callout, join, paragraph, table_html, text
from steelyard.signals.units import LOG_UNITS
from steelyard.studio.page import attribute, button, choice, entry, form
from steelyard.studio.place import StudioFolder
from steelyard.studio.stage import Sent

# Written above mappings of the studio; others are their owners', and never replaced.
MAPPING_HEADER = "# Written by steelyard studio"
# What a column may be, beside the time and nothing.
SIGNALS_MAPPED = ("position", "velocity", "acceleration", "torque", "current", "temperature")
# Numbers of the joints that no column holds, and their units.
NUMBERS_MAPPED = {
    "torque_constants": "N m (N) per A",
    "gear_ratio": "turns of the motor per turn of the joint",
    "torque_scale": "factor",
    "offset": "rad (m)",
}
# Columns that nobody uses are offered up to this many; a robot's controller may record thousands.
_MOST_UNUSED = 60


def proposal_html(log: str, found: Mapping[str, Any]) -> Html:
    """What was `found` (meanings.proposed) of the columns of `log`: reasons, questions, and a button that takes it."""
    rows = [[_shown(columns), key, unit or "–", why] for columns, key, unit, why in found["rows"]]
    asked = [
        choice(f"answer.{k}", question, [(words, words) for words in choices])
        for k, (question, choices) in enumerate(found["questions"])
    ]
    gaps = [entry(f"number.{key}", words) for words, key in found["missing"] if key]
    lost = [callout("warning", words, "Missing") for words, key in found["missing"] if not key]
    questions = f"<fieldset><legend>To be sure</legend>{''.join([*asked, *gaps])}</fieldset>" if asked or gaps else ""
    notes = [paragraph(note) for note in found["notes"]]
    inside = f'{_hidden("log", log)}{questions}<button class="main">Use this mapping</button>'
    return join(
        table_html(["columns", "meaning", "unit", "why"], rows, "What the columns most likely mean"),
        *lost, *notes, form("data/use", inside),
    )  # fmt: skip


def answers_of(sent: Sent) -> tuple[dict[str, str], dict[str, str]]:
    """What was answered (`sent`) to a proposal, by the number of the question; and what was missing, by its key."""
    answers = {name.removeprefix("answer."): sent[name] for name in sent if name.startswith("answer.")}
    return answers, {name.removeprefix("number."): sent[name] for name in sent if name.startswith("number.")}


def editor_html(log: str, found: Mapping[str, Any]) -> Html:
    """A line for each column of `log` with what it is by `found` (meanings.meaning), to be changed by menus."""
    mapping = str(found["mapping"])
    if found["fixed"]:
        return callout("note", f"{found['fixed']}, which menus cannot show: change {mapping} itself.")
    used = [row for row in found["columns"] if row["signal"]]
    rest = [row for row in found["columns"] if not row["signal"]]
    offered = rest[: _MOST_UNUSED if used else 4 * _MOST_UNUSED]
    lines = [_line(k, row, found["joints"]) for k, row in enumerate([*used, *offered])]
    head = ["column", "what it is", "joint", "unit", "sign"]
    table = table_html(head, lines[: len(used)] or lines, f"Columns of {log}")
    more = table_html(head, lines[len(used) :]) if used and offered else ""
    hidden = len(rest) - len(offered)
    beyond = paragraph(f"And {hidden} more, which can be named in the mapping's file.") if hidden else ""
    folded = f'<details id="unused"><summary>{len(rest)} columns that are not used</summary>{more}{beyond}</details>'
    per_joint = "".join(
        entry(f"number.{key}", key.replace("_", " "), ", ".join(number(x) for x in found["numbers"][key]), unit)
        for key, unit in NUMBERS_MAPPED.items()
    )
    rate = entry("rate", "samples per second, of a log without a clock", number(found["rate"]) if found["rate"] else "")
    numbers = (
        '<details id="numbers"><summary>Numbers that no column holds</summary><p class="hint">One for all joints, or '
        f"one for each in the order of the robot, with commas between.</p>{per_joint}{rate}</details>"
    )
    units = attribute(json.dumps({signal: list(of) for signal, of in LOG_UNITS.items()}))
    inside = (
        f'{_hidden("log", log)}<div data-units="{units}">{table}{folded if rest and used else beyond}</div>{numbers}'
        '<div class="row"><button class="main">Write the mapping</button></div>'
    )
    error = callout("bad", found["error"]) if found["error"] else ""
    return join(error, form("data/edit", inside))


def _line(k: int, row: Mapping[str, Any], joints: Sequence[str]) -> list[str]:
    column = row["column"]
    kinds = [("", "not used"), ("time", "time"), *((signal, signal) for signal in SIGNALS_MAPPED)]
    units = list(LOG_UNITS.get(row["signal"], ()))
    if row["unit"] and row["unit"] not in units:
        units.insert(0, row["unit"])
    named = [("", "–"), *((joint, joint) for joint in joints)]
    return [
        join(text(column), Html(_hidden(f"column.{k}", column))),
        choice(f"signal.{k}", f"What {column} is", kinds, row["signal"], hide_label=True),
        choice(f"joint.{k}", f"Joint of {column}", named, row["joint"], hide_label=True),
        choice(f"unit.{k}", f"Unit of {column}", [("", "SI"), *((u, u) for u in units)], row["unit"], hide_label=True),
        choice(f"sign.{k}", f"Sign of {column}", [("1", "+"), ("-1", "−")], str(row["sign"]), hide_label=True),
    ]  # fmt: skip


def lines_of(sent: Sent) -> list[dict[str, Any]]:
    """What the menus say (`sent`), as arguments of `ColumnMeaning`s of the columns that are used."""
    numbers = [name.removeprefix("column.") for name in sent if name.startswith("column.")]
    return [
        {
            "column": sent[f"column.{k}"], "signal": sent[f"signal.{k}"], "joint": sent[f"joint.{k}"],
            "unit": sent[f"unit.{k}"], "sign": -1 if sent[f"sign.{k}"] == "-1" else 1,
        }
        for k in numbers if sent[f"signal.{k}"]
    ]  # fmt: skip


def write_mapping(place: StudioFolder, made: str) -> str:
    """Write a mapping, the text `made`, to `place`, let the project use it, and return its path; what others wrote
    stays."""
    now = place.project().mapping
    target = place.root / now
    if not now or not target.is_file() or not target.read_text("utf-8", "replace").startswith(MAPPING_HEADER):
        target = place.free_name("", "columns.toml")
    write_whole(target, made)
    place.set(mapping=place.relative(target))
    return place.relative(target)


def away_html(mapping: str) -> Html:
    """A button that takes the `mapping` out of the project."""
    ask = f"Shall the project do without {mapping}? The file stays where it is."
    return button("data/unmap", "Do without this mapping", ask=ask)


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{attribute(name)}" value="{attribute(value)}">'


def _shown(names: Sequence[str], most: int = 4) -> str:
    listed = list(names)
    return (
        ", ".join(listed) if len(listed) <= most else f"{', '.join(listed[: most - 1])}, … {listed[-1]} ({len(listed)})"
    )
