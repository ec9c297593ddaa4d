"""Figures from plain arrays."""

from steelyard.report.plots.estimates import error_boxes, parameter_intervals, singular_values
from steelyard.report.plots.figure import Figure
from steelyard.report.plots.torque import (
    autocorrelation,
    residual_autocorrelation,
    residuals,
    torque_measured_predicted,
)

__all__ = [
    "Figure",
    "autocorrelation",
    "error_boxes",
    "parameter_intervals",
    "residual_autocorrelation",
    "residuals",
    "singular_values",
    "torque_measured_predicted",
]
