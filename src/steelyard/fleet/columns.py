"""The tables of a fleet run and the meaning of their columns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableField:
    """A column of a table.

    Attributes:
        name: Name of the column.
        type: "text", "number", "count", "yes/no" or "time".
        about: Its meaning.
    """

    name: str
    type: str
    about: str


def _fields(*lines: str) -> tuple[TableField, ...]:
    """Parse lines of name, type and meaning."""
    return tuple(TableField(*(part.strip() for part in line.split("|"))) for line in lines)


_ROBOT = ("model | text | type of the robot", "robot | text | name of the robot")
_LOG = "log | text | location of the log"
_JOINT = "joint | text | name of the joint; empty if the row is about no joint"
# By name: meaning of a row, and columns.
TABLES: dict[str, tuple[str, tuple[TableField, ...]]] = {
    "logs": ("a log of the fleet's table", _fields(
        *_ROBOT, _LOG,
        "date | time | date of the log; empty if unknown",
        "temperature_c | number | temperature of the robot or its surroundings, from the fleet's table",
        "load | text | load of the robot, from the fleet's table",
        "used | yes/no | whether the log was used",
        "reason | text | why it was not used",
        "samples | count | number of samples",
        "duration_s | number | length of the log",
        "findings | count | number of its rows in findings.parquet",
    )),
    "robots": ("a robot", _fields(
        *_ROBOT,
        "logs | count | number of its logs in the fleet's table",
        "logs_used | count | number of logs that were used",
        "samples | count | number of samples in the logs used",
        "duration_s | number | total length of the logs used",
        "first | time | date of the first log used",
        "last | time | date of the last log used",
        "sharper | number | ratio of the error bars from its own logs alone to those with all robots (median)",
        "drifts | count | number of its rows in drift.parquet",
        "outliers | count | number of its rows in outliers.parquet",
        "file | text | its model in the run folder: a URDF with a sidecar",
    )),
    "parameters": ("a base parameter of a robot, or the gain of a joint's torque", _fields(
        *_ROBOT,
        "parameter | text | name of the parameter",
        "kind | text | links, gain, or the kind of its term: viscous, coulomb, offset and so on",
        _JOINT,
        "unit | text | unit of all numbers in the row",
        "estimate | number | value estimated from all robots of the type together",
        "error | number | its standard error",
        "own_estimate | number | value estimated from the robot's own logs alone",
        "own_error | number | its standard error",
        "mean | number | value of the mean robot of the type",
        "mean_error | number | its standard error",
        "robots_std | number | standard deviation between robots; empty for links",
        "possible | number | value in the written model, which is physically possible",
    )),
    "joints": ("a joint of a robot", _fields(
        *_ROBOT, _JOINT,
        "unit | text | unit of friction and residuals",
        "friction | number | friction at the usual speed, all terms together",
        "friction_error | number | its standard error",
        "friction_mean | number | friction of the mean robot of the type",
        "gain | number | relative excess of its torque over the model",
        "gain_error | number | its standard error",
        "residual | number | root mean square residual of the robot's model in all its logs",
        "residual_ratio | number | residual over the median of the robots of the type",
    )),
    "scores": ("a joint in a log", _fields(
        *_ROBOT, _LOG, _JOINT,
        "unit | text | unit of torques",
        "rows | count | number of rows that were compared",
        "torque | number | standard deviation of the measured torque, filtered",
        "residual | number | root mean square residual of the robot's model",
        "residual_mean | number | root mean square residual of the mean robot",
        "residual_own | number | root mean square residual of a fit to this log alone",
        "relative_error | number | residual / torque",
    )),
    "findings": ("a finding of the check of a log", _fields(
        *_ROBOT, _LOG, _JOINT,
        "kind | text | kind of the finding: gap, sign, units and so on",
        "severity | text | note, warning or problem",
        "message | text | description",
        "advice | text | remedy",
        "count | count | how often it was found",
    )),
    "differences": ("a kind of parameter on a joint of a robot type, with the difference between its robots", _fields(
        _ROBOT[0],
        "kind | text | links, load mass and so on, gain, or the kind of a term",
        "joint | text | name of the joint; of the link for loads",
        "std | number | standard deviation between robots",
        "error | number | its standard error",
        "log_std | number | standard deviation between logs of one robot, beyond their error bars",
        "unit | text | unit of these; 1 is a part of the joint's torque",
        "shown | yes/no | whether the difference is significant",
        "sharper | number | own error over pooled error, median over robots; empty for loads",
    )),
    "drift": ("a significant change", _fields(
        *_ROBOT, _JOINT,
        "what | text | friction, offset, gain or the kind of a term",
        "how | text | step or growth",
        "since | time | date of the change",
        "earliest | time | lower end of the 95 % interval of the date",
        "latest | time | upper end of the 95 % interval of the date",
        "size | number | difference between the last days and before the change",
        "error | number | its standard error",
        "unit | text | unit of size and error",
        "relative | number | size as a part of the joint's friction; of the torque for gains",
        "relative_error | number | its standard error",
        "p | number | p-value of the joint",
        "sentence | text | description of the change",
    )),
    "outliers": ("an outlier, the most significant first", _fields(
        *_ROBOT,
        "rank | count | from 1, within the robot type",
        "kind | text | mapping, exchange, gear, friction, offset, gain or links",
        "joints | text | affected joints, separated by commas",
        "logs | count | number of affected logs",
        "log | text | first affected log",
        "since | time | its date; empty without one",
        "like | text | for an exchange, the robot that the arm comes from; empty if unknown",
        "p | number | p-value",
        "score | number | −log₁₀ p",
        "sentence | text | the evidence",
    )),
    "days": ("a day of a robot's joint", _fields(
        *_ROBOT, _JOINT,
        "what | text | friction, offset, gain or the kind of a term",
        "unit | text | unit of value and error",
        "date | time | date of the day",
        "value | number | value without the effect of warmth",
        "error | number | its standard error, including the usual scatter of days",
    )),
}  # fmt: skip
