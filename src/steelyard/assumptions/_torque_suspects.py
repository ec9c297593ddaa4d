"""Suspects of the torques: scales, linearity, couplings, delays, smoothing, and what changes them during the logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np

from steelyard.assumptions.modelled_motion import JointTorques, ModelledMotion, all_joints
from steelyard.assumptions.suspect import Suspect, change_of
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot

# Joints up to which every torque may contain that of every other one.
_FEW_JOINTS = 8
# Torque over which a dead zone turns, relative to the standard deviation of the torque.
_TURN = 0.1


def scales(robot: Robot) -> Iterator[Suspect]:
    test = "carry a known payload, or hold a known weight"
    drives = "Check the drives."
    yield Suspect("torque scales", "torque scale", "", "", "The common scale of all torques is correct.",
                  "Correct the torque scale: torque constants, unit, motor or joint side.", test,
                  change=change_of("torque scale", "torque scales", "", "", "The common torque scale", drives),
                  )  # fmt: skip
    for j in robot.joints:
        yield Suspect(
            "torque scales", "torque scale", j.name, "",
            f"The torque scale of '{j.name}' is that of the other joints (−2: opposite sign).",
            f"Divide the torque of '{j.name}' by 1 + this: torque constant, gear, sign.", test,
            change=change_of("torque scale", "torque scales", j.name, "", f"The torque scale of '{j.name}'", drives),
        )  # fmt: skip


def scale_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    yield all_joints(along.torque)
    for j in range(along.model.robot.dof):
        yield {j: along.torque[:, j]}


def coupling(robot: Robot, quantity: str, i: int, j: int) -> Suspect:
    """Return the suspect of a coupling of one joint by another.

    Args:
        robot: The robot.
        quantity: "torque" or "position".
        i: Joint whose signal contains the other's.
        j: Other joint.
    """
    a, b = robot.joint_names[i], robot.joint_names[j]
    return Suspect(
        "couplings", f"{quantity} coupling", a, "", f"The {quantity} of '{a}' does not depend on that of '{b}'.",
        "State the coupling of the drives (coupling, side) in the mapping.", "move one of the two joints at a time",
        other=b,
    )  # fmt: skip


def couplings(robot: Robot) -> Iterator[Suspect]:
    for i, j in _pairs(robot):
        yield coupling(robot, "torque", i, j)


def coupling_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for i, j in _pairs(along.model.robot):
        yield {i: along.torque[:, j]}


def _pairs(robot: Robot) -> Iterator[tuple[int, int]]:
    """Yield the pairs of joints whose torques may be coupled, in both orders: of many joints, neighbours only."""
    if robot.dof > _FEW_JOINTS:
        yield from neighbours(robot)
    else:
        yield from permutations(range(robot.dof), 2)


def neighbours(robot: Robot) -> Iterator[tuple[int, int]]:
    """Yield pairs of consecutive joints, in both orders; their drives may be coupled.

    Args:
        robot: The robot.
    """
    for link in robot.links:
        if link.parent >= 0 and (other := robot.links[link.parent].coordinate) != link.coordinate:
            yield link.coordinate, other
            yield other, link.coordinate


def delays(robot: Robot) -> Iterator[Suspect]:
    yield from _with_harm(_delays(robot))


def _with_harm(suspects: Iterable[Suspect]) -> list[Suspect]:
    """Add suspects for harm alone: a delay also shifts friction, whose shape is too uncertain to show the delay."""
    told = list(suspects)
    return [*told, *(replace(s, only_harm=True, change=None) for s in told)]


def _delays(robot: Robot) -> Iterator[Suspect]:
    fix, test = "Give --delay, or log torques and positions with one clock.", "move faster, with more reversals"
    change = change_of("delay", "delays", "", "s", "The delay of the torques", "Log them with one clock.")
    yield Suspect("delays", "delay", "", "s", "Torques have no delay relative to positions.", fix, test, change=change)
    for j in robot.joints:
        yield Suspect(
            "delays",
            "delay",
            j.name,
            "s",
            f"The torque of '{j.name}' has no delay relative to its position.",
            fix,
            test,
        )


def delay_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for torque in (along.frictionless_torque, along.torque):
        rate = along.dense.part_by_part(lambda x, m: np.gradient(x, m.filter.period, axis=0), torque)
        yield all_joints(-rate)
        for j in range(rate.shape[1]):
            yield {j: -rate[:, j]}


def smoothings(robot: Robot) -> Iterator[Suspect]:
    yield from _with_harm(_smoothings(robot))


def _smoothings(robot: Robot) -> Iterator[Suspect]:
    # Noisy accelerations have the same effect: smoothing the model torque improves the fit.
    fix = "Log the torque unfiltered and positions without noise, or lower the cut-off (--cutoff)."
    test = "move faster, with more reversals"
    whole = "The torques are unfiltered and the motion has no noise."
    yield Suspect("smoothing", "smoothing of the torques", "", "s²", whole, fix, test, positive=True, ambiguous=True)
    for j in robot.joints:
        own = f"The torque of '{j.name}' is unfiltered and its motion has no noise."
        kind = "smoothing of the torque"
        yield Suspect("smoothing", kind, j.name, "s²", own, fix, test, positive=True, ambiguous=True)


def smoothing_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for torque in (along.frictionless_torque, along.torque):
        bend = along.dense.part_by_part(lambda x, m: _second_derivative(x, m.filter.period), torque)
        yield all_joints(bend)
        for j in range(bend.shape[1]):
            yield {j: bend[:, j]}


def _second_derivative(x: Array, period: float) -> Array:
    """Return the second derivative; a symmetric filter of variance σ² adds σ²/2 times it."""
    out = np.zeros_like(x)
    out[1:-1] = (x[2:] - 2.0 * x[1:-1] + x[:-2]) / period**2
    return out


def nonlinearities(robot: Robot) -> Iterator[Suspect]:
    test = "hold known weights of several sizes, in both directions"
    for j in robot.joints:
        fix = f"Calibrate the torque of '{j.name}' in both directions: sensor, current measurement, gear efficiency."
        for kind, unit in (("dead zone", j.effort_unit), ("difference between directions", "")):
            assumption = f"The torque of '{j.name}' is proportional to its true value ({kind})."
            yield Suspect("torque linearity", f"{kind} of the torque", j.name, unit, assumption, fix, test)


def nonlinearity_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for j, tau in enumerate(along.torque.T):
        yield {j: -np.tanh(tau / max(_TURN * float(np.std(tau)), 1e-12))}
        yield {j: np.abs(tau)}


# ---------------------------------------------------------------- numbers that are parameters, and may change


def payloads(robot: Robot) -> Iterator[Suspect]:
    change = change_of("payload", "load", "", "kg", "The payload", "Log with a constant payload.")
    yield replace(change, kind="payload", change=change, changes_only=True)


def payload_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    theta = np.zeros_like(along.model.theta)
    theta[10 * (len(along.model.robot.links) - 1)] = 1.0
    yield all_joints(along.of_parameters(theta))


def offsets(robot: Robot) -> Iterator[Suspect]:
    for j in robot.joints:
        what, fix = f"The torque offset of '{j.name}'", "Zero its sensor before logging."
        change = change_of("torque offset", "torque offsets", j.name, j.effort_unit, what, fix)
        yield replace(change, kind="torque offset", change=change, changes_only=True)


def offset_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for j in range(along.model.robot.dof):
        yield {j: np.ones(len(along.torque))}


def frictions(robot: Robot) -> Iterator[Suspect]:
    for j in robot.joints:
        what, fix = f"The friction of '{j.name}'", "Warm the robot up before logging."
        change = change_of("friction", "friction", j.name, "", what, fix)
        yield replace(change, kind="friction", change=change, changes_only=True)


def friction_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for j in range(along.model.robot.dof):
        yield {j: along.friction[:, j]}
