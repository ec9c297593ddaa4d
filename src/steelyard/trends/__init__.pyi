"""Changes over time: step and ramp templates, tests, scatter of series, control of false alarms."""

from .change_points import ChangePoint, change_template, scan, step_statistics
from .sequential_change import YEARLY_HZ, SeriesChange, step_evidence
from .series_statistics import (
    MEDIAN_EFFICIENCY,
    MEDIAN_SQUARE,
    as_gaussian,
    excess_variance,
    false_discovery,
    robust_p_values,
    significant_changes,
    weighted_mean,
)

__all__ = [
    "MEDIAN_EFFICIENCY", "MEDIAN_SQUARE", "YEARLY_HZ", "ChangePoint", "SeriesChange", "as_gaussian", "change_template",
    "excess_variance", "false_discovery", "robust_p_values", "scan", "significant_changes", "step_evidence",
    "step_statistics", "weighted_mean",
]  # fmt: skip
