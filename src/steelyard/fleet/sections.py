"""The sections of a fleet's page, each from the tables of its run to HTML. What grows with the number of logs is told
in sums, and lists are cut: the tables have all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.fleet.pictures import DatedPoints, date_curves, fleet_map
from steelyard.ground.numbers import Known, number, percent, with_error
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
_TINY = "< 1e-6"
# So many of a list are shown.
_LISTED, _CURVES = 40, 8
# Colours of a map end here: a friction of so much more or less than its kin's (percent), a residual so many times as
# large (as a power of two), a gain of so much (percent).
_FRICTION_END, _RESIDUAL_END, _GAIN_END = 60.0, 1.5, 6.0


def by_model(table: Any) -> dict[str, list[dict[str, Any]]]:
    """The rows of a `table`, by model."""
    out: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        out.setdefault(row["model"], []).append(row)
    return out


def map_section(tables: Tables) -> Section | None:
    """Robots by joints: friction, residual and gain against the robots of the model, from the `tables` of a run."""
    models = {m: rows for m, rows in by_model(tables["joints"]).items() if len({r["robot"] for r in rows}) > 1}
    if not models:
        return None
    pieces = [
        join(Html(f"<h3>{text(model)}</h3>") if len(models) > 1 else "", _maps(rows)) for model, rows in models.items()
    ]
    words = (
        "Each column is a robot, each row a joint; what is as usual for its model has no colour. Point at a cell for "
        "its numbers."
    )
    return Section("Map of the fleet", join(paragraph(words), *pieces))


def _maps(rows: Sequence[dict[str, Any]]) -> Html:
    robots, joints = list(dict.fromkeys(r["robot"] for r in rows)), list(dict.fromkeys(r["joint"] for r in rows))
    at = {(r["joint"], r["robot"]): r for r in rows}
    cells = [[at.get((j, robot), {}) for robot in robots] for j in joints]

    def grid(value: Any, said: Any) -> tuple[list[list[float]], list[list[str]]]:
        numbers = [[np.nan if (x := value(c)) is None else x for c in row] for row in cells]
        return numbers, [[f"{c['robot']}, {c['joint']}: {said(c)}" if c else "" for c in row] for row in cells]

    friction = grid(_friction_percent, _friction_said)
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
        ("Friction", friction, "friction against its kin [%]", _FRICTION_END, (), "Friction of each joint at its usual "
         "speed, all terms together, against the mean of the robots of the model."),
        ("Residual", residual, "residual over the median [1]", _RESIDUAL_END, octaves, "What each robot's own model "
         "leaves of the torque in all its logs, against the median of the robots of the model."),
        ("Gain", gain, "torque gain [%]", _GAIN_END, (), "By how much each joint's torque, as the robot tells it, is "
         "larger than the model's: a sensor, a current's constant, or an arm that is not of this model."),
    ]  # fmt: skip
    return tabs(*(
        (title, figure_html(fleet_map(robots, joints, values, said, legend, end, ticks), title, caption))
        for title, (values, said), legend, end, ticks, caption in made
    ))  # fmt: skip


def _friction_percent(cell: Mapping[str, Any]) -> float | None:
    mean = cell.get("friction_mean")
    return 100.0 * (cell["friction"] / mean - 1.0) if mean else None


def _friction_said(cell: Mapping[str, Any]) -> str:
    away = _friction_percent(cell)
    if away is None:
        return "no friction term"
    return f"{Known(cell['friction'], cell['friction_error'])} {cell['unit']}, {away:+.2g} % of its kin's"


def outliers_section(tables: Tables, rate: float) -> Section:
    """What does not belong, ranked, by the `tables` of a run; so many (`rate`) of each kind are false."""
    found = sorted(tables["outliers"].to_pylist(), key=lambda o: -o["score"])
    if not found:
        words = (
            "No robot, joint or log stands out beyond chance. Of fewer than six robots of a model little can be said."
        )
        return Section("What stands out", paragraph(words))
    words = (
        f"Robots, joints and logs that do not belong, the surest first; of each kind about {percent(100.0 * rate)} are "
        "chance. Logs whose channels are mixed up take no part in the rest."
    )
    rows: list[Sequence[TableCell]] = [
        (k, o["kind"], o["sentence"], _TINY if o["p"] < 1e-6 else o["p"])
        for k, o in enumerate(found[:_LISTED], start=1)
    ]
    heads: list[TableColumn | str] = ["rank", "kind", "evidence", TableColumn("by chance", "1", 2)]
    table = table_html(heads, rows, "Ranking")
    return Section("What stands out", join(paragraph(words), table, _cut(len(found), "outliers")))


def drift_section(tables: Tables, rate: float) -> Section:
    """What has changed, with curves, by the `tables` of a run; so many (`rate`) of these are false."""
    found = tables["drift"].to_pylist()
    dated = tables["days"].group_by(["robot", "joint"]).aggregate([]).num_rows
    if not dated:
        words = "The fleet's table has no dates, or too few; without them nothing can be said of changes."
        return Section("What has changed", paragraph(words))
    if not found:
        words = f"Of {dated} joints that were followed over days none has changed beyond chance."
        return Section("What has changed", paragraph(words))
    words = (
        f"{len(found)} changes in {dated} joints that were followed over days, the surest first; of such changes about "
        f"{percent(100.0 * rate)} are chance. Warmth and what all joints do together have been taken out."
    )
    rows: list[Sequence[TableCell]] = [
        (d["robot"], d["joint"], d["what"], d["how"], d["since"].strftime("%Y-%m-%d"),
         f"{d['earliest']:%Y-%m-%d} – {d['latest']:%Y-%m-%d}",
         with_error(100.0 * d["relative"], 100.0 * d["relative_error"]), _TINY if d["p"] < 1e-6 else d["p"])
        for d in found[:_LISTED]
    ]  # fmt: skip
    heads: list[TableColumn | str] = [
        "robot", "joint", "what", "how", "since", "between (95 %)", TableColumn("size", "%"),
        TableColumn("by chance", "1", 2),
    ]  # fmt: skip
    table = table_html(heads, rows, "The size is in percent of the joint's friction; of gains, in percent")
    return Section(
        "What has changed",
        join(paragraph(words), table, _cut(len(found), "drift"), drift_figure(tables, found[:_CURVES])),
    )


def drift_figure(tables: Tables, found: Sequence[Mapping[str, Any]]) -> Html:
    """Curves of the channels in which changes were `found`, from the `tables` of a run."""
    keys = list(dict.fromkeys((d["model"], d["robot"], d["joint"], d["what"]) for d in found))
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
            [d["since"].timestamp() for d in found if (d["model"], d["robot"], d["joint"], d["what"]) == key],
        )
        for key, own in days.items()
        if own
    ]
    return figure_html(
        date_curves(curves), "Over time", "A point is a day; the dashed line is where the change begins."
    )


def _of_robots(table: Any, robots: Collection[str]) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows: list[dict[str, Any]] = table.filter(pc.is_in(table["robot"], pa.array(sorted(robots)))).to_pylist()
    return rows


def differences_section(tables: Tables) -> Section | None:
    """How much robots of a model differ, and what borrowing is worth, from the `tables` of a run."""
    pieces: list[Html] = []
    robots = Counter(tables["robots"]["model"].to_pylist())
    for model, rows in by_model(tables["differences"]).items():
        if robots[model] < 2:  # there is nothing to compare it with
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
        pieces.append(table_html(heads, body, f"{model}: standard deviation between robots", dash="It has none."))
    if not pieces:
        return None
    words = (
        "How much robots of one model differ, and in the last column how much smaller a robot's error bars are since "
        "it borrows from its kin. A shaded number is a difference for sure; the others may be none. Unit 1 is a part "
        "of the joint's torque."
    )
    return Section("How much robots differ", join(paragraph(words), *pieces))


def _std(row: Mapping[str, Any]) -> str:
    return f"{number(row['std'], 2)} ± {number(row['error'], 1)}"


def fleet_scores_section(tables: Tables) -> Section:
    """What the robots' models leave of the torques, by joint, from the `tables` of a run."""
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
    words = "What each robot's model leaves of the torque in a log, in percent of the torque's standard deviation."
    if any(load is not None for load in tables["logs"]["load"].unique().to_pylist()):
        words += " A log with another load than its robot usually has leaves more: the model is that of the usual one."
    return Section("Scores", join(paragraph(words), table_html(heads, body, "Relative error of logs")))


