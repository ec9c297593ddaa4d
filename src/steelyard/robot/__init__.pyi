"""What is known of a robot before it moves: its joints, links, drives and, where stated, its inertias."""

from .formats import ROBOT_FORMATS, read_robot
from .free import refuse_free
from .kinematics.poses import link_poses
from .library import builtin_names, catalogue
from .limit_options import LimitOptions
from .load import load_robot
from .meshes import mesh_path
from .mjcf import read_mjcf
from .robot import Joint, Link, NominalTerm, Robot
from .shapes import inertia_ellipsoid, named_meshes, scene_of
from .transmission import BallScrew, ConstantRatio, Transmission
from .urdf import read_urdf

__all__ = [
    "ROBOT_FORMATS", "BallScrew", "ConstantRatio", "Joint", "LimitOptions", "Link", "NominalTerm", "Robot",
    "Transmission", "builtin_names", "catalogue", "inertia_ellipsoid", "link_poses", "load_robot", "mesh_path",
    "named_meshes", "read_mjcf", "read_robot", "read_urdf", "refuse_free", "scene_of",
]  # fmt: skip
