"""Figures 2 to 7."""

from __future__ import annotations

import numpy as np

import steelyard as sy
from steelyard.papers.paper import Figure, Item, Statement, asserted, measured
from steelyard.papers.rotradi.lab import LIMITS, Lab, encoded, validation_torque
from steelyard.report.plots.lines import Line, Panel, joint_panels
from steelyard.robot.spatial import Array


def figure_2(lab: Lab) -> Item:
    """Figure 2: evolution of the parameters."""
    history = lab.recursions["filtered_dynamic"].history
    theta = lab.own.from_base(history.beta) * np.where(np.arange(21) == 13, 0.1, 1.0)
    names = [f"θ{k + 1}" + (" × 0.1" if k == 13 else "") for k in range(21)]
    panels = tuple(
        Panel(
            f"{names[k]} to {names[k + 6]}",
            tuple(Line.of(names[i], history.t, theta[:, i]) for i in range(k, k + 7)),
            y="value",
            range=(-8.0, 12.0),
        )
        for k in (0, 7, 14)
    )
    settled = _settled(history.t, theta)
    return Item(
        figures=(
            Figure(
                "θ(t), filtered-dynamic scheme",
                panels,
                "θ14 is scaled by 0.1, as in the paper; the first moments leave the picture.",
            ),
        ),
        statements=(
            measured(
                "How soon the parameters settle.",
                f"Half of them stay within 5 % of their last value (or 0.0025) from {np.median(settled):.1f} s on, all "
                f"from {np.max(settled):.1f} s on.",
            ),
        ),
        differences=("The paper does not say which scheme Figure 2 shows; we take the one it calls best.",),
    )


def figure_3(lab: Lab) -> Item:
    """Figure 3: evolution of the covariance matrix's eigenvalues."""
    history = lab.recursions["filtered_dynamic"].history
    values = history.eigenvalues
    lines = tuple(Line.of("eigenvalues of P(k)", history.t, column) for column in values.T)
    largest = values[:, 0]
    return Item(
        figures=(Figure("All 21", (Panel("", lines, y="eigenvalue", logarithmic=True),)),),
        statements=(
            asserted(
                "(39): the largest eigenvalue of P(k) falls towards zero.",
                np.all(np.diff(largest) <= 1e-9 * largest[:-1]) and largest[-1] < 1.0,  # never up, but for rounding
                f"It never rises, and falls from 1e6 to {largest[-1]:.2g} in {history.t[-1]:.0f} s.",
            ),
        ),
    )


def figures_4_and_5(lab: Lab) -> Item:
    """Figures 4 and 5: positions and torques under (30)–(32)."""
    clipped = np.any(np.abs(np.asarray(lab.log.tau)) >= np.array(LIMITS), axis=1)
    found = f"{100.0 * np.mean(clipped):.1f} % of the samples reach a limit of Table 1."
    return _responses(lab, lab.log, measured("Whether (30)–(32) saturate the motors.", found))


def figures_6_and_7(lab: Lab) -> Item:
    """Figures 6 and 7: positions and torques under (40)–(42)."""
    return _responses(lab, encoded(lab.played(validation_torque())))


def _responses(lab: Lab, log: sy.Log, *more: Statement) -> Item:
    """The model of the filtered-dynamic scheme beside the arm."""
    theta = lab.estimates["filtered_dynamic"]
    run = lab.replayed(theta, log)
    applied = np.asarray(log.tau)
    computed = lab.model(theta).torque(log.q, np.asarray(log.dq), np.asarray(log.ddq))
    joints = ("base", "shoulder", "elbow")
    positions = joint_panels(joints, log.t, {"measured": log.q, "simulated": run.q}, "rad", ("simulated",))
    torques = joint_panels(joints, log.t, {"computed": computed, "input": applied}, "N m")
    error = np.full(3, np.nan) if run.position_error is None else run.position_error
    rmse = np.sqrt(np.mean((computed - applied) ** 2, axis=0))
    return Item(
        figures=(
            Figure("Positions", positions, "Open loop from rest, with the parameters of the filtered-dynamic scheme."),
            Figure("Torques", torques, "Computed from encoder counts that were differentiated twice."),
        ),
        statements=(
            measured(
                "How near the simulated positions and the computed torques come.",
                f"‖position error‖₂ {_listed(error)} rad; torque error {_listed(rmse)} N m (root mean square).",
            ),
            *more,
        ),
    )


def _settled(t: Array, theta: Array) -> Array:
    """The last time at which each column was more than 5 % of its final value (or of 0.05) away from it."""
    away = np.abs(theta - theta[-1]) > 0.05 * np.maximum(np.abs(theta[-1]), 0.05)
    return np.array([t[np.flatnonzero(column)[-1]] if column.any() else 0.0 for column in away.T])


def _listed(values: Array) -> str:
    return ", ".join(f"{x:.2f}" for x in values)
