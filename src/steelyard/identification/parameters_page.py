"""Report sections on parameters: base parameters, log agreement, significance and one full model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from steelyard.assessment.score import Score
from steelyard.dynamics.model import Model
from steelyard.estimation.linear.significance import Removals
from steelyard.ground.arrays import Array
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.numbers import NO_SIGN, WHY_NO_SIGN, Known, number, percent, with_error
from steelyard.ground.result_tables import TableRow
from steelyard.identification.identification import Identification
from steelyard.identification.parameter_table import BASE_PARAMETERS, base_rows
from steelyard.identification.score_page import effort_unit
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.report.declared_tables import Cells, declared_html
from steelyard.report.elements import (
    Html,
    TableCell,
    TableColumn,
    callout,
    figure_html,
    join,
    paragraph,
    table_html,
    tabs,
    whisker,
)
from steelyard.report.html import Section
from steelyard.report.plots.estimates import correlations

# Maximum number of columns for single logs; result.json has all logs.
_MOST_LOGS = 6
# Smallest number of rows of a scrolling table, and number of parameter pairs in the correlation table.
_TALL, _CLOSEST = 16, 8


def base_parameters_section(result: Identification) -> Section:
    """Build the section on the base parameters of `result`: intervals, free fit and nominal values."""
    estimate, before, rows = result.estimate, described_base(result), base_rows(result)
    for row, nominal in zip(rows, [None] * len(rows) if before is None else before.tolist(), strict=True):
        row["nominal"] = None if nominal is None or math.isnan(nominal) else nominal
    shift = estimate.details.get("rounding_shift")
    wider = "" if shift is None else " They include the bias due to the rounding of positions (errors in variables)."
    above = (
        "Base parameters are the identifiable combinations of parameters. Condition number of their columns: "
        f"{number(result.condition_number, 3)} (rows weighted by the noise of the joints, columns scaled to unit "
        "norm). "
        "The 95 % intervals allow for correlated residuals. They do not cover physics that the model lacks." + wider
    )
    values = base_table(rows)
    return Section(
        "Parameters", join(paragraph(above), tabs(("values", values), ("correlation", _correlation(result))))
    )


def base_table(rows: Sequence[TableRow]) -> Html:
    """Build a table of base parameters with pictures of their intervals, from `rows` of `BASE_PARAMETERS`."""
    shown = [_for_display(row) for row in rows]
    names = [f.name for f in BASE_PARAMETERS.fields if f.head]
    cells: Cells = {
        "interval": lambda r: "" if r["impossible_sign"] else whisker(r["value"], r["half_width"], r["nominal"]),
        "value": lambda r: NO_SIGN if r["impossible_sign"] else Known(r["value"], r["standard_error"]),
        "free_value": lambda r: NO_SIGN if r["free_impossible_sign"] else Known(r["free_value"], r["standard_error"]),
    }
    pictures = "Each interval has its own scale: the dot is the value, the line the 95 % interval, the tick zero"
    dash = "The robot description does not state it, or the parameter was removed, without an error."
    if all(row["nominal"] is None for row in shown):
        names, pictures = [name for name in names if name != "nominal"], f"{pictures}."
    else:
        pictures += (
            ", the open diamond the nominal value of the robot file (rotors and friction in a sum count as zero there)."
        )
    no_sign = any(row["impossible_sign"] or row["free_impossible_sign"] for row in shown)
    below = [paragraph(WHY_NO_SIGN)] if no_sign else []
    tall = len(rows) > _TALL
    made = declared_html(BASE_PARAMETERS, shown, names, cells, caption="Base parameters", dash=dash, tall=tall)
    return join(paragraph(pictures), made, *below)


def _for_display(row: TableRow) -> TableRow:
    """Add what only the page shows; a null of a file is NaN."""
    names = ("value", "standard_error", "free_value")
    value, error, free = (math.nan if row[name] is None else float(row[name]) for name in names)
    known = error > 0.0 and not row["impossible_sign"]
    return {
        "nominal": None, **row, "value": value, "standard_error": error, "free_value": free,
        "half_width": HALF_WIDTH_95 * error, "certainty": abs(value) / error if known else None,
        "doubt": "" if abs(value) > 2.0 * error else "maybe zero",
    }  # fmt: skip


def _correlation(result: Identification) -> Html:
    """Draw all correlations and list the strongest."""
    names, C = result.base.names, result.estimate.covariance
    errors = result.estimate.standard_errors
    scale = np.where(errors > 0.0, errors, np.inf)
    rho = np.triu(C / np.outer(scale, scale), 1)
    closest = np.argsort(-np.abs(rho), axis=None)[:_CLOSEST]
    pairs = [(int(a), int(b)) for a, b in zip(*np.unravel_index(closest, rho.shape), strict=True)]
    rows: list[Sequence[TableCell]] = [(names[a], names[b], float(rho[a, b])) for a, b in pairs if a != b]
    below = "Blue: negative; orange: positive. Strongly correlated parameters are hard to separate with this motion."
    pieces = [figure_html(correlations(names, C), "Correlation of the parameters' errors", below)]
    if rows:
        head: list[TableColumn | str] = ["parameter", "with", TableColumn("correlation", places=3)]
        pieces.append(table_html(head, rows, "Strongest correlations"))
    return join(*pieces)


def between_logs_section(result: Identification) -> Section | None:
    """Build the table of base parameters of `result` by log, and name logs that disagree; None for a single log."""
    agreement = result.agreement
    if agreement is None:
        return None
    shown = agreement.logs if len(agreement.logs) <= _MOST_LOGS else ()
    least = dict(zip(result.base.names, result.base.least_values.tolist(), strict=True))
    rows: list[Sequence[TableCell]] = []
    for p in sorted(agreement.parameters, key=lambda p: -(p.away or 0.0)):
        low = least.get(p.name, -np.inf)
        each = [
            "–" if v is None or e is None else NO_SIGN if v < low else with_error(v, e)
            for v, e in zip(p.values, p.standard_errors, strict=True)
        ]
        pooled = NO_SIGN if p.value < low else with_error(p.value, p.standard_error)
        rows.append((p.name, p.unit, pooled, *each[: len(shown)], p.between_std, p.excess_std, p.worst, p.away))
    columns: list[TableColumn | str] = ["parameter", "unit", "all logs", *shown, TableColumn("spread", digits=2)]
    columns += [TableColumn("beyond error bars", digits=2), "farthest", TableColumn("standard errors", places=1)]
    words = (
        f"{agreement.width if agreement.disagreements else agreement.sentence} The table shows the free fit to all "
        "logs and to each log alone (± standard error). Spread: standard deviation between logs. Beyond error bars: "
        "the part of the spread that the standard errors do not explain. Farthest: the log with the largest "
        "difference from the others, in standard errors of the difference. A few differences above 3 are expected by "
        "chance."
    )
    more = [callout("warning", reason) for reason in agreement.reasons]
    dash = "Not identifiable from this log, or from fewer than two logs."
    table = table_html(columns, rows, "Base parameters, log by log", dash)
    return Section("Log by log", join(*more, paragraph(words), table))


def described_base(result: Identification) -> Array | None:
    """Compute the base parameters of the robot description of `result`.

    A parameter that the description does not state is NaN. A description without inertias gives None.
    """
    robot, base = result.robot, result.base
    if not robot.has_inertia:
        return None
    nominal = Model.nominal(robot)
    stated = {p.name: float(v) for p, v in zip(nominal.dynamics.parameters, nominal.theta, strict=True)}
    known = np.array([p.name in stated for p in base.parameters])
    values = base.values(np.array([stated.get(p.name, 0.0) for p in base.parameters]))
    unstated = ~np.any((base.matrix != 0.0) & known, axis=1)
    return np.where(unstated, np.nan, values)


def model_section(result: Identification) -> Section:
    """Build the section on one full model of `result`: links and terms."""
    links = result.robot.inertial_count
    blocks = result.model.theta[:links].reshape(-1, 10)
    eigenvalues = smallest_pseudo_eigenvalues(result.model.theta[:links])
    rows: list[Sequence[TableCell]] = []
    for link, p, e in zip(result.robot.links, blocks, eigenvalues, strict=True):
        com = p[1:4] / p[0] if p[0] > 0.0 else np.full(3, np.nan)
        # Values below a tenth of a micrometre are shown as 0.
        centre = ", ".join(f"{number(0.0 if abs(x) < 1e-7 else x, 3)}" for x in com)
        rows.append((link.name, float(p[0]), centre, float(p[4]), float(p[6]), float(p[9]), bool(e > 0.0)))
    moments = [TableColumn(name, "kg m²") for name in ("Ixx", "Iyy", "Izz")]
    bodies = [TableColumn("mass", "kg"), TableColumn("centre of mass", "m"), *moments]
    pieces = [
        paragraph(
            "Many sets of link parameters have the base parameters above. This is one of them: single masses and "
            "inertias depend on the prior as much as on the data."
        ),
        table_html(["link", *bodies, "possible"], rows, "Links, in their own frames"),
    ]
    if len(result.model.terms):
        pieces.append(_terms(result, links))
    return Section("The model", join(*pieces))


def _terms(result: Identification, links: int) -> Html:
    """Build the table of friction, rotors and offsets: a row per coordinate, a column per kind."""
    terms = result.model.terms
    symbols: dict[str, str] = {}
    table: dict[str, dict[str, float | str]] = {}
    k = 0
    for term, place in terms.with_coordinates:
        for column in term.columns:
            unit = terms.parameters[k].unit
            symbols[f"{column.symbol}|{unit}"] = unit
            side = "" if place.side == "joint" else f" ({place.side})"
            row = table.setdefault(f"{place.name or result.robot.joint_names[place.index]}{side}", {})
            value = float(result.model.theta[links + k])
            row[f"{column.symbol}|{unit}"] = NO_SIGN if value < column.lower - 1e-9 else value
            k += 1
    heads: list[TableColumn | str] = ["joint", *(TableColumn(s.split("|")[0], unit) for s, unit in symbols.items())]
    rows: list[Sequence[TableCell]] = [(name, *(own.get(s) for s in symbols)) for name, own in table.items()]
    return table_html(heads, rows, "Rotors, friction and other joint terms", dash="The joint has no such term.")


def significance_section(result: Identification) -> Section | None:
    """Build the section on removed parameters of `result` and the effect on predictions; None without --significant."""
    if result.reduced is None:
        return None
    removals: Removals = result.reduced.details["removals"]
    pieces = [callout("note", significance_sentence(result)), paragraph(_meaning(result))]
    if removals.steps:
        formulas = dict(zip(result.base.names, result.base.formulas, strict=True))
        rows: list[Sequence[TableCell]] = [
            (k, s.name, formulas[s.name], s.t, s.p) for k, s in enumerate(removals.steps, start=1)
        ]
        numbers = [TableColumn(name, digits=2) for name in "tp"]
        head: list[TableColumn | str] = ["#", "removed", "base parameter", *numbers]
        pieces.append(table_html(head, rows, "Removed parameters, in order", dash="It is not defined."))
    pairs = zip(result.free_validation, result.reduced_validation, strict=True)
    pieces += [_predictions(a, b, effort_unit(result.robot)) for a, b in pairs]
    return Section("Significance", join(*pieces))


def significance_sentence(result: Identification) -> str:
    """State how many parameters of `result` were removed, the cost, and the effect on predictions."""
    assert result.reduced is not None
    removals: Removals = result.reduced.details["removals"]
    if not removals.steps:
        return f"All {result.base.rank} base parameters are significant at the {100 * removals.level:.0f} % level."
    text = (
        f"{len(removals.steps)} of {result.base.rank} base parameters are not significant at the "
        f"{100 * removals.level:.0f} % level (joint test: F = {number(removals.F, 3)}, p = {number(removals.p, 2)}). "
        f"Without them the weighted sum of squares rises by {percent(removals.cost_rise_percent)}"
    )
    if not result.reduced_validation:
        return text + "."
    both = (result.free_validation, result.reduced_validation)
    before, after = (sum(s.mean_nrmse_percent for s in scores) / len(scores) for scores in both)
    return (
        text + f", and the error on hold-out data changes from {before:.2f} to {after:.2f} % of the standard deviation."
    )


def _meaning(result: Identification) -> str:
    procedure = (
        "The least significant parameter is set to zero and the others are fitted again, until all are significant. "
        "This selection makes the remaining parameters look more certain than they are. "
    )
    if result.settings.physical:
        return procedure + (
            "It applies to the free fit only. The delivered model is physically possible and has all parameters, "
            "since a real body has no parameter combination of exactly zero. The prior determines those that the data "
            "do not."
        )
    return procedure + "The delivered model is this reduced fit: removed parameters are zero, with zero error."


def _predictions(whole: Score, fewer: Score, unit: str) -> Html:
    rows: list[Sequence[TableCell]] = [
        (a.joint, a.rmse, b.rmse, a.nrmse_percent, b.nrmse_percent)
        for a, b in ((x.for_display, y.for_display) for x, y in zip(whole.joints, fewer.joints, strict=True))
    ]
    sets = ("all", "significant")
    errors = [TableColumn(f"RMSE, {x}", unit) for x in sets]
    errors += [TableColumn(f"NRMSE (of std), {x}", "%", digits=3) for x in sets]
    title = f"Free fit with all and with the significant parameters: {whole.log}"
    return table_html(["joint", *errors], rows, title, dash="The torque is constant.")
