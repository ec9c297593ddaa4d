"""Sections of a fleet's page, made from the tables of its run.

Sections summarise and shorten lists, so that the page stays small; the tables are complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.fleet.columns import TABLES
from steelyard.fleet.figures import DatedPoints, date_curves, fleet_map
from steelyard.ground.numbers import Known, number, percent, with_error
from steelyard.ground.result_tables import TableRow
from steelyard.report.declared_tables import Cells, declared_html
from steelyard.report.elements import (
    Heat,
    Html,
    TableCell,
    TableColumn,
    figure_html,
    join,
    paragraph,
    table_html,
    tabs,
    text,
)
from steelyard.report.html import Section

Tables = Mapping[str, Any]
# A p-value below the accuracy of its test has no digits.
_P_VALUES: dict[str, Callable[[TableRow], TableCell]] = {"p": lambda row: "< 1e-6" if row["p"] < 1e-6 else row["p"]}
# Largest number of rows of a list, and of curves.
_MAX_ROWS, _MAX_CURVES = 40, 8
# Ends of the colours of a map: deviation of friction [%], residual ratio as a power of two, gain [%].
_FRICTION_END, _RESIDUAL_END, _GAIN_END = 60.0, 1.5, 6.0


def rows_by_type(table: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a `table`, by robot type."""
    out: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        out.setdefault(row["model"], []).append(row)
    return out


def map_section(tables: Tables) -> Section | None:
    """Show maps of friction, residual and gain of all robots relative to their type, from the `tables` of a run."""
    models = {m: rows for m, rows in rows_by_type(tables["joints"]).items() if len({r["robot"] for r in rows}) > 1}
    if not models:
        return None
    pieces = [
        join(Html(f"<h3>{text(model)}</h3>") if len(models) > 1 else "", _maps(rows)) for model, rows in models.items()
    ]
    words = (
        "Each column is a robot, each row a joint; values that are usual for the robot type are uncoloured. Point at a "
        "cell for its numbers."
    )
    return Section("Map of the fleet", join(paragraph(words), *pieces))


def _maps(rows: Sequence[dict[str, Any]]) -> Html:
    robots, joints = list(dict.fromkeys(r["robot"] for r in rows)), list(dict.fromkeys(r["joint"] for r in rows))
    at = {(r["joint"], r["robot"]): r for r in rows}
    cells = [[at.get((j, robot), {}) for robot in robots] for j in joints]

    def grid(value: Any, hover: Any) -> tuple[list[list[float]], list[list[str]]]:
        numbers = [[np.nan if (x := value(c)) is None else x for c in row] for row in cells]
        return numbers, [[f"{c['robot']}, {c['joint']}: {hover(c)}" if c else "" for c in row] for row in cells]

    friction = grid(_friction_percent, _friction_text)
    residual = grid(
        lambda c: np.log2(c["residual_ratio"]) if c.get("residual_ratio") else None,
        lambda c: f"{number(c['residual'], 3)} {c['unit']}, {number(c['residual_ratio'], 3)} times the median"
        if c.get("residual_ratio") else "no log",
    )  # fmt: skip
    gain = grid(
        lambda c: None if c.get("gain") is None else 100.0 * c["gain"],
        lambda c: "none" if c.get("gain") is None else f"{100.0 * c['gain']:+.2g} ± {100.0 * c['gain_error']:.2g} %",
    )
    octaves = [(k, f"{2.0**k:.2g}×") for k in (-1.0, 0.0, 1.0)]
    made = [
        ("Friction", friction, "friction relative to the type [%]", _FRICTION_END, (), "Friction of each joint at its "
         "usual speed, all terms together, relative to the mean of all robots of the type."),
        ("Residual", residual, "residual over the median [1]", _RESIDUAL_END, octaves, "Residual of each robot's own "
         "model in all its logs, relative to the median of all robots of the type."),
        ("Gain", gain, "torque gain [%]", _GAIN_END, (), "Relative excess of each joint's measured torque over the "
         "model: a sensor, a torque constant, or an arm of another type."),
    ]  # fmt: skip
    return tabs(*(
        (title, figure_html(fleet_map(robots, joints, values, texts, legend, end, ticks), title, caption))
        for title, (values, texts), legend, end, ticks, caption in made
    ))  # fmt: skip


def _friction_percent(cell: Mapping[str, Any]) -> float | None:
    mean = cell.get("friction_mean")
    return 100.0 * (cell["friction"] / mean - 1.0) if mean else None


