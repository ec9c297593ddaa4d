"""Figures 4 to 8, and models taken to other regions."""

from __future__ import annotations

import numpy as np

from steelyard.papers.ns16.lab import NOISE_PERCENT, PLANTS, Lab
from steelyard.papers.paper import Figure, Item, asserted, measured, shown, table
from steelyard.report.elements import Column
from steelyard.report.plots.lines import Line, Panel


def figures_4_to_6(lab: Lab) -> Item:
    """Figures 4–6: measured and estimated torque with the ±σ band in A, B and C."""
    found = lab.validation(PLANTS[0], False, NOISE_PERCENT)
    figures, rows = [], []
    for r in found.regions:
        e = r.example
        panels = []
        for k, joint in enumerate(lab.robot.joint_names):
            series = {
                "measured": e.measured,
                "estimated": e.predicted,
                "+σ": e.predicted + e.band,
                "−σ": e.predicted - e.band,
            }
            lines = [Line.of(name, e.t, y[:, k], dashed=name in ("+σ", "−σ")) for name, y in series.items()]
            panels.append(Panel(joint, tuple(lines), y="torque [N m]"))
        figures.append(Figure(f"Region {r.region}", tuple(panels)))
        rows.append((r.region, *(100.0 * r.covered.mean(axis=0))))
    inside = np.array([row[1:] for row in rows], dtype=float)
    head = ("region", *(Column(name, "%", 3) for name in lab.robot.joint_names))
    return Item(
        text="The band has the parameters' uncertainty and the residuals of the fit in it: 68 % of the measurements "
        "are to lie within it.",
        tables=(table(head, rows, "Samples within ±σ, over all motions"),),
        figures=tuple(figures),
        statements=(
            asserted(
                "On the arm as it is modelled the bands hold what they promise.",
                abs(inside.mean() - 68.3) < 6.0,
                f"{inside.mean():.1f} % of all samples within ±σ, 68.3 % expected.",
            ),
        ),
    )


def figures_7_and_8(lab: Lab) -> Item:
    """Figures 7 and 8: distribution of the errors, and of the errors over nominal torque."""
    found = lab.validation(PLANTS[1], False, NOISE_PERCENT)
    rows, sizes = [], []
    for r in found.regions:
        for k, joint in enumerate(lab.robot.joint_names):
            rmse, as_printed = r.rmse(r.region)[:, k], r.printed(r.region)[:, k]
            percent = found.percent(r.region, r.region)[:, k]
            quartiles = [float(np.quantile(percent, q)) for q in (0.25, 0.5, 0.75)]
            rows.append(
                (r.region, joint, float(as_printed.mean()), float(rmse.mean()), *quartiles, float(percent.max()))
            )
        sizes.append(float(np.mean(np.sqrt(r.samples))))
    head = ("region", "joint", Column("(8) as printed", "N m", 3), Column("RMSE", "N m", 3),
            *(Column(x, "% of nominal", 3) for x in ("1st quartile", "median", "3rd quartile", "highest")))  # fmt: skip
    worst = max(float(found.percent(r.region, r.region).max()) for r in found.regions)
    return Item(
        text=f"{lab.trajectories} random motions of six via-points per region; own models, unmodelled effects.",
        tables=(table(head, rows),),
        statements=(
            asserted(
                "‖e‖₂/S of (8) is √S smaller than the RMSE.",
                all(
                    np.allclose(r.printed(r.region) * np.sqrt(r.samples)[:, None], r.rmse(r.region), rtol=1e-12)
                    for r in found.regions
                ),
                f"√S is {min(sizes):.0f} to {max(sizes):.0f} here.",
            ),
            measured("The largest error of any motion and joint.", f"{worst:.1f} % of nominal torque."),
        ),
        differences=("(9) divides by the nominal torque of trajectory i in print; it is that of axis j.",),
    )


def transfer(lab: Lab) -> Item:
    """Models taken to other regions."""
    tables, statements = [], []
    for plant in PLANTS:
        for physical, kind in ((False, "free"), (True, "possible")):
            found = lab.validation(plant, physical)
            values = found.table()
            head = ("model", *(Column(f"in {r.region}", "%", 3) for r in found.regions))
            rows = [(m, *map(float, row)) for m, row in zip(found.models, values, strict=True)]
            tables.append(table(head, rows, f"Arm {plant}, {kind} models: mean error in percent of nominal torque"))
            own, other = values[:3, :3].diagonal(), values[:3, :3][~np.eye(3, dtype=bool)].reshape(3, 2)
            away = np.array([values[[i for i in range(3) if i != k], k].mean() for k in range(3)])
            statements.append(
                shown(
                    f"On the arm {plant}, {kind} models are best at home.",
                    bool(np.all(own <= np.array([values[[i for i in range(3) if i != k], k].min() for k in range(3)]))),
                    f"Taken elsewhere the error is {', '.join(f'{a:.2f}' for a in away / own)} times that of the "
                    f"region's own model (A, B, C); highest {other.max():.2g} %.",
                )
            )
    return Item(tables=tuple(tables), statements=tuple(statements))
