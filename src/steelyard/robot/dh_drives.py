"""The parts of a Denavit–Hartenberg file that are about drives: the transmission and the joint terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.errors import RobotError
from steelyard.robot.fields import Field
from steelyard.robot.robot import NominalTerm
from steelyard.robot.spatial import snap
from steelyard.robot.transmission import BallScrew, ConstantRatio, Ratio, Transmission

# How many parameters the terms of the package have per coordinate; terms of other packages are passed on unchecked.
_PARAMETERS = {"rotor": 1, "viscous": 1, "coulomb": 1, "offset": 1, "quadratic": 1, "stribeck-atan": 3}


def read_transmission(entry: Field, joint_names: Sequence[str]) -> Transmission:
    """How the file's motors move its joints."""
    keys = entry.table((), ("motors", "motor_from_joint", "joint_from_motor", "ratios"))
    given = [key for key in ("motor_from_joint", "joint_from_motor") if key in keys]
    if len(given) != 1:
        entry.fail("needs one of motor_from_joint and joint_from_motor, a matrix by rows.")
    matrix = keys[given[0]].matrix(len(joint_names))
    motors = tuple(keys["motors"].texts()) if "motors" in keys else ()
    if len(set(motors)) < len(motors):
        keys["motors"].fail("a motor is named twice; name every motor differently.")
    ratios = tuple(_ratio(item) for item in keys["ratios"].items("ratio")) if "ratios" in keys else ()
    try:
        if given == ["joint_from_motor"]:
            # The inverse of a coupling of ones and minus ones is one again, but for the last bits.
            inverse = snap(Transmission.from_motor_to_joint(matrix).matrix, 1e-14)
            return Transmission(inverse, motors, ratios)
        return Transmission(np.array(matrix), motors, ratios)
    except RobotError as error:
        entry.fail(str(error))


def _ratio(entry: Field) -> Ratio:
    """A number, or a ball screw."""
    if not isinstance(entry.value, dict):
        ratio = entry.number()
        if ratio == 0.0:
            entry.fail("a ratio of 0 would leave the motor unconnected.")
        return ConstantRatio(ratio)
    screw = entry.table(("ball_screw",))["ball_screw"]
    keys = screw.table(("pitch", "x1_squared", "x2_squared", "phase"))
    pitch = keys["pitch"].number()
    if pitch == 0.0:
        keys["pitch"].fail("must not be 0 (it is negative where a growing motor angle shortens the screw).")
    x1, x2 = keys["x1_squared"].positive(), keys["x2_squared"].positive()
    if x1 >= x2:
        screw.fail("x1_squared = 2ab must be below x2_squared = a² + b², the cranks being a and b.")
    return BallScrew(pitch, x1, x2, keys["phase"].number())


def read_terms(entry: Field, joint_names: Sequence[str], transmission: Transmission | None) -> tuple[NominalTerm, ...]:
    """Friction, rotor inertia and other joint terms, as plain data."""
    return tuple(_term(item, joint_names, transmission) for item in entry.items("term"))


def _term(entry: Field, joint_names: Sequence[str], transmission: Transmission | None) -> NominalTerm:
    keys = entry.table(("kind", "values"), ("on", "options"))
    kind = keys["kind"].text()
    keys = Field(entry.value, f"{entry.place} ({kind})", entry.names).table(tuple(keys))
    on = keys["on"].choice(("joint", "drive", "motor")) if "on" in keys else "joint"
    if on != "joint" and transmission is None:
        keys["on"].fail(f"there is no {on} without a transmission; write on: joint, or state the transmission.")
    count = len(joint_names) if on == "joint" or transmission is None else len(transmission.motors)
    values = keys["values"]
    nested = isinstance(values.value, list | tuple) and any(isinstance(v, list | tuple) for v in values.value)
    rows = values.matrix(count) if nested else [values.vector(count)]
    if len(rows) != _PARAMETERS.get(kind, len(rows)):
        values.fail(f"a {kind} term has {_PARAMETERS[kind]} parameter(s), one list each, not {len(rows)}.")
    return NominalTerm(kind, tuple(tuple(row) for row in rows), on, _options(keys.get("options")))


def _options(entry: Field | None) -> tuple[tuple[str, float | str], ...]:
    if entry is None:
        return ()
    if not isinstance(entry.value, dict):
        entry.fail("must be a table of option names and values.")
    options: list[tuple[str, float | str]] = []
    for name, value in entry.value.items():
        item = entry.inside(value, str(name))
        options.append((str(name), item.text() if isinstance(value, str) else item.number()))
    return tuple(options)
