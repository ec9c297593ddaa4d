"""The core claim: a local model predicts its own region at least as well as a global one from as much data, while its
parameters lose their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steelyard.ground import Array, number
from steelyard.local import GLOBAL, LocalModel
from steelyard.papers.ns16._lab import NOISE_PERCENT, PLANTS, TOTAL, TRUTH, UNMODELLED, Lab
from steelyard.papers.paper import Item, PaperFigure, assertion, measurement, number_list, paper_table, printed_table
from steelyard.report import Boxes, Line, Panel, TableColumn


def figures_4_to_6(lab: Lab) -> Item:
    """Figures 4–6: measured and estimated torque with the ±σ band in A, B and C."""
    validation = lab.at_home(PLANTS[0], NOISE_PERCENT)
    figures, rows = [], []
    for r in validation.regions:
        e = r.example
        panels = []
        for k, joint in enumerate(lab.robot.joint_names):
            lines = Line.of("measured", e.t, e.measured[:, k]), Line.of("estimated", e.t, e.predicted[:, k])
            left = (
                Line.of("±σ about the estimate", e.t, np.zeros(len(e.t)), band=e.band[:, k]),
                Line.of("measured − estimated", e.t, e.measured[:, k] - e.predicted[:, k]),
            )
            panels.append(Panel(joint, lines, y="torque [N m]"))
            panels.append(Panel(f"{joint}: error and band", left, y="error [N m]"))
        figures.append(PaperFigure(f"Region {r.region}", tuple(panels)))
        rows.append((r.region, *(100.0 * r.covered.mean(axis=0))))
    inside = np.array([row[1:] for row in rows], dtype=float)
    head = ("region", *(TableColumn(name, "%", 3) for name in lab.robot.joint_names))
    return Item(
        text="The band includes the parameters' uncertainty and the residuals of the fit: 68 % of the measurements "
        "should be within it. Around the torque it would be as narrow as the line, so it is drawn around the error, "
        "below each torque and over the same times.",
        tables=(paper_table(head, rows, "Samples within ±σ, over all motions"),),
        figures=tuple(figures),
        statements=(
            assertion(
                "On the arm as modelled the bands have their nominal coverage.",
                abs(inside.mean() - 68.3) < 6.0,
                f"{inside.mean():.1f} % of all samples within ±σ, 68.3 % expected.",
            ),
        ),
    )


def figures_7_and_8(lab: Lab) -> Item:
    """Figures 7 and 8: distribution of the errors, and of the errors over nominal torque."""
    validation = lab.at_home(PLANTS[1], NOISE_PERCENT)
    joints = lab.robot.joint_names
    rows = []
    for r in validation.regions:
        for k, joint in enumerate(joints):
            rmse, as_printed = r.rmse(r.region)[:, k], r.printed(r.region)[:, k]
            percent = validation.percent(r.region, r.region)[:, k]
            quartiles = [float(np.quantile(percent, q)) for q in (0.25, 0.5, 0.75)]
            rows.append(
                (r.region, joint, float(as_printed.mean()), float(rmse.mean()), *quartiles, float(percent.max()))
            )
    sizes = [float(np.mean(np.sqrt(r.samples))) for r in validation.regions]

    def boxes(errors: Callable[[Any], Array]) -> tuple[Boxes, ...]:
        each = {r.region: errors(r) for r in validation.regions}
        return tuple(Boxes.of(f"region {x}", dict(zip(joints, v.T, strict=True))) for x, v in each.items())

    as_printed_boxes = boxes(lambda r: r.printed(r.region))
    panels = (
        Panel("(8) as printed, ‖e‖₂/S", (), "", "[N m]", True, boxes=as_printed_boxes),
        Panel("root mean square", (), "", "[N m]", True, boxes=boxes(lambda r: r.rmse(r.region))),
    )
    over = Panel("", (), "", "[% of nominal]", True, boxes=boxes(lambda r: validation.percent(r.region, r.region)))
    head = ("region", "joint", TableColumn("(8) as printed", "N m", 3), TableColumn("RMSE", "N m", 3),
            *(TableColumn(x, "% of nominal", 3)
            for x in ("1st quartile", "median", "3rd quartile", "highest")))  # fmt: skip
    worst = max(float(validation.percent(r.region, r.region).max()) for r in validation.regions)
    return Item(
        text=f"{lab.trajectories} random motions of six via-points per region; each region's own model from its "
        f"evolved motion, arm {PLANTS[1]}, noise in the logs.{lab.fast_note}",
        tables=(paper_table(head, rows),),
        figures=(
            PaperFigure("Figure 7: errors of all motions, by joint", panels),
            PaperFigure("Figure 8: errors over nominal torque, (9) with the torque of the axis", (over,)),
        ),
        statements=(
            assertion(
                "‖e‖₂/S of (8) is √S fast_note than the RMSE.",
                all(
                    np.allclose(r.printed(r.region) * np.sqrt(r.samples)[:, None], r.rmse(r.region), rtol=1e-12)
                    for r in validation.regions
                ),
                f"√S is {min(sizes):.0f} to {max(sizes):.0f} here.",
            ),
            measurement("The largest error of any motion and joint.", f"{worst:.1f} % of nominal torque."),
        ),
        differences=("(9) divides by the nominal torque of trajectory i in print; it is that of axis j.",),
    )


def transfer(lab: Lab) -> Item:
    """Models in other regions."""
    tables, statements = [], []
    for plant in lab.compared:
        for physical, kind in ((False, "free"), (True, "possible")):
            validation = lab.validation(plant, physical)
            values = validation.table()
            head = ("model", *(TableColumn(f"in {r.region}", "%", 3) for r in validation.regions))
            rows = [(m, *map(float, row)) for m, row in zip(validation.models, values, strict=True)]
            tables.append(
                paper_table(head, rows, f"Arm {plant}, {kind} models: mean error in percent of nominal torque")
            )
            own, other = values[:3, :3].diagonal(), values[:3, :3][~np.eye(3, dtype=bool)].reshape(3, 2)
            away = np.array([values[[i for i in range(3) if i != k], k].mean() for k in range(3)])
            statements.append(
                lab.claim_result_of(
                    f"On the arm {plant}, {kind} models are best in their own regions.",
                    bool(np.all(own <= np.array([values[[i for i in range(3) if i != k], k].min() for k in range(3)]))),
                    f"In other regions the error is {', '.join(f'{a:.2f}' for a in away / own)} times that of the "
                    f"region's own model (A, B, C); highest {number(other.max(), 2)} %.",
                    "A motion with better excitation also gives a better model in other regions: the error there is "
                    "noise, not a deficiency of the model.",
                )
            )
    return Item(tables=tuple(tables), statements=tuple(statements))


_KINDS = {False: "free", True: "possible"}


def core_claim(lab: Lab) -> Item:
    """The core claim: local against global models, trained with as much data."""
    rows, statements = [], []
    for plant in lab.compared:
        for physical, kind in _KINDS.items():
            validation = lab.validation(plant, physical)
            same, three = validation.against(GLOBAL), validation.against(TOTAL)
            for region in lab.regions:
                r = region.name
                own, one, total, floor = (float(validation.percent(m, r).mean()) for m in (r, GLOBAL, TOTAL, TRUTH))
                rows.append((plant, kind, r, own, one, total, floor, same[r]["ratio"], same[r]["wins"] * 100.0))
            ratios = [same[r.name]["ratio"] for r in lab.regions]
            more = [three[r.name]["ratio"] for r in lab.regions]
            statements.append(
                lab.claim_result_of(
                    f"On the arm {plant}, {kind} local models predict their own region at least as well as a global "
                    "model of as much data (first draw; all of them are in the comparison above).",
                    max(ratios) <= 1.0,
                    f"Error of local over global: {number_list(ratios, '.2f')} in A, B, C; over a global model of "
                    "three times the data, as much as all local ones together: "
                    f"{number_list(more, '.2f')}.",
                    "One motion over the whole workspace shows all parameters; where the model lacks nothing, that is "
                    "what counts.",
                )
            )
    head = ("arm", "fit", "region", *(TableColumn(x, "%", 3) for x in ("local", "global", "global, 3 × data",
            "true model")),
            TableColumn("local/global", digits=3), TableColumn("motions won", "%", 3))  # fmt: skip
    return Item(
        text=f"Mean torque error over {lab.trajectories} random motions per region and all joints, in percent of "
        "nominal torque. Local models come from evolved motions, the global one from one motion that is optimised over "
        "the whole workspace, played once or three times. The training logs have noise, these have none, so that "
        f"all errors are the models'; the error of the true model is that of the filter.{lab.fast_note}",
        tables=(paper_table(head, rows),),
        statements=tuple(statements),
        differences=(
            "The paper compares no local model with a global one; the claim is its premise, and is tested here.",
        ),
    )


def parameters_lose_meaning(lab: Lab) -> Item:
    """The parameters of local models."""
    rows, wild = [], {}

    def errors(local: LocalModel) -> tuple[float, float, bool]:
        off = np.abs(local.values - lab.true_values)
        relative = off / np.maximum(np.abs(lab.true_values), 1e-3)
        return float(off[:40].max()), float(np.median(100.0 * relative)), local.possible

    for plant in lab.compared:
        for physical, kind in _KINDS.items():
            bank = lab.bank(plant, physical)
            others = {**{x.name: x for x in bank.models}, GLOBAL: lab.everywhere(plant, physical)}
            for name, local in others.items():
                rows.append((plant, kind, name, *errors(local)))
                wild[plant, physical, name] = errors(local)[0]
    small = lab.small
    models = small.bank(PLANTS[0], False).models
    rows += [(PLANTS[0], "free", f"{local.name}, a third of the size", *errors(local)) for local in models]
    tiny = [errors(local)[0] for local in models]
    narrow = small.at_home(PLANTS[0])
    torque_errors = [float(narrow.percent(r.name, r.name).mean()) for r in small.regions]
    sizes = TableColumn("largest error", "kg m², kg m", 3), TableColumn("median error", "%", 3)
    head = ("arm", "fit", "model", *sizes, "possible")
    table = printed_table("ns16", "table2")
    largest = max(float(np.max(np.abs(table.numbers(x)))) for x in "ABC")
    percents = f"{100.0 * UNMODELLED:g} + {100.0 * UNMODELLED:g}"
    free, possible = ([wild[PLANTS[1], physical, r.name] for r in lab.regions] for physical in (False, True))
    return Item(
        text="Base parameters compared with the true ones. If the arm has effects that the model lacks, the parameters "
        "absorb them.",
        tables=(paper_table(head, rows),),
        statements=(
            lab.claim_result_of(
                "Free local models are not physically possible, possible ones are.",
                not any(lab.bank(p, False).possible for p in lab.compared)
                and all(lab.bank(p, True).possible for p in lab.compared),
                f"Largest errors with unmodelled effects: free {number_list(free, '.2f')}, possible "
                f"{number_list(possible, '.2f')}.",
                "A free fit may be possible by chance.",
            ),
            measurement(
                "Errors of parameters and of predicted torques in small regions.",
                f"Boxes of a third of the size, arm as modelled: largest errors {number_list(tiny, '.2f')}, torque "
                f"errors {number_list(torque_errors, '.2f')} % of nominal in A, B, C.",
            ),
            measurement(
                "Cost of physical consistency in prediction.",
                "; ".join(
                    f"{plant}: {number_list([_cost(lab, plant, r.name) for r in lab.regions], '.2f')} in A, B, C"
                    for plant in lab.compared
                )
                + " (error of the possible model over that of the free one).",
            ),
        ),
        differences=(
            f"Printed parameters reach {largest:,.0f}; ours are far smaller, since the model lacks only {percents} % "
            "of nominal torque and the regions are wide. The real arm, its regions and noise are "
            "not known.",
        ),
    )


def _cost(lab: Lab, plant: str, region: str) -> float:
    possible, free = (lab.validation(plant, physical).percent(region, region).mean() for physical in (True, False))
    return float(possible) / float(free)
