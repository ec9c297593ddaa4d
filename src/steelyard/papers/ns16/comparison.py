"""Comparison of models from evolved, random and optimised motions over many draws, and the positions of the regions."""

from __future__ import annotations

import numpy as np

from steelyard.ground import Array
from steelyard.local import GLOBAL, CartesianRegion, MotionLike, home_posture
from steelyard.papers.ns16._lab import EVOLVED, NOISE_PERCENT, RATE, SECONDS, Lab
from steelyard.papers.paper import Item, PaperFigure, PaperTable, Statement, holm, number_list, paper_table
from steelyard.report import Boxes, Line, Panel, TableColumn

# Significance level of a difference between two searches over the draws.
_LEVEL = 0.05
_SAYS = {EVOLVED: "evolved motions", "random": "random programs", "gradient": "motions optimised by gradient",
         GLOBAL: "one optimised global motion"}  # fmt: skip


def figure_1(lab: Lab) -> Item:
    """Figure 1: the three regions in the workspace."""
    robot = lab.robot
    lines: dict[str, list[Line]] = {"y": [], "z": []}
    for region in lab.regions:
        low, high = region.lower, region.upper
        q = lab.motion(EVOLVED, region.name).sample(np.arange(0.0, SECONDS, 1.0 / RATE))[0]
        way = region.coordinates(robot, q)
        home = home_posture(robot, region)
        links = [CartesianRegion("link", np.zeros(3), np.ones(3), frame=name) for name in robot.link_names]
        arm = np.vstack([np.zeros(3), *(link.coordinates(robot, home) for link in links)])
        for k, axis in ((1, "y"), (2, "z")):
            frame = [(low[0], low[k]), (high[0], low[k]), (high[0], high[k]), (low[0], high[k]), (low[0], low[k])]
            x, y = zip(*frame, strict=True)
            lines[axis] += [
                Line(f"{region.name}: box and motion", tuple(map(float, x)), tuple(map(float, y))),
                Line(f"{region.name}: box and motion", tuple(way[:, 0].tolist()), tuple(way[:, k].tolist())),
                Line("arm", tuple(arm[:, 0].tolist()), tuple(arm[:, k].tolist()), dashed=True),
            ]
    panels = tuple(
        Panel(title, tuple(lines[axis]), "x [m]", f"{axis} [m]", equal=True)
        for title, axis in (("from above", "y"), ("from the side", "z"))
    )
    sizes = [f"{r.name}: {' × '.join(f'{1000.0 * s:.0f}' for s in r.size)} mm" for r in lab.regions]
    return Item(
        text="Boxes for the wrist's centre, its path in each region's evolved motion, and the arm in the start posture "
        "of that motion. " + "; ".join(sizes) + ".",
        figures=(PaperFigure("Regions A, B and C", panels),),
        differences=("The paper draws its regions without their sizes; these are ours.",),
    )


def _medians(lab: Lab, plant: str) -> dict[str, Array]:
    """Return, by search, the mean error over all trajectories, shape (draws, regions)."""
    draws = [lab.errors(plant, draw) for draw in range(lab.draws)]
    return {way: np.array([one[way].mean(axis=1) for one in draws]) for way in lab.ways}


def chances(errors_by_arm: dict[str, dict[str, Array]]) -> dict[tuple[str, str, int], float]:
    """Return, by arm, search and region, the p-value of the difference between evolved motions and those of the search.

    Wilcoxon's signed-rank test, two-sided, of the ratio of both errors in every draw, corrected by Holm; 1 for a single
    draw. `errors_by_arm` has the errors (draws, regions) by arm and search.
    """
    from scipy.stats import wilcoxon

    def chance(a: Array, b: Array) -> float:
        return float(wilcoxon(np.log(a / b)).pvalue) if len(a) > 1 else 1.0

    return holm(
        {
            (plant, way, k): chance(errors[EVOLVED][:, k], values[:, k])
            for plant, errors in errors_by_arm.items()
            for way, values in errors.items()
            if way != EVOLVED
            for k in range(values.shape[1])
        }
    )


