"""Legged robots in MuJoCo: a quadruped that trots, squats and sways, a humanoid on flat feet, with planted bodies.

MuJoCo computes contacts, friction and sensors; Pinocchio computes the joint angles of a reference motion. The log has
encoder angles, joint torques, an IMU and an attitude, with noise, biases of the IMU and delays.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.export import model_to_mjcf
from steelyard.parameters.terms import Terms
from steelyard.robot import Robot, load_robot
from steelyard.robot.spatial import rotation_from_rpy

STEP = 5e-4  # of the simulation [s]
EVERY = 2  # steps per sample of the log: 1 kHz
KNOTS = 0.02  # spacing of the reference [s]


@dataclass(frozen=True)
class Sensors:
    """Errors of the sensors: standard deviations per sample, constant biases and delays."""

    encoder: float = 3e-5
    torque: float = 0.1
    gyroscope: float = 3e-3
    accelerometer: float = 0.05
    attitude: float = 1e-3
    accelerometer_bias: tuple[float, ...] = (0.10, -0.08, 0.12)
    gyroscope_bias: tuple[float, ...] = (0.004, -0.006, 0.003)
    torque_delay: float = 0.002
    imu_delay: float = 0.003


@dataclass(frozen=True)
class Walker:
    """A legged robot: file in example-robot-data, feet, posture and servo."""

    path: str
    feet: tuple[str, ...]
    posture: tuple[float, ...]
    stiffness: float
    damping: float
    rotor: float = 0.01
    radius: float = 0.02
    sole: tuple[float, float] | None = None  # half length and width of a flat foot [m]
    joints: tuple[str, ...] = ()  # the others are locked
    imu: tuple[float, ...] = (0.05, -0.02, 0.04)

    def robot(self) -> Robot:
        import pinocchio as pin

        folder = Path(pin.__file__).parents[4] / "share/example-robot-data/robots"
        robot = load_robot(folder / self.path, floating=True)
        return robot.with_joints([*robot.joint_names[:6], *self.joints]) if self.joints else robot


GO1 = Walker(
    "go1_description/urdf/go1.urdf", ("FL_foot", "FR_foot", "RL_foot", "RR_foot"), (0.0, 0.8, -1.6) * 4, 120.0, 3.0
)
_LEG = tuple(range(1, 7))
TALOS = Walker(
    "talos_data/robots/talos_reduced.urdf", ("left_sole_link", "right_sole_link"),
    (0.0, 0.0, -0.45, 0.9, -0.45, 0.0) * 2 + (0.0, 0.0) + (0.2, 0.4, 0.0, -0.8, -0.2, -0.4, 0.0, -0.8), 4000.0, 80.0,
    rotor=0.3, radius=0.01, sole=(0.09, 0.055),
    joints=(*(f"leg_{s}_{k}_joint" for s in ("left", "right") for k in _LEG), "torso_1_joint", "torso_2_joint",
            *(f"arm_{s}_{k}_joint" for s in ("left", "right") for k in (1, 2, 3, 4))),
)  # fmt: skip


def planted(robot: Robot, seed: int, trunk: float = 0.2, legs: float = 0.02) -> np.ndarray:
    """Inertial parameters of a plant: a trunk with a load, and legs that differ a little from the description."""
    rng = np.random.default_rng(seed)
    ten = robot.inertial_parameters.reshape(-1, 10).copy()
    for k, body in enumerate(ten):
        share = 1.0 + (trunk * rng.uniform(0.6, 1.2) if k == 0 else legs * rng.standard_normal())
        body *= share
        if k == 0:  # a box on the trunk moves its centre by some 20 mm
            add_mass(body, 0.1 * body[0], rng.uniform(-1.0, 1.0, 3) * [0.2, 0.1, 0.1] + [0.0, 0.0, 0.1])
    return ten.ravel()


def add_mass(body: np.ndarray, mass: float, place: Any) -> None:
    """Add a box of 25 cm at a place to the ten parameters of a body."""
    r = np.asarray(place)
    body[0] += mass
    body[1:4] += mass * r
    more = mass * (r @ r * np.eye(3) - np.outer(r, r)) + 0.01 * mass * np.eye(3)
    body[4:] += more[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]


@dataclass
class Plant:
    """A robot in MuJoCo on flat ground, whose joints follow a reference."""

    walker: Walker
    seed: int = 0
    coulomb: float = 0.0
    viscous: float = 0.3
    load: tuple[float, tuple[float, ...]] | None = None  # mass [kg] and place [m] of a load on the trunk
    spec: Any = field(init=False)

    def __post_init__(self) -> None:
        import tempfile

        import mujoco

        self.robot = self.walker.robot()
        self.inertias = planted(self.robot, self.seed)
        if self.load is not None:
            add_mass(self.inertias[:10], *self.load)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "robot.xml"
            model_to_mjcf(Model(self.robot, Terms(self.robot, ()), self.inertias), path)
            spec = mujoco.MjSpec.from_file(str(path))
        spec.option.timestep = STEP
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.impratio = 20.0
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], contype=1, conaffinity=0)
        rubber = {"contype": 0, "conaffinity": 1, "friction": [0.9, 0.005, 1e-4], "solref": [0.01, 1.0], "mass": 0.0}
        bodies = {b.name: b for b in spec.bodies}
        for name in self.walker.feet:
            frame = self.robot.frame(name)
            body = bodies[self.robot.link_names[frame.host]]
            corners = [np.zeros(3)]
            if (sole := self.walker.sole) is not None:
                corners = [np.array([x * sole[0], y * sole[1], self.walker.radius]) for x in (-1, 1) for y in (-1, 1)]
            for corner in corners:
                place = frame.rotation @ corner + frame.translation
                body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[self.walker.radius, 0, 0], pos=place, **rubber)
        for joint in spec.joints:
            if joint.type != mujoco.mjtJoint.mjJNT_FREE:
                joint.armature, joint.frictionloss = self.walker.rotor, self.coulomb
                joint.damping = self.viscous if np.ndim(joint.damping) == 0 else [self.viscous, 0, 0]
        trunk = bodies[self.robot.link_names[0]]
        trunk.add_site(name="imu", pos=self.walker.imu)
        for kind, name in ((mujoco.mjtSensor.mjSENS_GYRO, "gyro"), (mujoco.mjtSensor.mjSENS_ACCELEROMETER, "acc")):
            spec.add_sensor(type=kind, name=name, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="imu")
        self.spec, self.mujoco = spec, mujoco

    def truth(self, result: Any) -> np.ndarray:
        """All parameters of the plant in the order of a result."""
        theta = np.zeros(len(result.model.theta))
        theta[: len(self.inertias)] = self.inertias
        values = {"Ia": self.walker.rotor, "Fv": self.viscous, "Fc": self.coulomb}
        for k, p in enumerate(result.model.dynamics.parameters):
            if k >= len(self.inertias):
                theta[k] = values.get(p.name[:2], 0.0)
        return theta

    def play(self, base: np.ndarray, feet: np.ndarray, arms: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Follow a reference: pose of the trunk (x, y, z, roll, pitch, yaw) and feet in the world, every `KNOTS`."""
        mujoco = self.mujoco
        angles, push = self.reference(base, feet, arms)
        model = self.spec.compile()
        data = mujoco.MjData(model)
        data.qpos[:3], data.qpos[7:] = base[0, :3], angles[0]
        mujoco.mju_euler2Quat(data.qpos[3:7], base[0, 3:], "XYZ")
        n, dof = int((len(base) - 1) * KNOTS / STEP), self.robot.dof
        drives = np.array([model.joint(name).dofadr[0] for name in self.robot.joint_names[6:]])
        widths = {"q": dof - 6, "tau": dof - 6, "pose": 7, "gyro": 3, "acc": 3, "force": len(self.walker.feet)}
        out = {name: np.empty((n // EVERY, w)) for name, w in widths.items()}
        feet_of = {
            model.body(self.robot.link_names[self.robot.frame(f).host]).id: k for k, f in enumerate(self.walker.feet)
        }
        force = np.zeros(6)
        lag = np.zeros(dof - 6)
        speed = np.gradient(angles, KNOTS, axis=0)
        at = np.arange(n) * STEP / KNOTS
        low = at.astype(int)
        part = (at - low)[:, None]
        wanted, rate, feed = (x[low] * (1 - part) + x[low + 1] * part for x in (angles, speed, push))
        for k in range(n):
            error, slip = wanted[k] - data.qpos[7:], rate[k] - data.qvel[drives]
            lag = feed[k] + self.walker.stiffness * error + self.walker.damping * slip
            data.ctrl[:] = lag
            before = data.qpos.copy()
            mujoco.mj_step(model, data)
            if k % EVERY == 0:
                row = k // EVERY
                out["q"][row], out["tau"][row], out["pose"][row] = before[7:], lag, before[:7]
                out["gyro"][row], out["acc"][row] = data.sensordata[:3], data.sensordata[3:6]
                out["force"][row] = 0.0
                for i, contact in enumerate(data.contact):
                    mujoco.mj_contactForce(model, data, i, force)
                    foot = next(feet_of[b] for b in model.geom_bodyid[contact.geom] if b in feet_of)
                    out["force"][row, foot] += force[0]
        out["t"] = np.arange(len(out["q"])) * STEP * EVERY
        return out

    def reference(
        self, base: np.ndarray, feet: np.ndarray, arms: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Joint angles that put the feet at their places, and torques that carry the weight on the lowest feet."""
        import pinocchio as pin

        model = pinocchio_model(self.robot)
        data = model.createData()
        frames = [model.getFrameId(name) for name in self.walker.feet]
        flat = self.walker.sole is not None
        joints = np.array(self.walker.posture)
        angles, push = np.empty((len(base), len(joints))), np.empty((len(base), len(joints)))
        weight = -model.gravity.linear[2] * sum(i.mass for i in model.inertias)
        legs = 12 if flat else len(joints)
        for k in range(len(base)):
            place = pin.SE3ToXYZQUAT(pin.SE3(rotation_from_rpy(*base[k, 3:]), base[k, :3]))
            if arms is not None:
                joints[legs:] = arms[k]
            for _ in range(8 if k == 0 else 3):
                q = np.concatenate([place, joints])
                pin.computeJointJacobians(model, data, q)
                pin.updateFramePlacements(model, data)
                rows, errors = [], []
                for f, foot in zip(frames, feet[k], strict=True):
                    J = pin.getFrameJacobian(model, data, f, pin.LOCAL_WORLD_ALIGNED)
                    rows.append(J[: 6 if flat else 3, 6 : 6 + legs])
                    errors.append(foot - data.oMf[f].translation)
                    if flat:
                        errors.append(pin.log3(data.oMf[f].rotation.T))
                turn = np.linalg.lstsq(np.vstack(rows), np.concatenate(errors), rcond=1e-6)[0]
                joints[:legs] += np.clip(turn, -0.3, 0.3)
            angles[k] = joints
            share = np.exp(-np.maximum(feet[k, :, 2] - feet[k, :, 2].min(), 0.0) / 0.005)
            force = weight * share / share.sum()
            gravity = pin.computeGeneralizedGravity(model, data, np.concatenate([place, joints]))
            for f, up in zip(frames, force, strict=True):
                gravity = gravity - up * pin.getFrameJacobian(model, data, f, pin.LOCAL_WORLD_ALIGNED)[2]
            push[k] = gravity[6:]
        return angles, push


def pinocchio_model(robot: Robot) -> Any:
    """The robot in Pinocchio with a free flyer, joints in our order, and its frames."""
    import pinocchio as pin

    model, ids = pin.Model(), {-1: 0}
    for k, link in enumerate(robot.links):
        kind = pin.JointModelFreeFlyer() if link.kind == "floating" else pin.JointModelRevoluteUnaligned(link.axis)
        ids[k] = model.addJoint(ids[link.parent], kind, pin.SE3(link.rotation, link.translation), link.name)
        body = pin.Inertia.FromDynamicParameters(robot.inertial_parameters.reshape(-1, 10)[k])
        model.appendBodyToJoint(ids[k], body, pin.SE3.Identity())
    for name in (*robot.frames, *robot.link_names):
        frame = robot.frame(name)
        if frame.host >= 0 and not model.existFrame(name, pin.FrameType.OP_FRAME):
            joint = ids[frame.host]
            place = pin.SE3(frame.rotation, frame.translation)
            model.addFrame(pin.Frame(name, joint, 0, place, pin.FrameType.OP_FRAME))
    return model


def _waves(t: np.ndarray, rng: np.random.Generator, low: float, high: float, columns: int) -> np.ndarray:
    """Sums of four sines between two frequencies [Hz], at most 1, that start slowly."""
    f = np.exp(rng.uniform(np.log(low), np.log(high), (4, columns)))
    x = np.mean(np.sin(2 * np.pi * f[:, None] * t[None, :, None] + rng.uniform(0, 6.28, (4, 1, columns))), axis=0)
    return x * np.clip(t / 1.0, 0.0, 1.0)[:, None] ** 2


def motion(walker: Walker, kind: str, seconds: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Reference of trunk, feet and arms: "sway", "squat" or "trot"."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds + 2 * KNOTS, KNOTS)
    robot, flat = walker.robot(), walker.sole is not None
    places = _feet_at(robot, walker)
    sizes = {"sway": [0.03, 0.03, 0.02, 0.2, 0.2, 0.2], "squat": [0.01, 0.01, 0.05, 0.05, 0.08, 0.05],
             "trot": [0.01, 0.01, 0.01, 0.03, 0.03, 0.05]}[kind]  # fmt: skip
    high = {"sway": 1.2, "squat": 1.5, "trot": 1.0}[kind]
    if flat:
        sizes, high = [0.03, 0.04, 0.06 if kind == "squat" else 0.02, 0.1, 0.15, 0.15], 0.8
    waves = _waves(t, rng, 0.2, high, 6)
    base = np.array([0.0, 0.0, -places[:, 2].mean() + (0.0 if flat else walker.radius), 0.0, 0.0, 0.0])
    # Joints stay away from their limits, whose force no sensor measures.
    base = base + (1.0 if flat else 2.0) * waves * sizes - [0, 0, sizes[2], 0, 0, 0]
    feet = np.tile(places - [0.0, 0.0, places[:, 2].mean()], (len(t), 1, 1))
    if not flat:
        feet[:, :, 2] += walker.radius
    if kind == "trot":
        phase = t / 0.5
        on = np.clip((t - 1.0) / 0.5, 0.0, 1.0)
        for k in range(4):
            own = (phase + (0.0 if k in (0, 3) else 0.5)) % 1.0
            lift = np.where(own < 0.4, np.sin(np.pi * own / 0.4) ** 2, 0.0)
            feet[:, k, 2] += 0.05 * lift * on
    arms = None
    if flat:
        arms = np.array(walker.posture[12:]) + 0.6 * _waves(t, rng, 0.2, 1.0, len(walker.posture) - 12)
    return base, feet, arms


def _feet_at(robot: Robot, walker: Walker) -> np.ndarray:
    import pinocchio as pin

    model = pinocchio_model(robot)
    data = model.createData()
    pin.framesForwardKinematics(model, data, np.concatenate([[0, 0, 0, 0, 0, 0, 1.0], walker.posture]))
    return np.array([data.oMf[model.getFrameId(name)].translation for name in walker.feet])


def measured(out: dict[str, np.ndarray], sensors: Sensors, seed: int) -> dict[str, np.ndarray]:
    """The log of a plant: sensors with noise, biases and delays, as columns."""
    rng = np.random.default_rng(1000 + seed)
    t, rate = out["t"], 1.0 / (STEP * EVERY)

    def late(x: np.ndarray, delay: float) -> np.ndarray:
        back = round(delay * rate)
        return x[np.maximum(np.arange(len(x)) - back, 0)]

    def noisy(x: np.ndarray, size: float) -> np.ndarray:
        return x + size * rng.standard_normal(x.shape)

    attitude = noisy(late(out["pose"][:, 3:], sensors.imu_delay), 0.5 * sensors.attitude)
    parts = {
        "q": noisy(out["q"], sensors.encoder), "tau": noisy(late(out["tau"], sensors.torque_delay), sensors.torque),
        "gyro": noisy(late(out["gyro"], sensors.imu_delay), sensors.gyroscope) + sensors.gyroscope_bias,
        "specific": noisy(late(out["acc"], sensors.imu_delay), sensors.accelerometer) + sensors.accelerometer_bias,
        "att": attitude / np.linalg.norm(attitude, axis=1, keepdims=True),
        "on": (out["force"] > 0.0).astype(float), "force": out["force"],
    }  # fmt: skip
    columns = {"t": t}
    for name, x in parts.items():
        columns |= {f"{name}{k}": x[:, k] for k in range(x.shape[1])}
    return columns


def mapping_of(walker: Walker, robot: Robot, phases: str = "state") -> dict[str, Any]:
    """The mapping of a log of `measured`; `phases`: "state", "force" or "from_torques"."""
    n = robot.dof - 6
    source = {"state": "on{}", "force": "force{}"}

    def column(k: int) -> Any:
        return source[phases].format(k) if phases in source else True

    feet: dict[str, Any] = {"kind": "flat"} if walker.sole else {"radius": walker.radius}
    return {
        "time": "t", "joints": list(robot.joint_names[6:]), "position": [f"q{k}" for k in range(n)],
        "torque": [f"tau{k}" for k in range(n)],
        "base": {"orientation": [f"att{k}" for k in range(4)], "quaternion": "wxyz",
                 "gyroscope": [f"gyro{k}" for k in range(3)], "accelerometer": [f"specific{k}" for k in range(3)],
                 "imu": {"position": list(walker.imu)}},
        "contacts": {f: feet | {phases: column(k)} for k, f in enumerate(walker.feet)},
    }  # fmt: skip
