"""Figures 6–9 and 15: exciting motions, and their effect on the estimates of joint 1."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import steelyard as sy
from steelyard.excitation import default_limits
from steelyard.ground import Array, number
from steelyard.papers.irp6._lab import WINDOW, Lab, Motor, SampledMotion, cosine, settling_time, via
from steelyard.papers.paper import Item, PaperFigure, assertion, claim_result, number_list, paired_columns, paper_table
from steelyard.report import Line, Panel, TableColumn
from steelyard.simulation import FeedForward

# The paper's 13 parameters in the first equation; products of inertia are assumed zero.
FIRST_EQUATION = ("Izz1", "Ixx2", "Ixx3", "Ixy3", "mx3", "Fc_motor1", "Fv_motor1")
POINTS, SECONDS = 300, 6.0
# Only the position limits of the arm are active.
FREE = {"dq": 1e3, "ddq": 1e4, "jerk": 1e9}
REALISED = 1.0  # degrees; a motion with a smaller tracking error counts as realised
TITLES = ("joint 1", "motor 2", "joint 3")
NAMES = ("X1 [kg m²]", "F1v [N m s]", "F1c [N m]")


def figure_6(lab: Lab) -> Item:
    """Figure 6: start and optimal motion of joint 2, differential model."""
    design = partial(
        sy.excite, lab.robot, terms=lab.truth.terms, equations=["q1"], criterion="information", duration=SECONDS,
        parameters=[n for n in lab.base.names if n in FIRST_EQUATION], rate=POINTS / SECONDS, search=lab.search,
        family=lab.samples(SECONDS),
    )  # fmt: skip
    own = default_limits(lab.robot)
    free, limited = design(limits=FREE), design()
    t = np.arange(POINTS) * SECONDS / POINTS
    start = _start()
    before = _condition(lab, start)
    motion_played, torques = _play_motion(lab, free.trajectory)
    motions = {
        "start": start,
        "optimal, free": free.trajectory.sample(t),
        "that, as the arm plays it": motion_played,
        "optimal, limited": limited.trajectory.sample(t),
    }
    panels = [
        Panel("", tuple(Line.of(name, t, motion[k][:, 1]) for name, motion in motions.items()), y=unit)
        for k, unit in enumerate(("q2 [rad]", "q̇2 [rad/s]", "q̈2 [rad/s²]"))
    ]
    peaks = {name: np.max(np.abs(motion[2]), axis=0) for name, motion in motions.items()}
    conditions = dict(zip(motions, (before, free.value, _condition(lab, motion_played), limited.value), strict=True))
    free_peaks = peaks["optimal, free"]
    q, dq, ddq = motions["optimal, free"]
    rows = [
        (name, {"start": 1.9e5, "optimal, free": 88.0}.get(name), conditions[name], *peaks[name]) for name in motions
    ]
    head = (
        "motion",
        *paired_columns("cond₂(DᵀD)", digits=3),
        *(TableColumn(f"peak q̈{k}", "rad/s²", 2) for k in (1, 2, 3)),
    )
    off = np.rad2deg(np.max(np.abs(motion_played[0] - motions["optimal, free"][0])))
    return Item(
        text=f"Equation (21) for joint 1 at {POINTS} points; quintic splines for joints 1 and 2 and a cosine for joint "
        f"3 as the start, as in the paper, which prints none of them. Armstrong's scheme: accelerations at "
        f"{lab.samples(SECONDS).samples} instants of every joint are free, once within position limits only, once "
        "within all limits of the arm. The free optimum is then played by the simulated arm: a controller with "
        f"feed-forward, whose torques are limited to {number_list(torques, '.0f')} N m, the largest torques at full "
        f"speed and at the arm's acceleration limits ({number_list(own.ddq)} rad/s²).",
        tables=(paper_table(head, rows),),
        figures=(PaperFigure("Joint 2", tuple(panels)),),
        statements=(
            assertion(
                "Optimisation brings the condition number of the first equation from beyond 1000 to below 88.",
                before > 1e3 and max(free.value, limited.value) < 88.0 and free.violation == limited.violation == 0.0,
                f"{number(before, 3)} at the start, {free.value:.0f} with free acceleration, {limited.value:.0f} "
                "within limits.",
            ),
            claim_result(
                "The optimal acceleration of joint 2 cannot be realised.",
                off > REALISED or conditions["that, as the arm plays it"] > 2.0 * free.value,
                f"Within position limits only, the optimum needs {number(free_peaks[1], 2)} rad/s² of joint 2, whose "
                f"limit is {number(own.ddq[1], 2)} rad/s². The arm's largest tracking error is {number(off, 2)}°, and "
                "the motion that it played has a condition number of "
                f"{number(conditions['that, as the arm plays it'], 3)} (planned: {number(free.value, 3)}).",
                "Long swings separate the seven parameters, fast ones do not: at twice the speed the same motion has "
                f"{number(_condition(lab, (q, 2.0 * dq, 4.0 * ddq)), 3)}, since inertia's columns outgrow those of "
                "friction. The paper's robot may have had narrower limits, which it does not print; those of ours "
                f"cost a factor of {limited.value / free.value:.2f}.",
            ),
        ),
        differences=(
            "The start is not printed, so its condition number cannot be the paper's; nor are the limits.",
            "Gradients here are exact, with several starts; the paper has 88 steps from one start.",
            "The text says Figure 5 and means Figure 6.",
        ),
    )


def _play_motion(lab: Lab, wanted: Any) -> tuple[SampledMotion, Array]:
    """Return the motion that the simulated arm plays, at the points, and the limits of its motors' torques [N m]."""
    own, rng = default_limits(lab.robot), np.random.default_rng(0)
    # Extreme states: random postures at full speed and acceleration in all directions.
    q = rng.uniform(own.lower, own.upper, size=(500, 3))
    signs = rng.choice([-1.0, 1.0], size=(2, 500, 3))
    torques = np.max(np.abs(lab.truth.torque(q, signs[0] * own.dq, signs[1] * own.ddq)), axis=0)
    control = FeedForward.for_model(lab.truth, bandwidth_rad_s=30.0, limit=torques)
    # The arm starts with the motion's position and velocity, since its acceleration may be large at once.
    steps = SECONDS / POINTS / 10
    first = [x[0] for x in wanted.sample(np.zeros(1))[:2]]
    run = sy.simulate(lab.truth, control, reference=wanted, duration=SECONDS, step=steps, q0=first[0], dq0=first[1])
    dense = run.log()
    dq = np.asarray(dense.dq)
    ddq = np.gradient(dq, dense.t, axis=0)
    at = np.searchsorted(dense.t, np.arange(POINTS) * SECONDS / POINTS - 1e-9)
    return (dense.q[at], dq[at], ddq[at]), torques


