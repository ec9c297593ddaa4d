"""Matching of a whole robot to its commands: a simulator's numbers from goals and positions."""

from .coordinates import Coordinates, Point
from .drives import Drives
from .match import match_robot
from .matched import Match
from .score import MotionScore
from .stretch import Stretch

__all__ = ["Coordinates", "Drives", "Match", "MotionScore", "Point", "Stretch", "match_robot"]
