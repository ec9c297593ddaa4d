"""The sections of a report on parameters: what the data say, what they support, and one full model that has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.assessment.score import Score
from steelyard.dynamics.model import Model
from steelyard.estimation.linear.significance import Removals
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import Known, number, percent, with_error
from steelyard.identification.identification import Identification
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.report.elements import Html, TableCell, TableColumn, callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section
from steelyard.report.plots.estimates import parameter_intervals
from steelyard.robot.robot import Robot

# A table with more columns than this cannot be read; the numbers of all logs are in result.json.
_MOST_LOGS = 6


def base_parameters_section(found: Identification) -> Section:
    """The base parameters that were `found`, with intervals, beside the free fit and the description."""
    estimate, errors = found.estimate, found.estimate.standard_errors
    before = _described(found)
    figure = parameter_intervals(found.base.names, found.base.units, estimate.beta, errors, before)
    rows: list[Sequence[TableCell]] = [
        (
            found.base.formulas[k],
            found.base.units[k],
            Known(float(estimate.beta[k]), float(errors[k])),
            float(errors[k]),
            " … ".join(str(Known(estimate.beta[k] + side * errors[k], errors[k])) for side in (-1.96, 1.96)),
            "" if abs(estimate.beta[k]) > 2.0 * errors[k] else "maybe zero",
            Known(float(found.free.beta[k]), float(errors[k])),
            None if before is None or np.isnan(before[k]) else Known(float(before[k]), float(errors[k])),
        )
        for k in range(found.base.rank)
    ]
    columns: list[TableColumn | str] = ["base parameter", "unit", "value", TableColumn("standard error", digits=2)]
    columns += ["95 % interval", "", "free fit", "description"]
    shift = estimate.details.get("rounding_shift")
    wider = "" if shift is None else " They include what the rounding of positions has moved (errors in variables)."
    return Section(
        "Parameters",
        join(
            paragraph(
                f"Condition number {number(found.condition_number, 3)} of the base columns (rows weighted by the "
                "joints' noise, columns scaled to unit norm). Intervals are 95 %, for residuals as correlated as "
                "they are; they know of noise, not of physics that the model lacks." + wider
            ),
            figure_html(figure, "Base parameters: before (description) and after, with 95 % intervals"),
            table_html(columns, rows, "Base parameters", dash="The description says nothing of it."),
            paragraph("Description: what the robot's file says (rotors and friction in a sum count as zero there)."),
        ),
    )


def between_logs_section(found: Identification) -> Section | None:
    """Every base parameter of what was `found` in each log by itself, and which log disagrees; None: there was one."""
    told = found.agreement
    if told is None:
        return None
    shown = told.logs if len(told.logs) <= _MOST_LOGS else ()
    rows: list[Sequence[TableCell]] = []
    for p in sorted(told.parameters, key=lambda p: -(p.away or 0.0)):
        each = [
            "–" if v is None or e is None else with_error(v, e)
            for v, e in zip(p.values, p.standard_errors, strict=True)
        ]
        pooled = with_error(p.value, p.standard_error)
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


def _described(found: Identification) -> Array | None:
    """The base parameters of the description; NaN where it is silent, None if it has no inertias at all."""
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
    table: dict[str, dict[str, float]] = {}
    k = 0
    for term, place in terms.placed:
        for column in term.columns:
            unit = terms.parameters[k].unit
            symbols[f"{column.symbol}|{unit}"] = unit
            side = "" if place.side == "joint" else f" ({place.side})"
            row = table.setdefault(f"{place.name or found.robot.joint_names[place.index]}{side}", {})
            row[f"{column.symbol}|{unit}"] = float(found.model.theta[links + k])
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
    errors += [TableColumn(f"of std, {x}", "%", digits=3) for x in which]
    title = f"The free fit with all and with the supported parameters: {whole.log}"
    return table_html(["joint", *errors], rows, title, dash="The torque does not vary.")


def effort_units(robot: Robot) -> list[str]:
    """One per joint of `robot` whose torque is used: N m for those that turn, N for those that slide."""
    return [j.effort_unit for j, used in zip(robot.joints, robot.torque_used, strict=True) if used]


def effort_unit(robot: Robot) -> str:
    """For the head of a column that holds all joints of `robot`."""
    return ", ".join(dict.fromkeys(effort_units(robot)))
