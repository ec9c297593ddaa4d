"""Torque constants: where users find them, and their estimate from torques and currents that a controller commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.numbers import number

# Columns of commanded torque and commanded current, by recorder; `{0}` is the joint's number from 0.
TARGETS: Mapping[str, tuple[str, str]] = {"ur-rtde": ("target_moment_{0}", "target_current_{0}")}
# Where users of a robot find constants on the joint's side, by recorder.
SOURCES: Mapping[str, str] = {
    "ur-rtde": "Universal Robots: record target_moment and target_current too; `steelyard map` computes the constants "
    "from them.",
    "franka": "Franka: not needed; tau_J is a measured joint torque, and `effort` in ROS is the same.",
    "kuka-rsi": "KUKA: record GearTorque, or $TORQUE_AXIS_ACT of the controller, instead of currents; else the motor's "
    "constant from its data sheet times the gear ratio. LBR iiwa: not needed; the torque is measured.",
    "ros2-control": "ROS: `effort` should be in N m, but many drivers publish amperes or per cent; the driver's "
    "documentation says which. Amperes need the motor's constant times the gear ratio.",
}
_OTHERS = "Other drives: the motor's constant from its data sheet [N m/A] times the gear ratio."
# Smallest share of the current's variance that torque and friction explain: beyond it the two columns are not related by
# a constant, as for a joint that carries nothing or a drive with another law.
_LEAST_EXPLAINED = 0.98
_LEAST_ROWS = 50


@dataclass(frozen=True)
class ConstantEstimate:
    """Torque constants from commanded torques and currents.

    Attributes:
        values: Constant of each joint [N m/A]; NaN where torque and friction do not explain the current.
        explained: Share of the current's variance that they explain, by joint.
    """

    values: tuple[float, ...]
    explained: tuple[float, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every joint has a constant."""
        return bool(np.isfinite(self.values).all())


def constants_from_targets(torque: Array, current: Array, velocity: Array) -> ConstantEstimate:
    """Estimate torque constants from what a controller commands.

    Commanded currents may contain dry friction and an offset that commanded torques lack; both are fitted beside the
    constant, joint by joint.

    Args:
        torque: Commanded torques [N m], shape (rows, joints).
        current: Commanded currents [A], shape (rows, joints).
        velocity: Velocities of the joints, any unit, shape (rows, joints).
    """
    values, explained = [], []
    for tau, i, speed in zip(torque.T, current.T, velocity.T, strict=True):
        valid = np.isfinite(tau) & np.isfinite(i) & np.isfinite(speed)
        share, slope = 0.0, 0.0
        if np.count_nonzero(valid) >= _LEAST_ROWS and np.ptp(i[valid]) > 0.0 and np.ptp(tau[valid]) > 0.0:
            columns = np.column_stack([tau, np.sign(speed), np.ones_like(tau)])[valid]
            solution = np.linalg.lstsq(columns, i[valid], rcond=None)[0]
            slope = float(solution[0])
            share = 1.0 - float(np.var(i[valid] - columns @ solution) / np.var(i[valid]))
        values.append(1.0 / slope if slope and share >= _LEAST_EXPLAINED else np.nan)
        explained.append(share)
    return ConstantEstimate(tuple(values), tuple(explained))


def lines_to_fill_in(
    key: str, joints: Sequence[str], recorder: str | None = None, known: ConstantEstimate | None = None
) -> tuple[str, ...]:
    """Return lines for the mapping's file that the user completes; they are comments until then.

    Args:
        key: Key of the mapping: "torque_constants", "gear_ratio" or "time.rate".
        joints: Names of the joints.
        recorder: Key of `steelyard.signals.presets`; None: unknown.
        known: Estimate of the constants, if there is one.
    """
    if key == "time.rate":
        return ("Replace the ? and remove the #:", "time = {rate = ?}")
    values = known.values if known is not None else [np.nan] * len(joints)
    row = ", ".join(number(float(x), 4) if np.isfinite(x) else "?" for x in values)
    head = f"Replace each ? and remove the #; in the order {', '.join(joints)}:"
    if key != "torque_constants":
        return (head, f"{key} = [{row}]")
    sources = (SOURCES[recorder],) if recorder in SOURCES else tuple(SOURCES.values())
    return (head, f"{key} = [{row}]", *sources, _OTHERS)
