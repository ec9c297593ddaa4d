"""`deliver_drive`: the files of a drive for simulators, with the errors of MuJoCo's rollouts of these files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.actuators.actuator_formats import ActuatorTarget, WrittenDrive, write_formats
from steelyard.actuators.drive_model import DRIVE_FRICTION
from steelyard.actuators.simulator_drive import (
    SimulatorDrive,
    equivalent_friction,
    simulator_drive,
    supply_volts,
    unheld,
)
from steelyard.ground.outcome import Content, json_text
from steelyard.ground.short_repr import short_repr

if TYPE_CHECKING:
    from steelyard.actuators.command_log import CommandLog
    from steelyard.actuators.drive_model import DriveModel

# Effects that simulators have.
_HELD_EFFECTS = ("delay", "feedback_delay", "goal_time", "torque_limit", "no_load_speed")
# Starts of the Coulomb friction, as shares of the value nearest in torque: large friction holds a joint that small
# friction lets move, so the search cannot pass from one value to the other.
_SHARES = (0.1, 0.3, 0.5, 1.0)
# Scale of the robust loss [rad]: beyond it the loss grows linearly. An error of 0.1 rad matters in any use of a drive.
_SCALE = 0.1
# Number of compared positions in the fit of the nearest simple drive: enough for its six parameters.
_SAMPLES = 4000


@dataclass(frozen=True)
class ReplayError:
    """Error of a written file: rollouts in MuJoCo on the logs.

    Args:
        format: Format of the file: "mjcf" or "mjcf-dcmotor".
        step: Time step of the file [s].
        fit: Mean absolute position error on the runs of the fit [rad].
        holdout: The same on held-out runs; NaN without any.
        full: Error of the full model on the runs of the fit; NaN where unknown.
        full_holdout: Error of the full model on the held-out runs; NaN where unknown.
    """

    format: str
    step: float
    fit: float
    holdout: float = math.nan
    full: float = math.nan
    full_holdout: float = math.nan

    def shown(self) -> str:
        """Return one sentence."""
        text = f"{self.format}, steps of {1e3 * self.step:g} ms: {1e3 * self.fit:.1f} mrad on the logs"
        text += f" (full model {1e3 * self.full:.1f})" if math.isfinite(self.full) else ""
        if math.isfinite(self.holdout):
            text += f", {1e3 * self.holdout:.1f} mrad on held-out logs"
            text += f" (full model {1e3 * self.full_holdout:.1f})" if math.isfinite(self.full_holdout) else ""
        return text + "."


@short_repr
@dataclass(frozen=True)
class DeliveredDrive:
    """A drive in the files of simulators.

    Args:
        drive: Drive at one setting.
        target: Joint and files of the user.
        formats: Files and notes by format.
        replays: Errors of the written MJCF in MuJoCo; empty without MuJoCo.
    """

    drive: SimulatorDrive
    target: ActuatorTarget
    formats: dict[str, WrittenDrive]
    replays: tuple[ReplayError, ...] = ()

    def files(self) -> dict[str, Content]:
        """Return the contents of all files by name."""
        out = {name: content for written in self.formats.values() for name, content in written.files.items()}
        return {**out, "simulators.json": json_text(self.to_json())}

    def to_json(self) -> dict[str, Any]:
        """Return numbers, files, notes and errors as plain data."""
        return {
            **self.drive.to_json(),
            "joint": self.target.joint,
            "files": {name: list(written.files) for name, written in self.formats.items()},
            "notes": {name: list(written.notes) for name, written in self.formats.items()},
            "replays": [{k: v for k, v in vars(r).items() if v == v} for r in self.replays],  # without NaN
        }


def deliver_drive(
    model: DriveModel, logs: Sequence[CommandLog], *, holdout: Sequence[CommandLog] = (), joint: str = "joint",
    robot: str | Path | None = None, kp: float | None = None, kd: float | None = None, volts: float | None = None,
    step: float | None = None, bam_actuator: str = "", full: tuple[float, float] = (math.nan, math.nan), seed: int = 0,
) -> DeliveredDrive:  # fmt: skip
    """Write a drive into the files of simulators, and score the written MJCF in MuJoCo on the logs.

    Simulators have only Coulomb and viscous friction and a constant supply voltage. A drive with other friction or a
    varying supply voltage is replaced by the drive without them that follows the logs best.

    Args:
        model: The drive.
        logs: Runs of the fit.
        holdout: Runs for the validation.
        joint: Joint that gets the drive.
        robot: Robot description to edit: MJCF, URDF or USD.
        kp: Position gain of the firmware; default: the median of the runs.
        kd: Velocity gain of the firmware; default: the median of the runs.
        volts: Supply voltage [V]; default: the median of the runs.
        step: Physics step of the simulator [s], for delays in whole steps; default: 5 ms.
        bam_actuator: Name of the actuator in BAM; default: the motor in the logs, or the name of the drive.
        full: Mean absolute position errors of the full model on `logs` and on `holdout` [rad], for comparison.
        seed: The same seed gives the same draws.
    """
    from steelyard.actuators.mujoco_replay import can_replay

    varying = model.kind == "voltage" and any(log.supply is not None and np.isfinite(log.supply).any() for log in logs)
    simple = nearest_simple(model, logs) if logs and (varying or unheld(model)) else None
    drive = simulator_drive(model, logs, kp=kp, kd=kd, volts=volts, simple=simple, seed=seed)
    if logs and any(model[name] for name in ("load_friction_quad", "feedback_delay", "backlash")):
        drive = replace(drive, for_bam=bam_drive(model, logs))
    motor = next((str(log.labels["motor"]) for log in logs if "motor" in log.labels), "")
    more = {} if step is None else {"step": step}
    target = ActuatorTarget(joint, None if robot is None else Path(robot), bam_actuator=bam_actuator or motor, **more)
    replays = replay_errors(drive, logs, holdout, full, target.robot) if can_replay() and logs else ()
    return DeliveredDrive(drive, target, write_formats(drive, target), replays)


def bam_drive(model: DriveModel, logs: Sequence[CommandLog]) -> DriveModel:
    """Return the drive with one of BAM's friction models that fits runs best.

    Args:
        model: The drive.
        logs: Runs.
    """
    friction = "M3" if model.friction == "M1" else model.friction
    values = nearest_simple(model, logs, friction, ("delay",))
    return replace(model.with_values({}), friction=friction, parameters=values)


def nearest_simple(
    model: DriveModel, logs: Sequence[CommandLog], friction: str = "M1", held: Sequence[str] = _HELD_EFFECTS
) -> dict[str, float]:
    """Return the parameters of the drive with a simpler friction model and constant supply that follows runs best.

    Args:
        model: The drive; its parameters that were not estimated stay unchanged.
        logs: Runs.
        friction: Friction model.
        held: Further effects that the simpler drive keeps, if the drive has them.
    """
    from steelyard.actuators.drive_structure import DriveStructure
    from steelyard.actuators.fit_drive import fit_drive
    from steelyard.actuators.rollout import Rollouts

    effects = tuple(name for name in held if name in model.parameters and name not in unheld(model))
    structure = DriveStructure(model.kind, friction, effects)
    coulomb, viscous = equivalent_friction(model, logs)
    free = {*model.estimated, *DRIVE_FRICTION[friction]} if model.estimated else {*structure.names, "offset"}
    given = {name: model[name] for name in structure.names if name not in free or name == "duty_gain"}
    volts = [supply_volts(log) if model.kind == "voltage" else 1.0 for log in logs]
    supply = [np.full(len(log), v) for log, v in zip(logs, volts, strict=True)]
    total = sum(len(log) for log in logs)
    rollouts = Rollouts(logs, supply, stride=max(1, total // _SAMPLES))
    starts = [{**model.parameters, "friction_base": share * coulomb, "friction_viscous": viscous} for share in _SHARES]
    return min((fit_drive(structure, rollouts, s, given, _SCALE) for s in starts), key=lambda fit: fit.cost).values


def _kind(drive: SimulatorDrive) -> str:
    from steelyard.actuators.formats.mujoco_drive import holds_dcmotor

    return "dcmotor" if holds_dcmotor(drive) else "position"


def _mean(drive: SimulatorDrive, logs: Sequence[CommandLog], kind: str, step: float, integrator: str) -> float:
    from steelyard.actuators.mujoco_replay import mean_error, replay_drive

    return mean_error([replay_drive(drive, log, kind, step, integrator) for log in logs], logs)


def replay_errors(
    drive: SimulatorDrive, logs: Sequence[CommandLog], holdout: Sequence[CommandLog] = (),
    full: tuple[float, float] = (math.nan, math.nan), source: Path | None = None,
) -> tuple[ReplayError, ...]:  # fmt: skip
    """Return the errors of MuJoCo's rollouts of the written joint and actuator, each run at its own gains and voltage.

    Args:
        drive: Drive.
        logs: Runs of the fit.
        holdout: Held-out runs.
        full: Errors of the full model on both [rad].
        source: MJCF of the user with the time step and the integrator; default: MuJoCo's own.
    """
    from steelyard.actuators.formats.mujoco_drive import integration

    step, integrator = integration(source)
    kinds = ["position", *(["dcmotor"] if _kind(drive) == "dcmotor" else [])]
    out = []
    for kind in kinds:
        holdout_error = _mean(drive, holdout, kind, step, integrator) if holdout else math.nan
        name = "mjcf" if kind == "position" else "mjcf-dcmotor"
        out.append(ReplayError(name, step, _mean(drive, logs, kind, step, integrator), holdout_error, *full))
    return tuple(out)
