"""Figures 6–9 and 15: motions that excite, and what they do to the estimates of joint 1."""

from __future__ import annotations

from functools import partial

import numpy as np

import steelyard as sy
from steelyard.ground import Array, number
from steelyard.papers.irp6._lab import AXES, WINDOW, Lab, SampledMotion, cosine, settled, via
from steelyard.papers.paper import Item, PaperFigure, asserted, beside, measured, paper_table, shown
from steelyard.report import Line, Panel, TableColumn

# What the paper's 13 parameters leave of the first equation; products of inertia are taken for zero.
FIRST_EQUATION = ("Izz1", "Ixx2", "Ixx3", "Ixy3", "mx3", "Fc_motor1", "Fv_motor1")
POINTS, SECONDS = 300, 6.0
NAMES = ("X1 [kg m²]", "F1v [N m s]", "F1c [N m]")


def figure_6(lab: Lab) -> Item:
    """Figure 6: start and optimal motion of joint 2, differential model."""
    design = partial(
        sy.excite, lab.robot, terms=lab.truth.terms, equations=["q1"], criterion="information", duration=SECONDS,
        parameters=[n for n in lab.base.names if n in FIRST_EQUATION], rate=POINTS / SECONDS, search=lab.search,
    )  # fmt: skip
    free, kept = design(limits={"ddq": 100.0}), design()
    t = np.arange(POINTS) * SECONDS / POINTS
    start = _start()
    before = _condition(lab, start)
    motions = {
        "start": start,
        "optimal, free": free.trajectory.sample(t),
        "optimal, limited": kept.trajectory.sample(t),
    }
    panels = [
        Panel("", tuple(Line.of(name, t, motion[k][:, 1]) for name, motion in motions.items()), y=unit)
        for k, unit in enumerate(("q2 [rad]", "q̇2 [rad/s]", "q̈2 [rad/s²]"))
    ]
    rows = [("start", 1.9e5, before), ("optimal, acceleration free", 88.0, free.value),
            ("optimal, within the arm's own limits", None, kept.value)]  # fmt: skip
    peaks = [float(np.max(np.abs(motions[name][2][:, 1]))) for name in list(motions)[1:]]
    return Item(
        text=f"Equation (21) for joint 1 at {POINTS} points; quintic splines for joints 1 and 2 and a cosine for joint "
        "3 to begin with, as in the paper, which prints none of them.",
        tables=(paper_table(("motion", *beside("cond₂(DᵀD)", digits=3)), rows),),
        figures=(PaperFigure("Joint 2", tuple(panels)),),
        statements=(
            asserted(
                "Optimisation brings the condition number of the first equation from beyond 1000 to below 88.",
                before > 1e3 and max(free.value, kept.value) < 88.0 and free.violation == kept.violation == 0.0,
                f"{number(before, 3)} at the start, {free.value:.0f} with free acceleration, {kept.value:.0f} within "
                "limits.",
            ),
            measured(
                "The optimal acceleration of joint 2 cannot be realised.",
                f"With acceleration left free it reaches {peaks[0]:.1f} rad/s², within limits {peaks[1]:.1f} rad/s²; "
                f"the limits cost a factor of {kept.value / free.value:.1f} in the condition number.",
            ),
        ),
        differences=(
            "The start is not printed, so its condition number cannot be the paper's.",
            "Ours is a Fourier series of five harmonics, which needs little acceleration; the paper's free samples of "
            "acceleration may jump. (Free means up to 100 rad/s².)",
            "The text says Figure 5 and means Figure 6.",
        ),
    )


