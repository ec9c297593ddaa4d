"""`identify_actuator`: a drive from its command logs."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.actuators.command_log import CommandLog
from steelyard.actuators.identification import ActuatorIdentification


def identify_actuator(
    logs: Sequence[CommandLog], kind: str = "", friction: str = "", *, holdout: Sequence[CommandLog] = (),
    leave_out: str = "", effects: Sequence[str] | None = None, given: dict[str, float] | None = None,
    name: str = "drive", seed: int = 0,
) -> ActuatorIdentification:  # fmt: skip
    """Identify a drive from its command logs.

    Args:
        logs: Runs of one drive.
        kind: "voltage", "torque" or "position-loop"; default: by what the logs have.
        friction: "M1" to "M6"; default: chosen by left-out runs.
        holdout: Runs that judge the result and that nothing else sees.
        leave_out: Property of the runs by which groups are left out for the choice, such as kp, mass or trajectory;
            default: the one with most values.
        effects: Additional effects: delay, goal_time, backlash, torque_limit, no_load_speed; default: chosen.
        given: Values that are known, by parameter.
        name: Name of the drive.
        seed: The same seed gives the same starts.
    """
    raise NotImplementedError
