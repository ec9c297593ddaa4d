"""What is known of a robot before it moves: its joints, links, drives and, where stated, its inertias."""

from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.load import load_robot
from steelyard.robot.mjcf import read_mjcf
from steelyard.robot.robot import Joint, Link, NominalTerm, Robot
from steelyard.robot.transmission import BallScrew, ConstantRatio, Transmission
from steelyard.robot.urdf import read_urdf

__all__ = [
    "BallScrew",
    "ConstantRatio",
    "Joint",
    "Link",
    "NominalTerm",
    "Robot",
    "Transmission",
    "link_poses",
    "load_robot",
    "read_mjcf",
    "read_urdf",
]
