"""Shows local models on the terminal and as a page: regions in space, errors of motions, torques with bands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from rich.console import Console

from steelyard.excitation.page import fitness_figure
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import Known, number, percent, with_interval
from steelyard.local.bank import Bank, LocalModel
from steelyard.local.motions import sample_times
from steelyard.local.recalibrate import ModelDrift
from steelyard.local.region import CartesianRegion
from steelyard.local.regions import overlap
from steelyard.local.run_folders import RegionMotions
from steelyard.local.validate_bank import BANK, BankValidation, Example
from steelyard.report.elements import (
    Html,
    TableCell,
    TableColumn,
    callout,
    figure_html,
    join,
    paragraph,
    parameter_table,
    side_by_side,
    table_html,
)
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.figure import GREY, MEASURED, PREDICTED, SERIES, Figure, Words
from steelyard.report.plots.series import decimate, share
from steelyard.report.terminal import say, table
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot


def _regions_in_space(robot: Robot, models: Sequence[LocalModel]) -> Figure:
    """Boxes with the path of the point and the arm in one posture each; regions of joints show the path only."""
    figure = Figure(560, flat=False)
    for k, local in enumerate(models):
        colour, region = SERIES[k % len(SERIES)], local.region
        tip = region if isinstance(region, CartesianRegion) else CartesianRegion("tip", np.zeros(3), np.ones(3))
        named: Words = {"legendgroup": local.name, "line": {"color": colour, "width": 3}, "mode": "lines"}
        if isinstance(region, CartesianRegion):
            x, y, z = _edges(region.lower, region.upper)
            figure.add("scatter3d", x=x, y=y, z=z, name=f"region {local.name}", hoverinfo="name", **named)
        if local.motion is None:
            continue
        q = local.motion.sample(sample_times(local.motion)[::5])[0]
        x, y, z = tip.coordinates(robot, q).T
        in_legend = not isinstance(region, CartesianRegion)
        path_style = {**named, "line": {"color": colour, "width": 1.5}}
        figure.add(
            "scatter3d",
            x=x,
            y=y,
            z=z,
            name=f"motion in {local.name}",
            showlegend=in_legend,
            hoverinfo="name",
            **path_style,
        )
        arm = np.vstack([np.zeros(3), link_poses(robot, q[0])[1], tip.coordinates(robot, q[:1])])
        x, y, z = arm.T
        arm_style = {**named, "line": {"color": GREY, "width": 5}}
        figure.add("scatter3d", x=x, y=y, z=z, name="arm", showlegend=False, hoverinfo="skip", **arm_style)
    axes = {f"{a}axis": {"title": {"text": f"{a} [m]"}, "backgroundcolor": "rgba(0,0,0,0)"} for a in "xyz"}
    figure.layout |= {"scene": {**axes, "aspectmode": "data"}, "margin": {"l": 0, "r": 0, "t": 48, "b": 0}}
    return figure


def _edges(lower: Array, upper: Array) -> tuple[list[float | None], ...]:
    """The twelve edges of a box as one broken line."""
    corners = list(product((0, 1), repeat=3))
    out: tuple[list[float | None], ...] = ([], [], [])
    for a, b in product(corners, corners):
        if a < b and sum(i != j for i, j in zip(a, b, strict=True)) == 1:
            for axis in range(3):
                ends = [(lower, upper)[corner[axis]][axis] for corner in (a, b)]
                out[axis].extend([float(ends[0]), float(ends[1]), None])
    return out


def _error_distributions(validation: BankValidation) -> Figure:
    """Box plots per region: errors in percent of nominal torque by joint, for the own model and the global ones."""
    figure = Figure.panels([f"region {r.region}" for r in validation.regions], height=260)
    joints = list(validation.robot.joint_names)
    for row, r in enumerate(validation.regions, start=1):
        for k, model in enumerate((r.region, *validation.others)):
            values = validation.percent(model, r.region)
            name = "own model" if model == r.region else model
            figure.add(
                "box",
                row,
                x=np.repeat(joints, len(values)),
                y=values.T.ravel(),
                name=name,
                offsetgroup=name,
                marker={"color": SERIES[k % len(SERIES)]},
                line={"width": 1.2},
                boxpoints="outliers",
            )
        figure.y_axis(row, "error [% of nominal]", rangemode="tozero")
    figure.layout["boxmode"] = "group"
    return figure


def _torque_band(example: Example, joints: Sequence[str], unit: Sequence[str], measured: str = "measured") -> Figure:
    """Measured and predicted torque with the ±σ band about the prediction."""
    figure = Figure.panels(list(joints))
    most = share(4 * len(joints))
    for k in range(len(joints)):
        keep = decimate(example.measured[:, k], most)
        t = example.t[keep]
        low, high = (example.predicted[keep, k] + s * example.band[keep, k] for s in (-1.0, 1.0))
        edge = {"hoverinfo": "skip", "legendgroup": "band"}
        figure.line(k + 1, t, low, None, PREDICTED, 0, showlegend=False, **edge)
        figure.line(k + 1, t, high, "±σ band", PREDICTED, 0, fill="tonexty", fillcolor="rgba(213,94,0,0.22)", **edge)
        figure.line(k + 1, t, example.measured[keep, k], measured, MEASURED, 1.0)
        figure.line(k + 1, t, example.predicted[keep, k], "predicted", PREDICTED, 1.4)
        figure.y_axis(k + 1, f"torque [{unit[k]}]")
    figure.x_axis(len(joints), "time [s]")
    return figure


def print_bank(bank: Bank, out: Console, folder: str = "") -> None:
    """Print a bank.

    Args:
        bank: The bank.
        out: The terminal.
        folder: Folder of the bank; "": none.
    """
    columns = ["region", "box of", "seconds of log", "inside [%]", "possible"]
    rows = [
        [x.name, x.region.kind, number(x.seconds, 3), number(100.0 * x.inside, 3), _yes(x.possible)]
        for x in bank.models
    ]
    out.print(table(f"Local models of {bank.robot.name}", columns, rows, right=columns[2:4]))
    if folder:
        say(out, f"Written to {folder}: result.json, report.html, a folder per region")


def print_validation(validation: BankValidation, out: Console, folder: str = "") -> None:
    """Print the errors of a bank.

    Args:
        validation: Errors of the bank.
        out: The terminal.
        folder: Folder of the result; "": none.
    """
    columns = ["model", *(f"in {r.region}" for r in validation.regions)]
    rows = [[m, *(number(x, 3) for x in row)] for m, row in zip(validation.models, validation.table(), strict=True)]
    title = "Torque error, mean over motions and joints, in percent of nominal torque"
    out.print(table(title, columns, rows, right=columns[1:]))
    for sentence in _against_sentences(validation):
        say(out, f" • {sentence}")
    if folder:
        say(out, f"Written to {folder}: result.json, report.html")


def print_drift(change: ModelDrift, out: Console, folder: str = "") -> None:
    """Print the drift of a region.

    Args:
        change: Drift of the region.
        out: The terminal.
        folder: Folder of the bank; "": none.
    """
    columns = ["joint", "change of torque", "without drift", "[% of nominal]", "p", "drift"]
    rows = [
        [j.joint, number(j.change, 3), number(j.by_noise, 3), number(j.percent_of_nominal, 2), number(j.p, 2),
         _yes(j.significant)]
        for j in change.joints
    ]  # fmt: skip
    out.print(table(f"Region {change.region}, recalibrated", columns, rows, right=columns[1:5]))
    say(out, _drift_sentence(change))
    if folder:
        say(out, f"Written to {folder}: the bank with the new model, result.json, report.html")


_WITHOUT_DRIFT = "noise and another motion explain"


def _drift_sentence(change: ModelDrift) -> str:
    """One sentence on the drift."""
    if not change.significant:
        return f"Region '{change.region}' is unchanged: no joint's torque changed by more than {_WITHOUT_DRIFT}."
    joints = ", ".join(j.joint for j in change.joints if j.significant)
    parameters = ", ".join(p.name for p in change.parameters if p.significant)
    which = f" Changed parameters: {parameters}." if parameters else " No single parameter changed significantly."
    return f"Region '{change.region}' has drifted: the torque of {joints} changed by more than {_WITHOUT_DRIFT}.{which}"


def _against_sentences(validation: BankValidation) -> list[str]:
    """Sentences that compare local models with the global ones."""
    out = []
    for other in validation.others:
        for region, figures in validation.against(other).items():
            word = "smaller" if figures["ratio"] < 1.0 else "larger"
            out.append(
                f"In {region} the error of the local model is {abs(100.0 * (1.0 - figures['ratio'])):.0f} % {word} "
                f"than that of the model '{other}' (it is better in {100.0 * figures['wins']:.0f} % of the motions, "
                f"p = {number(figures['p'], 2)})."
            )
    return out


def motions_report(designed: RegionMotions) -> str:
    """Render the page of designed motions: the fitness of each region's genetic search.

    Args:
        designed: The motions.
    """
    sections = []
    for name, fitness in designed.fitness.items():
        first, last = fitness.generations[0], fitness.generations[-1]
        text = (
            f"{fitness.label}: {number(last.best)} after {len(fitness.generations)} generations and {last.evaluations} "
            f"evaluations; the best of the first generation had {number(first.best)}. {last.feasible} of the last "
            f"{last.individuals} individuals satisfy all limits."
        )
        figure = figure_html(
            fitness_figure(fitness), "Fitness by generation", f"The numbers are in {name}-fitness.csv."
        )
        sections.append(Section(f"Region {name}", join(paragraph(text), figure)))
    return render_report(f"{designed.robot.name}: motions of regions", sections)


def bank_report(bank: Bank, validation: BankValidation | None = None, drift: ModelDrift | None = None) -> str:
    """Render the self-contained page of a bank.

    Args:
        bank: The bank.
        validation: Errors of the bank.
        drift: Drift of a region.
    """
    sections = [Section("Regions", _regions(bank))]
    if drift is not None:
        sections.insert(0, Section(f"Drift of region {drift.region}", _drift(drift)))
    if validation is not None:
        sections += [
            Section("Errors", _errors(validation)),
            Section("Transfer between regions", _transfer(validation)),
            *(_bands(validation, k) for k in range(len(validation.regions))),
        ]
    sections.append(Section("Parameters", _parameters(bank)))
    return render_report(f"{bank.robot.name}: local models", sections, verdict=_verdict(bank, validation, drift))


def _verdict(bank: Bank, validation: BankValidation | None, drift: ModelDrift | None) -> Verdict:
    if drift is not None:
        return Verdict("warning" if drift.significant else "good", _drift_sentence(drift))
    possible = "All models are physically possible." if bank.possible else "Not all models are physically possible."
    if validation is None:
        return Verdict("note", f"{len(bank.models)} local models; they have not been validated yet.", (possible,))
    errors = [float(validation.percent(r.region, r.region).mean()) for r in validation.regions]
    best = (
        "less than those of any other model"
        if _diagonal_best(validation)
        else "but another model is better in some region"
    )
    span = f"{number(min(errors), 2)}–{percent(max(errors))}"
    head = f"The errors of the local models in their own regions are {span} of nominal torque, {best}."
    return Verdict("good" if _diagonal_best(validation) else "note", head, (possible, *_against_sentences(validation)))


def _diagonal_best(validation: BankValidation) -> bool:
    keep = [k for k, m in enumerate(validation.models) if m != BANK]
    values = validation.table()[keep]
    return all(int(np.argmin(values[:, k])) == k for k in range(len(validation.regions)))


def _regions(bank: Bank) -> Html:
    rows: list[list[TableCell]] = [
        [x.name, x.region.kind, ", ".join(number(v, 3) for v in x.region.lower),
         ", ".join(number(v, 3) for v in x.region.upper), x.seconds, 100.0 * x.inside, x.possible]
        for x in bank.models
    ]  # fmt: skip
    head: list[TableColumn | str] = ["region", "box of", "lower corner", "upper corner",
            TableColumn("log", "s", digits=3), TableColumn("inside", "%", digits=3), "possible"]  # fmt: skip
    pairs = [
        f"{a.name} and {b.name}: {100.0 * share:.0f} %"
        for k, a in enumerate(bank.models)
        for b in bank.models[k + 1 :]
        if (share := overlap(bank.robot, a.region, b.region)) > 0.0
    ]
    shared = f"Regions that overlap (share of the smaller): {'; '.join(pairs)}." if pairs else "No regions overlap."
    return join(
        table_html(head, rows),
        paragraph(f"{shared} Models are blended over ±{bank.blend:g} m (rad) about the borders."),
        figure_html(_regions_in_space(bank.robot, bank.models), "Regions, and the motions played in them"),
    )


def _errors(validation: BankValidation) -> Html:
    rows: list[list[TableCell]] = []
    for r in validation.regions:
        for k, joint in enumerate(validation.robot.joint_names):
            rmse, printed = r.rmse(r.region)[:, k], r.printed(r.region)[:, k]
            percent = validation.percent(r.region, r.region)[:, k]
            band = 100.0 * float(r.covered[:, k].mean())
            rows.append([r.region, joint, rmse.mean(), printed.mean(), percent.mean(), percent.max(), band])
    head: list[TableColumn | str] = [
        "region", "joint", TableColumn("RMSE", "N m, N", digits=3), TableColumn("as printed", "N m, N", digits=3),
            TableColumn("mean", "% of nominal", digits=3), TableColumn("worst", "% of nominal", digits=3),
            TableColumn("within ±σ", "%", digits=3),
    ]  # fmt: skip
    count = max(len(r.samples) for r in validation.regions)
    return join(
        figure_html(
            _error_distributions(validation),
            "Errors of all motions",
            f"Root mean square of the torque error of each of {count} motions per region, in percent of the joint's "
            "nominal torque. Measured and predicted torque went through the same filter.",
        ),
        table_html(head, rows, "Own models in their own regions"),
        paragraph(
            "“As printed” is ‖e‖₂/S, as Pedrocchi et al. 2013 print their error: √S smaller than the RMSE, ‖e‖₂/√S, "
            "and decreasing with the length of the log. It is shown for comparison only."
        ),
    )


def _transfer(validation: BankValidation) -> Html:
    columns = [TableColumn(f"in {r.region}", "%", digits=3) for r in validation.regions]
    head: list[TableColumn | str] = ["model", *columns]
    table = zip(validation.models, validation.table(), strict=True)
    rows: list[list[TableCell]] = [[m, *map(float, row)] for m, row in table]
    notes = [callout("note", sentence) for sentence in _against_sentences(validation)]
    title = "Mean torque error in percent of nominal torque, one model per row, one region per column"
    return join(table_html(head, rows, title), *notes)


def _bands(validation: BankValidation, k: int) -> Section:
    r = validation.regions[k]
    units = [j.effort_unit for j in validation.robot.joints]
    names, e = validation.robot.joint_names, r.example
    torque = figure_html(_torque_band(e, names, units), f"The first motion in region {r.region}")
    error = figure_html(
        _torque_band(Example(e.t, e.measured - e.predicted, 0.0 * e.predicted, e.band), names, units, "error"),
        "Measured less predicted",
        "The band is ±σ of a measurement: parameter uncertainty and residuals together. About two thirds of the "
        "measurements should be inside.",
    )
    return Section(f"Torque in region {r.region}", side_by_side(torque, error))


def _drift(change: ModelDrift) -> Html:
    joints = table_html(
        ["joint", TableColumn("change", "N m, N", digits=3), TableColumn("without drift", "N m, N", digits=3),
         TableColumn("change", "% of nominal", digits=2), TableColumn("p", digits=2), "drift"],
        [[j.joint, j.change, j.by_noise, j.percent_of_nominal, j.p, j.significant] for j in change.joints],
        "Root mean square change of the torque predicted for the region's motion",
        dash="The description gives no torque limit.",
    )  # fmt: skip
    ordered = sorted(change.parameters, key=lambda p: p.p)
    parameters = table_html(
        ["base parameter", "unit", "before", "after", TableColumn("± of the change", digits=2),
         TableColumn("t", digits=3),
         TableColumn("p", digits=2), "drift"],
        [
            [p.name, p.unit, *(Known(x, p.standard_error) for x in (p.before, p.after)), p.standard_error, p.t, p.p,
             p.significant]
            for p in ordered
        ],
        "Base parameters of the free fits, the most changed first",
    )  # fmt: skip
    kind = "warning" if change.significant else "good"
    return join(callout(kind, _drift_sentence(change)), joints, parameters)  # type: ignore[arg-type]


def _parameters(bank: Bank) -> Html:
    base = bank.models[0].base
    columns = [
        (x.name, [with_interval(*pair) for pair in zip(x.values, x.standard_errors, strict=True)]) for x in bank.models
    ]
    return join(
        paragraph(
            "Few combinations of parameters are identifiable in a small region. Values that differ between regions do "
            "not contradict each other if their intervals are wide: each model is meant to predict its own region."
        ),
        parameter_table(base.names, base.units, columns, "Base parameters with 95 % intervals"),
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"
