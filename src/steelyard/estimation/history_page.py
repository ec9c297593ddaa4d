"""Shows the history of base parameters as figure, section, page and terminal table."""

from __future__ import annotations

import numpy as np
from rich.console import Console

from steelyard.estimation.history import ParameterHistory
from steelyard.ground.numbers import NO_SIGN
from steelyard.report.elements import Html, figure_html, join, paragraph
from steelyard.report.html import Section, render_report
from steelyard.report.plots.estimates import eigenvalue_histories, parameter_histories
from steelyard.report.terminal import number, table


def history_figure(history: ParameterHistory) -> Html:
    """Render a `history` with a panel per unit and a line per parameter."""
    figure = parameter_histories(
        history.names, history.units, history.at, history.beta, history.standard_errors, history.axis
    )
    return figure_html(figure, history.title)


def history_section(history: ParameterHistory) -> Section:
    """Render the section of a page for a `history`."""
    text = (
        f"{len(history.at)} steps of the estimation, over {history.axis}. The panels show the values near the end; "
        "zoom out for the rest. The numbers are in history.csv."
    )
    parts = [paragraph(text), history_figure(history)]
    if history.eigenvalues is not None:
        finite = np.all(np.isfinite(history.eigenvalues), axis=1)
        figure = eigenvalue_histories(history.at[finite], history.eigenvalues[finite], history.axis)
        note = (
            "Uncertainty according to the estimator, in its own units: an eigenvalue decreases when the motion "
            "excites its combination of parameters. One that stays large is not identifiable from this motion; one "
            "that decreases far while parameters still change means overconfidence. The numbers are in eigenvalues.csv."
        )
        parts += [figure_html(figure, "Eigenvalues of the covariance P"), paragraph(note)]
    return Section("History of the estimate", join(*parts))


def history_report(history: ParameterHistory) -> str:
    """Render the self-contained page of a `history`."""
    return render_report(history.title, [history_section(history)], subtitle=f"{len(history.names)} base parameters")


def print_history(history: ParameterHistory, console: Console, folder: str = "") -> None:
    """Print the last values of a history.

    Args:
        history: The history.
        console: The terminal.
        folder: Run folder; "": none.
    """
    errors = history.standard_errors
    rows = [
        [
            name,
            unit,
            NO_SIGN if name in history.impossible else number(float(x)),
            "" if errors is None else number(float(errors[k]), 2),
        ]
        for k, (name, unit, x) in enumerate(zip(history.names, history.units, history.beta[-1], strict=True))
    ]
    console.print(table(history.title, ["parameter", "unit", "value", "standard error"], rows, ("value",)))
    if folder:
        console.print(f"See {folder}/report.html.")
