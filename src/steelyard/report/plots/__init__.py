"""Figures from plain arrays, as Plotly objects; Plotly is imported when the first is made."""

from steelyard.report.plots.autocorrelation import autocorrelation, residual_autocorrelation
from steelyard.report.plots.excitation import singular_values
from steelyard.report.plots.friction import friction_curve
from steelyard.report.plots.parameters import parameter_intervals
from steelyard.report.plots.residuals import residuals
from steelyard.report.plots.torque import torque_measured_predicted

__all__ = [
    "autocorrelation",
    "friction_curve",
    "parameter_intervals",
    "residual_autocorrelation",
    "residuals",
    "singular_values",
    "torque_measured_predicted",
]
