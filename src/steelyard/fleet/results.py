"""Tables of a fleet run (Parquet) for DuckDB, Polars and pandas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.fleet._channels import FRICTION_CHANNEL, Channel, channels_of
from steelyard.fleet.columns import TABLES
from steelyard.fleet.drift import Drift
from steelyard.fleet.effects import GAIN_KIND
from steelyard.fleet.log_factors import LogFactors
from steelyard.fleet.pooling import KindStd
from steelyard.fleet.robot_types import FittedRobotType
from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Content
from steelyard.ground.remote import shown_address

Row = dict[str, Any]


def fleet_tables(
    robots: Mapping[str, str], logs: Sequence[LogFactors], types: Sequence[FittedRobotType], files: Mapping[str, str]
) -> dict[str, Any]:
    """Make all tables as `pyarrow` tables, by name.

    Args:
        robots: Type of every robot.
        logs: Logs of all robots, including unusable ones.
        types: Results of the robot types that have some.
        files: Path of the model in the run folder, of every robot that has one.
    """
    made: dict[str, dict[str, list[Any]]] = {
        name: {f.name: [] for f in table.in_files} for name, table in TABLES.items()
    }

    def add(name: str, rows: Iterable[Row]) -> None:
        for row in rows:
            for key, column in made[name].items():
                column.append(robots[row["robot"]] if key == "model" and key not in row else row[key])

    odd = {(o.robot, o.url): o.sentence for fitted in types for o in fitted.judged.odd}
    add("logs", _logs(logs, odd))
    add("findings", _findings(logs))
    add("robots", _robots(robots, logs, types, files))
    add("outliers", (row for fitted in types for row in _outliers(fitted)))
    for fitted in types:
        scores = _scores(fitted)
        add("scores", scores)
        add("parameters", _parameters(fitted))
        add("joints", _joints(fitted, _residuals(scores)))
        add("differences", _differences(fitted))
        add("drift", (_plain(d) for d in fitted.drift.drifts))
        _add_days(fitted, made["days"])
    return {name: TABLES[name].arrow(columns) for name, columns in made.items()}


def table_files(tables: Mapping[str, Any]) -> dict[str, Content]:
    """Make the Parquet files of `tables` for a run folder."""
    return {f"{name}.parquet": partial(_write, table) for name, table in tables.items()}


def read_fleet_table(folder: Path, name: str, robot: str = "") -> Any:
    """Read a table of a run as a `pyarrow` table.

    Args:
        folder: Run folder.
        name: Name of the table.
        robot: Robot whose rows are read; "": all.
    """
    import pyarrow.parquet as pq

    return pq.read_table(folder / f"{name}.parquet", filters=[("robot", "=", robot)] if robot else None)


def _write(table: Any, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path, compression="zstd")


# ---------------------------------------------------------------- rows


def _logs(logs: Sequence[LogFactors], odd: Mapping[tuple[str, str], str]) -> Iterable[Row]:
    for log in logs:
        reason = log.skipped or odd.get((log.robot, log.url))
        yield {
            "robot": log.robot, "log": shown_address(log.url), "date": log.date, "temperature_c": log.temperature,
            "load": log.load, "used": reason is None, "reason": reason, "samples": log.samples,
            "duration_s": log.duration_s, "findings": len(log.findings),
        }  # fmt: skip


def _findings(logs: Sequence[LogFactors]) -> Iterable[Row]:
    for log in logs:
        for found in log.findings:
            own = {key: found.get(key) for key in ("joint", "kind", "severity", "message", "advice", "count")}
            yield {"robot": log.robot, "log": shown_address(log.url), **own}


def _robots(
    robots: Mapping[str, str], logs: Sequence[LogFactors], types: Sequence[FittedRobotType], files: Mapping[str, str]
) -> Iterable[Row]:
    drifts = Counter(d.robot for fitted in types for d in fitted.drift.drifts)
    outliers = Counter(o.robot for fitted in types for o in fitted.judged.outliers)
    odd = {(o.robot, o.url) for fitted in types for o in fitted.judged.odd}
    pooled = {r.robot: r for fitted in types for r in fitted.pooled.robots}
    own: dict[str, list[LogFactors]] = {robot: [] for robot in robots}
    for log in logs:
        own[log.robot].append(log)
    for robot, listed in own.items():
        used = [log for log in listed if log.factor is not None and (robot, log.url) not in odd]
        dates = [log.date for log in used if log.date is not None]
        yield {
            "robot": robot, "logs": len(listed), "logs_used": len(used), "samples": sum(log.samples for log in used),
            "duration_s": float(sum(log.duration_s for log in used)), "first": min(dates, default=None),
            "last": max(dates, default=None), "sharper": _median(pooled[robot].sharper) if used else None,
            "drifts": drifts[robot], "outliers": outliers[robot], "file": files.get(robot),
        }  # fmt: skip


def _parameters(fitted: FittedRobotType) -> Iterable[Row]:
    pooled, design = fitted.pooled, fitted.pooled.design
    std = {(k.kind, k.joint): k.std for k in pooled.kinds if k.unit != "1" or k.kind == GAIN_KIND}
    gains = [f"gain {name}" for name in design.equations]
    heads = [*zip(design.names, design.kinds, design.joints, design.units, strict=True)]
    heads += [(name, GAIN_KIND, joint, "1") for name, joint in zip(gains, design.equations, strict=True)]
    none = np.full(len(gains), np.nan)
    mean, mean_errors = np.concatenate([pooled.beta, none]), np.concatenate([pooled.errors, none])
    for robot in pooled.robots:
        made = fitted.estimates.get(robot.robot)
        possible = np.concatenate([np.full(design.rank, np.nan) if made is None else made.beta, none])
        columns = {
            "estimate": np.concatenate([robot.beta, robot.gain]),
            "error": np.concatenate([robot.errors, robot.gain_errors]),
            "own_estimate": np.concatenate([robot.own_beta, none]),
            "own_error": np.concatenate([robot.own_errors, none]),
            "mean": mean,
            "mean_error": mean_errors,
            "possible": possible,
        }
        finite = {name: np.where(np.isfinite(values), values, np.nan).tolist() for name, values in columns.items()}
        for k, (name, kind, joint, unit) in enumerate(heads):
            row = {"parameter": name, "kind": kind, "joint": joint, "unit": unit, "robots_std": std.get((kind, joint))}
            yield {"robot": robot.robot, **row, **{head: values[k] for head, values in finite.items()}}


def _scores(fitted: FittedRobotType) -> list[Row]:
    pooled, out = fitted.pooled, []
    mean = np.concatenate([np.nan_to_num(pooled.beta), np.zeros(len(pooled.design.equations))])
    units, own_x = _torque_units(fitted), {r.robot: np.nan_to_num(r.x) for r in pooled.robots}
    for log in fitted.logs:
        if log.factor is None:
            continue
        rows = np.maximum(log.rows, 1.0)
        left = np.sqrt(fitted.squares(log, own_x[log.robot]) / rows)
        far, own, torque = np.sqrt(fitted.squares(log, mean) / rows), log.residual_std, log.torque_std
        where = shown_address(log.url)
        for e, equation in enumerate(log.equations):
            out.append({
                "robot": log.robot, "log": where, "joint": equation.name, "unit": units.get(equation.name, "N m"),
                "rows": int(rows[e]), "torque": float(torque[e]), "residual": float(left[e]),
                "residual_mean": float(far[e]), "residual_own": float(own[e]),
                "relative_error": float(left[e] / torque[e]) if torque[e] > 0.0 else None,
            })  # fmt: skip
    return out


def _residuals(scores: Sequence[Row]) -> dict[tuple[str, str], float]:
    """Compute the root mean square residual of each joint over all logs of a robot."""
    sums: dict[tuple[str, str], list[float]] = {}
    for row in scores:
        own = sums.setdefault((row["robot"], row["joint"]), [0.0, 0.0])
        own[0] += row["rows"] * row["residual"] ** 2
        own[1] += row["rows"]
    return {key: float(np.sqrt(squares / max(rows, 1.0))) for key, (squares, rows) in sums.items()}


def _joints(fitted: FittedRobotType, residuals: Mapping[tuple[str, str], float]) -> Iterable[Row]:
    pooled = fitted.pooled
    units, channels = _torque_units(fitted), channels_of(pooled)
    mean = np.concatenate([np.nan_to_num(pooled.beta), np.zeros(len(pooled.design.equations))])
    usual = {
        joint: _median([x for (_, other), x in residuals.items() if other == joint])
        for joint in pooled.design.equations
    }
    friction = {joint: _friction_of(joint, channels) for joint in dict.fromkeys(c.joint for c in channels)}
    for robot in pooled.robots:
        for joint, row in friction.items():
            e = pooled.design.equations.index(joint) if joint in pooled.design.equations else -1
            left, most = residuals.get((robot.robot, joint)), usual.get(joint)
            made = row is not None
            yield {
                "robot": robot.robot, "joint": joint, "unit": units.get(joint, "N m"),
                "friction": float(row @ robot.x) if made else None,
                "friction_error": float(np.sqrt(max(row @ robot.x_covariance @ row, 0.0))) if made else None,
                "friction_mean": float(row @ mean) if made else None,
                "gain": float(robot.gain[e]) if e >= 0 else None,
                "gain_error": float(robot.gain_errors[e]) if e >= 0 else None,
                "residual": left,
                "residual_ratio": left / most if left is not None and most else None,
            }  # fmt: skip


def _friction_of(joint: str, channels: Sequence[Channel]) -> Any:
    """Return the friction of a joint at its usual speed as a row over a robot's coordinates; None without friction."""
    own = [c for c in channels if c.joint == joint and c.friction]
    whole = next((c.row for c in own if c.what == FRICTION_CHANNEL), None)
    return whole if whole is not None else own[0].reference if own else None


