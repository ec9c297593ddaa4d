"""The sections of a report on parameters: what the data say, what they support, and one full model that has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.assessment.score import Score
from steelyard.dynamics.model import Model
from steelyard.estimation.linear.significance import Removals
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import NO_SIGN, WHY_NO_SIGN, Known, number, percent, with_error
from steelyard.identification.identification import Identification
from steelyard.identification.score_page import effort_unit
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
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

# A table with more columns than this cannot be read; the numbers of all logs are in result.json.
_MOST_LOGS = 6
# Rows from which on a table scrolls by itself; and pairs of parameters that are named.
_TALL, _CLOSEST = 16, 8


def base_parameters_section(found: Identification) -> Section:
    """The base parameters that were `found`, with intervals, beside the free fit and the description."""
    estimate, errors = found.estimate, found.estimate.standard_errors
    before = described_base(found)
    old = np.full(found.base.rank, np.nan) if before is None else before
    no_sign, free_no_sign = (found.base.impossible_signs(x.beta) for x in (estimate, found.free))
    rows = [
        BaseEstimate(
            found.base.formulas[k],
            found.base.units[k],
            float(estimate.beta[k]),
            float(errors[k]),
            float(found.free.beta[k]),
            None if np.isnan(old[k]) else float(old[k]),
            bool(no_sign[k]),
            bool(free_no_sign[k]),
        )
        for k in range(found.base.rank)
    ]
    shift = estimate.details.get("rounding_shift")
    wider = "" if shift is None else " They include what the rounding of positions has moved (errors in variables)."
    above = (
        f"The combinations that the motion can show (identifiable, or base, parameters). Condition number "
        f"{number(found.condition_number, 3)} of their columns (rows weighted by the joints' noise, columns scaled to "
        "unit norm). Intervals are 95 %, for residuals as correlated as they are; they know of noise, not of physics "
        "that the model lacks." + wider
    )
    values = base_table(rows)
    return Section("Parameters", join(paragraph(above), tabs(("values", values), ("correlation", _correlation(found)))))


@dataclass(frozen=True)
class BaseEstimate:
    """A base parameter as a table shows it: its `formula`, `unit`, `value` and `standard_error`, the value of the free
    fit, that of the description (None: it is silent), and whether the first two have a sign that no robot has."""

    why_null: ClassVar = {"before": "The description says nothing of it."}
    formula: str
    unit: str
    value: float
    standard_error: float
    free: float
    before: float | None = None
    no_sign: bool = False
    free_no_sign: bool = False


def base_table(parameters: Sequence[BaseEstimate]) -> Html:
    """Base `parameters` with pictures of their intervals, and what those show."""
    rows: list[Sequence[TableCell]] = [
        (
            p.formula,
            p.unit,
            "" if p.no_sign else whisker(p.value, 1.96 * p.standard_error, p.before),
            NO_SIGN if p.no_sign else Known(p.value, p.standard_error),
            1.96 * p.standard_error,
            abs(p.value) / p.standard_error if p.standard_error > 0.0 and not p.no_sign else None,
            "" if abs(p.value) > 2.0 * p.standard_error else "maybe zero",
            NO_SIGN if p.free_no_sign else Known(p.free, p.standard_error),
            None if p.before is None else Known(p.before, p.standard_error),
        )
        for p in parameters
    ]
    columns: list[TableColumn | str] = ["base parameter", "unit", "on its own scale", "value"]
    columns += [TableColumn("± 95 %", digits=2), TableColumn("value / σ", digits=2), "", "free fit", "nominal"]
    pictures = "Each picture has a scale of its own: the dot is the value, the line its 95 % interval, the tick zero"
    dash = "The description says nothing of it; or the value has no error, since it was taken away."
    if all(p.before is None for p in parameters):
        columns, rows, pictures = columns[:-1], [row[:-1] for row in rows], f"{pictures}."
    else:
        pictures += (
            ", the open diamond what the robot's file says (nominal; rotors and friction in a sum count as zero there)."
        )
    below = [paragraph(WHY_NO_SIGN)] if any(p.no_sign or p.free_no_sign for p in parameters) else []
    shown = table_html(columns, rows, "Base parameters", dash=dash, tall=len(rows) > _TALL)
    return join(paragraph(pictures), shown, *below)


def _correlation(found: Identification) -> Html:
    """All pairs as a picture, and the closest ones in words."""
    names, C = found.base.names, found.estimate.covariance
    errors = found.estimate.standard_errors
    scale = np.where(errors > 0.0, errors, np.inf)
    rho = np.triu(C / np.outer(scale, scale), 1)
    closest = np.argsort(-np.abs(rho), axis=None)[:_CLOSEST]
    pairs = [(int(a), int(b)) for a, b in zip(*np.unravel_index(closest, rho.shape), strict=True)]
    rows: list[Sequence[TableCell]] = [(names[a], names[b], float(rho[a, b])) for a, b in pairs if a != b]
    below = "Blue, orange: errors of two parameters that go against or with each other; they are badly told apart."
    pieces = [figure_html(correlations(names, C), "Correlation of the parameters' errors", below)]
    if rows:
        head: list[TableColumn | str] = ["parameter", "with", TableColumn("correlation", places=3)]
        pieces.append(table_html(head, rows, "The closest pairs"))
    return join(*pieces)


def between_logs_section(found: Identification) -> Section | None:
    """Every base parameter of what was `found` in each log by itself, and which log disagrees; None: there was one."""
    told = found.agreement
    if told is None:
        return None
    shown = told.logs if len(told.logs) <= _MOST_LOGS else ()
    least = dict(zip(found.base.names, found.base.least_values.tolist(), strict=True))
    rows: list[Sequence[TableCell]] = []
    for p in sorted(told.parameters, key=lambda p: -(p.away or 0.0)):
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
        f"{told.width if told.disagreements else told.sentence} The table has the free fit to all logs and to each "
        "log by itself (± standard error). Spread is the standard deviation between logs; beside it what of that "
        "their error bars do not explain; at last the log that is farthest from the others, by how many standard "
        "errors of the difference. Of so many numbers a few are beyond 3 by chance."
    )
    more = [callout("warning", reason) for reason in told.reasons]
    dash = "The log does not show it; or fewer than two do, and there is nothing to compare."
    table = table_html(columns, rows, "Base parameters, log by log", dash)
    return Section("Log by log", join(*more, paragraph(words), table))


def described_base(found: Identification) -> Array | None:
    """The base parameters that the description of what was `found` has: NaN where it is silent; None: no inertias."""
    robot, base = found.robot, found.base
    if not robot.has_inertia:
        return None
    nominal = Model.nominal(robot)
    stated = {p.name: float(v) for p, v in zip(nominal.dynamics.parameters, nominal.theta, strict=True)}
    known = np.array([p.name in stated for p in base.parameters])
    values = base.values(np.array([stated.get(p.name, 0.0) for p in base.parameters]))
    silent = ~np.any((base.matrix != 0.0) & known, axis=1)
    return np.where(silent, np.nan, values)


def model_section(found: Identification) -> Section:
    """One full model of what was `found`: links and terms."""
    links = found.robot.inertial_count
    blocks = found.model.theta[:links].reshape(-1, 10)
    eigenvalues = smallest_pseudo_eigenvalues(found.model.theta[:links])
    rows: list[Sequence[TableCell]] = []
    for link, p, e in zip(found.robot.links, blocks, eigenvalues, strict=True):
        com = p[1:4] / p[0] if p[0] > 0.0 else np.full(3, np.nan)
        # A tenth of a micrometre is nothing.
        place = ", ".join(f"{number(0.0 if abs(x) < 1e-7 else x, 3)}" for x in com)
        rows.append((link.name, float(p[0]), place, float(p[4]), float(p[6]), float(p[9]), bool(e > 0.0)))
    moments = [TableColumn(name, "kg m²") for name in ("Ixx", "Iyy", "Izz")]
    bodies = [TableColumn("mass", "kg"), TableColumn("centre of mass", "m"), *moments]
    pieces = [
        paragraph(
            "One of the many sets of link parameters that have the base parameters above; single masses and inertias "
            "are as much the prior's as the data's."
        ),
        table_html(["link", *bodies, "possible"], rows, "Links, about their own frames"),
    ]
    if len(found.model.terms):
        pieces.append(_terms(found, links))
    return Section("The model", join(*pieces))


def _terms(found: Identification, links: int) -> Html:
    """Friction, rotors and offsets: a row per coordinate, a column per kind."""
    terms = found.model.terms
    symbols: dict[str, str] = {}
    table: dict[str, dict[str, float | str]] = {}
    k = 0
    for term, place in terms.placed:
        for column in term.columns:
            unit = terms.parameters[k].unit
            symbols[f"{column.symbol}|{unit}"] = unit
            side = "" if place.side == "joint" else f" ({place.side})"
            row = table.setdefault(f"{place.name or found.robot.joint_names[place.index]}{side}", {})
            value = float(found.model.theta[links + k])
            row[f"{column.symbol}|{unit}"] = NO_SIGN if value < column.lower - 1e-9 else value
            k += 1
    heads: list[TableColumn | str] = ["joint", *(TableColumn(s.split("|")[0], unit) for s, unit in symbols.items())]
    rows: list[Sequence[TableCell]] = [(name, *(own.get(s) for s in symbols)) for name, own in table.items()]
    return table_html(heads, rows, "Rotors, friction and other joint terms", dash="The joint has no such term.")


def reduced(found: Identification) -> Section | None:
    """What was taken away of what was `found`, why, and what that does to predictions; None if it was not asked for."""
    if found.reduced is None:
        return None
    removals: Removals = found.reduced.details["removals"]
    pieces = [callout("note", significance_sentence(found)), paragraph(_meaning(found))]
    if removals.steps:
        formulas = dict(zip(found.base.names, found.base.formulas, strict=True))
        rows: list[Sequence[TableCell]] = [
            (k, s.name, formulas[s.name], s.t, s.p) for k, s in enumerate(removals.steps, start=1)
        ]
        numbers = [TableColumn(name, digits=2) for name in "tp"]
        head: list[TableColumn | str] = ["#", "taken away", "base parameter", *numbers]
        pieces.append(table_html(head, rows, "In the order in which they went", dash="It is not defined."))
    pairs = zip(found.free_validation, found.reduced_validation, strict=True)
    pieces += [_predictions(a, b, effort_unit(found.robot)) for a, b in pairs]
    return Section("What the data support", join(*pieces))


def significance_sentence(found: Identification) -> str:
    """How many parameters of what was `found` went, what it cost, and how the rest predicts."""
    assert found.reduced is not None
    removals: Removals = found.reduced.details["removals"]
    if not removals.steps:
        return f"The data support all {found.base.rank} base parameters at the {100 * removals.level:.0f} % level."
    text = (
        f"The data do not support {len(removals.steps)} of {found.base.rank} base parameters at the "
        f"{100 * removals.level:.0f} % level (all together: F = {number(removals.F, 3)}, p = {number(removals.p, 2)}); "
        f"without them the weighted sum of squares rises by {percent(removals.cost_rise_percent)}"
    )
    if not found.reduced_validation:
        return text + "."
    both = (found.free_validation, found.reduced_validation)
    before, after = (sum(s.mean_nrmse_percent for s in scores) / len(scores) for scores in both)
    return text + f", and the error on data that was not used goes from {before:.2f} to {after:.2f} % of std."


def _meaning(found: Identification) -> str:
    kept = (
        "The least supported parameter is set to zero, the rest fitted again, until all that are left are significant; "
        "what is left looks better than it is, since it was chosen. "
    )
    if found.settings.physical:
        return kept + (
            "This is about the free fit. The delivered model is physically possible and keeps all parameters: no body "
            "has combinations of exactly zero, and what the data do not show its reference bodies decide."
        )
    return kept + "The delivered model is this reduced fit: what was taken away is zero, with zero error."


def _predictions(whole: Score, fewer: Score, unit: str) -> Html:
    rows: list[Sequence[TableCell]] = [
        (a.joint, a.rmse, b.rmse, a.nrmse_percent, b.nrmse_percent)
        for a, b in ((x.told, y.told) for x, y in zip(whole.joints, fewer.joints, strict=True))
    ]
    which = ("all", "supported")
    errors = [TableColumn(f"RMSE, {x}", unit) for x in which]
    errors += [TableColumn(f"NRMSE (of std), {x}", "%", digits=3) for x in which]
    title = f"The free fit with all and with the supported parameters: {whole.log}"
    return table_html(["joint", *errors], rows, title, dash="The torque does not vary.")
