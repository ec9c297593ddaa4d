"""Plants of the matching tests: MuJoCo moves the robot, and the drives' law runs beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import mujoco
import numpy as np

from steelyard.dynamics import Model
from steelyard.export import model_to_mjcf
from steelyard.ground.arrays import Array
from steelyard.parameters.term import make_term
from steelyard.parameters.terms import Terms
from steelyard.robot.robot import Robot
from steelyard.signals import Log


@dataclass
class Truth:
    """A plant: a robot that differs from its description, with drives."""

    robot: Robot
    links: Array
    armature: Array
    viscous: Array
    dry: Array
    bias: Array
    kp: Array
    kd: Array
    limit: Array
    delay: float = 0.0
    delayed: str = "torque"
    model: mujoco.MjModel = field(init=False)

    def write(self, path: str) -> None:
        terms = Terms(self.robot, tuple(make_term(kind) for kind in ("rotor", "viscous", "coulomb")))
        theta = np.concatenate([self.links, self.armature, self.viscous, self.dry])
        model_to_mjcf(Model(self.robot, terms, theta), path)
        self.model = mujoco.MjModel.from_xml_path(path)

    def numbers(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in ("armature", "viscous", "dry", "bias", "kp", "kd", "limit")}


def truth(
    robot: Robot, rng: np.random.Generator, kp: Array, kd: Array, size: Array, delay: float, **more: object
) -> Truth:
    """Draw a plant: masses ±20 %, centres and inertias shifted, joints with rotors and friction.

    Args:
        robot: Description.
        rng: Random generator.
        kp: Stiffness of the drives.
        kd: Damping of the drives.
        size: Typical inertia of each joint [kg m²].
        delay: Delay [s].
        more: Further fields.
    """
    n = robot.dof
    links = robot.inertial_parameters.copy().reshape(-1, 10)
    for body in links:
        body *= rng.uniform(0.8, 1.25)
    values: dict[str, object] = {
        "armature": size * rng.uniform(0.2, 1.0, n), "viscous": kd * rng.uniform(0.05, 0.3, n),
        "dry": kp * rng.uniform(0.003, 0.015, n), "bias": rng.normal(0.0, 0.01, n), "limit": np.full(n, np.inf),
    }  # fmt: skip
    values |= more
    return Truth(robot, links.ravel(), kp=kp, kd=kd, delay=delay, **values)  # type: ignore[arg-type]


def multisine(
    rng: np.random.Generator, joints: int, duration: float, highest: float, amplitude: Array
) -> Callable[[float], Array]:
    """Return a goal of ten sines per joint.

    Args:
        rng: Random generator.
        joints: Number of joints.
        duration: Period [s].
        highest: Highest frequency [Hz].
        amplitude: Largest amplitude of each joint [rad].
    """
    hz = np.unique(np.round(np.geomspace(1.0, highest * duration, 10))) / duration
    size = rng.uniform(0.5, 1.0, (len(hz), joints)) / np.sqrt(hz)[:, None]
    size *= amplitude / size.sum(axis=0)
    phase = rng.uniform(0.0, 2.0 * np.pi, (len(hz), joints))
    return lambda t: np.sum(size * np.sin(2.0 * np.pi * hz[:, None] * t + phase), axis=0)


def play(
    plant: Truth, goal: Callable[[float], Array], duration: float, rate: float, *, noise: float = 0.0,
    step: float = 2.5e-4, quantum: float = 0.0, rng: np.random.Generator | None = None,
) -> Log:  # fmt: skip
    """Let MuJoCo move the plant; the drives run at every step, goals and positions are logged at `rate`.

    MuJoCo's velocities belong to the instants half a step before those of its positions, and its forces act from half a
    step before a position to half a step after it. The drives see velocities and goals at the instant of the position,
    so that the plant is that of continuous time to second order, and its delay is the stated one.

    Args:
        plant: Plant.
        goal: Goal positions over time.
        duration: Duration [s].
        rate: Rate of goals and samples [Hz].
        noise: Noise of the positions [rad].
        step: Step of MuJoCo [s].
        quantum: Resolution of the encoders [rad].
        rng: Random generator of the noise.
    """
    m, joints = plant.model, plant.robot.joint_names
    rng = rng or np.random.default_rng(0)
    m.opt.timestep = step
    data = mujoco.MjData(m)
    ids = [m.joint(name).id for name in joints]
    q_at, v_at = m.jnt_qposadr[ids], m.jnt_dofadr[ids]
    data.qpos[q_at] = goal(0.0) - plant.bias
    hold, late = round(1.0 / (rate * step)), round(plant.delay / step)
    count = round(duration * rate)
    q, goals = np.empty((count, len(joints))), np.empty((count, len(joints)))
    past: list[Array] = []
    whole = plant.delayed == "torque"
    for k in range(count * hold):
        measured = data.qpos[q_at] + plant.bias
        if k % hold == 0:
            goals[k // hold] = goal(k * step)
            seen = measured + noise * rng.standard_normal(len(joints))
            q[k // hold] = np.round(seen / quantum) * quantum if quantum else seen
        now = goals[k // hold]
        if k % hold == 0 and k > 0:
            now = 0.5 * (now + goals[k // hold - 1])

        def law(target: Array, measured: Array = measured) -> Array:
            speed = data.qvel[v_at] + 0.5 * step * data.qacc[v_at]
            pull = plant.kp * (target - measured) - plant.kd * speed
            return np.clip(pull, -plant.limit, plant.limit)

        past.append(law(now) if whole else now)
        due = past[max(k - late, 0)]
        data.qfrc_applied[v_at] = due if whole else law(due)
        mujoco.mj_step(m, data)
    return Log(joints, np.arange(count) / rate, q, channels={"goal": goals})
