"""Drives on a pendulum in MuJoCo, with the friction models M1 to M6 and a recorder's encoder."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import mujoco
import numpy as np

from steelyard.actuators import CommandLog, Load

# The plant is stepped this often [s], far finer than any log; the recorder reads a 12-bit encoder at 200 Hz.
STEP, PERIOD, COUNT = 1e-4, 5e-3, 2.0 * math.pi / 4096
# Noise of the position [rad], beside the encoder's counts: potentiometers of hobby servos.
NOISE = 1e-3
MODEL = """<mujoco><option timestep="{step}" gravity="0 0 -9.81" integrator="Euler"/>
<worldbody><body><joint name="j" type="hinge" axis="0 -1 0" armature="{armature}" damping="0.001" frictionloss="0.001"
  solimpfriction="0.9999 0.9999 0.001" solreffriction="0.0004 1"/>
<inertial pos="0 0 -{length}" mass="{mass}" diaginertia="1e-9 1e-9 1e-9"/></body></worldbody></mujoco>"""


@dataclass(frozen=True)
class DrivePlant:
    """A drive with true parameters, named as those of `DriveModel`."""

    kind: str
    friction: str
    truth: dict[str, float]
    gains: tuple[float, ...] = (100.0, 250.0, 600.0)
    loads: tuple[tuple[float, float], ...] = ((0.3, 0.1), (0.6, 0.1))
    volts: float = 7.4
    off: bool = True
    duration: float = 5.0
    kd: float = 1.0
    logs: list[CommandLog] = field(default_factory=list)

    def record(self, seed: int) -> list[CommandLog]:
        """Play a motion per gain and load, and return the logs."""
        rng = np.random.default_rng(seed)
        out = []
        for kp in self.gains:
            for mass, length in self.loads:
                out.append(self._run(f"kp {kp:g} m {mass:g}", kp, mass, length, rng))
        return out

    def _run(self, name: str, kp: float, mass: float, length: float, rng: np.random.Generator) -> CommandLog:
        p = self.truth
        time = np.arange(0.0, self.duration, PERIOD)
        goal = _motion(time, rng)
        on = np.ones(len(time), bool)
        if self.off:
            on[(time > 0.72 * self.duration) & (time < 0.86 * self.duration)] = False
        model = mujoco.MjModel.from_xml_string(
            MODEL.format(step=STEP, armature=p["armature"], mass=mass, length=length)
        )
        data = mujoco.MjData(model)
        per = round(PERIOD / STEP)
        steps = len(time) * per
        fine = np.arange(steps) * STEP
        delayed = goal[np.clip(np.floor((fine - p["delay"]) / PERIOD + 1e-9).astype(int), 0, len(time) - 1)].tolist()
        enabled = np.repeat(on, per).tolist()
        gravity, offset = 9.81 * mass * length, p.get("offset", 0.0)
        # The pendulum hangs at −offset of the encoder: the true angle is the encoder's plus the offset.
        data.qpos[0] = offset
        recorded = np.empty(len(time))
        loss, damping, applied = model.dof_frictionloss, model.dof_damping, data.qfrc_applied
        viscous = p["friction_viscous"]
        for k in range(steps):
            angle, v = float(data.qpos[0]), float(data.qvel[0])
            q = angle - offset
            if k % per == 0:
                recorded[k // per] = q
            external = -gravity * math.sin(angle)
            force, drag = self._motor(delayed[k] - q, v, kp) if enabled[k] else (0.0, 0.0)
            motor = force - drag * v
            loss[0] = _dry_friction(self.friction, p, v, motor, external)
            damping[0] = viscous + drag
            applied[0] = force
            mujoco.mj_step(model, data)
        measured = np.round((recorded + rng.normal(0.0, NOISE, len(time))) / COUNT) * COUNT
        more = {"kd": self.kd} if self.kind == "torque" else {"volts": self.volts, "duty_gain": p["duty_gain"]}
        return CommandLog(
            name, time, goal, measured, Load.pendulum(mass, length), torque_enable=on if self.off else None, kp=kp,
            trajectory="sines", **more,
        )  # fmt: skip

    def _motor(self, error: float, v: float, kp: float) -> tuple[float, float]:
        """Torque without the part that is proportional to velocity, and that part's coefficient."""
        p = self.truth
        if self.kind == "voltage":
            duty = max(-1.0, min(1.0, p["duty_gain"] * kp * error))
            return p["torque_per_volt"] * duty * self.volts, p["back_emf"]
        wanted = p["kp_gain"] * kp * error - p["kd_gain"] * self.kd * v
        limit = p.get("torque_limit", math.inf)
        if abs(wanted) > limit:
            return math.copysign(limit, wanted), 0.0
        return p["kp_gain"] * kp * error, p["kd_gain"] * self.kd