def what_evolution_buys(lab: Lab) -> Item:
    """What evolution buys: evolved, random and optimised motions, and one for the whole workspace."""
    names = [r.name for r in lab.regions]
    rows, statements, figures = [], [], []
    each = {plant: _medians(lab, plant) for plant in lab.compared}
    p = chances(each)
    for plant, errors in each.items():
        for k, region in enumerate(names):
            for way in lab.ways:
                values = errors[way][:, k]
                quartiles = [float(np.quantile(values, x)) for x in (0.25, 0.5, 0.75)]
                over = float(np.median(errors[EVOLVED][:, k])) / quartiles[1]
                rows.append((plant, region, way, *quartiles, over, p.get((plant, way, k))))
        by_way = {way: {f"region {r}": errors[way][:, k] for k, r in enumerate(names)} for way in lab.ways}
        boxes = tuple(Boxes.of(way, values) for way, values in by_way.items())
        panel = Panel(f"arm {plant}", (), "", "error [% of nominal]", True, boxes=boxes)
        figures.append(PaperFigure(f"Mean torque error of each draw, arm {plant}", (panel,)))
        for way in lab.ways[1:]:
            statements.append(_verdict(lab, plant, errors, way, [p[plant, way, k] for k in range(len(names))]))
    head = ("arm", "region", "motion", *(TableColumn(x, "%", 3) for x in ("1st quartile", "median", "3rd quartile")),
            TableColumn("evolved / this", digits=3), TableColumn("p", digits=2))  # fmt: skip
    title = f"Mean torque error in percent of nominal, over {lab.draws} draw(s)"
    return Item(
        text=f"Each draw has its own motions and its own noise ({NOISE_PERCENT:g} % of nominal torque): "
        f"{SECONDS:g} s of log per model, free fits. Every model is judged by the same {lab.trajectories} random "
        "trajectories of six via-points in its region, without noise. All motions but the random ones are designed for "
        "(7) with the scaling (6) as printed; the global one is a Fourier series optimised over the whole range of the "
        "joints, and its model is used in all three regions. p: chance of such a difference over the draws (Wilcoxon's "
        f"signed ranks of the errors' ratio, draw by draw; after Holm for all {len(p)} comparisons).{lab.fast_note}",
        tables=(paper_table(head, rows, title), _fitness_table(lab)),
        figures=tuple(figures),
        statements=tuple(statements),
    )


def _verdict(lab: Lab, plant: str, errors: dict[str, Array], way: str, p: list[float]) -> Statement:
    """Test whether evolved motions give significantly better models than those of a search, in all regions."""
    ours, other = errors[EVOLVED], errors[way]
    ratios = np.median(ours, axis=0) / np.median(other, axis=0)
    better = [r < 1.0 and x < _LEVEL for r, x in zip(ratios, p, strict=True)]
    worse = [r > 1.0 and x < _LEVEL for r, x in zip(ratios, p, strict=True)]
    counts = f"better in {sum(better)}, worse in {sum(worse)}, undecided in {3 - sum(better) - sum(worse)} of 3 regions"
    return lab.claim_result_of(
        f"On the arm {plant}, evolved motions give better models than {_SAYS[way]}.",
        all(better),
        f"Median errors, evolved over {way}: {number_list(ratios, '.2f')} in A, B, C (p {number_list(p, '.2g')}); "
        f"{counts}.",
        "A larger determinant is a fast_note error of the parameters where noise is all that errs; validation asks for "
        "torque on other motions, and effects that the model lacks do not average out.",
    )


def _fitness_table(lab: Lab) -> PaperTable:
    rows = []
    for k, region in enumerate(lab.regions):
        for way in lab.ways:
            name = "" if way == GLOBAL else region.name
            if way == GLOBAL and k:
                continue
            values = [_fitness(lab, lab.motion(way, name, draw)) for draw in range(lab.draws)]
            low, middle, high = (float(np.quantile(values, x)) for x in (0.25, 0.5, 0.75))
            rows.append((name or "everywhere", way, low, middle, high))
    head = ("region", "motion", *(TableColumn(x, digits=4) for x in ("1st quartile", "median", "3rd quartile")))
    return paper_table(head, rows, f"Objective of the designs: log10 det(HᵀH) of {SECONDS:g} s, H as printed")


def _fitness(lab: Lab, motion: MotionLike) -> float:
    t = np.arange(0.0, SECONDS, 1.0 / RATE)
    W = lab.base.regressor_columns(lab.base.structure.dynamics.torque_regressor(*motion.sample(t)))
    H = (W * (lab.nominal / lab.nominal.max())[None, :, None]).reshape(-1, W.shape[-1])
    return float(np.linalg.slogdet(H.T @ H)[1] / np.log(10.0))