def figures_7_to_9(lab: Lab) -> Item:
    """Figures 7–9: start and optimal motions of single joints, integral model."""
    t = np.arange(0.0, 4.0, WINDOW)
    optimal = [motor.exciting.trajectory.sample(t) for motor in lab.motors]
    before, after = (
        [float(np.linalg.cond(motor.information(x))) for motor, x in zip(lab.motors, motions, strict=True)]
        for motions in ([cosine(t)] * 3, optimal)
    )
    feasible = all(motor.exciting.violation == 0.0 for motor in lab.motors)
    differences = [_other_power(motor, best) for motor, best in zip(lab.motors, optimal, strict=True)]
    panels = []
    for title, best in zip(TITLES, optimal, strict=True):
        pair = {"start": cosine(t), "optimal": best}
        panels += [
            Panel(f"{title}, {signal}", tuple(Line.of(n, t, m[k][:, 0]) for n, m in pair.items()), y=unit)
            for k, signal, unit in ((0, "position", "[rad]"), (1, "velocity", "[rad/s]"))
        ]
    printed = (None, 3000.0, None), (None, 500.0, None)
    rows = [(title, printed[0][k], before[k], printed[1][k], after[k]) for k, title in enumerate(TITLES)]
    head = ("moving joint", *paired_columns("cond₂(hᵀh) at start", digits=3), *paired_columns("optimal", digits=3))
    return Item(
        text="The IRp-6 with one motor moving and the others idle (with motor 2, joint 3 follows joint 2, so that the "
        "forearm keeps its direction); windows of 5 ms, within ±40°, 1.5 rad/s and 4.5 rad/s². The start swings once "
        "by 0.6 rad. The optimum has free samples of acceleration, as in the paper. Condition numbers are computed "
        "from the arm's energy and friction along both motions. The search uses an arm of one joint. For motors 1 and "
        "3 that is the IRp-6 with its other joints locked. For motor 2 (the middle row) it has the links of the IRp-6, "
        "with the forearm's angle opposite to that of joint 2, and the drives and friction of motors 1 and 2. Motor 3 "
        "is at rest, so its inertia and friction do no work. Motor 2 turns against joint 2: the whole arm plays the "
        "mirror image of the optimised motion, with the same power at every instant, since gravity is proportional to "
        "cos q2 and the limits are symmetric.",
        tables=(paper_table(head, rows),),
        figures=(PaperFigure("Start and optimal motions", tuple(panels)),),
        statements=(
            assertion(
                "Optimisation of motor 2 lowers cond₂(hᵀh) at least as far as in the paper, 3000 to 500.",
                after[1] < before[1] / 6.0 and after[1] < 500.0,
                f"{before[1]:.0f} to {after[1]:.0f}.",
            ),
            assertion(
                "The same holds for the other two, and the limits are kept at every instant.",
                feasible and all(a < b for a, b in zip(after, before, strict=True)),
                ", ".join(f"{r[0]} {number(r[2], 3)} to {number(r[4], 3)}" for r in (rows[0], rows[2])) + ".",
            ),
            assertion(
                "The one-joint arms of the searches have the power of the whole IRp-6 along these motions.",
                max(differences) < 1e-9,  # rounding
                f"Largest difference over the largest power: {number_list(differences, '.0e')} (motors 1, 2, 3).",
            ),
        ),
        differences=(
            "The paper gives numbers for joint 2 alone. Its limits are not printed, nor the size of its cosine.",
        ),
    )


