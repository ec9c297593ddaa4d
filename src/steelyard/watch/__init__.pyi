"""Live monitoring of a robot: contact, payload, health of the drives, and validity of the model."""

from .live_source import LIVE_SOURCES, LiveSource, SourceError, SourceOptions
from .loop import RobotWatch, WatchTimes, stop_on_signal
from .monitor_base import MONITORS, Monitor, WatchEvent, WatchSetup
from .observer import MomentumObserver
from .output import WATCH_OUTPUTS, WatchOutput, WatchReport
from .run_monitors import MonitoringResult, monitor
from .settings import WatchSettings, make_watch, rate_of
from .threshold import ContactCalibration, calibrate_contact, read_calibration
from .uncertain_model import UncertainModel, load_uncertain_model

__all__ = [
    "LIVE_SOURCES", "MONITORS", "WATCH_OUTPUTS", "ContactCalibration", "LiveSource", "MomentumObserver", "Monitor",
    "MonitoringResult", "RobotWatch", "SourceError", "SourceOptions", "UncertainModel", "WatchEvent", "WatchOutput",
    "WatchReport", "WatchSettings", "WatchSetup", "WatchTimes", "calibrate_contact", "load_uncertain_model",
    "make_watch", "monitor", "rate_of", "read_calibration", "stop_on_signal",
]  # fmt: skip
