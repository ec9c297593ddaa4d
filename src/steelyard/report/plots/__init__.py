"""Figures of arrays."""

from steelyard.report.plots.estimates import correlations, error_boxes, parameter_intervals, singular_values
from steelyard.report.plots.figure import Figure
from steelyard.report.plots.residuals import (
    autocorrelation,
    residual_autocorrelation,
    residual_map,
    residual_spectrum,
    residuals,
)
from steelyard.report.plots.torque import torque_measured_predicted, torque_shares

__all__ = [
    "Figure",
    "autocorrelation",
    "correlations",
    "error_boxes",
    "parameter_intervals",
    "residual_autocorrelation",
    "residual_map",
    "residual_spectrum",
    "residuals",
    "singular_values",
    "torque_measured_predicted",
    "torque_shares",
]
