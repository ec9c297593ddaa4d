"""A leg on a stand, moved by MuJoCo, and its match."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from matching.plants import Truth, multisine, play, truth

from steelyard.matching import Match, match_robot
from steelyard.robot import Robot, load_robot
from steelyard.signals import Log

QUANTUM = 2.0 * np.pi / 2**14  # encoders of 14 bits
LEG = """<robot name="leg">
  <link name="base"/>
  <link name="hip"><inertial><origin xyz="0.0 0.01 0"/><mass value="0.7"/>
    <inertia ixx="6e-4" iyy="8e-4" izz="6e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="thigh"><inertial><origin xyz="-0.004 -0.02 -0.03"/><mass value="1.15"/>
    <inertia ixx="6e-3" iyy="6e-3" izz="1e-3" ixy="0" ixz="3e-4" iyz="6e-4"/></inertial></link>
  <link name="calf"><inertial><origin xyz="0.006 0 -0.11"/><mass value="0.24"/>
    <inertia ixx="2e-3" iyy="2e-3" izz="6e-5" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="abduction" type="revolute"><parent link="base"/><child link="hip"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="24" velocity="30"/></joint>
  <joint name="hip_pitch" type="revolute"><parent link="hip"/><child link="thigh"/><origin xyz="0 0.095 0"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="4" effort="24" velocity="30"/></joint>
  <joint name="knee" type="revolute"><parent link="thigh"/><child link="calf"/><origin xyz="0 0 -0.213"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="0" effort="45" velocity="16"/></joint>
</robot>"""


@dataclass(frozen=True)
class Case:
    """A plant, its log, and the settings of its match."""

    plant: Truth
    log: Log
    rest: np.ndarray


@pytest.fixture(scope="session")
def leg(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    path = tmp_path_factory.mktemp("leg") / "leg.urdf"
    path.write_text(LEG, "utf-8")
    return load_robot(path)


def plant_of(robot: Robot, folder: Path, seed: int, **more: object) -> Truth:
    rng = np.random.default_rng(seed)
    made = truth(robot, rng, np.full(3, 40.0), np.full(3, 1.0), np.full(3, 0.01), 0.004, **more)
    made.write(str(folder / "plant.xml"))
    return made


@pytest.fixture(scope="session")
def case(leg: Robot, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Torques are limited, the delay is 4 ms, positions are rounded."""
    plant = plant_of(leg, tmp_path_factory.mktemp("plant"), 7, limit=np.full(3, 6.0))
    rest = np.array([0.0, 0.8, -1.5])
    goal = multisine(np.random.default_rng(8), 3, 8.0, 4.0, np.array([0.5, 0.7, 0.7]))
    log = play(plant, lambda t: rest + goal(t), 9.0, 500.0, noise=1e-5, quantum=QUANTUM)
    return Case(plant, log, rest)


@pytest.fixture(scope="session")
def matched(leg: Robot, case: Case) -> Match:
    own = case.plant
    return match_robot(leg, case.log, kp=own.kp, kd=own.kd, limit=own.limit, draws=20)
