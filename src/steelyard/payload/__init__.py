"""Loads: what a robot carries, weighed from the torques of its joints or by a sensor at its wrist."""

from steelyard.payload.gains import DriveGains, drive_gains
from steelyard.payload.load import Load
from steelyard.payload.online import OnlineLoad, weigh_online
from steelyard.payload.repeat import Repeats, repeats
from steelyard.payload.sensor import SensorModel, weigh_by_sensor
from steelyard.payload.weigh import Weighing, weigh

__all__ = [
    "DriveGains",
    "Load",
    "OnlineLoad",
    "Repeats",
    "SensorModel",
    "Weighing",
    "drive_gains",
    "repeats",
    "weigh",
    "weigh_by_sensor",
    "weigh_online",
]
