"""Drives from their own command logs: a servo identified from goals and positions, without a torque sensor."""

from .actuator_formats import ACTUATOR_FORMATS
from .command_log import CommandLog
from .deliver_drive import DeliveredDrive, ReplayError, deliver_drive
from .drive_model import EFFECTS, FRICTION, KINDS, PARAMETERS, DriveModel, DriveParameter
from .identification import ActuatorIdentification, Inseparable, RunError, Structure
from .identify_actuator import identify_actuator
from .load import Load
from .read_commands import COMMAND_FILES, read_command_logs
from .simulator_drive import SimulatorDrive, SimulatorNumber

__all__ = [
    "ACTUATOR_FORMATS", "COMMAND_FILES", "EFFECTS", "FRICTION", "KINDS", "PARAMETERS", "ActuatorIdentification",
    "CommandLog", "DeliveredDrive", "DriveModel", "DriveParameter", "Inseparable", "Load", "ReplayError", "RunError",
    "SimulatorDrive", "SimulatorNumber", "Structure", "deliver_drive", "identify_actuator", "read_command_logs",
]  # fmt: skip
