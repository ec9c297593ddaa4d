"""Payloads: the bodies that robots carry, identified from joint torques or from a sensor at the wrist."""

from .controllers import PAYLOAD_TARGETS, ControllerPayload, PayloadTarget
from .excite import excite_payload
from .gains import DriveGains, drive_gains
from .gains_at_rest import scale_at_rest, scale_from_model
from .held_payload import payload_at_rest
from .identify import PayloadResult, RepeatStatistics, identify_payload, repeats
from .payload import Payload, cuboid, read_payload
from .run import PayloadMotion, PayloadRun, PayloadRuns
from .sensor import SensorModel, identify_payload_by_sensor, wrench_regressor
from .track import TrackedPayload, track_payload

__all__ = [
    "PAYLOAD_TARGETS", "ControllerPayload", "DriveGains", "Payload", "PayloadMotion", "PayloadResult", "PayloadRun",
    "PayloadRuns", "PayloadTarget", "RepeatStatistics", "SensorModel", "TrackedPayload", "cuboid", "drive_gains",
    "excite_payload", "identify_payload", "identify_payload_by_sensor", "payload_at_rest", "read_payload", "repeats",
    "scale_at_rest", "scale_from_model", "track_payload", "wrench_regressor",
]  # fmt: skip
