"""Logs: signals, formats, readers, mappings, and the repair of their clocks."""

from ._convert import NAMES, joint_signals
from ._layout import find_layout
from .as_logs import as_logs
from .between import as_torque_between
from .excerpt import part_of
from .held_poses import HeldPosesError, logs_or_poses
from .in_memory import MemoryReader
from .load_log import load_log
from .log import Finding, Log, refuse_without_torque
from .mapping import LogMapping, as_mapping, file_key, mapping_table
from .prepare import Preparation, as_velocity
from .presets import PRESETS, with_preset
from .read import log_chunks, read_log
from .readers.bags import JOINT_STATE, joint_state_places
from .recognise import recognise_time
from .repeats import without_repeats
from .robot_setup import apply_log_setup
from .source import LogFile, Source, open_log, pieces_of
from .table import READERS, LogReader, first_rows, has_reader, open_reader, read_table
from .units import LOG_UNITS, unit_size

__all__ = [
    "JOINT_STATE", "LOG_UNITS", "NAMES", "PRESETS", "READERS", "Finding", "HeldPosesError", "Log", "LogFile",
    "LogMapping", "LogReader", "MemoryReader", "Preparation", "Source", "apply_log_setup", "as_logs", "as_mapping",
    "as_torque_between", "as_velocity", "file_key", "find_layout", "first_rows", "has_reader", "joint_signals",
    "joint_state_places", "load_log", "log_chunks", "logs_or_poses", "mapping_table", "open_log", "open_reader",
    "part_of", "pieces_of", "read_log", "read_table", "recognise_time", "refuse_without_torque", "unit_size",
    "with_preset", "without_repeats",
]  # fmt: skip
