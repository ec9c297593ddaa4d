"""Six mechanisms with closed loops, as MJCF, and their logs from MuJoCo with planted inertias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

HEAD = '<mujoco model="{}"><compiler angle="radian"/><option gravity="{}"/><worldbody>'
DOWN = "0 0 -9.81"


def capsule(start: Sequence[float], end: Sequence[float], size: float, mass: float) -> str:
    ends = " ".join(f"{x:.12g}" for x in (*start, *end))
    return f'<geom type="capsule" size="{size}" fromto="{ends}" mass="{mass}"/>'


def closing(equalities: str, motors: Sequence[str]) -> str:
    drives = "".join(f'<motor joint="{name}"/>' for name in motors)
    return f"</worldbody><equality>{equalities}</equality><actuator>{drives}</actuator></mujoco>"


FOUR_BAR = (
    HEAD.format("fourbar", DOWN)
    + '<body name="crank"><joint name="crank" axis="0 1 0"/>'
    + capsule((0, 0, 0), (0, 0, 0.15), 0.02, 0.5)
    + '<body name="coupler" pos="0 0 0.15"><joint name="pin" axis="0 1 0"/>'
    + capsule((0, 0, 0), (0.4, 0, 0.1), 0.02, 0.8)
    + '</body></body><body name="rocker" pos="0.4 0 0"><joint name="rocker" axis="0 1 0"/>'
    + capsule((0, 0, 0), (0, 0, 0.25), 0.02, 0.6)
    + "</body>"
    + closing('<connect body1="coupler" body2="rocker" anchor="0.4 0 0.1"/>', ["crank"])
)

PALLETISER = (
    HEAD.format("palletiser", DOWN) + '<body name="column"><joint name="turn" axis="0 0 1"/>'
    '<geom type="cylinder" size="0.1 0.15" pos="0.02 0 0.1" mass="20"/>'
    '<body name="upper" pos="0.1 0 0.3"><joint name="lift" axis="0 1 0"/>'
    '<geom type="box" size="0.05 0.05 0.4" pos="0 0 0.4" mass="12"/>'
    '<body name="fore" pos="0 0 0.8"><joint name="elbow" axis="0 1 0"/>'
    '<geom type="box" size="0.5 0.04 0.04" pos="0.3 0 0" mass="8"/></body></body>'
    '<body name="lever" pos="0.1 0.06 0.3"><joint name="drive" axis="0 1 0"/>'
    '<geom type="box" size="0.15 0.02 0.03" pos="-0.15 0 0" mass="3"/>'
    '<body name="rod" pos="-0.2 0 0"><joint name="rod" axis="0 1 0"/>'
    '<geom type="box" size="0.015 0.015 0.4" pos="0 0 0.4" mass="2.5"/></body></body></body>'
    + closing('<connect body1="rod" body2="fore" anchor="0 0 0.8"/>', ["turn", "lift", "drive"])
)

FIVE_BAR = (
    HEAD.format("fivebar", "0 -9.81 0")
    + '<body name="l1"><joint name="left" axis="0 0 1"/>'
    + capsule((0, 0, 0), (-0.12, 0.2, 0), 0.015, 0.4)
    + '<body name="l2" pos="-0.12 0.2 0"><joint name="left_pin" axis="0 0 1"/>'
    + capsule((0, 0, 0), (0.22, 0.2, 0), 0.01, 0.3)
    + '</body></body><body name="r1" pos="0.2 0 0"><joint name="right" axis="0 0 1"/>'
    + capsule((0, 0, 0), (0.12, 0.2, 0), 0.015, 0.4)
    + '<body name="r2" pos="0.12 0.2 0"><joint name="right_pin" axis="0 0 1"/>'
    + capsule((0, 0, 0), (-0.22, 0.2, 0), 0.01, 0.3)
    + "</body></body>"
    + closing('<connect body1="l2" body2="r2" anchor="0.22 0.2 0"/>', ["left", "right"])
)


def _ankle() -> str:
    """Two motors move a foot with pitch and roll by rods with a universal joint and a ball."""
    out = HEAD.format("ankle", DOWN) + (
        '<body name="cross"><joint name="pitch" axis="0 1 0"/>' + capsule((0, -0.02, 0), (0, 0.02, 0), 0.01, 0.15)
    )
    out += (
        '<body name="foot"><joint name="roll" axis="1 0 0"/>'
        '<geom type="box" size="0.11 0.045 0.01" pos="0.03 0 -0.05" mass="0.9"/>'
        '<site name="heel_l" pos="-0.05 0.04 -0.02"/><site name="heel_r" pos="-0.05 -0.04 -0.02"/></body></body>'
    )
    for end, y, z, mass in (("l", 1.0, 0.25, 0.1), ("r", -1.0, 0.17, 0.08)):
        tip = (0.0, -0.01 * y, -z - 0.02)
        out += (
            f'<body name="motor_{end}" pos="0 {0.05 * y} {z}"><joint name="motor_{end}" axis="0 1 0"/>'
            '<geom type="box" size="0.025 0.006 0.01" pos="-0.025 0 0" mass="0.12"/>'
            f'<body name="rod_{end}" pos="-0.05 0 0"><joint name="rod_{end}y" axis="0 1 0"/>'
            f'<joint name="rod_{end}x" axis="1 0 0"/>{capsule((0, 0, 0), tip, 0.005, mass)}'
            f'<site name="end_{end}" pos="{tip[0]} {tip[1]} {tip[2]}"/></body></body>'
        )
    equalities = "".join(f'<connect site1="end_{e}" site2="heel_{e}"/>' for e in "lr")
    return out + closing(equalities, ["motor_l", "motor_r"])


def _stewart() -> str:
    """Six legs with universal joint and slide carry a free platform by balls."""
    base, top = (np.radians(a) for a in ([-10, 10, 110, 130, 230, 250], [-50, 50, 70, 170, 190, 290]))
    height = 0.45
    B = np.column_stack([0.35 * np.cos(base), 0.35 * np.sin(base), 0 * base])
    P = np.column_stack([0.2 * np.cos(top), 0.2 * np.sin(top), height + 0 * top])
    out, equalities = HEAD.format("stewart", DOWN), ""
    for k, (b, p) in enumerate(zip(B, P, strict=True)):
        length = float(np.linalg.norm(p - b))
        z = (p - b) / length
        x = np.cross([0, 1, 0], z) / np.linalg.norm(np.cross([0, 1, 0], z))
        axes = " ".join(f"{v:.15g}" for v in (*x, *np.cross(z, x)))
        out += (
            f'<body name="leg{k}" pos="{b[0]} {b[1]} 0" xyaxes="{axes}"><joint name="ux{k}" axis="1 0 0"/>'
            f'<joint name="uy{k}" axis="0 1 0"/>{capsule((0, 0, 0), (0, 0, 0.5 * length), 0.02, 1.0 + 0.1 * k)}'
            f'<body name="rod{k}" pos="0 0 {length}"><joint name="slide{k}" type="slide" axis="0 0 1"/>'
            f"{capsule((0, 0, -0.5 * length), (0, 0, 0), 0.012, 0.5 + 0.05 * k)}</body></body>"
        )
        equalities += f'<connect body1="rod{k}" body2="platform" anchor="0 0 0"/>'
    out += (
        f'<body name="platform" pos="0 0 {height}"><freejoint name="float"/>'
        '<geom type="cylinder" size="0.2 0.02" mass="4"/>'
        '<geom type="box" size="0.05 0.03 0.06" pos="0.05 0.02 0.08" mass="1.5"/></body>'
    )
    return out + closing(equalities, [f"slide{k}" for k in range(6)])


def _delta() -> str:
    """Three arms with parallelograms of two rods each carry a free platform."""
    reach, upper, fore, half, tilt = 0.2, 0.3, 0.55, 0.05, 0.3
    x, z = upper * np.cos(tilt), -upper * np.sin(tilt)
    inwards = 0.06 - reach - x
    drop = -np.sqrt(fore**2 - inwards**2)
    out, equalities = HEAD.format("delta", DOWN), ""
    for k in range(3):
        a = 2.0 * np.pi * k / 3.0
        out += (
            f'<body name="arm{k}" pos="{reach * np.cos(a)} {reach * np.sin(a)} 0" '
            f'quat="{np.cos(a / 2)} 0 0 {np.sin(a / 2)}"><joint name="arm{k}" axis="0 1 0"/>'
            + capsule((0, 0, 0), (x, 0, z), 0.015, 0.6 + 0.1 * k)
        )
        for end, side in (("a", -half), ("b", half)):
            out += (
                f'<body name="rod{k}{end}" pos="{x} {side} {z}"><joint name="y{k}{end}" axis="0 1 0"/>'
                f'<joint name="x{k}{end}" axis="{-drop / fore} 0 {inwards / fore}"/>'
                f"{capsule((0, 0, 0), (inwards, 0, drop), 0.006, 0.12)}</body>"
            )
            equalities += f'<connect body1="rod{k}{end}" body2="platform" anchor="{inwards} 0 {drop}"/>'
        out += "</body>"
    out += (
        f'<body name="platform" pos="0 0 {z + drop}"><freejoint name="float"/>'
        '<geom type="cylinder" size="0.06 0.01" mass="0.5"/>'
        '<geom type="box" size="0.02 0.02 0.04" pos="0.01 0 -0.05" mass="0.4"/></body>'
    )
    return out + closing(equalities, [f"arm{k}" for k in range(3)])


ANKLE, STEWART, DELTA = _ankle(), _stewart(), _delta()
MECHANISMS = {
    "four-bar": FOUR_BAR, "palletiser": PALLETISER, "five-bar": FIVE_BAR, "ankle": ANKLE, "stewart": STEWART,
    "delta": DELTA,
}  # fmt: skip
# Amplitudes of the drives [rad, m], which stay on the branch of the description.
SIZES = {"four-bar": 0.6, "palletiser": 0.35, "five-bar": 0.35, "ankle": 0.35, "stewart": 0.05, "delta": 0.35}
FREEDOM = {"four-bar": 1, "palletiser": 3, "five-bar": 2, "ankle": 2, "stewart": 6, "delta": 3}


def smooth(t: np.ndarray, size: float, columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of sines up to `size` with their exact derivatives; they start from zero at rest."""
    rng = np.random.default_rng(seed)
    f = 2.0 * np.pi * rng.uniform(0.1, 1.2, (4, columns))
    a, phase = size * rng.uniform(0.4, 1.0, (4, columns)) / 2.2, rng.uniform(0.0, 6.28, (4, columns))
    angle = f[:, None] * t[None, :, None] + phase[:, None]
    x, dx, ddx = (
        np.sum(part, axis=0)
        for part in (
            a[:, None] * np.sin(angle),
            (a * f)[:, None] * np.cos(angle),
            -(a * f * f)[:, None] * np.sin(angle),
        )
    )
    r = np.clip(t, 0.0, 1.0)[:, None]
    w, dw, ddw = r**3 * (10 - 15 * r + 6 * r**2), 30 * r**2 * (1 - r) ** 2, 60 * r * (1 - r) * (1 - 2 * r)
    return w * x, dw * x + w * dx, ddw * x + 2 * dw * dx + w * ddx


