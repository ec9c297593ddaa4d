"""`EncoderReadings`: a log with positions of motors and links, and checks of its second encoders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.elasticity.elastic_mapping import ELASTIC_CHANNEL, ENCODERS, ElasticMapping
from steelyard.errors import LogError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.read import read_log

# The slope of the second encoder against the first is near one: a deflection of a fifth of the motion, or an encoder
# with such a scale error, is implausible.
_SLOPE = 0.2
# Two columns with a smaller correlation belong to different joints.
_ALIKE = 0.9
# A joint moves if its range is larger than this share of the largest one.
_MOVES = 0.02
# Ratio of degrees to radians, for the detection of a wrong unit.
_DEGREE = 180.0 / np.pi


@dataclass(frozen=True, eq=False)
class EncoderReadings:
    """A log with two encoders on some joints.

    Attributes:
        log: The log.
        theta: Positions of the motors over their gears [rad or m], shape (samples, joints).
        q: Positions of the links; motor positions for joints without a second encoder.
        elastic: Indices of the joints with two encoders.
        findings: Remarks.
    """

    log: Log
    theta: Array
    q: Array
    elastic: tuple[int, ...]
    findings: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        return str(self.log.meta.get("source", "The log"))


def read_readings(log_like: Any, robot: Robot, mapping: ElasticMapping, needed: bool = True) -> EncoderReadings:
    """Read a log and check its second encoders.

    Args:
        log_like: Path, frame, dict of arrays, or a `Log` with the channels "elastic.link.JOINT".
        robot: Robot of the log.
        mapping: Meaning of the columns.
        needed: True refuses a log without a second encoder.
    """
    own = mapping if isinstance(log_like, Log) else mapping.for_file(log_like, robot)
    log = log_like if isinstance(log_like, Log) else read_log(log_like, robot, own.log)
    source = str(log.meta.get("source", "The log"))
    theta, q = log.q.copy(), log.q.copy()
    elastic, findings = [], []
    for k, joint in enumerate(robot.joint_names):
        kind, values = _second(log, joint)
        if values is None:
            continue
        values = own.size_of(joint, robot.joints[k].kind == "revolute") * values
        if kind == "deflection":
            q[:, k] -= values
        else:
            (q if kind == "link" else theta)[:, k] = values
        if not _moving(log.q)[k]:
            findings.append(f"Joint '{joint}' hardly moves in {source}; its second encoder was not used.")
            theta[:, k] = q[:, k] = log.q[:, k]
            continue
        elastic.append(k)
    if not elastic and needed:
        _refuse_missing(log, source, robot, own)
    for k in elastic:
        findings += _refuse_odd(source, robot, theta, q, k, _columns_of(own, robot.joint_names[k]))
    return EncoderReadings(log, theta, q, tuple(elastic), tuple(findings))


def _second(log: Log, joint: str) -> tuple[str, Array | None]:
    for kind in ENCODERS:
        values = log.channels.get(f"{ELASTIC_CHANNEL}.{kind}.{joint}")
        if values is not None:
            return kind, np.array(values[:, 0])
    return "", None


def _columns_of(mapping: ElasticMapping, joint: str) -> str:
    return f"column '{mapping.columns[joint][1]}'" if joint in mapping.columns else "the second encoder"


def _moving(q: Array) -> Array:
    size = np.ptp(q, axis=0)
    return np.asarray((size > _MOVES * size.max()) & (size > 0.0))


def _refuse_missing(log: Log, source: str, robot: Robot, mapping: ElasticMapping) -> None:
    if mapping.columns or any(name.startswith(f"{ELASTIC_CHANNEL}.") for name in log.channels):
        raise LogError(
            f"{source}: no joint with a second encoder moves, so the log does not determine elasticity; "
            "log a motion of these joints."
        )
    joint = robot.joint_names[0]
    raise LogError(
        f"{source}: no column of a link encoder was recognised; name it in the mapping, as "
        f'[elastic] link = {{{joint} = "COLUMN"}}, or use --resonance for a robot with one encoder.'
    )


def _refuse_odd(source: str, robot: Robot, theta: Array, q: Array, k: int, column: str) -> list[str]:
    """Refuse a second encoder with another unit, sign or joint; return remarks."""
    joint = robot.joint_names[k]
    x, y = theta[:, k] - theta[:, k].mean(), q[:, k] - q[:, k].mean()
    where = f"{source}: joint '{joint}': {column}"
    if np.array_equal(theta[:, k], q[:, k]):
        raise LogError(f"{where} equals the first encoder in every sample; name the column of the link encoder.")
    if not y.any():
        raise LogError(f"{where} is constant while the joint moves; name the column of the link encoder.")
    slope = float(x @ y / (x @ x))
    alike = float(x @ y / np.sqrt((x @ x) * (y @ y)))
    if abs(alike) < _ALIKE:
        others = _correlations(theta, y)
        near = int(np.argmax(np.abs(others)))
        follows = f"it follows joint '{robot.joint_names[near]}'; exchange the columns"
        hint = follows if abs(others[near]) > _ALIKE else "name the right column"
        raise LogError(f"{where} does not follow the joint (correlation {alike:.2f}); {hint}.")
    size = abs(slope)
    if abs(size - _DEGREE) < _SLOPE * _DEGREE:
        raise LogError(
            f'{where} is {size:.1f} times the first encoder, so it is in degrees; state units = "deg" in [elastic].'
        )
    if abs(size * _DEGREE - 1.0) < _SLOPE:
        raise LogError(
            f"{where} is 1/{1 / size:.1f} of the first encoder, which seems to be in degrees; state its unit "
            '(units.position = "deg").'
        )
    if abs(size - 1.0) > _SLOPE:
        ratio = f"{size:.4g}" if size > 1.0 else f"1/{1 / size:.4g}"
        raise LogError(
            f"{where} moves {ratio} times as far as the first encoder; both must be on the joint side of the gear: "
            "state gear_ratio in the mapping, or scale the column."
        )
    if slope < 0.0:
        raise LogError(f"{where} turns against the first encoder; state sign = {{{joint} = -1}} in [elastic].")
    offset = float(np.mean(theta[:, k] - q[:, k]))
    if abs(offset) > 2.0 * np.ptp(x):
        unit = robot.joints[k].unit if hasattr(robot.joints[k], "unit") else "rad"
        return [
            f"Joint '{joint}' of {source}: the encoders differ by {offset:.4g} {unit} on average; "
            "the fit estimates this offset."
        ]
    return []


def _correlations(theta: Array, y: Array) -> Array:
    x = theta - theta.mean(axis=0)
    return np.asarray(x.T @ y / np.sqrt(np.maximum(np.sum(x**2, axis=0) * (y @ y), 1e-300)))


def joints_named(robot: Robot, names: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of joints; an empty list selects all joints.

    Args:
        robot: The robot.
        names: Names of joints.
    """
    for name in names:
        if name not in robot.joint_names:
            raise UnknownNameError("joint", name, robot.joint_names)
    return tuple(robot.joint_index(n) for n in names) or tuple(range(robot.dof))


def values_by_joint(values: Mapping[str, float], robot: Robot) -> dict[int, float]:
    """Replace names of joints by their indices.

    Args:
        values: Values by joint.
        robot: The robot.
    """
    joints_named(robot, list(values))
    return {robot.joint_index(name): float(x) for name, x in values.items()}
