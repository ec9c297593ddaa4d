"""Fleets: identifies many robots from many logs. Each log is reduced once to small factors; all results use these."""

from .fleet import FleetOutcome, identify_fleet
from .robot_page import FleetRobot, read_run_robot
from .robot_table import Fleet, read_fleet

__all__ = [
    "Fleet", "FleetOutcome", "FleetRobot", "identify_fleet", "read_fleet", "read_run_robot",
]  # fmt: skip
