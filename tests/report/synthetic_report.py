"""A report of synthetic data with every element of a real one."""

from __future__ import annotations

import numpy as np

from steelyard.friction.page import friction_curve
from steelyard.report.elements import TableColumn, callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots import (
    parameter_intervals,
    residual_autocorrelation,
    residuals,
    singular_values,
    torque_measured_predicted,
)

JOINTS = ("shoulder_pan", "shoulder_lift", "slide")
UNITS = ("N m", "N m", "N")


def synthetic_report(samples: int = 20_000) -> str:
    rng = np.random.default_rng(1)
    t = np.arange(samples) / 1000.0
    phase = np.array([0.7, 1.1, 0.4])
    position = np.sin(t[:, None] * phase)
    velocity = phase * np.cos(t[:, None] * phase)
    tau = 30.0 * np.sin(1.3 * t[:, None] * phase) + 4.0 * np.sign(velocity)
    left = 0.6 * rng.normal(size=tau.shape) + 0.3 * np.sign(velocity)
    curve = np.linspace(-1.2, 1.2, 200)[:, None] * np.ones(3)
    names = ["m1", "m2", "m3 + 0.2·m4", "mx2", "my2", "mz3", "Ixx1", "Iyy2 + Izz3", "Fv1", "Fv2", "Fc1"]
    unit = ["kg"] * 3 + ["kg m"] * 3 + ["kg m²"] * 2 + ["N m s/rad"] * 2 + ["N m"]
    after = rng.normal(scale=2.0, size=11)
    scores = [[j, u, 0.61 + k, 3.2 + k, 0.9989] for k, (j, u) in enumerate(zip(JOINTS, UNITS, strict=True))]
    columns = [
        TableColumn("joint"),
        TableColumn("unit"),
        TableColumn("RMSE"),
        TableColumn("error", "%"),
        TableColumn("R²", digits=6),
    ]
    rows = [[n, a, 0.01 * k, u] for k, (n, a, u) in enumerate(zip(names, after, unit, strict=True))]
    figures = {
        "Torque, measured and predicted": torque_measured_predicted(
            t, tau + left, tau, JOINTS, UNITS, band=np.full_like(tau, 1.5), standing=np.abs(velocity) < 0.1, clock="run"
        ),
        "Residuals over time": residuals(t, left, JOINTS, "time", UNITS),
        "Residuals over velocity": residuals(velocity, left, JOINTS, "velocity", UNITS),
        "Residuals over position": residuals(position, left, JOINTS, "position", UNITS),
        "Friction": friction_curve(
            velocity, 4.0 * np.sign(velocity) + left, curve, 4.0 * np.sign(curve), JOINTS, UNITS
        ),
        "Autocorrelation of the residuals": residual_autocorrelation(left, 1000.0, JOINTS),
    }
    sections = [
        Section(
            "Prediction",
            join(
                paragraph("On data that was not used for the fit <script>alert(1)</script>."),
                table_html(columns, scores, "Errors by joint"),
                callout("warning", "Joint slide leaves a residual that follows the sign of its velocity."),
                figure_html(figures["Torque, measured and predicted"], "Torque, measured and predicted"),
            ),
        ),
        Section(
            "Residuals", join(*(figure_html(figures[k], k, "Thinned out for display.") for k in list(figures)[1:4]))
        ),
        Section("Friction", figure_html(figures["Friction"], "Friction")),
        Section(
            "Parameters",
            join(
                table_html(["name", TableColumn("value"), TableColumn("standard error"), "unit"], rows),
                figure_html(parameter_intervals(names, unit, after, 0.1 + 0.0 * after, after + 0.3), "Parameters"),
            ),
        ),
        Section("Excitation", figure_html(singular_values(10.0 ** rng.uniform(-1, 3, 20)), "Singular values")),
        Section("Noise", figure_html(figures["Autocorrelation of the residuals"], "Autocorrelation of the residuals")),
    ]
    verdict = Verdict(
        "good", "The model predicts the torque of new motions to 3.2 %.", ("All links are physically possible.",)
    )
    return render_report(
        "Identification of arm7", sections, verdict=verdict, subtitle="3 joints, 20 s", footer="Made up"
    )