def _friction_text(cell: Mapping[str, Any]) -> str:
    away = _friction_percent(cell)
    if away is None:
        return "no friction term"
    return f"{Known(cell['friction'], cell['friction_error'])} {cell['unit']}, {away:+.2g} % from the type's mean"


def outliers_section(tables: Tables, rate: float) -> Section:
    """List the outliers of a run.

    Args:
        tables: Tables of the run.
        rate: False discovery rate of each kind.
    """
    found = sorted(tables["outliers"].to_pylist(), key=lambda o: -o["score"])
    if not found:
        words = (
            "No robot, joint or log is a significant outlier. With fewer than six robots of a type most tests are not "
            "possible."
        )
        return Section("Outliers", paragraph(words))
    words = (
        f"Outlying robots, joints and logs, the most significant first; about {percent(100.0 * rate)} of each kind are "
        "chance. Logs with a wrong mapping are not used otherwise."
    )
    for rank, row in enumerate(found, start=1):  # of all types together
        row["rank"] = rank
    names = ("rank", "kind", "sentence", "p")
    table = declared_html(TABLES["outliers"], found[:_MAX_ROWS], names, _P_VALUES, caption="Ranking")
    return Section("Outliers", join(paragraph(words), table, shortened_note(len(found), "outliers")))


def drift_section(tables: Tables, rate: float) -> Section:
    """List the changes over time of a run, with curves.

    Args:
        tables: Tables of the run.
        rate: False discovery rate.
    """
    found = tables["drift"].to_pylist()
    dated = tables["days"].group_by(["robot", "joint"]).aggregate([]).num_rows
    if not dated:
        words = "The fleet's table has no dates, or too few; changes over time need them."
        return Section("Changes over time", paragraph(words))
    if not found:
        words = f"None of {dated} joints changed significantly over the days."
        return Section("Changes over time", paragraph(words))
    words = (
        f"{len(found)} changes in {dated} joints that were followed over days, the most significant first; about "
        f"{percent(100.0 * rate)} of such changes are chance. The effect of warmth and changes of all joints together "
        "were removed."
    )
    cells: Cells = _P_VALUES | {
        "earliest": lambda d: f"{d['earliest']:%Y-%m-%d} – {d['latest']:%Y-%m-%d}",
        "relative": lambda d: with_error(100.0 * d["relative"], 100.0 * d["relative_error"]),
    }
    names = ("robot", "joint", "what", "how", "since", "earliest", "relative", "p")
    caption = "Sizes in percent of the joint's friction; gains in percent of the torque"
    table = declared_html(TABLES["drift"], found[:_MAX_ROWS], names, cells, caption=caption)
    return Section(
        "Changes over time",
        join(paragraph(words), table, shortened_note(len(found), "drift"), drift_figure(tables, found[:_MAX_CURVES])),
    )


def drift_figure(tables: Tables, changes: Sequence[Mapping[str, Any]]) -> Html:
    """Draw the channels that changed.

    Args:
        tables: Tables of the run.
        changes: Rows of the changes.
    """
    keys = list(dict.fromkeys((d["model"], d["robot"], d["joint"], d["what"]) for d in changes))
    days: dict[tuple[str, ...], list[Mapping[str, Any]]] = {key: [] for key in keys}
    for row in _of_robots(tables["days"], {key[1] for key in keys}):
        own = days.get((row["model"], row["robot"], row["joint"], row["what"]))
        if own is not None:
            own.append(row)
    curves = [
        DatedPoints(
            f"{key[1]}, {key[2]}: {key[3]}",
            f"[{own[0]['unit']}]",
            [d["date"].timestamp() for d in own],
            [d["value"] for d in own],
            [d["error"] for d in own],
            [d["since"].timestamp() for d in changes if (d["model"], d["robot"], d["joint"], d["what"]) == key],
        )
        for key, own in days.items()
        if own
    ]
    return figure_html(
        date_curves(curves), "Over time", "A point is a day; the dashed line is the start of the change."
    )


def _of_robots(table: Any, robots: Collection[str]) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows: list[dict[str, Any]] = table.filter(pc.is_in(table["robot"], pa.array(sorted(robots)))).to_pylist()
    return rows