def _motion(time: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sines of three speeds, and steps: slow parts show friction, fast ones inertia, steps the limits."""
    end = float(time[-1])
    slow = 1.1 * np.sin(2.0 * np.pi * time / end * rng.uniform(0.8, 1.2) + rng.uniform(0.0, 1.0))
    fast = 0.35 * np.sin(2.0 * np.pi * rng.uniform(0.9, 1.6) * time)
    fast *= (time > 0.15 * end) & (time < 0.6 * end)
    steps = 0.5 * np.sign(np.sin(2.0 * np.pi * rng.uniform(0.5, 0.8) * time)) * (time > 0.55 * end)
    return np.asarray((slow + fast + steps) * np.minimum(time / 0.5, 1.0))


def _dry_friction(friction: str, p: dict[str, float], v: float, motor: float, external: float) -> float:
    through = abs(motor - external)
    dry = p["friction_base"]
    fade = math.exp(-abs(v) / p["stribeck_velocity"]) if friction != "M1" and friction != "M3" else 0.0
    if friction in ("M3", "M4"):
        dry += p["load_friction"] * through
    if friction in ("M5", "M6"):
        dry += abs(p["load_friction_motor"] * motor - p["load_friction_external"] * external)
    slow = p.get("friction_stribeck", 0.0)
    if friction == "M4":
        slow += p["load_friction_stribeck"] * through
    if friction in ("M5", "M6"):
        slow += abs(p["load_friction_motor_stribeck"] * motor - p["load_friction_external_stribeck"] * external)
    if friction == "M6" and motor * external < 0.0:
        if abs(motor) > abs(external):
            slow += p["load_friction_external_quad"] * external**2
        else:
            slow += p["load_friction_motor_quad"] * motor**2
    return dry + fade * slow


def random_plant(kind: str, friction: str, seed: int) -> DrivePlant:
    """A servo of hobby size with random true parameters."""
    rng = np.random.default_rng(seed)

    def about(value: float) -> float:
        return float(value * np.exp(rng.uniform(-0.35, 0.35)))

    p = {
        "armature": about(0.002), "friction_base": about(0.02), "friction_viscous": about(0.006),
        "delay": float(rng.uniform(0.001, 0.012)), "offset": float(rng.uniform(-0.03, 0.03)),
        "friction_stribeck": about(0.03), "stribeck_velocity": about(0.4),
    }  # fmt: skip
    if friction in ("M3", "M4"):
        p |= {"load_friction": about(0.12), "load_friction_stribeck": about(0.12)}
    if friction in ("M5", "M6"):
        p |= {
            "load_friction_motor": about(0.2), "load_friction_external": about(0.06),
            "load_friction_motor_stribeck": about(0.05), "load_friction_external_stribeck": about(0.16),
        }  # fmt: skip
    if friction == "M6":
        p |= {"load_friction_motor_quad": about(0.6), "load_friction_external_quad": about(0.6)}
    if kind == "voltage":
        p |= {"torque_per_volt": about(0.14), "back_emf": about(0.035), "duty_gain": 0.003}
        return DrivePlant(kind, friction, p)
    p |= {"kp_gain": about(1.0), "kd_gain": about(1.0)}
    return DrivePlant(kind, friction, p, gains=(1.5, 3.0, 6.0), kd=0.1)