def unused_section(tables: Tables) -> Section | None:
    """Logs that were not used, and why, from the `tables` of a run."""
    rows = [(r["robot"], r["reason"] or "") for r in tables["logs"].select(["robot", "used", "reason"]).to_pylist()
            if not r["used"]]  # fmt: skip
    if not rows:
        return None
    words = f"{len(rows):,} of {tables['logs'].num_rows:,} logs could not be used; the others do not suffer from it."
    table = table_html(["robot", "why"], rows[:_LISTED], "Logs that were not used")
    return Section("Logs that were not used", join(paragraph(words), table, _cut(len(rows), "logs")))


def findings_section(tables: Tables) -> Section | None:
    """What the check of logs found, summed up, from the `tables` of a run."""
    rows = tables["findings"].to_pylist()
    if not rows:
        return None
    rank = {"problem": 0, "warning": 1}
    counts = Counter((r["severity"], r["kind"]) for r in rows)
    order = sorted(counts, key=lambda key: (rank.get(key[0], 2), -counts[key], key))
    first = {(r["severity"], r["kind"]): r for r in reversed(rows)}
    robots = {key: len({r["robot"] for r in rows if (r["severity"], r["kind"]) == key}) for key in order[:_LISTED]}
    body: list[Sequence[TableCell]] = [
        (key[0], key[1], counts[key], robots[key], first[key]["robot"], first[key]["message"])
        for key in order[:_LISTED]
    ]
    table = table_html(["severity", "kind", "times", "robots", "first in", "what was seen there"], body)
    words = "Logs that are unlike the others were looked at as the check does; what it found, by kind."
    return Section("What the check found", join(paragraph(words), table, _cut(len(order), "findings")))


def _cut(count: int, table: str, most: int = _LISTED) -> str:
    """That there is more of a list, and where."""
    if count <= most:
        return ""
    return paragraph(f"The first {most} of {count:,}; all of them stand in {table}.parquet.")
