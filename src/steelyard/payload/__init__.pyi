"""Loads: what a robot carries, weighed from the torques of its joints or by a sensor at its wrist."""

from .controllers import LOAD_TARGETS, KnownLoad, LoadTarget
from .excite import excite_load
from .gains import DriveGains, drive_gains
from .load import Load, cuboid, read_load
from .online import OnlineLoad, weigh_online
from .run import LoadMotion, LoadRun, LoadRuns
from .sensor import SensorModel, weigh_by_sensor, wrench_regressor
from .weigh import Repeats, Weighing, repeats, weigh

__all__ = [
    "LOAD_TARGETS", "DriveGains", "KnownLoad", "Load", "LoadMotion", "LoadRun", "LoadRuns", "LoadTarget", "OnlineLoad",
    "Repeats", "SensorModel", "Weighing", "cuboid", "drive_gains", "excite_load", "read_load", "repeats", "weigh",
    "weigh_by_sensor", "weigh_online", "wrench_regressor",
]  # fmt: skip