def differences_section(tables: Tables) -> Section | None:
    """Show how much robots of a type differ, and how much pooling reduces error bars, from the `tables` of a run."""
    pieces: list[Html] = []
    robots = Counter(tables["robots"]["model"].to_pylist())
    for model, rows in rows_by_type(tables["differences"]).items():
        if robots[model] < 2:
            continue
        joints = list(dict.fromkeys(r["joint"] for r in rows))
        kinds = list(dict.fromkeys((r["kind"], r["unit"]) for r in rows))
        at = {(r["kind"], r["unit"], r["joint"]): r for r in rows}
        body: list[Sequence[TableCell]] = []
        for kind, unit in kinds:
            own = [at.get((kind, unit, joint)) for joint in joints]
            gained = [r["sharper"] for r in own if r and r["sharper"] is not None]
            spread = [Heat(_std(r), 0.35 if r["shown"] else 0.0) if r else None for r in own]
            body.append((kind, unit, *spread, float(np.median(gained)) if gained else None))
        heads = ["kind", "unit", *joints, TableColumn("own error / pooled", "1", digits=3)]
        pieces.append(table_html(heads, body, f"{model}: standard deviation between robots", dash="Not applicable."))
    if not pieces:
        return None
    words = (
        "Standard deviation between robots of one type. The last column shows the reduction of a robot's error bars by "
        "pooling. Shaded differences are significant. Unit 1 is a part of the joint's torque."
    )
    return Section("Differences between robots", join(paragraph(words), *pieces))


def _std(row: Mapping[str, Any]) -> str:
    return f"{number(row['std'], 2)} ± {number(row['error'], 1)}"


def fleet_scores_section(tables: Tables) -> Section:
    """Show the relative errors of the robots' models by joint, from the `tables` of a run."""
    names = ("model", "robot", "joint", "relative_error")
    columns = [tables["scores"][name].to_numpy(zero_copy_only=False) for name in names]
    body: list[Sequence[TableCell]] = []
    for model, joint in dict.fromkeys(zip(columns[0], columns[2], strict=True)):
        own = (columns[0] == model) & (columns[2] == joint) & np.isfinite(columns[3].astype(float))
        errors = 100.0 * columns[3][own].astype(float)
        if len(errors):
            low, middle, high = np.quantile(errors, [0.1, 0.5, 0.9])
            body.append(
                (model, joint, len(errors), middle, low, high, float(errors.max()), columns[1][own][errors.argmax()])
            )
    heads: list[TableColumn | str] = [
        "model",
        "joint",
        "logs",
        *(TableColumn(name, "%", 3) for name in ("median", "10 %", "90 %", "worst")),
        "of",
    ]
    words = "Residual of each robot's model in a log, in percent of the torque's standard deviation."
    if any(load is not None for load in tables["logs"]["load"].unique().to_pylist()):
        words += " The model includes the robot's usual load; logs with another load have larger residuals."
    return Section("Scores", join(paragraph(words), table_html(heads, body, "Relative error of logs")))


def unused_section(tables: Tables) -> Section | None:
    """List the logs that were not used, with reasons, from the `tables` of a run."""
    rows = [(r["robot"], r["reason"] or "") for r in tables["logs"].select(["robot", "used", "reason"]).to_pylist()
            if not r["used"]]  # fmt: skip
    if not rows:
        return None
    words = f"{len(rows):,} of {tables['logs'].num_rows:,} logs could not be used; this does not affect the others."
    table = table_html(["robot", "why"], rows[:_MAX_ROWS], "Logs that were not used")
    return Section("Logs that were not used", join(paragraph(words), table, shortened_note(len(rows), "logs")))


def findings_section(tables: Tables) -> Section | None:
    """Summarise the findings of the check, from the `tables` of a run."""
    rows = tables["findings"].to_pylist()
    if not rows:
        return None
    rank = {"problem": 0, "warning": 1}
    counts = Counter((r["severity"], r["kind"]) for r in rows)
    order = sorted(counts, key=lambda key: (rank.get(key[0], 2), -counts[key], key))
    first = {(r["severity"], r["kind"]): r for r in reversed(rows)}
    robots = {key: len({r["robot"] for r in rows if (r["severity"], r["kind"]) == key}) for key in order[:_MAX_ROWS]}
    body: list[Sequence[TableCell]] = [
        (key[0], key[1], counts[key], robots[key], first[key]["robot"], first[key]["message"])
        for key in order[:_MAX_ROWS]
    ]
    table = table_html(["severity", "kind", "count", "robots", "first robot", "first message"], body)
    words = "Logs that differ from the others were checked in full. Findings by kind:"
    return Section("Findings of the check", join(paragraph(words), table, shortened_note(len(order), "findings")))


def shortened_note(count: int, table: str, most: int = _MAX_ROWS) -> str:
    """Make a note that a list was shortened; "" if it is complete.

    Args:
        count: Number of all rows.
        table: Name of the table that has all of them.
        most: Largest number of rows in the list.
    """
    if count <= most:
        return ""
    return paragraph(f"The first {most} of {count:,}; {table}.parquet has all of them.")
