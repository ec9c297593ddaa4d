"""`FleetRobot`: results of one robot of a fleet and their page, made on request from the tables of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UnknownNameError
from steelyard.fleet.columns import TABLES
from steelyard.fleet.figures import DatedPoints, OwnAndPooled, date_curves, own_and_pooled
from steelyard.fleet.results import read_fleet_table
from steelyard.fleet.sections import Tables, drift_figure, shortened_note
from steelyard.fleet.storage import FleetError
from steelyard.ground.numbers import number, with_error
from steelyard.ground.outcome import OutcomeWithPage, Presentation
from steelyard.ground.reasons import explained
from steelyard.ground.result_tables import TableField, TableRow
from steelyard.ground.short_repr import short_repr
from steelyard.report.declared_tables import Cells, declared_html, declared_terminal
from steelyard.report.elements import Heat, TableCell, figure_html, join, paragraph, tabs
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.terminal import say

if TYPE_CHECKING:
    from rich.console import Console

# Largest number of logs and of findings that are listed.
_MAX_ROWS = 60
# Relative deviation of a friction or residual at full shading.
_FULL_AT = 1.0


@short_repr
@dataclass(frozen=True, eq=False)
class FleetRobot(OutcomeWithPage):
    """Results of one robot of a fleet.

    Attributes:
        run: Run folder.
        robot: Name of the robot.
        tables: The robot's rows of the run's tables.
    """

    run: str
    robot: str
    tables: Tables

    @property
    def robot_type(self) -> str:
        """Name of its type."""
        return str(self.tables["robots"]["model"][0].as_py())

    def to_json(self) -> dict[str, Any]:
        why = {f"{name}/*/*": "Unknown or not applicable." for name in TABLES}
        rows = {name: [_plain(row) for row in own.to_pylist()] for name, own in self.tables.items()}
        return explained({"run": self.run, "robot": self.robot, **rows}, why)

    def view(self) -> Presentation:
        return robot_report, print_robot


def read_run_robot(run: str | os.PathLike[str], robot: str) -> FleetRobot:
    """Read the results of one robot from a run of `steelyard fleet`.

    Args:
        run: Run folder.
        robot: Name of the robot.
    """
    folder = Path(run)
    names = [name for name in TABLES if name != "differences"]
    missing = next((name for name in names if not (folder / f"{name}.parquet").is_file()), "")
    if missing:
        raise FleetError(
            f"{folder}: has no {missing}.parquet; name the folder that 'steelyard fleet FLEET -o RUN' wrote."
        )
    try:
        known = read_fleet_table(folder, "robots")["robot"].to_pylist()
        if robot not in known:
            raise UnknownNameError("robot", robot, known)
        return FleetRobot(str(folder), robot, {name: read_fleet_table(folder, name, robot) for name in names})
    except (OSError, ValueError, KeyError) as error:  # Arrow's own are among these
        raise FleetError(f"{folder}: its tables cannot be read ({error}); run the fleet again.") from None


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value.isoformat() if hasattr(value, "isoformat") else value for key, value in row.items()}


# ---------------------------------------------------------------- the page


def robot_report(robot: FleetRobot) -> str:
    """Make the self-contained page of the robot `robot`."""
    about = robot.tables["robots"].to_pylist()[0]
    changes, outliers = robot.tables["drift"].to_pylist(), robot.tables["outliers"].to_pylist()
    points = tuple(dict.fromkeys(row["sentence"] for row in (*outliers, *changes)))
    sections: list[Section | None] = [
        _joints(robot.tables),
        _parameters(robot.tables),
        _drift(robot.tables, changes),
        _logs(robot.tables),
        _findings(robot.tables),
    ]
    words = (
        f"{number(about['sharper'], 2)} times smaller error bars than from its own logs"
        if (about["sharper"] or 0.0) > 1.1
        else ""
    )
    verdict = Verdict(
        "warning" if points else "good",
        "This robot is an outlier." if outliers else "It has changed." if changes else "No outlier, no change.",
        points,
    )
    return render_report(
        f"{robot.robot} ({robot.robot_type})",
        [s for s in sections if s is not None],
        verdict=verdict,
        subtitle=f"{about['logs_used']} of {about['logs']} logs used, {about['samples']:,} samples"
        + (f"; {words}" if words else ""),
    )


def _joints(tables: Tables) -> Section:
    rows = tables["joints"].to_pylist()
    for r in rows:
        r["deviation"] = r["friction"] / r["friction_mean"] - 1.0 if r["friction_mean"] else None
    cells: Cells = {"deviation": _deviation, "residual_ratio": _residual_ratio}
    words = "Friction at the usual speed, torque gain and residual of the robot's model, compared with its type."
    return Section(
        "Joints", join(paragraph(words), declared_html(TABLES["joints"], rows, cells=cells, dash="Unknown."))
    )


def _deviation(row: TableRow) -> TableCell:
    off = row["deviation"]
    return None if off is None else Heat(f"{100.0 * off:+.2g}", min(abs(off) / _FULL_AT, 1.0) * 0.6)


def _residual_ratio(row: TableRow) -> TableCell:
    ratio = row["residual_ratio"]
    return None if ratio is None else Heat(ratio, min(max(ratio - 1.2, 0.0) / _FULL_AT, 1.0) * 0.6)


def _with_error(field: TableField, row: TableRow) -> TableCell:
    value, error = row[field.name], row[field.error]
    return None if value is None or error is None else with_error(value, error)


def _parameters(tables: Tables) -> Section:
    rows = tables["parameters"].to_pylist()
    own = [r for r in rows if r["kind"] not in ("links", "gain")]
    shared = [r for r in rows if r["kind"] == "links"]
    pieces = [
        (title, figure_html(own_and_pooled([_between(r) for r in group]), title))
        for title, group in (("Own parameters", own), ("Links, shared by the type", shared))
        if group
    ]
    names = ("parameter", "joint", "unit", "own_estimate", "estimate", "mean", "possible")
    cells: Cells = {
        name: partial(_with_error, TABLES["parameters"][name]) for name in ("own_estimate", "estimate", "mean")
    }
    table_ = declared_html(
        TABLES["parameters"], rows, names, cells, caption="Base parameters and gains, ± standard error", tall=True,
        dash="Not identifiable or not applicable.",
    )  # fmt: skip
    words = (
        "Estimates from the robot's own logs, and pooled with all robots of its type. Pooling keeps well-determined "
        "values and shrinks poorly determined ones towards the mean, the more so the less robots of this type differ."
    )
    return Section("Parameters", join(paragraph(words), tabs(*pieces), table_))


def _between(row: Mapping[str, Any]) -> OwnAndPooled:
    values = [np.nan if row[n] is None else row[n] for n in ("own_estimate", "own_error", "estimate", "error", "mean")]
    return OwnAndPooled(row["parameter"], row["unit"], *values)


def _drift(tables: Tables, changes: Sequence[Mapping[str, Any]]) -> Section | None:
    days = tables["days"].to_pylist()
    if not days:
        return None
    pieces = [drift_figure(tables, changes)] if changes else []
    of: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in days:
        of.setdefault((row["what"], row["joint"]), []).append(row)
    usual = {(r["kind"], r["joint"]): r["mean"] for r in tables["parameters"].to_pylist()}
    usual |= {("friction", r["joint"]): r["friction_mean"] for r in tables["joints"].to_pylist()}
    whats = list(dict.fromkeys(what for what, _ in of))
    made = []
    for what in whats:
        curves = [
            DatedPoints(joint, f"[{own[0]['unit']}]", [d["date"].timestamp() for d in own], [d["value"] for d in own],
                  [d["error"] for d in own], level=usual.get((what, joint)))
            for (kind, joint), own in of.items() if kind == what
        ]  # fmt: skip
        made.append((what.capitalize(), figure_html(date_curves(curves, joints=True), what.capitalize())))
    words = "Daily means without the effect of warmth."
    return Section("Over time", join(paragraph(words), *pieces, tabs(*made)))


def _logs(tables: Tables) -> Section:
    logs, scores = tables["logs"].to_pylist(), tables["scores"].to_pylist()
    worst: dict[str, Mapping[str, Any]] = {}
    for row in scores:
        if (
            row["relative_error"] is not None
            and row["relative_error"] > worst.get(row["log"], row)["relative_error"] - 1e-12
        ):
            worst[row["log"]] = row
    dated = {log["log"]: log["date"].timestamp() for log in logs if log["date"] is not None}
    pieces = []
    joints = list(dict.fromkeys(row["joint"] for row in scores if row["log"] in dated))
    if joints:
        curves = []
        for joint in joints:
            own = [r for r in scores if r["joint"] == joint and r["log"] in dated and r["relative_error"] is not None]
            curves.append(
                DatedPoints(
                    joint, "[%]", [dated[r["log"]] for r in own], [100.0 * r["relative_error"] for r in own], []
                )
            )
        caption = "Residual of the robot's model, in percent of the torque's standard deviation."
        pieces.append(figure_html(date_curves(curves, "a log", joints=True), "Relative error of its logs", caption))
    shown = sorted(logs, key=lambda r: (r["used"], -worst[r["log"]]["relative_error"] if r["log"] in worst else 0.0))
    # Columns without any value are left out.
    stated = [name for name in ("load", "temperature_c", "reason") if any(r[name] is not None for r in logs)]
    for r in shown[:_MAX_ROWS]:
        row = worst.get(r["log"])
        r["largest_error"], r["joint"] = (row["relative_error"], row["joint"]) if row else (None, "")
    names = ("date", "log", "samples", "largest_error", "joint", "findings", *stated)
    listed = declared_html(
        TABLES["logs"], shown[:_MAX_ROWS], names, {"log": _file_name}, caption="Its logs, the worst first", tall=True,
        dash="Not stated or not applicable.",
    )  # fmt: skip
    more = shortened_note(len(logs), "logs", _MAX_ROWS)
    return Section("Logs", join(*pieces, listed, more))


def _file_name(row: TableRow) -> TableCell:
    return str(row["log"]).rpartition("/")[2]


def _findings(tables: Tables) -> Section | None:
    rows = tables["findings"].to_pylist()
    if not rows:
        return None
    cells: Cells = {"log": _file_name, "joint": lambda r: r["joint"] or "", "advice": lambda r: r["advice"] or ""}
    names = ("severity", "log", "joint", "message", "advice")
    made = declared_html(TABLES["findings"], rows[:_MAX_ROWS], names, cells, tall=True)
    more = shortened_note(len(rows), "findings", _MAX_ROWS)
    return Section("Findings of the check", join(made, more))


def print_robot(robot: FleetRobot, out: Console, folder: str = "") -> None:
    """Print a summary of a robot.

    Args:
        robot: The robot.
        out: Console.
        folder: Folder of its page; "" if none was written.
    """
    about = robot.tables["robots"].to_pylist()[0]
    say(out, f"{robot.robot} ({robot.robot_type}): {about['logs_used']} of {about['logs']} logs used.")
    names = ("joint", "unit", "friction", "friction_mean", "residual", "residual_ratio")
    out.print(declared_terminal("Joints", TABLES["joints"], robot.tables["joints"].to_pylist(), names))
    for sentence in dict.fromkeys(
        r["sentence"] for name in ("outliers", "drift") for r in robot.tables[name].to_pylist()
    ):
        say(out, f" · {sentence}")
    if folder:
        say(out, f"\nOpen {folder}/report.html.")
