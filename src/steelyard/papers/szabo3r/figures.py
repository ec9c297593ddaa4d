"""Figures 2 and 3."""

from __future__ import annotations

import numpy as np

import steelyard as sy
from steelyard.papers.paper import Figure, Item, asserted, measured
from steelyard.papers.szabo3r.lab import JOINTS, LIMITS, NOISE, SIMPLEX, Lab, listed
from steelyard.report.plots.lines import joint_panels
from steelyard.robot.spatial import Array


def figure_2(lab: Lab) -> Item:
    """Figure 2: optimised excitation and noisy torques."""
    log, plan = lab.noisy(0), lab.plan
    Y = lab.L.reshape(-1, lab.base.rank)
    here = float(np.linalg.cond(Y.T @ Y, "fro"))
    motion = joint_panels(JOINTS, log.t, {"q [rad]": log.q, "dq [rad/s]": np.asarray(log.dq)}, "rad, rad/s")
    torque = joint_panels(JOINTS, log.t, {"measured": np.asarray(log.tau)}, "N m")
    return Item(
        text="A Fourier series of five harmonics within the limits, found by minimising the Frobenius condition "
        "number of LᵀL.",
        figures=(Figure("Motion", motion), Figure("Torques with noise of 0.5, 0.3 and 0.7 N m", torque)),
        statements=(
            asserted(
                "Optimisation lowers Cond_F(LᵀL).",
                plan.value < 0.5 * plan.start_value and here < SIMPLEX and plan.violation == 0.0,
                f"From {plan.start_value:.0f} (random start) to {plan.value:.0f} in our columns; {here:.0f} in the "
                f"paper's, where a simplex search had reached {SIMPLEX:.0f}. The limits are kept at every instant.",
            ),
        ),
        differences=(
            "The paper prints neither its motion, nor the number of harmonics, nor the limits, nor the value it "
            "reached: the figures here are for 5 harmonics of 0.1 Hz, 10 s at 100 Hz, and ±2.5, ±1.2, ±2.5 rad, "
            "3 rad/s, 12 rad/s².",
            "Its equation (22) has no offset, so no joint could swing about a posture other than zero; ours has one.",
        ),
    )


def figure_3(lab: Lab) -> Item:
    """Figure 3: measured, true and estimated torques."""
    log = lab.noisy(0)
    theta = sy.fit_log(lab.base, log, estimator="wls").theta
    model = sy.Model(lab.robot, lab.truth.terms, theta)
    true = np.asarray(lab.clean.tau)
    found = model.torque(log.q, np.asarray(log.dq), np.asarray(log.ddq))
    wrong = np.abs(true - found)
    rms = np.sqrt(np.mean(wrong**2, axis=0))
    elsewhere = _other_motion_error(lab, model)
    signals = {"τm, measured": np.asarray(log.tau), "τ0, without noise": true, "estimated (WLS)": found}
    return Item(
        figures=(
            Figure("Torques", joint_panels(JOINTS, log.t, signals, "N m", ("estimated (WLS)",))),
            Figure("|τ0 − estimated|", joint_panels(JOINTS, log.t, {"error": wrong}, "N m")),
        ),
        statements=(
            asserted(
                "The estimated torque is far nearer to the true one than the measured torque is.",
                np.all(rms < 0.2 * NOISE),
                f"Root mean square error {listed(rms)} N m; noise {listed(NOISE)} N m.",
            ),
            measured(
                "The same on motions that were not optimised (the text says so of Figure 3, its caption does not).",
                f"Root mean square error {listed(elsewhere)} N m, median over 20 random motions within the limits.",
            ),
        ),
    )


def _other_motion_error(lab: Lab, model: sy.Model) -> Array:
    """Error of the torque on random motions of the same family, each scaled into the limits."""
    rng = np.random.default_rng(0)
    trajectory, errors = lab.plan.trajectory, []
    for _ in range(20):
        motion = trajectory.with_coefficients(rng.normal(size=trajectory.size))
        peaks = [motion.peak_bounds(k) / np.asarray(LIMITS[name]) for k, name in enumerate(("q", "dq", "ddq"))]
        motion = trajectory.with_coefficients(motion.coefficients / np.max(peaks))
        signals = motion.sample(lab.clean.t)
        difference = model.torque(*signals) - lab.truth.torque(*signals)
        errors.append(np.sqrt(np.mean(difference**2, axis=0)))
    return np.asarray(np.median(errors, axis=0))
