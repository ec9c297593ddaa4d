"""Plants for floating bases: motions with forces by Pinocchio, and a walking robot in MuJoCo."""

from __future__ import annotations

import numpy as np

from steelyard.robot.free import whole_quaternion

# A trunk with an arm of two joints; the hand pushes against the world.
URDF = """<robot name="swimmer">
<link name="trunk"><inertial><origin xyz="0.02 -0.01 0.03"/><mass value="{m[0]}"/>
<inertia ixx="{i[0]}" iyy="{i[0]}" izz="{i[0]}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="upper"><inertial><origin xyz="0.01 0 -0.12"/><mass value="{m[1]}"/>
<inertia ixx="{i[1]}" iyy="{i[1]}" izz="{i[1]}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"><inertial><origin xyz="0 0.01 -0.1"/><mass value="{m[2]}"/>
<inertia ixx="{i[2]}" iyy="{i[2]}" izz="{i[2]}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="hand"/>
<joint name="shoulder" type="revolute"><parent link="trunk"/><child link="upper"/><axis xyz="1 0 0"/>
<limit lower="-9" upper="9" effort="99" velocity="99"/><origin xyz="0.1 0 -0.05"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
<limit lower="-9" upper="9" effort="99" velocity="99"/><origin xyz="0 0 -0.25"/></joint>
<joint name="wrist" type="fixed"><parent link="lower"/><child link="hand"/><origin xyz="0 0 -0.2"/></joint>
</robot>"""
TRUE = URDF.format(m=(6.0, 1.5, 1.0), i=(0.08, 0.01, 0.006))
DESCRIBED = URDF.format(m=(5.0, 1.8, 0.8), i=(0.06, 0.012, 0.005))
JOINTS = ("shoulder", "elbow")


def smooth(t: np.ndarray, rng: np.random.Generator, columns: int, size: float) -> tuple[np.ndarray, ...]:
    """Sums of sines with their exact derivatives."""
    f = rng.uniform(0.2, 1.2, (4, columns)) * 2 * np.pi
    a, phase = size * rng.uniform(0.3, 1.0, (4, columns)), rng.uniform(0, 6.28, (4, columns))
    angle = f[:, None] * t[None, :, None] + phase[:, None]
    x = np.sum(a[:, None] * np.sin(angle), axis=0)
    dx = np.sum((a * f)[:, None] * np.cos(angle), axis=0)
    return x, dx, np.sum(-(a * f * f)[:, None] * np.sin(angle), axis=0)


def swimmer_log(
    pin, seconds: float = 20.0, rate: float = 200.0, noise: float = 1.0, seed: int = 0, resting: bool = False
) -> dict:
    """A log of a trunk that is carried by a wrench at the hand, in the axes of the hand.

    The orientation turns by angles about fixed axes, whose derivatives are exact. With `resting` the hand does not
    move, and the joints carry the trunk around it.
    """
    rng = np.random.default_rng(seed)
    model = pin.buildModelFromXML(TRUE, pin.JointModelFreeFlyer())
    data, hand = model.createData(), model.getFrameId("hand")
    t = np.arange(0.0, seconds, 1.0 / rate)
    p, dp, ddp = smooth(t, rng, 3, 0.1)
    e, de, dde = smooth(t, rng, 3, 0.3)
    q, dq, ddq = smooth(t, rng, 2, 0.5)
    out = {name: [] for name in ("position", "orientation", "twist", "gyro", "force", "wrench", "tau")}
    for k in range(len(t)):
        R = pin.rpy.rpyToMatrix(e[k])
        J = pin.rpy.computeRpyJacobian(e[k], pin.LOCAL)
        dJ = pin.rpy.computeRpyJacobianTimeDerivative(e[k], de[k], pin.LOCAL)
        w, dw = J @ de[k], J @ dde[k] + dJ @ de[k]
        v = R.T @ dp[k]
        twist = np.concatenate([v, w, dq[k]])
        rate_of_twist = np.concatenate([R.T @ ddp[k] - np.cross(w, v), dw, ddq[k]])
        if resting:
            p[k], R, twist, rate_of_twist = _about_the_hand(pin, model, data, hand, q[k], dq[k], ddq[k])
            w = twist[3:6]
        quaternion = pin.Quaternion(R).coeffs()
        position = np.concatenate([p[k], quaternion, q[k]])
        tau = pin.rnea(model, data, position, twist, rate_of_twist)
        J6 = pin.computeFrameJacobian(model, data, position, hand, pin.LOCAL)
        wrench = np.linalg.solve(J6[:, :6].T, tau[:6])
        out["position"].append(p[k])
        out["orientation"].append(np.roll(quaternion, 1))
        out["twist"].append(np.concatenate([R @ twist[:3], w]))
        out["gyro"].append(w)
        linear = R @ (rate_of_twist[:3] + np.cross(w, twist[:3]))
        out["force"].append(R.T @ (linear - model.gravity.linear))
        out["wrench"].append(wrench)
        out["tau"].append(tau[6:] - J6[:, 6:].T @ wrench)
    arrays = {name: np.array(x) for name, x in out.items()} | {"t": t, "q": q}
    sizes = {"position": 1e-4, "orientation": 1e-4, "twist": 1e-3, "gyro": 1e-3, "force": 0.02, "wrench": 0.05,
             "tau": 0.02, "q": 1e-4}  # fmt: skip
    return {n: x if n == "t" else x + noise * sizes[n] * rng.standard_normal(x.shape) for n, x in arrays.items()}


