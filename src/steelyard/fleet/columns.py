"""The tables of a fleet's run: which there are, and what each of their columns says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableField:
    """A column of a table: its name, its type ("text", "number", "count", "yes/no" or "time"), and what it says."""

    name: str
    type: str
    about: str


def _fields(*lines: str) -> tuple[TableField, ...]:
    """From lines of name, type and meaning."""
    return tuple(TableField(*(part.strip() for part in line.split("|"))) for line in lines)


_WHO = ("model | text | the robot's model", "robot | text | the robot")
_LOG = "log | text | where the log lies"
_JOINT = "joint | text | the joint; empty where it concerns none"
# By name, with what a row is.
TABLES: dict[str, tuple[str, tuple[TableField, ...]]] = {
    "logs": ("a log of the fleet's table", _fields(
        *_WHO, _LOG,
        "date | time | when it was logged, where that is known",
        "temperature_c | number | of the robot or its surroundings, as the table says",
        "load | text | what the robot carried, as the table says",
        "used | yes/no | whether it could be used",
        "reason | text | why not",
        "samples | count | of the log",
        "duration_s | number | of it",
        "findings | count | rows of findings.parquet",
    )),
    "robots": ("a robot", _fields(
        *_WHO,
        "logs | count | that the table names",
        "logs_used | count | of these",
        "samples | count | of the logs that were used",
        "duration_s | number | of these",
        "first | time | date of the first one",
        "last | time | date of the last one",
        "sharper | number | how much smaller its error bars are than by its own logs alone (median)",
        "drifts | count | rows of drift.parquet",
        "outliers | count | rows of outliers.parquet",
        "file | text | its model in the run folder: a URDF, with its sidecar",
    )),
    "parameters": ("a base parameter of a robot, or the gain of a joint's torque", _fields(
        *_WHO,
        "parameter | text | its name",
        "kind | text | links, gain, or the kind of its term: viscous, coulomb, offset and so on",
        _JOINT,
        "unit | text | of all numbers in the row",
        "estimate | number | by the robot's logs and those of its kin",
        "error | number | its standard error",
        "own_estimate | number | by the robot's own logs alone",
        "own_error | number | its standard error",
        "mean | number | of the robots of the model",
        "mean_error | number | its standard error",
        "robots_std | number | standard deviation between robots; empty for links",
        "possible | number | in the model that is written, which can exist",
    )),
    "joints": ("a joint of a robot", _fields(
        *_WHO, _JOINT,
        "unit | text | of friction and residuals",
        "friction | number | at the usual speed, all terms together",
        "friction_error | number | its standard error",
        "friction_mean | number | of the robots of the model",
        "gain | number | by which part its torque is larger than the model's",
        "gain_error | number | its standard error",
        "residual | number | what the robot's model leaves of the torque in all its logs, root mean square",
        "residual_ratio | number | the same over the median of the robots of the model",
    )),
    "scores": ("a joint in a log", _fields(
        *_WHO, _LOG, _JOINT,
        "unit | text | of torques",
        "rows | count | that were compared",
        "torque | number | standard deviation of the measured one, filtered",
        "residual | number | what the robot's model leaves of it, root mean square",
        "residual_mean | number | what the mean robot leaves",
        "residual_own | number | what a fit of this log alone leaves",
        "relative_error | number | residual / torque",
    )),
    "findings": ("something that the check of a log found", _fields(
        *_WHO, _LOG, _JOINT,
        "kind | text | what was looked at: gap, sign, units and so on",
        "severity | text | note, warning or problem",
        "message | text | what was seen",
        "advice | text | what to do about it",
        "count | count | how often it was seen",
    )),
    "differences": ("a kind of parameter on a joint of a model: how much its robots differ", _fields(
        _WHO[0],
        "kind | text | links, load mass and so on, gain, or the kind of a term",
        "joint | text | the joint; of loads the link",
        "std | number | standard deviation between robots",
        "error | number | its standard error",
        "log_std | number | between logs of one robot, beyond their error bars",
        "unit | text | of these; 1: parts of the joint's torque",
        "shown | yes/no | whether robots differ for sure, not by chance",
        "sharper | number | own error over pooled error, median over robots; empty for loads",
    )),
    "drift": ("a change beyond chance", _fields(
        *_WHO, _JOINT,
        "what | text | friction, offset, gain or the kind of a term",
        "how | text | step or growth",
        "since | time | its date",
        "earliest | time | with latest what the date lies between at 95 %",
        "latest | time | see earliest",
        "size | number | by how much the last days differ from before",
        "error | number | its standard error",
        "unit | text | of these",
        "relative | number | size as a part of the joint's friction; of the torque for gains",
        "relative_error | number | its standard error",
        "p | number | how often chance would do as much on this joint",
        "sentence | text | all this in words",
    )),
    "outliers": ("something that does not belong, the surest first", _fields(
        *_WHO,
        "rank | count | from 1, within the model",
        "kind | text | mapping, exchange, gear, friction, offset, gain or links",
        "joints | text | that are concerned, with commas between",
        "logs | count | that are concerned, where it is a matter of logs",
        "log | text | the first of them",
        "since | time | its date, where it has one",
        "like | text | for an exchange, the robot whose arm it is now, where that is known",
        "p | number | how often chance would do as much",
        "score | number | −log₁₀ p",
        "sentence | text | the evidence",
    )),
    "days": ("a day of a robot's joint", _fields(
        *_WHO, _JOINT,
        "what | text | friction, offset, gain or the kind of a term",
        "unit | text | of value and error",
        "date | time | of the day",
        "value | number | warmth taken out",
        "error | number | its standard error, the usual scatter of days included",
    )),
}  # fmt: skip