def figures_7_to_9(lab: Lab) -> Item:
    """Figures 7–9: start and optimal motions of single joints, integral model."""
    t = np.arange(0.0, 4.0, WINDOW)
    before = [float(np.linalg.cond(axis.information(*cosine(t)[:2]))) for axis in AXES]
    panels = []
    for axis, plan in zip(AXES, lab.exciting, strict=True):
        pair = {"start": cosine(t), "optimal": plan.trajectory.sample(t)}
        panels += [
            Panel(f"{axis.name}, {what}", tuple(Line.of(n, t, m[k][:, 0]) for n, m in pair.items()), y=unit)
            for k, what, unit in ((0, "position", "[rad]"), (1, "velocity", "[rad/s]"))
        ]
    printed = (None, 3000.0, None), (None, 500.0, None)
    rows = [
        (axis.name, printed[0][k], before[k], printed[1][k], plan.value)
        for k, (axis, plan) in enumerate(zip(AXES, lab.exciting, strict=True))
    ]
    head = ("axis", *beside("cond₂(hᵀh) at start", digits=3), *beside("optimal", digits=3))
    return Item(
        text="Windows of 5 ms, one motor at a time, within ±40°, 1.5 rad/s and 4.5 rad/s²; the start "
        "swings once by 0.6 rad.",
        tables=(paper_table(head, rows),),
        figures=(PaperFigure("Start and optimal motions", tuple(panels)),),
        statements=(
            asserted(
                "Optimisation of motor 2 lowers cond₂(hᵀh) at least as far as in the paper, 3000 to 500.",
                lab.exciting[1].value < before[1] / 6.0 and lab.exciting[1].value < 500.0,
                f"{before[1]:.0f} to {lab.exciting[1].value:.0f}; a simplex search had reached 62.",
            ),
            asserted(
                "It does so for the other two, and the limits are kept at every instant.",
                all(p.value < b and p.violation == 0.0 for p, b in zip(lab.exciting, before, strict=True)),
                ", ".join(f"{r[0]} {number(r[2], 3)} to {number(r[4], 3)}" for r in (rows[0], rows[2])) + ".",
            ),
        ),
        differences=(
            "The paper gives numbers for joint 2 alone. Its limits are not printed, nor the size of its cosine.",
            "Motions are Fourier series of five harmonics that begin and end at rest, not samples of acceleration.",
        ),
    )


def figure_15(lab: Lab) -> Item:
    """Figure 15: estimates of joint 1 with optimal and non-optimal motions."""
    period = WINDOW / 2.0
    t = np.arange(0.0, 4.0, period)
    motions = {"optimal": lab.exciting[0].trajectory.sample(t), "non-optimal": cosine(t)}
    axis, runs = lab.first, 2 if lab.fast else 20
    histories = {n: [axis.history(axis.log(m, s, period)) for s in range(runs)] for n, m in motions.items()}
    times = {n: float(np.median([settled(*h, axis.values, 0.1) for h in x])) for n, x in histories.items()}
    last = {n: np.array([h[1][-1] for h in x]) / axis.values - 1.0 for n, x in histories.items()}
    rms = {n: 100.0 * np.sqrt(np.mean(x**2, axis=0)) for n, x in last.items()}
    panels = []
    for k, name in enumerate(NAMES):
        true = float(axis.values[k])
        lines = [Line.of(n, x[0][0], x[0][1][:, k]) for n, x in histories.items()]
        lines.append(Line.of("true", [0.0, 4.0], [true] * 2, dashed=True))
        panels.append(Panel(name, tuple(lines), range=(0.0, 2.0 * true)))
    rows = [(n, times[n], *rms[n]) for n in motions]
    head = (
        "motion",
        TableColumn("last outside 10 %", "s", 2),
        *(TableColumn(f"error of {x}", "%", 2) for x in ("X1", "F1v", "F1c")),
    )
    gain = rms["non-optimal"] / rms["optimal"]
    return Item(
        text=f"Friction is found along. Noise as before, {runs} runs; the first is drawn.",
        tables=(paper_table(head, rows, "Root mean square errors at the end"),),
        figures=(PaperFigure("Recursive least squares", tuple(panels)),),
        statements=(
            shown(
                "Estimates are stable with exciting motions.",
                times["optimal"] < times["non-optimal"] and np.all(gain > 1.0),
                f"The last time that one of the three is 10 % off is {times['optimal']:.2f} s with the optimal motion "
                f"and {times['non-optimal']:.2f} s (of 4 s) with the start's; errors at the end fall by factors of "
                + ", ".join(f"{g:.1f}" for g in gain) + " (X1, F1v, F1c).",
            ),
        ),
        differences=(
            "The figure gives no numbers.",
            "What error is left of X1 is a bias: over 5 ms, noise of 1 mrad/s counts in ½q̇² (see above).",
        ),
    )  # fmt: skip


def _start() -> SampledMotion:
    """Splines for joints 1 and 2, a cosine for joint 3."""
    knots = np.deg2rad([[0.0, 0.0], [30.0, 20.0], [-30.0, -20.0], [0.0, 0.0]])
    period = SECONDS / POINTS
    splined = via(knots, SECONDS / 3.0, period)
    swung = cosine(np.asarray(period * np.arange(POINTS)), SECONDS, 0.25)
    q, dq, ddq = (np.hstack([x, y]) for x, y in zip(splined, swung, strict=True))
    return q, dq, ddq


def _condition(lab: Lab, motion: SampledMotion) -> float:
    """cond₂(DᵀD) of the first equation."""
    Y: Array = lab.base.regressor_columns(lab.truth.dynamics.torque_regressor(*motion))[:, 0]
    D = Y[:, [k for k, name in enumerate(lab.base.names) if name in FIRST_EQUATION]]
    return float(np.linalg.cond(D.T @ D))
