"""Loads: what a robot carries, weighed from the torques of its joints or by a sensor at its wrist."""

from steelyard.payload.excite import excite_load
from steelyard.payload.gains import DriveGains, drive_gains
from steelyard.payload.load import Load, cuboid
from steelyard.payload.online import OnlineLoad, weigh_online
from steelyard.payload.sensor import SensorModel, weigh_by_sensor, wrench_regressor
from steelyard.payload.weigh import Repeats, Weighing, repeats, weigh

__all__ = [
    "DriveGains",
    "Load",
    "OnlineLoad",
    "Repeats",
    "SensorModel",
    "Weighing",
    "cuboid",
    "drive_gains",
    "excite_load",
    "repeats",
    "weigh",
    "weigh_by_sensor",
    "weigh_online",
    "wrench_regressor",
]
