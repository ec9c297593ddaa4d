"""Robots with prismatic joints, moved by Pinocchio: a gantry, a SCARA, an arm on a mobile base; none has rotors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PERIOD = 1.0 / 250.0


@dataclass(frozen=True)
class Plant:
    """Joints from the base on: kind, axis and place of each, true masses, masses that the description states."""

    kinds: tuple[str, ...]
    axes: tuple[str, ...]
    places: tuple[str, ...]
    masses: tuple[float, ...]
    stated: tuple[float, ...]
    dry: tuple[float, ...]
    damping: tuple[float, ...]

    def urdf(self, name: str, masses: tuple[float, ...]) -> str:
        parts = ['<link name="base"/>']
        for k, (kind, axis, place, m) in enumerate(zip(self.kinds, self.axes, self.places, masses, strict=True)):
            tensor = f'ixx="{0.02 * m}" iyy="{0.03 * m}" izz="{0.025 * m}" ixy="0" ixz="0" iyz="0"'
            parts.append(
                f'<link name="l{k}"><inertial><origin xyz="0.05 0.02 -0.1"/><mass value="{m}"/><inertia {tensor}/>'
                f'</inertial></link><joint name="j{k}" type="{kind}"><parent link="{f"l{k - 1}" if k else "base"}"/>'
                f'<child link="l{k}"/><origin xyz="{place}"/><axis xyz="{axis}"/>'
                '<limit lower="-3" upper="3" effort="1000" velocity="9"/></joint>'
            )
        return f'<robot name="{name}">{"".join(parts)}</robot>'


PLANTS = {
    "gantry": Plant(
        ("prismatic",) * 3, ("1 0 0", "0 1 0", "0 0 1"), ("0 0 1", "0 0 0", "0 0 0"),
        (25.6, 46.4, 17.9), (20.4, 40.8, 21.3), (5.0, 4.0, 3.0), (8.0, 6.0, 5.0),
    ),
    "scara": Plant(
        ("revolute", "revolute", "prismatic", "revolute"), ("0 0 1",) * 4, ("0 0 .5", ".3 0 0", ".25 0 0", "0 0 -.1"),
        (6.0, 4.0, 2.0, 0.8), (5.0, 5.0, 1.6, 1.0), (1.0, 0.5, 3.0, 0.02), (1.0, 0.5, 5.0, 0.01),
    ),
    "mobile": Plant(
        ("prismatic", "prismatic", "revolute", "revolute"), ("1 0 0", "0 1 0", "0 0 1", "0 1 0"),
        ("0 0 .1", "0 0 0", "0 0 .1", "0 0 .3"), (0.5, 0.5, 60.0, 5.0), (0.5, 0.5, 50.0, 6.0),
        (5.0, 4.0, 1.0, 0.3), (8.0, 6.0, 1.0, 0.3),
    ),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Moved:
    """A log, and the motion behind it without noise."""

    log: dict[str, Any]
    q: np.ndarray
    dq: np.ndarray
    ddq: np.ndarray


def described(plant: str, folder: Path) -> Path:
    path = folder / f"{plant}.urdf"
    path.write_text(PLANTS[plant].urdf(plant, PLANTS[plant].stated))
    return path


def pinocchio_model(what: str | Path, folder: Path) -> Any:
    """Of a file, or of a plant by its name."""
    import pinocchio as pin

    if isinstance(what, str):
        path = folder / f"{what}_true.urdf"
        path.write_text(PLANTS[what].urdf(what, PLANTS[what].masses))
        what = path
    return pin.buildModelFromUrdf(str(what))


def rigid_torque(model: Any, motion: Moved) -> np.ndarray:
    import pinocchio as pin

    data = model.createData()
    return np.array([pin.rnea(model, data, *row) for row in zip(motion.q, motion.dq, motion.ddq, strict=True)])


def moved(plant: str, seed: int) -> Moved:
    """Twenty seconds of sines; noise of 2 % in the torques and of 10 µrad (µm) in the positions."""
    import tempfile

    p, rng, t = PLANTS[plant], np.random.default_rng(seed), np.arange(0.0, 20.0, PERIOD)
    q, dq, ddq = (np.zeros((len(t), len(p.kinds))) for _ in range(3))
    for j, kind in enumerate(p.kinds):
        for h in range(1, 6):
            w, size = 0.2 * np.pi * h * (1.0 + 0.1 * j), rng.normal(0.0, (0.25 if kind == "prismatic" else 0.5) / h)
            phase = w * t + rng.uniform(0.0, 2.0 * np.pi)
            q[:, j] += size * np.sin(phase)
            dq[:, j] += size * w * np.cos(phase)
            ddq[:, j] -= size * w * w * np.sin(phase)
    motion = Moved({}, q, dq, ddq)
    with tempfile.TemporaryDirectory() as folder:
        rigid = rigid_torque(pinocchio_model(plant, Path(folder)), motion)
    tau = rigid + np.array(p.damping) * dq + np.array(p.dry) * np.sign(dq)
    tau += 0.02 * tau.std(axis=0) * rng.normal(size=tau.shape)
    return Moved({"time": t, "q": q + 1e-5 * rng.normal(size=q.shape), "tau": tau}, q, dq, ddq)
