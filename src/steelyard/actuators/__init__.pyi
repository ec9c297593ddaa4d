"""Drives from their own command logs: a servo identified from goals and positions, without a torque sensor."""

from .command_log import CommandLog
from .drive_model import EFFECTS, FRICTION, KINDS, PARAMETERS, DriveModel, DriveParameter
from .identification import ActuatorIdentification, Inseparable, RunError, Structure
from .identify_actuator import identify_actuator
from .load import Load
from .read_commands import COMMAND_FILES, read_command_logs

__all__ = [
    "COMMAND_FILES", "EFFECTS", "FRICTION", "KINDS", "PARAMETERS", "ActuatorIdentification", "CommandLog", "DriveModel",
    "DriveParameter", "Inseparable", "Load", "RunError", "Structure", "identify_actuator", "read_command_logs",
]  # fmt: skip
