"""A small fleet of planar arms with two joints, whose logs have closed forms."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.dynamics.model import Model
from steelyard.parameters import terms
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log

URDF = """<robot name="planar">
<link name="base"/>
<link name="upper"><inertial><origin xyz="0.25 0 0.02"/><mass value="4"/>
<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<link name="fore"><inertial><origin xyz="0.2 0.01 0"/><mass value="2.5"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.05"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="200" velocity="6"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0.5 0 0"/>
<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="80" velocity="6"/></joint>
</robot>
"""
RATES = 2.0 * np.pi * np.array([0.13, 0.29, 0.41, 0.67])


@cache
def planar() -> Robot:
    """The arm as described."""
    return load_robot(URDF)


@cache
def truth(viscous: float = 0.8) -> Model:
    """The true arm, with friction."""
    robot = planar()
    bound = terms(robot, "viscous", "coulomb", "offset")
    return Model(robot, bound, np.concatenate([robot.inertial_parameters, [viscous, 0.5], [1.0, 0.7], [0.2, -0.1]]))


def made_log(seed: int, model: Model | None = None, samples: int = 1500, rate_hz: float = 100.0) -> Log:
    """Make a log along sums of sines, with torque noise of 3 % of the torques' standard deviation."""
    model, rng = model or truth(), np.random.default_rng(seed)
    n = model.robot.dof
    amplitude, phase = rng.uniform(0.1, 0.5, (4, n)), rng.uniform(0.0, 6.0, (4, n))
    t = np.arange(samples) / rate_hz
    angle = t[:, None, None] * RATES[:, None] + phase
    q, dq = (amplitude * np.sin(angle)).sum(1), (amplitude * RATES[:, None] * np.cos(angle)).sum(1)
    tau = model.torque(q, dq, -(amplitude * RATES[:, None] ** 2 * np.sin(angle)).sum(1))
    tau += 0.03 * np.std(tau, axis=0) * rng.normal(size=tau.shape)
    return Log(model.robot.joint_names, t, q, dq=dq, tau=tau)


def write_log(path: Path, log: Log) -> None:
    """Write a log as a Parquet file with standard column names."""
    assert log.dq is not None
    assert log.tau is not None
    columns = {"t": log.t}
    for name, signal in (("q", log.q), ("dq", log.dq), ("tau", log.tau)):
        columns |= {f"{name}{j + 1}": signal[:, j] for j in range(signal.shape[1])}
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    os.utime(path, (1e9, 1e9))  # an old file is safe to remember by its state


def write_fleet(folder: Path, robots: int = 3, logs: int = 4, samples: int = 1500) -> Path:
    """Write a folder with a description, and daily logs of robots that differ in their viscous friction."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "planar.urdf").write_text(URDF, "utf-8")
    for r in range(robots):
        for k in range(logs):
            write_log(
                folder / f"arm{r}" / f"2026-01-{k + 1:02d}.parquet",
                made_log(100 * r + k, truth(0.6 + 0.1 * r), samples),
            )
    return folder
