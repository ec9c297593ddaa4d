"""The table of base parameters: declared once, for `result.json`, data frames, the report and the studio."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.result_tables import ResultTable, TableField

if TYPE_CHECKING:
    from steelyard.identification.identification import Identification

# The parts of the error bars; only a structure search computes the first three.
_PARTS = ("noise_error", "motion_error", "structure_error", "delay_error")
BASE_PARAMETERS = ResultTable(
    "base parameters",
    "a base parameter",
    (
        TableField("name", "text", "name"),
        TableField("formula", "text", "formula in the parameters of links and joints", "base parameter"),
        TableField("unit", "text", "unit of the values", "unit"),
        TableField("interval", "text", "picture of the interval", "interval", in_files=False, in_frames=False),
        TableField("value", "number", "identified value", "value", error="standard_error"),
        TableField("standard_error", "number", "its standard error"),
        TableField("interval_95", "number", "ends of its 95 % interval", in_frames=False),
        TableField("low_95", "number", "lower end of its 95 % interval", in_files=False),
        TableField("high_95", "number", "upper end of its 95 % interval", in_files=False),
        TableField("half_width", "number", "half of the interval", "± 95 %", digits=2, in_files=False, in_frames=False),
        TableField("relative_percent", "number", "standard error, in percent of the value", in_frames=False),
        TableField("certainty", "number", "value over its standard error", "value / σ", digits=2, in_files=False,
                   in_frames=False),
        TableField("doubt", "text", "whether it may be zero", " ", in_files=False, in_frames=False),
        TableField("free_value", "number", "value of the free fit", "free fit", error="standard_error",
                   in_frames=False),
        TableField("nominal", "number", "value of the robot description", "nominal", error="standard_error",
                   in_files=False, in_frames=False),
        TableField("impossible_sign", "yes/no", "whether no robot can have its sign", in_frames=False),
        TableField("free_impossible_sign", "yes/no", "the same of the free fit", in_frames=False),
        TableField("rounding_shift", "number", "bias by rounded positions, corrected", in_frames=False),
        *(TableField(name, "number", f"part of the error: {name.partition('_')[0]}", in_frames=False)
          for name in _PARTS),
    ),
)  # fmt: skip


def base_rows(result: Identification) -> list[dict[str, Any]]:
    """Return the base parameters of `result` as rows of `BASE_PARAMETERS`."""
    base, estimate = result.base, result.estimate
    shift = estimate.details.get("rounding_shift")
    signs = [base.impossible_signs(x.beta) for x in (estimate, result.free)]
    parts = {name: estimate.details.get(name) for name in _PARTS}
    rows = []
    for k in range(base.rank):
        value, error = float(estimate.beta[k]), float(estimate.standard_errors[k])
        low, high = value - HALF_WIDTH_95 * error, value + HALF_WIDTH_95 * error
        rows.append({
            "name": base.names[k], "formula": base.formulas[k], "unit": base.units[k], "value": value,
            "standard_error": error, "interval_95": [low, high], "low_95": low, "high_95": high,
            "relative_percent": 100.0 * error / abs(value) if value else math.inf,
            "free_value": float(result.free.beta[k]),
            "impossible_sign": bool(signs[0][k]), "free_impossible_sign": bool(signs[1][k]),
            "rounding_shift": None if shift is None else float(shift[k]),
            **{name: None if part is None else float(part[k]) for name, part in parts.items()},
        })  # fmt: skip
    return rows
