"""Guess units from numbers: steps of a clock, limits of joints, derivatives of positions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.signals.units import unit_size

# Slowest and fastest sampling [s].
_SLOWEST, _FASTEST = 0.5, 4e-5
_TURN = 2.0 * math.pi
# Units of velocity to compare with the derivative of the positions.
_SPEEDS = ("rad/s", "deg/s", "rpm", "m/s", "mm/s")
_ALIKE = 0.08  # relative tolerance of a slope
_HOLE = 5.0  # periods; a longer step is a gap
_STRAIGHT = 0.8  # correlation above which a velocity belongs to these positions


def time_unit(column: Array, stated: str) -> tuple[str, float, str, tuple[str, ...]]:
    """Guess the unit of a clock; return it, its size [s], the evidence, and other possible units."""
    steps = np.diff(column[np.isfinite(column)])
    step = float(np.median(steps[steps > 0.0])) if np.any(steps > 0.0) else 1.0
    fitting = [unit for unit in ("s", "ms", "us", "ns") if _FASTEST <= step * unit_size("time", unit) <= _SLOWEST]
    unit = stated if stated in ("s", "ms", "us", "ns") else fitting[0] if fitting else "s"
    size = unit_size("time", unit)
    regular = steps[(steps > 0.0) & (steps <= _HOLE * step)]
    rate = 1.0 / (size * float(np.mean(regular))) if len(regular) else 1.0 / (step * size)
    evidence = f"{rate:.4g} Hz" if abs(rate * step * size - 1.0) > 0.01 else f"steps of {step:.6g}: {rate:.6g} Hz"
    others = () if stated else tuple(u for u in fitting if u != unit)
    return unit, size, evidence, others


def unit_of(signal: str, x: Array, stated: str, joints: Sequence[Any]) -> tuple[str, str, str, Mapping[str, Any]]:
    """Guess the unit of a signal; return it, the evidence, and a question with choices if it is uncertain."""
    most = np.nanmax(np.abs(x), axis=0) if np.isfinite(x).any() else np.zeros(x.shape[1])
    top = f"at most {float(np.max(most)):.3g}"
    if stated:
        return stated, f"stated in the name; {top}", "", {}
    if signal == "position":
        return _position(most, top, joints)
    if signal == "torque":
        limits = [joint.effort for joint in joints]
        known = bool(limits) and all(np.isfinite(limits))
        if known and np.all(most <= 1.5 * np.array(limits)):
            return "N m", f"{top}, within the joints' limits", "", {}
        if known and np.any(most > 20.0 * np.array(limits)):
            return "mN m", f"{top}, far beyond the joints' limits in N m", *_ask("torque", "mN m", "N m")
        return "N m", f"{top}; no sign of another unit", "", {}
    if signal == "current":
        unit = "mA" if float(np.max(most)) > 200.0 else "A"
        return (
            unit,
            top,
            *(_ask("current", unit, "A" if unit == "mA" else "mA") if float(np.max(most)) > 60.0 else ("", {})),
        )
    return "", top, "", {}


def _position(most: Array, top: str, joints: Sequence[Any]) -> tuple[str, str, str, Mapping[str, Any]]:
    if joints and all(joint.kind == "prismatic" for joint in joints):
        reach = np.array([max(abs(joint.lower), abs(joint.upper)) for joint in joints])
        unit = "mm" if np.any(most > 10.0 * np.where(np.isfinite(reach), reach, 1.0)) else "m"
        return unit, f"{top}; prismatic joints", "", {}
    if joints and any(joint.kind == "prismatic" for joint in joints):
        return (
            "",
            f"{top}; mixed joints, assumed in m and rad",
            *_ask("position", "rad", "deg"),
        )
    reach = np.array([max(abs(joint.lower), abs(joint.upper)) for joint in joints]) if joints else np.array([np.inf])
    if np.all(np.isfinite(reach)) and np.any(most > 1.3 * reach):
        if np.all(np.radians(most) <= 1.1 * reach):
            return "deg", f"{top}: beyond the joints' limits in rad, within them in degrees", "", {}
        evidence = f"{top}: beyond the joints' limits even in degrees: probably motor angles"
        return "rad", evidence, "Are these the angles of the motors, before their gears?", {
            "at the motors, in rad": {"side": "motor"}, "at the joints, in deg": {"units.position": "deg"},
        }  # fmt: skip
    if float(np.max(most)) > 2.5 * _TURN:
        return "deg", f"{top}: more than two turns in rad", *_ask("position", "deg", "rad")
    within = (
        ", within the joints' limits"
        if np.all(np.isfinite(reach))
        else ": less than a turn, or a motion of few degrees"
    )
    return "rad", f"{top}{within}", "", {}


def velocity_of(
    q: Array, dq: Array, t: Array, unit: str, stated: str
) -> tuple[str, str, dict[str, Any], str, Mapping[str, Any]]:
    """Guess the unit of a velocity from positions in `unit`; return it with evidence, signs and a question."""
    size = unit_size("position", unit or "rad")
    slopes, straight = _slopes(q * size, dq, t)
    if not np.any(straight):
        return stated, "too little motion to compare it with the positions", {}, "", {}
    slope = float(np.median(np.abs(slopes[straight])))
    more: dict[str, Any] = {}
    backwards = straight & (slopes < 0.0)
    if backwards.any():
        more["sign"] = [-1 if odd else 1 for odd in backwards]
    turned = f"; with reversed sign for {int(backwards.sum())} joints" if backwards.any() else ""
    slides = unit in ("m", "mm", "cm", "um")
    for each in (stated, *(("m/s", "mm/s") if slides else _SPEEDS[:3])):
        if each and abs(slope * unit_size("velocity", each) - 1.0) < _ALIKE:
            return each, f"it is the derivative of the positions in {each}{turned}", more, "", {}
    evidence = f"it is {slope:.4g} times the derivative of the positions{turned}"
    question = "Is it the speed of the motors (then state gear_ratio and side), or should it be left out?"
    return stated, evidence, more, question, {"leave the velocity out": {"velocity": False}, "keep it": {}}


def _slopes(q: Array, dq: Array, t: Array) -> tuple[Array, Any]:
    """Compute each velocity's slope over the derivative of the positions, and whether they correlate.

    Changes of position are compared with integrals of velocity, since derivatives would amplify noise.
    """
    none = np.zeros(q.shape[1]), np.zeros(q.shape[1], dtype=bool)
    keep = np.flatnonzero(np.isfinite(q).all(axis=1) & np.isfinite(dq).all(axis=1) & np.isfinite(t))
    q, dq, t = q[keep], dq[keep], t[keep]
    if len(t) < 50:
        return none
    steps = np.diff(t)
    odd = (steps <= 0.0) | (steps > _HOLE * np.median(steps))
    integral = np.vstack([np.zeros(q.shape[1]), np.cumsum(0.5 * (dq[1:] + dq[:-1]) * steps[:, None], axis=0)])
    holes = np.append(0, np.cumsum(odd))
    rows = max(10, len(t) // 200)
    whole = holes[rows:] == holes[:-rows]
    if whole.sum() < 20:
        return none
    made, said = (q[rows:] - q[:-rows])[whole], (integral[rows:] - integral[:-rows])[whole]
    power, other = (made**2).sum(axis=0), (said**2).sum(axis=0)
    cross = (made * said).sum(axis=0)
    straight = (power > 0.0) & (other > 0.0) & (np.abs(cross) > _STRAIGHT * np.sqrt(power * other))
    return np.divide(cross, power, out=np.zeros_like(cross), where=power > 0.0), straight


def _ask(signal: str, unit: str, other: str) -> tuple[str, Mapping[str, Any]]:
    choices = {f"{signal} in {u}": {f"units.{signal}": u} for u in (unit, other)}
    return f"Is the {signal} in {unit}, or in {other}?", choices