def _differences(fitted: FittedRobotType) -> Iterable[Row]:
    pooled, design = fitted.pooled, fitted.pooled.design
    robots = [r for r in pooled.robots if r.logs]
    gained = np.array([r.sharper for r in robots]) if robots else np.zeros((0, design.rank))
    for kind in pooled.kinds:
        own = [k for k in range(design.rank) if (design.kinds[k], design.joints[k]) == (kind.kind, kind.joint)]
        yield {"model": fitted.name, **_plain(kind), "sharper": _median(gained[:, own]) if own else None}


def _add_days(fitted: FittedRobotType, columns: dict[str, list[Any]]) -> None:
    """Add the days column by column, since there may be a hundred thousand."""
    for series in fitted.drift.series:
        same = {"model": fitted.name, **{name: getattr(series, name) for name in ("robot", "joint", "what", "unit")}}
        for name, value in same.items():
            columns[name] += [value] * len(series.dates)
        for name, values in (("date", series.dates), ("value", series.values), ("error", series.errors)):
            columns[name] += values.tolist()


def _outliers(fitted: FittedRobotType) -> Iterable[Row]:
    for rank, one in enumerate(fitted.judged.outliers, start=1):
        yield {
            "robot": one.robot, "rank": rank, "kind": one.kind, "joints": ", ".join(one.joints), "logs": len(one.logs),
            "log": shown_address(one.logs[0]) if one.logs else None, "since": one.since, "like": one.like or None,
            "p": one.p, "score": one.score, "sentence": one.sentence,
        }  # fmt: skip


def _plain(record: KindStd | Drift) -> Row:
    return {f.name: getattr(record, f.name) for f in fields(record)}


def _torque_units(fitted: FittedRobotType) -> dict[str, str]:
    return {joint.name: joint.effort_unit for joint in fitted.base.robot.joints}


def _median(values: Array | Sequence[float]) -> float | None:
    """Return the median of the finite values; None without any."""
    finite = np.asarray(values, dtype=float).ravel()
    finite = finite[np.isfinite(finite)]
    return float(np.median(finite)) if len(finite) else None
