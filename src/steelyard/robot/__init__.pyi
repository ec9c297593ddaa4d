"""What is known of a robot before it moves: its joints, links, drives and, where stated, its inertias."""

from .kinematics.poses import link_poses
from .load import load_robot
from .mjcf import read_mjcf
from .robot import Joint, Link, NominalTerm, Robot
from .transmission import BallScrew, ConstantRatio, Transmission
from .urdf import read_urdf

__all__ = [
    "BallScrew", "ConstantRatio", "Joint", "Link", "NominalTerm", "Robot", "Transmission", "link_poses", "load_robot",
    "read_mjcf", "read_urdf",
]  # fmt: skip
