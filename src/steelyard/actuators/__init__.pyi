"""Drives from their own command logs: a servo identified from goals and positions, without a torque sensor."""

from .actuator_formats import ACTUATOR_FORMATS
from .actuator_identification import ActuatorIdentification, Inseparable, RunError, Structure
from .command_log import CommandLog
from .deliver_drive import DeliveredDrive, ReplayError, deliver_drive
from .drive_load import Load
from .drive_model import DRIVE_EFFECTS, DRIVE_FRICTION, DRIVE_KINDS, DRIVE_PARAMETERS, DriveModel, DriveParameter
from .identify_actuator import identify_actuator
from .read_commands import COMMAND_FILES, read_command_logs
from .simulator_drive import SimulatorDrive, SimulatorNumber

__all__ = [
    "ACTUATOR_FORMATS", "COMMAND_FILES", "DRIVE_EFFECTS", "DRIVE_FRICTION", "DRIVE_KINDS", "DRIVE_PARAMETERS",
    "ActuatorIdentification", "CommandLog", "DeliveredDrive", "DriveModel", "DriveParameter", "Inseparable", "Load",
    "ReplayError", "RunError", "SimulatorDrive", "SimulatorNumber", "Structure", "deliver_drive", "identify_actuator",
    "read_command_logs",
]  # fmt: skip
