"""The fitness of equations (6) and (7), conditioning in small boxes, and Figure 3."""

from __future__ import annotations

import numpy as np

from steelyard.excitation import Genetic
from steelyard.ground import Array
from steelyard.local import JointRegion, MotionLike, evolved_plan, home_posture, random_motion
from steelyard.papers.ns16._lab import Lab
from steelyard.papers.paper import Item, PaperFigure, asserted, measured, paper_table, shown
from steelyard.report import Line, Panel, TableColumn

_RATE = 50.0


def _rows(lab: Lab, motion: MotionLike) -> Array:
    """Base columns of the torque rows, `(samples, joints, 58)`."""
    t = np.arange(0.0, motion.duration, 1.0 / _RATE)
    return lab.base.regressor_columns(lab.base.structure.dynamics.torque_regressor(*motion.sample(t)))


def _fitness(W: Array, weights: Array) -> float:
    H = (W * weights[None, :, None]).reshape(-1, W.shape[-1])
    return float(np.linalg.slogdet(H.T @ H)[1] / np.log(10.0))


def fitness(lab: Lab) -> Item:
    """Equations (6) and (7): the torque-scaled regressor and its determinant."""
    from scipy.stats import spearmanr

    share = lab.nominal / lab.nominal.max()
    motions = [m for some in lab.trials.values() for m in some]
    W = [_rows(lab, m) for m in motions]
    as_printed, as_meant = (np.array([_fitness(w, d) for w in W]) for d in (share, 1.0 / share))
    rank = float(spearmanr(as_printed, as_meant).statistic)
    step = _fitness(W[0], 10.0 * share) - _fitness(W[0], share)
    return Item(
        text="(6) multiplies joint j's rows by τnom_j/τmax, which weighs the wrist down although the text wants the "
        "actuators alike; dividing would do that, and is D-optimal for noise in proportion to the nominal torque.",
        tables=(
            paper_table(
                ("scaling", TableColumn("lowest"), TableColumn("median"), TableColumn("highest")),
                [
                    (name, float(x.min()), float(np.median(x)), float(x.max()))
                    for name, x in (("τnom/τmax, as printed", as_printed), ("τmax/τnom", as_meant))
                ],
                f"log10 det(HᵀH) of {len(W)} random programs",
            ),
        ),
        statements=(
            asserted(
                "Scaling H by c adds 2·58·log10 c.", abs(step - 116.0) < 1e-6, f"{step:.6f} for c = 10; 116 expected."
            ),
            measured("Whether the two scalings rank motions alike.", f"Spearman's rank correlation {rank:.3f}."),
        ),
        differences=("‖det|·|‖ in (7) is |det(·)|, and HᵀH has no negative determinant: the bars are redundant.",),
    )


def conditioning(lab: Lab) -> Item:
    """Conditioning in a part of the workspace and in all of it."""
    everywhere = JointRegion.of(lab.robot, "everywhere")
    rng, home = np.random.default_rng(3), home_posture(lab.robot, everywhere)
    wide = [
        random_motion(lab.robot, everywhere, rng, points=6, home=home, model=lab.truth)
        for _ in range(lab.small.trajectories)
    ]
    groups: dict[str, list[MotionLike]] = {f"box {r.name}": lab.trials[r.name] for r in lab.regions}
    groups |= {f"box {r.name}, a third of the size": lab.small.trials[r.name] for r in lab.regions}
    groups["everywhere"] = list(wide)
    medians, rows = {}, []
    for name, motions in groups.items():
        values = [np.log10(np.linalg.cond(_rows(lab, m).reshape(-1, lab.base.rank))) for m in motions]
        medians[name] = float(np.median(values))
        rows.append((name, len(motions), medians[name], float(np.min(values)), float(np.max(values))))
    large, small = (
        [medians[f"box {r.name}{size}"] - medians["everywhere"] for r in lab.regions]
        for size in ("", ", a third of the size")
    )
    head = ("where", "motions", TableColumn("median"), TableColumn("lowest"), TableColumn("highest"))
    return Item(
        text="Random programs of six via-points. The paper does not say how large its regions are.",
        tables=(paper_table(head, rows, "log10 cond Φ (58 columns, unscaled)"),),
        statements=(
            shown(
                "A part of the workspace shows the parameters worse than all of it.",
                min(*large, *small) > 0.0,
                f"Against everywhere, medians differ by {', '.join(f'{g:+.2f}' for g in large)} in boxes of half a "
                f"metre, by {', '.join(f'{g:+.2f}' for g in small)} in boxes of a third of that.",
            ),
        ),
    )


def figure_3(lab: Lab) -> Item:
    """Figure 3: fitness over the generations."""
    panels, rows, rising = [], [], True
    for k, region in enumerate(lab.regions):
        plan = evolved_plan(
            lab.robot,
            region,
            lab.terms,
            optimiser=Genetic(population=lab.population, generations=lab.generations),
            weights="torque",
            model=lab.truth,
            rate=_RATE,
            seed=k,
        )
        best = -np.array([value for _, value in plan.history]) / np.log(10.0)
        generation = np.array([count for count, _ in plan.history]) / lab.population
        rising = rising and bool(np.all(np.diff(best) >= 0.0))
        rows.append((region.name, float(best[0]), float(best[-1]), plan.trajectory.duration, plan.violation))
        panels.append(Panel(f"region {region.name}", (Line.of("best", generation, best),), "generation", "log10 det"))
    head = (
        "region",
        TableColumn("first", digits=5),
        TableColumn("last", digits=5),
        TableColumn("duration", "s"),
        TableColumn("violation"),
    )
    return Item(
        text=f"Six via-points and a speed, {lab.population} individuals, {lab.generations} generations, two elites.",
        tables=(paper_table(head, rows, "Best log10 det(HᵀH), H as printed"),),
        figures=(PaperFigure("Fitness of the best individual", tuple(panels)),),
        statements=(
            asserted("With elites the best never gets worse.", rising, "Histories rise in all regions."),
            asserted(
                "What is delivered keeps to joint, torque and region limits at all times.",
                all(row[-1] == 0.0 for row in rows),
                "No violation.",
            ),
            shown(
                "Evolution finds better motions than chance.",
                all(row[2] > row[1] for row in rows),
                "; ".join(f"{row[0]}: {row[1]:.1f} → {row[2]:.1f}" for row in rows) + ".",
            ),
        ),
        differences=(
            f"The paper breeds 150 individuals for a number of generations that it does not give; here "
            f"{lab.population} for {lab.generations}.",
        ),
    )
