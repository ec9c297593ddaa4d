"""Payloads: the bodies that robots carry, identified from joint torques or from a sensor at the wrist."""

from .controller_files import PAYLOAD_TARGETS, ControllerPayload, PayloadTarget
from .excite import WRENCH_NOISE, excite_payload
from .gains import DriveGains, drive_gains, scale_at_rest, scale_from_model
from .held_payload import payload_at_rest
from .identify import PayloadResult, RepeatStatistics, identify_payload, repeats
from .payload import Payload, cuboid, frame_transfer, link_frame, read_payload
from .payload_results import PayloadMotion, PayloadRun, PayloadRuns
from .recursive import (
    EXPECTED_SIZE_M,
    RecursivePayload,
    TrackedPayload,
    expected_payload,
    heaviest_payload,
    track_payload,
)
from .sensor import SensorModel, identify_payload_by_sensor, wrench_regressor

__all__ = [
    "EXPECTED_SIZE_M", "PAYLOAD_TARGETS", "WRENCH_NOISE", "ControllerPayload", "DriveGains", "Payload", "PayloadMotion",
    "PayloadResult", "PayloadRun", "PayloadRuns", "PayloadTarget", "RecursivePayload", "RepeatStatistics",
    "SensorModel", "TrackedPayload", "cuboid", "drive_gains", "excite_payload", "expected_payload", "frame_transfer",
    "heaviest_payload", "identify_payload", "identify_payload_by_sensor", "link_frame", "payload_at_rest",
    "read_payload", "repeats", "scale_at_rest", "scale_from_model", "track_payload", "wrench_regressor",
]  # fmt: skip
