"""Matching of a whole robot to its commands: a simulator's numbers from goals and positions."""

from .command_stretch import CommandStretch
from .joint_drives import Drives
from .match import FIT_NAMES, match_robot
from .match_coordinates import MatchCoordinates, MatchPoint
from .match_errors import Posterior
from .match_result import Match, MatchedNumber
from .rollout_score import FrequencyResidual, MotionScore

__all__ = [
    "FIT_NAMES", "CommandStretch", "Drives", "FrequencyResidual", "Match", "MatchCoordinates", "MatchPoint",
    "MatchedNumber", "MotionScore", "Posterior", "match_robot",
]  # fmt: skip
