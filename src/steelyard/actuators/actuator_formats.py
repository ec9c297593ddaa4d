"""`ACTUATOR_FORMATS`: the file formats of a drive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.actuators.simulator_drive import SimulatorDrive
from steelyard.errors import ExportError
from steelyard.ground.outcome import Content
from steelyard.ground.registry import Registry
from steelyard.ground.short_repr import short_repr

# Physics step of most learning environments [s]; only delays in whole steps depend on it.
USUAL_STEP = 0.005


@short_repr
@dataclass(frozen=True)
class ActuatorTarget:
    """The joint that gets the drive, and the user's files.

    Args:
        joint: Name of the joint.
        robot: Robot description to edit: MJCF, URDF or USD; None: only files that do not need a description.
        step: Physics step of the simulator [s], for delays in whole steps.
        bam_actuator: Name of the actuator in BAM; "": the name of the drive.
    """

    joint: str = "joint"
    robot: Path | None = None
    step: float = USUAL_STEP
    bam_actuator: str = ""

    def __post_init__(self) -> None:
        if not self.step > 0.0:
            raise ExportError(f"The physics step is {self.step} s; give a positive number.")


@dataclass(frozen=True)
class WrittenDrive:
    """Files of one format.

    Args:
        files: Contents by name.
        notes: One sentence for each effect that the files do not hold or only approximate.
    """

    files: Mapping[str, Content]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ActuatorFormat:
    """A format of drives.

    Args:
        about: Its purpose, in a few words.
        write: Creates the files of a drive for a target; no files if the format does not apply.
    """

    about: str
    write: Callable[[SimulatorDrive, ActuatorTarget], WrittenDrive]


ACTUATOR_FORMATS: Registry[ActuatorFormat] = Registry("actuator format", ("steelyard.actuators.formats",))


def write_formats(drive: SimulatorDrive, target: ActuatorTarget) -> dict[str, WrittenDrive]:
    """Return the files of all formats that apply, by format.

    Args:
        drive: Drive at one setting.
        target: Joint and files of the user.
    """
    written = {name: entry.write(drive, target) for name, entry in sorted(ACTUATOR_FORMATS.items())}
    return {name: result for name, result in written.items() if result.files}