@dataclass
class LoopLog:
    """A simulated log: the plant, and its signals."""

    plant: Any
    joints: tuple[str, ...]
    t: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    true_tau: np.ndarray
    qpos: np.ndarray


DAMPING = 0.05
SHARE_OF_NOISE = 0.01


def loop_log(mujoco: Any, xml: str, size: float, seconds: float = 10.0, rate: float = 250.0, seed: int = 0) -> LoopLog:
    """Simulate a mechanism under control, with stiff constraints and planted inertias.

    Masses differ from the description by up to 25 %, inertias by up to 35 %, centres by up to 10 mm. Encoders have a
    noise of 10 µrad or µm, torques one of 1 % of their variation.
    """
    rng = np.random.default_rng(seed)
    stiff = xml.replace("<connect", '<connect solref="0.001 1" solimp="0.9999 0.9999 0.001"')
    m = mujoco.MjModel.from_xml_string(stiff)
    m.opt.timestep, m.opt.integrator = 0.0004, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    factor = rng.uniform(0.75, 1.25, m.nbody)
    m.body_mass[:] *= factor
    m.body_inertia[:] *= (factor * rng.uniform(0.9, 1.1, m.nbody))[:, None]
    m.body_ipos[1:] += 0.01 * rng.uniform(-1.0, 1.0, (m.nbody - 1, 3))
    joints = [int(m.actuator_trnid[k][0]) for k in range(m.nu)]
    dofs, places = m.jnt_dofadr[joints], m.jnt_qposadr[joints]
    m.dof_damping[dofs] = DAMPING
    mujoco.mj_setConst(m, mujoco.MjData(m))
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    # Forces of the loops stiffen the drives: a gain of the open tree's inertia suits all mechanisms here.
    unit = np.zeros(m.nv)
    inertia = np.zeros(m.nu)
    for k, dof in enumerate(dofs):
        unit[:] = 0.0
        unit[dof] = 1.0
        column = np.zeros(m.nv)
        mujoco.mj_mulM(m, d, column, unit)
        inertia[k] = column[dof]
    steps = int(seconds / m.opt.timestep)
    t = m.opt.timestep * np.arange(steps)
    wanted, speed, _ = smooth(t, size, m.nu, seed)
    wanted = wanted + d.qpos[places]
    every = round(1.0 / rate / m.opt.timestep)
    rows: list[tuple[np.ndarray, ...]] = []
    for k in range(steps):
        push = 70.0**2 * (wanted[k] - d.qpos[places]) + 100.0 * (speed[k] - d.qvel[dofs])
        d.ctrl[:] = inertia * push
        if k % every == 0:
            rows.append((d.qpos[places].copy(), d.ctrl.copy(), d.qpos.copy()))
        mujoco.mj_step(m, d)
    q, tau, qpos = (np.array(x) for x in zip(*rows, strict=True))
    noisy = tau + SHARE_OF_NOISE * tau.std(axis=0) * rng.standard_normal(tau.shape)
    names = tuple(m.joint(k).name for k in joints)
    return LoopLog(m, names, t[::every], q + 1e-5 * rng.standard_normal(q.shape), noisy, tau, qpos)
