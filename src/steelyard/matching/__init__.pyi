"""Matching of a whole robot to its commands: a simulator's numbers from goals and positions."""

from .coordinates import Coordinates, Point
from .drives import Drives
from .match import FIT_NAMES, match_robot
from .matched import Match, MatchedNumber
from .score import FrequencyResidual, MotionScore
from .stretch import Stretch
from .uncertainty import Posterior

__all__ = [
    "FIT_NAMES", "Coordinates", "Drives", "FrequencyResidual", "Match", "MatchedNumber", "MotionScore", "Point",
    "Posterior", "Stretch", "match_robot",
]  # fmt: skip
