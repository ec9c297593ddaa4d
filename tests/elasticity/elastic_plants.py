"""Arms with elastic joints that MuJoCo moves: a rotor, a spring and a link for each axis.

Nothing here is simulated by the library. The first joint of each axis has the rotor inertia over the gear as armature
and the friction of the motor; the second has the spring. A controller on the motor side follows sums of sines.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log

_AXES = ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0", "1 0 0")
_LENGTHS = (0.4, 0.5, 0.45, 0.15, 0.15, 0.1)
_MASSES = (12.0, 9.0, 6.0, 2.5, 1.5, 0.8)


@dataclass(frozen=True)
class ElasticArm:
    """An arm with elastic joints.

    Attributes:
        axes: Number of axes, of six; one axis is a pendulum.
        stiffness: K of the strongest joint [N m/rad]; the others are weaker with the mass that they carry.
        rotor: Inertia of the rotor over the gear, as a share of the link's.
        friction: Coulomb friction as a share of the largest gravity torque.
        damping_ratio: Damping of the springs.
    """

    axes: int = 2
    stiffness: float = 8e3
    rotor: float = 0.5
    friction: float = 0.05
    damping_ratio: float = 0.02

    @property
    def first(self) -> int:
        """First axis of the list: the vertical one is left out if there are few."""
        return 0 if self.axes > 2 else 1

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"joint{k + 1}" for k in range(self.axes))

    def numbers(self) -> dict[str, np.ndarray]:
        """True values by axis: K, D, Ia, Fc, Fv, and the sizes of the links."""
        k = np.arange(self.first, self.first + self.axes)
        mass, length = np.array(_MASSES)[k], np.array(_LENGTHS)[k]
        carried = np.cumsum((mass * (0.3 + length) ** 2)[::-1])[::-1]
        K = self.stiffness * carried / carried[0]
        Ia = self.rotor * carried
        D = 2.0 * self.damping_ratio * np.sqrt(K * carried)
        Fc = self.friction * 9.81 * np.cumsum((mass * (0.2 + length))[::-1])[::-1]
        return {"K": K, "D": D, "Ia": Ia, "Fc": Fc, "Fv": 0.5 * Fc, "mass": mass, "length": length}

    def xml(self, step: float = 2e-4) -> str:
        """MJCF of the plant."""
        n, inside, ends = self.numbers(), "", ""
        for i in range(self.axes):
            axis = _AXES[self.first + i]
            m, length = n["mass"][i], n["length"][i]
            place = f"0 0 {n['length'][i - 1] if i else 0.3}"
            inertia = m * length**2 / 12 + 1e-3
            inside += f"""<body name="rotor{i + 1}" pos="{place}"><inertial pos="0 0 0" mass="1e-6"
diaginertia="1e-9 1e-9 1e-9"/><joint name="motor{i + 1}" axis="{axis}" armature="{n["Ia"][i]}"
damping="{n["Fv"][i]}" frictionloss="{n["Fc"][i]}" solreffriction="0.002 1"/>
<body name="link{i + 1}"><inertial pos="0.03 0.01 {0.5 * length}" mass="{m}"
diaginertia="{inertia} {inertia} {0.3 * inertia + 1e-3}"/><joint name="spring{i + 1}" axis="{axis}"
stiffness="{n["K"][i]}" damping="{n["D"][i]}"/>"""
            ends += "</body></body>"
        motors = "".join(f'<motor joint="motor{i + 1}"/>' for i in range(self.axes))
        return f"""<mujoco><compiler angle="radian" inertiafromgeom="false"/>
<option timestep="{step}" integrator="implicitfast"/><worldbody>{inside}{ends}</worldbody>
<actuator>{motors}</actuator></mujoco>"""

    def urdf(self, scale: float = 1.0) -> str:
        """URDF of the rigid arm; `scale` makes its inertias wrong."""
        n = self.numbers()
        out = '<robot name="elastic_arm"><link name="base"/>'
        for i in range(self.axes):
            m, length = n["mass"][i] * scale, n["length"][i]
            inertia = n["mass"][i] * length**2 / 12 + 1e-3
            out += f"""<link name="link{i + 1}"><inertial><origin xyz="0.03 0.01 {0.5 * length}"/><mass value="{m}"/>
