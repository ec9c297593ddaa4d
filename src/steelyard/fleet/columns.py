"""The tables of a fleet run and the meaning of their columns."""

from __future__ import annotations

from steelyard.ground.result_tables import ResultTable, TableField


def _fields(*declared: str | TableField) -> tuple[TableField, ...]:
    """Return columns; a line has name, type and meaning of a column that pages do not show as it is."""
    return tuple(_field(*one.split(" | ")) if isinstance(one, str) else one for one in declared)


def _field(name: str, kind: str, about: str) -> TableField:
    return TableField(name, kind, about)


_ROBOT = ("model | text | type of the robot", "robot | text | name of the robot")
_LOG = "log | text | location of the log"
_JOINT = TableField("joint", "text", "name of the joint; empty if the row is about no joint", "joint")
# By name: meaning of a row, and columns.
_DECLARED: dict[str, tuple[str, tuple[TableField, ...]]] = {
    "logs": ("a log of the fleet's table", _fields(
        *_ROBOT, _LOG,
        TableField("date", "time", "date of the log; empty if unknown", "date"),
        TableField("temperature_c", "number", "temperature of the robot or its surroundings, from the fleet's table",
                   "temperature", "°C"),
        TableField("load", "text", "load of the robot, from the fleet's table", "load"),
        "used | yes/no | whether the log was used",
        TableField("reason", "text", "why it was not used", "why not used"),
        TableField("samples", "count", "number of samples", "samples"),
        "duration_s | number | length of the log",
        TableField("findings", "count", "number of its rows in findings.parquet", "findings"),
        TableField("largest_error", "number", "largest relative error of its joints", "largest error", digits=3,
                   percent=True, in_files=False),
        TableField("joint", "text", "joint with the largest error", "joint", in_files=False),
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
        TableField("parameter", "text", "name of the parameter", "parameter"),
        "kind | text | links, gain, or the kind of its term: viscous, coulomb, offset and so on",
        _JOINT,
        TableField("unit", "text", "unit of all numbers in the row", "unit"),
        TableField("estimate", "number", "value estimated from all robots of the type together",
                   "pooled", error="error"),
        "error | number | its standard error",
        TableField("own_estimate", "number", "value estimated from the robot's own logs alone",
                   "own logs alone", error="own_error"),
        "own_error | number | its standard error",
        TableField("mean", "number", "value of the mean robot of the type", "mean of the type", error="mean_error"),
        "mean_error | number | its standard error",
        "robots_std | number | standard deviation between robots; empty for links",
        TableField("possible", "number", "value in the written model, which is physically possible", "in the model"),
    )),
    "joints": ("a joint of a robot", _fields(
        *_ROBOT, _JOINT,
        TableField("unit", "text", "unit of friction and residuals", "unit"),
        TableField("friction", "number", "friction at the usual speed, all terms together",
                   "friction", error="friction_error"),
        "friction_error | number | its standard error",
        TableField("friction_mean", "number", "friction of the mean robot of the type", "type's mean", digits=3),
        TableField("deviation", "number", "friction relative to the type's mean",
                   "deviation", percent=True, in_files=False),
        TableField("gain", "number", "relative excess of its torque over the model",
                   "gain", error="gain_error", percent=True),
        "gain_error | number | its standard error",
        TableField("residual", "number", "root mean square residual of the robot's model in all its logs",
                   "residual", digits=3),
        TableField("residual_ratio", "number", "residual over the median of the robots of the type",
                   "over the median", digits=3),
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
        TableField("severity", "text", "note, warning or problem", "severity"),
        TableField("message", "text", "description", "message"),
        TableField("advice", "text", "remedy", "remedy"),
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
        TableField("what", "text", "friction, offset, gain or the kind of a term", "what"),
        TableField("how", "text", "step or growth", "how"),
        TableField("since", "time", "date of the change", "since"),
        TableField("earliest", "time", "lower end of the 95 % interval of the date", "between (95 %)"),
        "latest | time | upper end of the 95 % interval of the date",
        "size | number | difference between the last days and before the change",
        "error | number | its standard error",
        "unit | text | unit of size and error",
        TableField("relative", "number", "size as a part of the joint's friction; of the torque for gains",
                   "size", error="relative_error", percent=True),
        "relative_error | number | its standard error",
        TableField("p", "number", "p-value of the joint", "p-value", "1", 2),
        "sentence | text | description of the change",
    )),
    "outliers": ("an outlier, the most significant first", _fields(
        *_ROBOT,
        TableField("rank", "count", "from 1, within the robot type", "rank"),
        TableField("kind", "text", "mapping, exchange, gear, friction, offset, gain or links", "kind"),
        "joints | text | affected joints, separated by commas",
        "logs | count | number of affected logs",
        "log | text | first affected log",
        "since | time | its date; empty without one",
        "like | text | for an exchange, the robot that the arm comes from; empty if unknown",
        TableField("p", "number", "p-value", "p-value", "1", 2),
        "score | number | −log₁₀ p",
        TableField("sentence", "text", "the evidence", "evidence"),
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
TABLES = {name: ResultTable(name, row, fields) for name, (row, fields) in _DECLARED.items()}