def _about_the_hand(pin, model, data, hand: int, q, dq, ddq) -> tuple:
    """Pose, twist and its derivative of the trunk if the hand rests at the origin of the world."""
    start = np.concatenate([[0, 0, 0, 0, 0, 0, 1.0], q])
    pin.framesForwardKinematics(model, data, start)
    pose = data.oMf[hand].inverse()
    position = np.concatenate([pin.SE3ToXYZQUAT(pose), q])
    J = pin.computeFrameJacobian(model, data, position, hand, pin.LOCAL).copy()
    twist = np.concatenate([-np.linalg.solve(J[:, :6], J[:, 6:] @ dq), dq])
    pin.forwardKinematics(model, data, position, twist, np.concatenate([np.zeros(6), ddq]))
    drift = pin.getFrameAcceleration(model, data, hand, pin.LOCAL).vector
    rate = np.concatenate([-np.linalg.solve(J[:, :6], drift), ddq])
    return pose.translation.copy(), pose.rotation.copy(), twist, rate


NAMES = {
    "position": ("px", "py", "pz"), "orientation": ("qw", "qx", "qy", "qz"), "gyro": ("gx", "gy", "gz"),
    "force": ("ax", "ay", "az"), "twist": ("vx", "vy", "vz", "wx", "wy", "wz"),
    "wrench": ("fx", "fy", "fz", "nx", "ny", "nz"), "tau": ("tau_a", "tau_b"), "q": ("q_a", "q_b"),
}  # fmt: skip


def columns_of(log: dict) -> dict[str, np.ndarray]:
    """The log as columns with the names of `NAMES`."""
    out = {"t": log["t"]}
    for name, columns in NAMES.items():
        out |= {column: log[name][:, k] for k, column in enumerate(columns)}
    return out


def swimmer_mapping(base: dict | None = None, contact: dict | None = None) -> dict:
    pose = {"position": list(NAMES["position"]), "orientation": list(NAMES["orientation"])}
    wrench = {"wrench": list(NAMES["wrench"]), "axes": "frame"}
    return {
        "time": "t", "joints": list(JOINTS), "position": list(NAMES["q"]), "torque": list(NAMES["tau"]),
        "base": base or pose, "contacts": {"hand": contact or wrench},
    }  # fmt: skip


def mujoco_position(q: np.ndarray) -> np.ndarray:
    """Position of MuJoCo of a floating body with joints."""
    return np.concatenate([q[:3], whole_quaternion(q[3:6]), q[6:]])
