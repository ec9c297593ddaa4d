"""The section of a report on base parameters that the data do not support."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.assessment.score import Score
from steelyard.estimation.linear.significance import Removals
from steelyard.identification.identification import Identification
from steelyard.report.efforts import effort_unit
from steelyard.report.elements import Cell, Column, Html, callout, join, paragraph, table_html
from steelyard.report.html import Section


def reduced(found: Identification) -> Section | None:
    """What was taken away and why, and what that does to the predictions; None if it was not asked for."""
    if found.reduced is None:
        return None
    removals: Removals = found.reduced.details["removals"]
    pieces = [callout("note", significance_sentence(found)), paragraph(_meaning(found))]
    if removals.steps:
        formulas = dict(zip(found.base.names, found.base.formulas, strict=True))
        rows: list[Sequence[Cell]] = [
            (k, s.name, formulas[s.name], s.t, s.p) for k, s in enumerate(removals.steps, start=1)
        ]
        columns: list[Column | str] = [
            "#",
            "taken away",
            "base parameter",
            Column("t", places=2),
            Column("p", places=2),
        ]
        pieces.append(table_html(columns, rows, "In the order in which they went"))
    pairs = zip(found.free_validation, found.reduced_validation, strict=True)
    pieces += [_predictions(a, b, effort_unit(found.robot)) for a, b in pairs]
    return Section("What the data support", join(*pieces))


def significance_sentence(found: Identification) -> str:
    """How many went, what it cost, and how the rest predicts."""
    assert found.reduced is not None
    removals: Removals = found.reduced.details["removals"]
    if not removals.steps:
        return f"The data support all {found.base.rank} base parameters at the {100 * removals.level:.0f} % level."
    text = (
        f"The data do not support {len(removals.steps)} of {found.base.rank} base parameters at the "
        f"{100 * removals.level:.0f} % level (all together: F = {removals.F:.2f}, p = {removals.p:.2g}); without them "
        f"the weighted sum of squares rises by {removals.cost_rise_percent:.2g} %"
    )
    if not found.reduced_validation:
        return text + "."
    before, after = (_mean(scores) for scores in (found.free_validation, found.reduced_validation))
    return text + f", and the error on data that was not used goes from {before:.2f} to {after:.2f} % of std."


def _mean(scores: Sequence[Score]) -> float:
    return sum(s.mean_nrmse_percent for s in scores) / len(scores)


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
    rows: list[Sequence[Cell]] = [
        (a.joint, a.rmse, b.rmse, a.nrmse_percent, b.nrmse_percent)
        for a, b in zip(whole.joints, fewer.joints, strict=True)
    ]
    columns: list[Column | str] = [
        "joint",
        Column("RMSE, all", unit),
        Column("RMSE, supported", unit),
        Column("of std, all", "%", places=1),
        Column("of std, supported", "%", places=1),
    ]
    return table_html(columns, rows, f"The free fit with all and with the supported parameters: {whole.log}")
