"""HTML for the mapping of a log: a proposal with its reasons, and an editor with menus for each column."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.ground.files import write_whole
from steelyard.ground.numbers import number
from steelyard.report.elements import Html, callout, join, paragraph, table_html, text
from steelyard.signals.units import LOG_UNITS
from steelyard.studio.page import attribute, button, choice, entry, form
from steelyard.studio.stage import FormData
from steelyard.studio.studio_folder import StudioFolder

# First line of mappings that the studio writes; it never overwrites other mappings.
MAPPING_HEADER = "# Written by steelyard studio"
# Signals that a column may hold, besides the time.
MAPPED_SIGNALS = ("position", "velocity", "acceleration", "torque", "current", "temperature")
# Joint constants that are not in a column, and their units.
MAPPED_NUMBERS = {
    "torque_constants": "N m (N) per A",
    "gear_ratio": "turns of the motor per turn of the joint",
    "torque_scale": "factor",
    "offset": "rad (m)",
}
# Largest number of unused columns in the editor; a robot controller may record thousands.
_MOST_UNUSED = 60


def scope_html(log: str, scope: str) -> Html:
    """Render the menu that says for which logs a mapping is.

    Args:
        log: Path of the log.
        scope: Selected value, "all" or "log"; "" renders nothing, for a folder with one log.
    """
    if not scope:
        return Html("")
    return choice("scope", "This mapping is for", [("all", "all logs"), ("log", f"only {log}")], scope)


def proposal_html(log: str, proposal: Mapping[str, Any], scope: str = "") -> Html:
    """Render a proposed mapping with its reasons and questions.

    Args:
        log: Path of the log.
        proposal: From `mapping_editor.proposal`.
        scope: As for `scope_html`.
    """
    rows = [[_listed(columns), key, unit or "–", why] for columns, key, unit, why in proposal["rows"]]
    questions = [
        choice(f"answer.{k}", question, [(words, words) for words in choices])
        for k, (question, choices) in enumerate(proposal["questions"])
    ]
    questions += [entry(f"number.{key}", words) for words, key in proposal["missing"] if key]
    lost = [callout("warning", words, "Missing") for words, key in proposal["missing"] if not key]
    fieldset = f"<fieldset><legend>Please check</legend>{''.join(questions)}</fieldset>" if questions else ""
    notes = [paragraph(note) for note in proposal["notes"]]
    use = '<button class="main">Use this mapping</button>'
    inside = f'{_hidden("log", log)}{fieldset}<div class="row end">{scope_html(log, scope)}{use}</div>'
    return join(
        table_html(["columns", "meaning", "unit", "why"], rows, "Likely meaning of the columns"),
        *lost, *notes, form("data/use", inside),
    )  # fmt: skip


def proposal_answers(fields: FormData) -> tuple[dict[str, str], dict[str, str]]:
    """Return the answers to a proposal by question number, and the missing numbers by key, from form `fields`."""
    answers = {name.removeprefix("answer."): fields[name] for name in fields if name.startswith("answer.")}
    return answers, {name.removeprefix("number."): fields[name] for name in fields if name.startswith("number.")}


def editor_html(log: str, editor: Mapping[str, Any], scope: str = "") -> Html:
    """Render the menus of the mapping, one line per column.

    Args:
        log: Path of the log.
        editor: From `mapping_editor.column_meanings`.
        scope: As for `scope_html`.
    """
    mapping = str(editor["mapping"])
    if editor["fixed"]:
        return callout("note", f"{editor['fixed']}. Menus cannot show this; edit the file {mapping}.")
    used = [row for row in editor["columns"] if row["signal"]]
    rest = [row for row in editor["columns"] if not row["signal"]]
    offered = rest[: _MOST_UNUSED if used else 4 * _MOST_UNUSED]
    lines = [_line(k, row, editor["joints"]) for k, row in enumerate([*used, *offered])]
    head = ["column", "signal", "joint", "unit", "sign"]
    table = table_html(head, lines[: len(used)] or lines, f"Columns of {log}")
    more = table_html(head, lines[len(used) :]) if used and offered else ""
    hidden = len(rest) - len(offered)
    beyond = paragraph(f"{hidden} more columns are not shown; name them in the mapping's file.") if hidden else ""
    folded = f'<details id="unused"><summary>{len(rest)} unused columns</summary>{more}{beyond}</details>'
    per_joint = "".join(
        entry(f"number.{key}", key.replace("_", " "), ", ".join(number(x) for x in editor["numbers"][key]), unit)
        for key, unit in MAPPED_NUMBERS.items()
    )
    rate = entry("rate", "sample rate of a log without a clock", number(editor["rate"]) if editor["rate"] else "", "Hz")
    numbers = (
        '<details id="numbers"><summary>Joint constants</summary><p class="hint">One number for all joints, or one per '
        f"joint in the order of the robot, separated by commas.</p>{per_joint}{rate}</details>"
    )
    units = attribute(json.dumps({signal: list(of) for signal, of in LOG_UNITS.items()}))
    inside = (
        f'{_hidden("log", log)}<div data-units="{units}">{table}{folded if rest and used else beyond}</div>{numbers}'
        f'<div class="row end">{scope_html(log, scope)}<button class="main">Write the mapping</button></div>'
    )
    error = callout("bad", editor["error"]) if editor["error"] else ""
    return join(error, form("data/edit", inside))


def _line(k: int, row: Mapping[str, Any], joints: Sequence[str]) -> list[str]:
    column = row["column"]
    kinds = [("", "not used"), ("time", "time"), *((signal, signal) for signal in MAPPED_SIGNALS)]
    units = list(LOG_UNITS.get(row["signal"], ()))
    if row["unit"] and row["unit"] not in units:
        units.insert(0, row["unit"])
    joint_options = [("", "–"), *((joint, joint) for joint in joints)]
    return [
        join(text(column), Html(_hidden(f"column.{k}", column))),
        choice(f"signal.{k}", f"Signal of {column}", kinds, row["signal"], hide_label=True),
        choice(f"joint.{k}", f"Joint of {column}", joint_options, row["joint"], hide_label=True),
        choice(f"unit.{k}", f"Unit of {column}", [("", "SI"), *((u, u) for u in units)], row["unit"], hide_label=True),
        choice(f"sign.{k}", f"Sign of {column}", [("1", "+"), ("-1", "−")], str(row["sign"]), hide_label=True),
    ]  # fmt: skip


def column_rows(fields: FormData) -> list[dict[str, Any]]:
    """Return the menus in form `fields` as arguments of `ColumnMeaning`, for the used columns."""
    numbers = [name.removeprefix("column.") for name in fields if name.startswith("column.")]
    return [
        {
            "column": fields[f"column.{k}"], "signal": fields[f"signal.{k}"], "joint": fields[f"joint.{k}"],
            "unit": fields[f"unit.{k}"], "sign": -1 if fields[f"sign.{k}"] == "-1" else 1,
        }
        for k in numbers if fields[f"signal.{k}"]
    ]  # fmt: skip


def write_mapping(folder: StudioFolder, toml: str) -> str:
    """Write a mapping, make it the project's, and return its path; mappings of others are not overwritten.

    Args:
        folder: The studio's folder.
        toml: Text of the mapping.
    """
    current = folder.project().mapping
    target = folder.root / current
    if not current or not target.is_file() or not target.read_text("utf-8", "replace").startswith(MAPPING_HEADER):
        target = folder.free_path("", "columns.toml")
    write_whole(target, toml)
    folder.set_keys(mapping=folder.relative(target))
    return folder.relative(target)


def remove_mapping_html(mapping: str) -> Html:
    """Render a button that removes the `mapping` from the project."""
    ask = f"Remove {mapping} from the project? The file is kept."
    return button("data/unmap", "Remove this mapping", ask=ask)


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{attribute(name)}" value="{attribute(value)}">'


def _listed(names: Sequence[str], most: int = 4) -> str:
    listed = list(names)
    return (
        ", ".join(listed) if len(listed) <= most else f"{', '.join(listed[: most - 1])}, … {listed[-1]} ({len(listed)})"
    )
