"""`record_all`: logs of many drives on pendulums, integrated together by steps of 10 µs, without this package.

The law of the drives and of friction M1 to M6 is that of Duclusaud et al. (ICRA 2025). Play is a stiff spring with a
dead band between gears and load; a delayed feedback comes from a buffer of positions. Encoders have 12 bits at 200 Hz,
and noise of 1 mrad.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

STEP, PERIOD = 1e-5, 5e-3
COUNT, NOISE = 2.0 * np.pi / 4096, 1e-3
# Contact of the gears: its frequency is 20 times that of any motion, and it hardly bounces.
_CONTACT_HZ, _CONTACT_DAMPING = 400.0, 0.7


class _Lanes:
    """Numbers of all runs as arrays; a missing number is 0, a missing limit infinite."""

    def __init__(self, runs: Sequence[dict[str, Any]]) -> None:
        self.runs = runs

    def __getattr__(self, name: str) -> np.ndarray:
        absent = np.inf if name == "torque_limit" else 0.0
        values = np.array([float(r["truth"].get(name, r.get(name, absent))) for r in self.runs])
        setattr(self, name, values)
        return values


def record_all(plants: Sequence[Any], seeds: Sequence[int]) -> list[list[Any]]:
    """Play the motions of all plants and return the logs of each.

    Args:
        plants: Plants of `tests/actuators/drive_plants.py`, of one duration.
        seeds: Seed of the motions and of the noise of each.
    """
    from drive_plants import _motion

    from steelyard.actuators import CommandLog, Load
    from steelyard.actuators.drive_model import drive_parameters

    time = np.arange(0.0, plants[0].duration, PERIOD)
    runs = []
    for plant, seed in zip(plants, seeds, strict=True):
        rng = np.random.default_rng(seed)
        names = {*drive_parameters(plant.kind, plant.friction), "delay", "feedback_delay", "torque_limit", "backlash"}
        truth = {n: x for n, x in plant.truth.items() if n in names}
        for kp in plant.gains:
            for mass, length in plant.loads:
                goal = _motion(time, rng)
                on = np.ones(len(time))
                if plant.off:
                    on[(time > 0.72 * plant.duration) & (time < 0.86 * plant.duration)] = 0.0
                runs.append(
                    {"plant": plant, "truth": truth, "goal": goal, "on": on, "kp": kp, "kd": plant.kd,
                     "mass": mass, "length": length, "volts": plant.volts, "seed": seed}
                )  # fmt: skip
    position = _played(runs, len(time))
    out: dict[int, list[Any]] = {}
    rng = np.random.default_rng(0)
    for k, r in enumerate(runs):
        plant = r["plant"]
        noisy = position[:, k] + rng.normal(0.0, NOISE, len(time))
        more = (
            {"kd": plant.kd}
            if plant.kind == "torque"
            else {"volts": plant.volts, "duty_gain": plant.truth["duty_gain"]}
        )
        log = CommandLog(
            f"kp {r['kp']:g} m {r['mass']:g}", time, r["goal"], np.round(noisy / COUNT) * COUNT,
            Load.pendulum(r["mass"], r["length"]), torque_enable=r["on"] > 0.5 if plant.off else None, kp=r["kp"],
            trajectory="sines", **more,
        )  # fmt: skip
        out.setdefault(id(plant), []).append(log)
    return [out[id(plant)] for plant in plants]


def _played(runs: Sequence[dict[str, Any]], samples: int) -> np.ndarray:
    p = _Lanes(runs)
    goals = np.stack([r["goal"] for r in runs])
    enabled = np.stack([r["on"] for r in runs])
    voltage = np.array([r["plant"].kind == "voltage" for r in runs])
    gravity, inertia = 9.81 * p.mass * p.length, p.mass * p.length**2
    play, lanes = p.backlash > 0.0, np.arange(len(runs))
    rotor = np.where(play, p.armature, p.armature + inertia)
    reduced = p.armature * inertia / (p.armature + inertia)
    stiff = reduced * (2.0 * np.pi * _CONTACT_HZ) ** 2
    bounce = 2.0 * _CONTACT_DAMPING * np.sqrt(stiff * reduced)
    any_play, per = bool(play.any()), round(PERIOD / STEP)
    late = np.round(p.feedback_delay / STEP).astype(int)
    ring = int(late.max()) + 1
    gears = p.offset.copy()  # angle of the gears (of the joint without play), the load hangs at 0
    load, v, v_load = gears.copy(), np.zeros(len(runs)), np.zeros(len(runs))
    past, fast = np.tile(gears, (ring, 1)), np.zeros((ring, len(runs)))
    out = np.empty((samples, len(runs)))
    slope = np.where(voltage, p.torque_per_volt * p.volts, p.kp_gain * p.kp)
    gain = np.where(voltage, p.duty_gain * p.kp, 1.0)
    most = np.where(voltage, 1.0, p.torque_limit / np.maximum(slope, 1e-12))
    damping = np.where(voltage, 0.0, p.kd_gain * p.kd / np.maximum(slope, 1e-12))
    speed_of = np.maximum(p.stribeck_velocity, 1e-9)
    faded = p.stribeck_velocity > 0.0
    shift = p.delay / PERIOD
    for k in range(samples * per):
        at = load if any_play else gears
        past[k % ring], fast[k % ring] = at, v
        if k % per == 0:
            out[k // per] = at - p.offset
        index = np.maximum(np.floor(k / per - shift + 1e-9).astype(int), 0)
        before = (k - np.minimum(late, k)) % ring
        error = goals[lanes, index] - (past[before, lanes] - p.offset)
        on = enabled[:, k // per]
        motor = on * (slope * np.clip(gain * error - damping * fast[before, lanes], -most, most) - p.back_emf * v)
        external = -gravity * np.sin(at)
        if any_play:
            gap, rate = gears - load, v - v_load
            beyond = gap - np.clip(gap, -0.5 * p.backlash, 0.5 * p.backlash)
            push = np.where(beyond != 0.0, stiff * beyond + bounce * rate, 0.0)
            push = np.where(push * beyond > 0.0, push, 0.0)  # gears push and never pull
            pull, seen = np.where(play, -push, external), np.where(play & (push == 0.0), 0.0, external)
            v_load = np.where(play, v_load + STEP * (external + push) / inertia, v)
        else:
            pull = seen = external
        dry = _dry(p, v, motor, seen, faded, speed_of)
        moved = v + STEP * (motor + pull - p.friction_viscous * v) / rotor
        v = np.sign(moved) * np.maximum(np.abs(moved) - STEP * dry / rotor, 0.0)
        gears = gears + STEP * v
        load = load + STEP * v_load if any_play else gears
        if any_play:
            load = np.where(play, load, gears)
            v_load = np.where(play, v_load, v)
    return out


def _dry(
    p: _Lanes, v: np.ndarray, motor: np.ndarray, external: np.ndarray, faded: np.ndarray, speed_of: np.ndarray
) -> np.ndarray:
    through = np.abs(motor - external)
    fade = np.where(faded, np.exp(-np.abs(v) / speed_of), 0.0)
    lifted = np.abs(p.load_friction_motor * motor - p.load_friction_external * external)
    slow = p.friction_stribeck + p.load_friction_stribeck * through
    slow = slow + np.abs(p.load_friction_motor_stribeck * motor - p.load_friction_external_stribeck * external)
    opposed, lifting = motor * external < 0.0, np.abs(motor) > np.abs(external)
    quad = np.where(lifting, p.load_friction_external_quad * external**2, p.load_friction_motor_quad * motor**2)
    return np.asarray(p.friction_base + p.load_friction * through + lifted + fade * (slow + opposed * quad))