<inertia ixx="{inertia * scale}" iyy="{inertia * scale}" izz="{(0.3 * inertia + 1e-3) * scale}" ixy="0" ixz="0"
iyz="0"/></inertial></link><joint name="joint{i + 1}" type="revolute"><parent link="{f"link{i}" if i else "base"}"/>
<child link="link{i + 1}"/><origin xyz="0 0 {n["length"][i - 1] if i else 0.3}"/><axis xyz="{_AXES[self.first + i]}"/>
<limit lower="-3" upper="3" effort="10000" velocity="20"/></joint>"""
        return out + "</robot>"

    def robot(self) -> Robot:
        return load_robot(self.urdf())


@dataclass(frozen=True)
class Recording:
    """Settings of a recording.

    Attributes:
        seed: Seed of motion and noise.
        seconds: Length [s].
        rate: Sampling rate [Hz].
        skew: Time by which the link encoder lags [s].
        position_noise: Noise of both encoders [rad].
        torque_noise: Noise of the torque, as a share of its standard deviation.
        step: Quantisation of both encoders [rad]; 0: none.
        size: Amplitude of the motion [rad].
        fastest: Highest frequency of the motion [Hz].
    """

    seed: int = 0
    seconds: float = 15.0
    rate: float = 500.0
    skew: float = 2e-3
    position_noise: float = 1e-5
    torque_noise: float = 0.02
    step: float = 2e-5
    size: float = 0.5
    fastest: float = 0.8


def record(arm: ElasticArm, how: Recording) -> dict[str, np.ndarray]:
    """Simulate a controlled motion, and measure it: t, theta, q, tau as the sensors give them."""
    model = mujoco.MjModel.from_xml_string(arm.xml())
    data = mujoco.MjData(model)
    rng = np.random.default_rng(how.seed)
    n, h = arm.axes, model.opt.timestep
    f = 2 * np.pi * rng.uniform(0.1, how.fastest, (4, n))
    a = how.size * rng.uniform(0.3, 1.0, (4, n)) / 2
    phase = rng.uniform(0, 2 * np.pi, (4, n))
    truth = arm.numbers()
    motor, spring = np.arange(0, 2 * n, 2), np.arange(1, 2 * n, 2)
    total = truth["Ia"] * (1 + 1 / arm.rotor)
    kp, kd = total * 12.0**2, total * 2 * 12.0
    every = round(1.0 / (how.rate * h))
    count = int((how.seconds + 1.0) * how.rate) + 10
    theta, q, tau = (np.zeros((count * every, n)) for _ in range(3))
    for k in range(count * every):
        t = k * h
        soft = min(t, 1.0) ** 2 * (3 - 2 * min(t, 1.0))
        angle = f * t + phase
        ref = soft * np.sum(a * np.sin(angle), axis=0)
        rate = soft * np.sum(a * f * np.cos(angle), axis=0)
        data.ctrl[:] = kp * (ref - data.qpos[motor]) + kd * (rate - data.qvel[motor]) + data.qfrc_bias[spring]
        theta[k] = data.qpos[motor]
        q[k] = data.qpos[motor] + data.qpos[spring]
        tau[k] = data.ctrl
        mujoco.mj_step(model, data)
    at = np.arange(round(how.rate), count - 10) * every
    late = at - round(how.skew / h)
    out = {"t": at * h, "theta": theta[at], "q": q[late], "tau": tau[at]}
    noise = {"theta": how.position_noise, "q": how.position_noise, "tau": how.torque_noise * np.std(out["tau"], axis=0)}
    for name, size in noise.items():
        out[name] = out[name] + size * rng.standard_normal(out[name].shape)
    if how.step:
        for name in ("theta", "q"):
            out[name] = how.step * np.round(out[name] / how.step)
    return out


def log_of(arm: ElasticArm, how: Recording) -> Log:
    """A log with the motors' positions and the link encoders as channels."""
    x = record(arm, how)
    channels = {f"elastic.link.{name}": x["q"][:, k : k + 1] for k, name in enumerate(arm.names)}
    return Log(arm.names, x["t"], x["theta"], tau=x["tau"], channels=channels, meta={"source": "plant"})


def columns_of(x: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A recording as columns q1, tau1, qlink1, …."""
    out = {"t": x["t"]}
    for k in range(x["q"].shape[1]):
        out |= {f"q{k + 1}": x["theta"][:, k], f"tau{k + 1}": x["tau"][:, k], f"qlink{k + 1}": x["q"][:, k]}
    return out


def excited(
    arm: ElasticArm, seed: int = 0, seconds: float = 12.0, rate: float = 1000.0, highest_hz: float = 50.0,
    size: float = 1.0, position_noise: float = 1e-6, torque_noise: float = 0.01, axis: int = 0,
) -> dict[str, np.ndarray]:  # fmt: skip
    """A multisine torque on one axis about a slow motion, under a controller; the other axes hold.

    Args:
        arm: The arm.
        seed: Seed of phases and noise.
        seconds: Length [s].
        rate: Sampling rate [Hz].
        highest_hz: Highest frequency of the excitation [Hz].
        size: Excitation, as a share of the axis' gravity torque (standard deviation).
        position_noise: Noise of the motor encoder [rad].
        torque_noise: Noise of the torque, as a share of its standard deviation.
        axis: Index of the excited axis.
    """
    model = mujoco.MjModel.from_xml_string(arm.xml())
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    h, n, truth = model.opt.timestep, arm.axes, arm.numbers()
    f = np.arange(1, int(highest_hz * seconds / 4) + 1) * 4 / seconds
    t = np.arange(int(seconds / h)) * h
    wave = np.sum(np.sin(2 * np.pi * f[:, None] * t + rng.uniform(0, 2 * np.pi, len(f))[:, None]), axis=0)
    wave *= size * truth["Fc"][axis] / arm.friction / np.std(wave)
    motor, spring = np.arange(0, 2 * n, 2), np.arange(1, 2 * n, 2)
    total, every, out = truth["Ia"] * (1 + 1 / arm.rotor), round(1.0 / (rate * h)), []
    for k in range(len(t)):
        ref = np.zeros(n)
        ref[axis] = 0.3 * np.sin(2 * np.pi * 0.2 * t[k])
        tau = total * (10.0**2 * (ref - data.qpos[motor]) - 10.0 * data.qvel[motor]) + data.qfrc_bias[spring]
        tau[axis] += wave[k]
        data.ctrl[:] = tau
        if k % every == 0:
            out.append((t[k], data.qpos[motor].copy(), tau.copy()))
        mujoco.mj_step(model, data)
    theta, tau = (np.array([row[i] for row in out]) for i in (1, 2))
    return {
        "t": np.array([row[0] for row in out]),
        "theta": theta + position_noise * rng.standard_normal(theta.shape),
        "tau": tau + torque_noise * np.std(tau, axis=0) * rng.standard_normal(tau.shape),
    }
