"""Via-point programs and their motion on an industrial controller."""

import steelyard.errors

from .interpolate import ProgramMotion, interpolate
from .moves import CircleMove, JointMove, LineMove, Move, Pause, Program, ProgramRegion
from .profile import MotionLimits, Profile, Ramp, ToolLimits, profile
from .program_text import program_from_dict, program_text, program_to_dict, rpy

ProgramError = steelyard.errors.ProgramError

__all__ = [
    "CircleMove", "JointMove", "LineMove", "MotionLimits", "Move", "Pause", "Profile", "Program", "ProgramError",
    "ProgramMotion", "ProgramRegion", "Ramp", "ToolLimits", "interpolate", "profile", "program_from_dict",
    "program_text", "program_to_dict", "rpy",
]  # fmt: skip
