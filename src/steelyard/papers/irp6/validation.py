"""Figures 16 and 17: what the identified models predict."""

from __future__ import annotations

import numpy as np

import steelyard as sy
from steelyard.papers.irp6.lab import SHORT, TORQUE_NOISE, Lab, splines
from steelyard.papers.irp6.movements import KNOTS, PERIOD, Campaign
from steelyard.papers.paper import Figure, Item, measured
from steelyard.report.plots.lines import Line, Panel


def figure_16(lab: Lab) -> Item:
    """Figure 16: measured and predicted torque of joint 3."""
    campaign = Campaign(lab)
    other = {m: tuple(0.8 * x for x in knots[::-1]) for m, knots in KNOTS.items()}
    log = campaign.log(tuple(KNOTS), 99, other)
    predicted = campaign.model.torque(log.q, np.asarray(log.dq), np.asarray(log.ddq))[:, 2]
    tau = np.asarray(log.tau)[:, 2]
    error = float(np.sqrt(np.mean((tau - predicted) ** 2)))
    moving = np.abs(np.asarray(log.dq)[:, 1:].sum(axis=1)) > 0.02  # motor 3
    there = float(np.sqrt(np.mean((tau - predicted)[moving] ** 2)))
    lines = (Line.of("measured", log.t, tau), Line.of("predicted", log.t, predicted, dashed=True))
    return Item(
        text="The model of the movements above on a motion of all joints that it has not seen.",
        figures=(Figure("Joint 3", (Panel("", lines, y="torque [N m]"),)),),
        statements=(
            measured(
                "The predicted torque of joint 3 matches the measured one closely.",
                f"Root mean square error {there:.2f} N m while motor 3 moves and {error:.2f} N m with the moments of "
                "rest, where the sign of friction is chance. The noise is "
                f"{TORQUE_NOISE:g} N m, the torque {np.std(tau):.0f} N m.",
            ),
        ),
        differences=("The figure has no numbers, and its motion is not printed.",),
    )


def figure_17(lab: Lab) -> Item:
    """Figure 17: measured and simulated position of joint 1."""
    axis, motion = lab.first, splines(KNOTS["motor1"], period=PERIOD)
    seen = sy.fit_log(axis.base, axis.log(motion, 0, PERIOD), scheme=SHORT).theta
    model = sy.Model(axis.truth.robot, axis.truth.terms, seen)
    other = splines(KNOTS["motor2"], period=PERIOD)
    log = axis.log(other, 1, PERIOD)
    made = sy.replay(model, log, q0=other[0][0], dq0=np.zeros(1), method="rk4")
    right = sy.replay(axis.truth, log, q0=other[0][0], dq0=np.zeros(1), method="rk4")
    off = {n: np.rad2deg(float(np.sqrt(np.mean((x.q - log.q) ** 2)))) for n, x in (("ours", made), ("true", right))}
    lines = [Line.of("measured", log.t, log.q[:, 0]), Line.of("simulated", log.t, made.q[:, 0], dashed=True)]
    return Item(
        text="The parameters of joint 1, found from one motion, in a simulation under the torques of another, without "
        "any feedback.",
        figures=(Figure("Joint 1", (Panel("", tuple(lines), y="position [rad]"),)),),
        statements=(
            measured(
                "The simulated position of joint 1 follows the measured one.",
                f"Root mean square error {off['ours']:.2f}° on moves of {np.ptp(np.rad2deg(log.q)):.0f}°; with the "
                f"true parameters it is {off['true']:.2f}°, from noise of the torque and the jump of friction.",
            ),
        ),
        differences=("The figure has no numbers, and whether its simulation had feedback is not said.",),
    )
