"""`PRESETS`: columns of common recorders, by the names that their makers publish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from steelyard.errors import LogError
from steelyard.ground.registry import Registry
from steelyard.signals._layout import expand_pattern
from steelyard.signals.mapping import LogMapping


@dataclass(frozen=True)
class Preset:
    """The columns of a recorder.

    Attributes:
        recorder: Name of the recorder.
        source: Documentation of its maker.
        columns: Possible patterns of the columns by signal ("time", "position", …), the most likely first: `{}` is the
            joint's number from 1, `{0}` from 0, `{joint}` its name.
        units: Units by signal, if they are not SI.
        note: Remark for the user.
    """

    recorder: str
    source: str
    columns: Mapping[str, tuple[str, ...]]
    units: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    def find(self, names: Sequence[str], joints: Sequence[str]) -> dict[str, str | tuple[str, ...]]:
        """Find the columns of each signal in a file.

        Args:
            names: Columns of the file.
            joints: Names of the joints.
        """
        known, out = set(names), dict[str, str | tuple[str, ...]]()
        for signal, patterns in self.columns.items():
            for pattern in patterns:
                columns = (pattern,) if signal == "time" else expand_pattern(pattern, joints)
                if known.issuperset(columns):
                    out[signal] = pattern if signal == "time" else columns
                    break
        return out

    def fits(self, names: Sequence[str], joints: Sequence[str]) -> bool:
        """Whether a file has the position columns of this recorder.

        Args:
            names: Columns of the file.
            joints: Names of the joints.
        """
        return "position" in self.find(names, joints)


PRESETS: Registry[Preset] = Registry("preset", ("steelyard.signals.presets",))

PRESETS.register("ur-rtde")(
    Preset(
        "Universal Robots' RTDE client, record.py",
        "RTDE_Python_Client_Library, rtde/csv_writer.py; RTDE guide, output fields",
        {
            "time": ("timestamp",),
            "position": ("actual_q_{0}",),
            "velocity": ("actual_qd_{0}",),
            "current": ("actual_current_{0}",),
            "temperature": ("joint_temperatures_{0}",),
        },
        note="Currents in A; state torque_constants. Record timestamp, actual_q, actual_qd and actual_current.",
    )
)
PRESETS.register("franka")(
    Preset(
        "Franka's libfranka, logToCSV",
        "libfranka, src/log.cpp: names, and time by toMSec()",
        {
            "time": ("time",),
            "position": ("state.q[{0}]",),
            "velocity": ("state.dq[{0}]",),
            "torque": ("state.tau_J[{0}]",),
        },
        {"time": "ms"},
        note="tau_J is measured on the link side.",
    )
)
PRESETS.register("kuka-rsi")(
    Preset(
        "KUKA's Robot Sensor Interface",
        "RSI's INTERNAL declarations DEF_AIPos, DEF_MACur, GearTorque; IPOC in ms",
        {
            "time": ("IPOC",),
            "position": ("AIPos.A{}", "AIPos_A{}", "AIPos/A{}"),
            "torque": ("GearTorque.A{}", "GearTorque_A{}", "GearTorque/A{}"),
            "current": ("MACur.A{}", "MACur_A{}", "MACur/A{}"),
        },
        {"time": "ms", "position": "deg"},
        note="The unit of MACur depends on the controller; torque_constants hold it.",
    )
)
PRESETS.register("abb-egm")(
    Preset(
        "ABB's Externally Guided Motion",
        "egm.proto: header.tm in ms, feedBack.joints in degrees",
        {
            "time": ("header.tm", "tm"),
            "position": ("feedBack.joints.joints[{0}]", "feedBack.joints[{0}]", "feedBack.joints.joints{}"),
        },
        {"time": "ms", "position": "deg"},
        note="EGM sends no torque of the axes: log motor torques as test signals.",
    )
)
PRESETS.register("doosan")(
    Preset(
        "Doosan's real-time output (RobotStateRt)",
        "dsr_msgs2/msg/RobotStateRt.msg: [deg], [deg/s]; torques in N m",
        {
            "time": ("time_stamp",),
            "position": ("actual_joint_position{}", "actual_joint_position[{0}]", "actual_joint_position_{0}"),
            "velocity": ("actual_joint_velocity{}", "actual_joint_velocity[{0}]", "actual_joint_velocity_{0}"),
            "torque": ("actual_joint_torque{}", "actual_joint_torque[{0}]", "actual_joint_torque_{0}"),
            "temperature": ("joint_temperature{}", "joint_temperature[{0}]", "joint_temperature_{0}"),
        },
        {"position": "deg", "velocity": "deg/s"},
        note="actual_joint_torque is from the joint sensors, actual_motor_torque from the motors.",
    )
)
PRESETS.register("kinova")(
    Preset(
        "Kinova's Kortex, BaseCyclic feedback",
        "ros_kortex, ActuatorFeedback.msg; Kortex API: degrees, N m, A",
        {
            "time": ("time", "timestamp"),
            "position": ("actuators[{0}].position", "actuators.{0}.position", "actuators_{0}_position"),
            "velocity": ("actuators[{0}].velocity", "actuators.{0}.velocity", "actuators_{0}_velocity"),
            "torque": ("actuators[{0}].torque", "actuators.{0}.torque", "actuators_{0}_torque"),
            "current": ("actuators[{0}].current_motor", "actuators.{0}.current_motor", "actuators_{0}_current_motor"),
        },
        {"position": "deg", "velocity": "deg/s"},
        note="Positions wrap at 360 degrees: unwrap them before logging.",
    )
)
PRESETS.register("ros2-control")(
    Preset(
        "ros2_control's joint_state_broadcaster",
        "joint_state_broadcaster: /joint_states, sensor_msgs/JointState",
        {
            "time": ("t", "__time"),
            "position": ("position/{joint}", "/joint_states/{joint}/position", "joint_states/{joint}/position"),
            "velocity": ("velocity/{joint}", "/joint_states/{joint}/velocity", "joint_states/{joint}/velocity"),
            "torque": ("effort/{joint}", "/joint_states/{joint}/effort", "joint_states/{joint}/effort"),
        },
        note="The driver decides the meaning of effort: N m, or currents, or nothing.",
    )
)
PRESETS.register("lerobot")(
    Preset(
        "LeRobot's data sets",
        "meta/info.json: features observation.state, names <joint>.pos",
        {
            "time": ("t",),
            "position": ("observation.state/{joint}.pos", "observation.state/{joint}", "observation.state{}"),
            "velocity": ("observation.velocity/{joint}", "observation.velocity{}", "observation.state/{joint}.vel"),
            "torque": ("observation.effort/{joint}", "observation.effort{}", "observation.state/{joint}.torque"),
            "current": ("observation.current/{joint}", "observation.current{}"),
        },
        note="Positions are in degrees or in percent of the range, as configured: state units.position.",
    )
)


def with_preset(mapping: LogMapping, names: Sequence[str], joints: Sequence[str]) -> LogMapping:
    """Complete a mapping by the columns and units of its preset.

    Args:
        mapping: Mapping, with or without a preset.
        names: Columns of the file.
        joints: Joints of the robot, or of the file in the order of the columns.
    """
    if mapping.preset is None:
        return mapping
    preset = PRESETS[mapping.preset]
    used = mapping.joints or tuple(joints)
    found = preset.find(names, used)
    if "position" not in found and mapping.position is None:
        first = expand_pattern(preset.columns["position"][0], used)
        raise LogError(
            f"{mapping.source}: preset: '{mapping.preset}' expects {len(used)} columns such as '{first[0]}', which are "
            "not in the log; remove the preset, or name the columns."
        )
    known = {entry.name for entry in fields(LogMapping)}
    more: dict[str, Any] = {
        key: columns for key, columns in found.items() if key in known and getattr(mapping, key) is None
    }
    if mapping.rate is not None:
        more.pop("time", None)
    if mapping.torque or mapping.current:  # the mapping states the source of the torque
        more = {key: value for key, value in more.items() if key not in ("torque", "current")}
    return replace(mapping, units={**{k: (u,) for k, u in preset.units.items()}, **mapping.units}, **more)
