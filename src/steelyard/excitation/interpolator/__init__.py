"""Via-point programs and what an industrial controller makes of them."""

from steelyard.errors import ProgramError
from steelyard.excitation.interpolator.interpolate import ProgramMotion, interpolate
from steelyard.excitation.interpolator.moves import CircleMove, JointMove, LineMove, Move, Pause, Program, Region
from steelyard.excitation.interpolator.profile import MotionLimits, Profile, Ramp, ToolLimits, profile
from steelyard.excitation.interpolator.program_text import program_from_dict, program_text, program_to_dict, rpy

__all__ = [
    "CircleMove",
    "JointMove",
    "LineMove",
    "MotionLimits",
    "Move",
    "Pause",
    "Profile",
    "Program",
    "ProgramError",
    "ProgramMotion",
    "Ramp",
    "Region",
    "ToolLimits",
    "interpolate",
    "profile",
    "program_from_dict",
    "program_text",
    "program_to_dict",
    "rpy",
]