def _other_power(motor: Motor, motion: SampledMotion) -> float:
    """Return the largest relative difference in power between a motor's one-joint arm and the whole arm."""
    q, dq, ddq = (motor.path(x) for x in motion)
    whole = np.sum(motor.lab.truth.torque(q, dq, ddq) * dq, axis=1)
    alone = np.sum(motor.alone.torque(*motion) * motion[1], axis=1)
    return float(np.max(np.abs(alone - whole)) / np.max(np.abs(whole)))


def figure_15(lab: Lab) -> Item:
    """Figure 15: estimates of joint 1 with optimal and non-optimal motions."""
    period = WINDOW / 2.0
    t = np.arange(0.0, 4.0, period)
    axis, runs = lab.motors[0], 2 if lab.fast else 20
    motions = {"optimal": axis.exciting.trajectory.sample(t), "non-optimal": cosine(t)}
    histories = {n: [axis.history(axis.log(m, s, period)) for s in range(runs)] for n, m in motions.items()}
    times = {n: float(np.median([settling_time(*h, axis.values, 0.1) for h in x])) for n, x in histories.items()}
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
        text=f"The IRp-6 with motor 1 moving, all of its base parameters in the recursion, including friction. "
        f"Noise as before, {runs} runs; the plot shows the first.",
        tables=(paper_table(head, rows, "Root mean square errors at the end"),),
        figures=(PaperFigure("Recursive least squares", tuple(panels)),),
        statements=(
            claim_result(
                "Estimates are stable with exciting motions.",
                times["optimal"] < times["non-optimal"] and np.all(gain > 1.0),
                f"All three errors stay below 10 % after {times['optimal']:.2f} s with the optimal motion, and after "
                f"{times['non-optimal']:.2f} s (of 4 s) with the starting motion; errors at the end fall by factors of "
                + ", ".join(f"{g:.1f}" for g in gain) + " (X1, F1v, F1c).",
            ),
        ),
        differences=(
            "The figure gives no numbers.",
            "The remaining error of X1 is a bias: over 5 ms, noise of 1 mrad/s changes ½q̇² (see above).",
        ),
    )  # fmt: skip


def _start() -> SampledMotion:
    """Return splines for joints 1 and 2, and a cosine for joint 3."""
    knots = np.deg2rad([[0.0, 0.0], [30.0, 20.0], [-30.0, -20.0], [0.0, 0.0]])
    period = SECONDS / POINTS
    first_two = via(knots, SECONDS / 3.0, period)
    third = cosine(np.asarray(period * np.arange(POINTS)), SECONDS, 0.25)
    q, dq, ddq = (np.hstack([x, y]) for x, y in zip(first_two, third, strict=True))
    return q, dq, ddq


def _condition(lab: Lab, motion: SampledMotion) -> float:
    """Compute cond₂(DᵀD) of the first equation."""
    Y: Array = lab.base.regressor_columns(lab.truth.dynamics.torque_regressor(*motion))[:, 0]
    D = Y[:, [k for k, name in enumerate(lab.base.names) if name in FIRST_EQUATION]]
    return float(np.linalg.cond(D.T @ D))
