"""Gravity from poses at rest: identification, scores, compensation code, the next poses to hold."""

from .gravity_model import GravityModel, GravityScore
from .identify import identify_gravity
from .next_poses import next_poses
from .servo import goal_mapping, servo_log

__all__ = [
    "GravityModel", "GravityScore", "goal_mapping", "identify_gravity", "next_poses", "servo_log",
]  # fmt: skip
