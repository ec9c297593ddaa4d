"""The history of base parameters as a figure, as a section of a page, as a page of its own, and for the terminal."""

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
    """A panel per unit and a line per parameter of the `history`."""
    figure = parameter_histories(
        history.names, history.units, history.at, history.beta, history.standard_errors, history.axis
    )
    return figure_html(figure, history.title)


def history_section(history: ParameterHistory) -> Section:
    """The `history` as part of another page."""
    words = (
        f"{len(history.at)} moments of the way, over {history.axis}. Panels show the neighbourhood of the end; zoom "
        "out for the rest. The numbers are in history.csv."
    )
    parts = [paragraph(words), history_figure(history)]
    if history.eigenvalues is not None:
        told = np.all(np.isfinite(history.eigenvalues), axis=1)
        figure = eigenvalue_histories(history.at[told], history.eigenvalues[told], history.axis)
        note = (
            "What the estimator believes to know, in its own units: each eigenvalue falls as the motion shows its "
            "combination of parameters. One that stays large is a combination that the motion does not show; one that "
            "falls far while parameters still wander is overconfidence. The numbers are in eigenvalues.csv."
        )
        parts += [figure_html(figure, "Eigenvalues of the covariance P"), paragraph(note)]
    return Section("How the estimate came about", join(*parts))


def history_report(history: ParameterHistory) -> str:
    """The page of a `history`, self-contained."""
    return render_report(history.title, [history_section(history)], subtitle=f"{len(history.names)} base parameters")


def print_history(history: ParameterHistory, console: Console, folder: str = "") -> None:
    """The last values of the `history`, to `console`, and the run's `folder`, if there is one."""
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
        console.print(f"Look at {folder}/report.html.")
