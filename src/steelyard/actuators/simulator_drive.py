"""`SimulatorDrive`: a drive as the parameters of simulators, with 95 % intervals and correlated draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.actuators.drive_model import DRIVE_PARAMETERS, DriveModel
from steelyard.ground.short_repr import short_repr

if TYPE_CHECKING:
    from steelyard.actuators.command_log import CommandLog
    from steelyard.ground.arrays import Array

# Units of the numbers. `damping` acts inside the torque limit, `drag` outside it and only while the drive is on.
SIMULATOR_NUMBERS = {
    "stiffness": "N m/rad",
    "damping": "N m s/rad",
    "torque_limit": "N m",
    "no_load_speed": "rad/s",
    "drag": "N m s/rad",
    "effort_limit": "N m",
    "armature": "kg m²",
    "frictionloss": "N m",
    "viscous": "N m s/rad",
    "delay": "s",
    "goal_time": "s",
}
# Draws for intervals: 4,000 draws determine the 2.5 % quantile to a fifth of a standard deviation of the tail.
DRAWS = 4000
# A number with an interval of more than three decades is unknown; it is not randomised.
UNKNOWN_RATIO = 1e3
# Resolution of a microsecond clock [s]; a shorter delay cannot be measured.
_NO_DELAY = 1e-6
# Simulators have Coulomb and viscous friction only.
_HELD = ("friction_base", "friction_viscous")


@dataclass(frozen=True)
class SimulatorNumber:
    """A number with its 95 % interval.

    Args:
        value: The number.
        low: Lower end of the interval; the number itself if it is a given one.
        high: Upper end of the interval.
        unit: Unit.
    """

    value: float
    low: float
    high: float
    unit: str

    @property
    def known(self) -> bool:
        """Whether the interval is narrow enough for use."""
        return math.isfinite(self.value) and (
            self.high == self.low or self.low < 0.0 or self.high <= UNKNOWN_RATIO * max(self.low, 1e-12 * self.high)
        )

    def shown(self) -> str:
        """Return number, unit and interval as text for a comment."""
        text = f"{self.value:.6g} {self.unit}".strip()
        return f"{text}, 95 % {self.low:.4g} to {self.high:.4g}" if self.high > self.low else f"{text} (given)"


@short_repr
@dataclass(frozen=True)
class SimulatorDrive:
    """A drive at one setting of its firmware and one supply voltage, as simulators describe it.

    Its law is τ = clip(stiffness·(goal − q) − damping·dq, ±torque_limit) − drag·dq, with the goal delayed and filtered,
    and the whole within ±effort_limit; `armature`, `frictionloss` and `viscous` belong to the joint.

    Args:
        model: The full drive.
        kp: Position gain of the firmware.
        kd: Velocity gain of the firmware.
        volts: Supply voltage [V].
        numbers: Numbers by name (`SIMULATOR_NUMBERS`).
        draws: Draws of the numbers from the joint distribution of the parameters, correlations included.
        missing: One sentence for each effect of the drive that these numbers cannot represent.
        values: Parameters behind the numbers: those of the drive, or of the nearest one without the missing effects.
        for_bam: The nearest drive that BAM can represent; None: the drive itself.
    """

    model: DriveModel
    kp: float
    kd: float
    volts: float
    numbers: Mapping[str, SimulatorNumber]
    draws: Mapping[str, Array] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    for_bam: DriveModel | None = None

    def __getitem__(self, name: str) -> float:
        return self.numbers[name].value

    @property
    def name(self) -> str:
        """Name of the drive."""
        return self.model.name

    def comments(self, *names: str) -> list[str]:
        """Return lines with value, unit and interval of the `names` (default: all) with finite nonzero values."""
        wanted = names or tuple(SIMULATOR_NUMBERS)
        return [f"{n}: {self.numbers[n].shown()}" for n in wanted if self[n] and math.isfinite(self[n])]

    def setting(self) -> str:
        """Return the firmware's setting as text."""
        parts = [f"kp {self.kp:g}"] if math.isfinite(self.kp) and self.model.kind != "position-loop" else []
        if self.model.kind == "torque" and math.isfinite(self.kd):
            parts.append(f"kd {self.kd:g}")
        if self.model.kind == "voltage":
            parts.append(f"{self.volts:g} V" if self.volts != 1.0 else "full supply")
        return ", ".join(parts) or "its own gains"

    def supply_note(self) -> list[str]:
        """Return a sentence about the constant supply, if its voltage is known."""
        known = self.model.kind == "voltage" and self.volts != 1.0
        return [f"The supply voltage is constant at {self.volts:g} V."] if known else []

    def to_json(self) -> dict[str, Any]:
        """Return numbers and intervals as plain data."""
        # A missing limit is infinite, and omitted.
        finite = {n: x for n, x in self.numbers.items() if math.isfinite(x.value)}
        numbers = {n: {"value": x.value, "low": x.low, "high": x.high, "unit": x.unit} for n, x in finite.items()}
        return {"drive": self.name, "kp": self.kp, "kd": self.kd, "volts": self.volts, "numbers": numbers,
                "missing": list(self.missing)}  # fmt: skip


def simulator_drive(
    model: DriveModel, logs: Sequence[CommandLog] = (), *, kp: float | None = None, kd: float | None = None,
    volts: float | None = None, simple: Mapping[str, float] | None = None, seed: int = 0,
) -> SimulatorDrive:  # fmt: skip
    """Convert a drive to the parameters of simulators.

    Friction beyond Coulomb and viscous friction becomes the best Coulomb and viscous friction over the motions of the
    logs.

    Args:
        model: The drive.
        logs: Runs with typical motions; they also determine the default gains and voltage.
        kp: Position gain of the firmware; default: the median of the runs.
        kd: Velocity gain of the firmware; default: the median of the runs.
        volts: Supply voltage [V]; default: the median of the runs.
        simple: Parameters of the nearest drive without the effects that simulators lack, in place of the drive's own.
        seed: The same seed gives the same draws.
    """
    kp, kd, volts = _setting(model, logs, kp, kd, volts)
    missing = [f"Not represented: {DRIVE_PARAMETERS[name].about} ({name} {model[name]:.4g})." for name in unheld(model)]
    if model["feedback_delay"] and not _late(model):
        missing.append(
            f"Approximated: the feedback is late by {1e3 * model['feedback_delay']:.3g} ms; in its place, the damping "
            "is smaller, at this gain."
        )
    base, drawn = dict(model.parameters), model.draw(DRAWS, seed)
    if unheld(model):
        base["friction_base"], base["friction_viscous"] = equivalent_friction(model, logs)
        drawn |= _equivalent_draws(model, logs, seed)
    values = {**base, **(simple or {})}
    for name, value in values.items():
        # A parameter of the nearest simple drive differs by a factor; its interval is scaled by the same factor.
        factor = value / base[name] if base.get(name) else 1.0
        drawn[name] = drawn[name] * factor if base.get(name) and name in drawn else np.full(DRAWS, value)
    exact = _numbers(model, values, kp, kd, volts)
    draws = {name: np.broadcast_to(v, DRAWS).astype(float) for name, v in
             _numbers(model, drawn, kp, kd, volts).items()}  # fmt: skip
    numbers = {
        name: _number(float(np.asarray(exact[name])), draws[name], unit) for name, unit in SIMULATOR_NUMBERS.items()
    }
    return SimulatorDrive(model, kp, kd, volts, numbers, draws, tuple(missing), values)


def unheld(model: DriveModel) -> list[str]:
    """Return the names of the effects of a drive `model` that simulators lack."""
    beyond = [n for n in DRIVE_PARAMETERS if n.startswith(("friction_", "load_friction")) and n not in _HELD]
    return [name for name in (*beyond, "backlash", *_late(model)) if model[name]]


def _late(model: DriveModel) -> tuple[str, ...]:
    """A delayed feedback is less damping in files; in the limited duty of a voltage drive there is none to reduce."""
    return ("feedback_delay",) if model.kind == "voltage" else ()


def _setting(
    model: DriveModel, logs: Sequence[CommandLog], kp: float | None, kd: float | None, volts: float | None
) -> tuple[float, float, float]:
    """Gains and voltage, from the runs where they are not stated."""
    if model.kind == "position-loop":
        return 1.0, 1.0, 1.0
    out = []
    for stated, logged in ((kp, [log.kp for log in logs]), (kd, [log.kd for log in logs])):
        finite = [x for x in logged if math.isfinite(x)]
        # The median of two gains may not be the setting of any run. Without gains, the parameters include them.
        out.append(float(stated) if stated is not None else sorted(finite)[len(finite) // 2] if finite else 1.0)
    if model.kind == "torque":
        return out[0], out[1], 1.0
    measured = [supply_volts(log) for log in logs]
    return out[0], out[1], float(volts) if volts is not None else float(np.median(measured or [1.0]))


def at_setting(drive: SimulatorDrive, kp: float, kd: float, volts: float) -> SimulatorDrive:
    """Return a drive at another setting, with the same friction and without draws.

    Args:
        drive: Drive.
        kp: Position gain of the firmware.
        kd: Velocity gain of the firmware.
        volts: Supply voltage [V].
    """
    volts = volts if drive.model.kind == "voltage" else drive.volts
    exact = _numbers(drive.model, drive.values, kp, kd, volts)
    numbers = {
        name: _number(float(np.asarray(exact[name])), np.zeros(0), unit) for name, unit in SIMULATOR_NUMBERS.items()
    }
    return SimulatorDrive(drive.model, kp, kd, volts, numbers, {}, drive.missing, drive.values)


def supply_volts(log: CommandLog) -> float:
    """Return the median of the measured supply of a run `log`, else the nominal one, else 1 [V], as in the fit."""
    if log.supply is not None and np.isfinite(log.supply).any():
        return float(np.nanmedian(log.supply))
    return log.volts if math.isfinite(log.volts) else 1.0


def _numbers(model: DriveModel, values: Mapping[str, Any], kp: float, kd: float, volts: float) -> dict[str, Any]:
    """Convert parameters to the numbers of a simulator, for one or many draws."""

    def get(name: str) -> Any:
        return np.asarray(values.get(name, model[name]), dtype=float)

    armature = get("armature")
    if model.kind == "voltage":
        limit, drag = get("torque_per_volt") * volts, get("back_emf")
        with np.errstate(divide="ignore"):
            speed = np.where(drag > 0.0, limit / np.where(drag > 0.0, drag, 1.0), np.inf)
        stiffness, damping, effort = limit * get("duty_gain") * kp, np.zeros(()), get("torque_limit")
    else:
        torque = model.kind == "torque"
        stiffness = get("kp_gain") * kp if torque else get("stiffness")
        damping = get("kd_gain") * kd if torque else get("damping")
        limit, speed, drag = get("torque_limit"), get("no_load_speed"), np.zeros(())
        effort, late = np.full((), np.inf), get("feedback_delay")
        # q(t − T) ≈ q − T·dq + ½T²·ddq, and dq(t − T) ≈ dq − T·ddq: less damping, and another inertia.
        armature = np.maximum(armature + 0.5 * stiffness * late**2 - damping * late, 0.1 * armature)
        damping = np.maximum(damping - stiffness * late, 0.0)
    return {
        "stiffness": stiffness, "damping": damping, "torque_limit": limit, "no_load_speed": speed, "drag": drag,
        "effort_limit": effort, "armature": armature, "frictionloss": get("friction_base"),
        "viscous": get("friction_viscous"), "delay": get("delay"), "goal_time": get("goal_time"),
    }  # fmt: skip


def _number(value: float, draws: Array, unit: str) -> SimulatorNumber:
    finite = draws[np.isfinite(draws)]
    if not finite.size or np.ptp(finite) <= 1e-9 * abs(value):
        return SimulatorNumber(value, value, value, unit)
    low, high = np.quantile(finite, [0.025, 0.975])
    return SimulatorNumber(value, float(low), float(high), unit)


def equivalent_friction(model: DriveModel, logs: Sequence[CommandLog]) -> tuple[float, float]:
    """Return the Coulomb [N m] and viscous friction [N m s/rad] nearest to a drive's friction over the motions of runs.

    Args:
        model: The drive.
        logs: Runs; without them, the result contains only the load-independent friction.
    """
    samples = _motion(model, logs)
    if samples is None:
        return model["friction_base"], model["friction_viscous"]
    velocity, motor, external = samples
    coulomb, viscous = _nearest(velocity, model.friction_torque(velocity, motor, external))
    return float(coulomb), float(viscous)


def _nearest(velocity: Array, budgets: Array) -> tuple[Array, Array]:
    """Non-negative Coulomb and viscous friction nearest to each row of `budgets`, in closed form."""
    speed = np.abs(velocity)
    n, s1, s2 = float(len(speed)), float(speed.sum()), float(speed @ speed)
    b0, b1 = budgets.sum(axis=-1), budgets @ speed
    determinant = n * s2 - s1 * s1
    with np.errstate(divide="ignore", invalid="ignore"):
        coulomb, viscous = (s2 * b0 - s1 * b1) / determinant, (n * b1 - s1 * b0) / determinant
    # If one of both would be negative, it is zero, and the other one is fitted alone.
    only_coulomb = (viscous < 0.0) | ~np.isfinite(viscous)
    only_viscous = (coulomb < 0.0) & ~only_coulomb
    alone = b0 / n, b1 / max(s2, 1e-300)
    return (
        np.where(only_coulomb, alone[0], np.where(only_viscous, 0.0, coulomb)),
        np.where(only_coulomb, 0.0, np.where(only_viscous, alone[1], viscous)),
    )


def _equivalent_draws(model: DriveModel, logs: Sequence[CommandLog], seed: int) -> dict[str, Array]:
    samples = _motion(model, logs)
    if samples is None or not model.estimated:
        return {}
    velocity, motor, external = (x[:: max(len(x) // 200, 1)] for x in samples)
    drawn = model.draw(DRAWS, seed)
    plain = model.with_values({})
    # A tenth of the draws gives the distribution; repeating them keeps their order, and so their correlations.
    few = DRAWS // 10
    budgets = np.array(
        [
            replace(plain, parameters={n: float(v[k]) for n, v in drawn.items()}).friction_torque(
                velocity, motor, external)
            for k in range(few)
        ]
    )  # fmt: skip
    places = np.arange(DRAWS) % few
    coulomb, viscous = _nearest(velocity, budgets)
    return {"friction_base": coulomb[places], "friction_viscous": viscous[places]}


def _motion(model: DriveModel, logs: Sequence[CommandLog]) -> tuple[Array, Array, Array] | None:
    """Velocity, motor torque and load torque of the samples of all runs in motion."""
    parts = []
    for log in logs:
        # A window of 60 ms averages the steps of an encoder and preserves motions of a few hertz.
        half = max(2, round(0.03 / log.period))
        grid = np.arange(log.time[0], log.time[-1], log.period)
        q = np.interp(grid, log.time, log.position)
        if len(q) <= 2 * half + 1:
            continue
        # The slope of the line through each window.
        slope = np.arange(half, -half - 1, -1.0) / (2.0 * float((np.arange(1, half + 1) ** 2).sum()) * log.period)
        inner = slice(half, -half)
        dq = np.convolve(q, slope, "valid")
        grid, q = grid[inner], q[inner]
        goal = np.interp(grid - model["delay"], log.time, np.nan_to_num(log.goal))
        on = np.interp(grid, log.time, log.enabled.astype(float)) > 0.5
        kp, kd = (x if math.isfinite(x) else 1.0 for x in (log.kp, log.kd))
        volts = supply_volts(log) if model.kind == "voltage" else 1.0
        motor = model.motor_torque(goal - q, dq, kp=kp, kd=kd, volts=volts, enabled=on)
        external = log.load.torque(q + model["offset"])
        moving = np.abs(dq) > 0.02 * np.max(np.abs(dq), initial=1e-9)
        parts.append(np.array([dq[moving], motor[moving], external[moving]]))
    if not parts:
        return None
    joined = np.concatenate(parts, axis=1)
    return (joined[0], joined[1], joined[2]) if joined.shape[1] > 1 and np.isfinite(joined).all() else None


def parameter_draws(model: DriveModel, count: int, seed: int = 0) -> dict[str, Array]:
    """Return draws of the parameters, in the order of `DRIVE_PARAMETERS`.

    Args:
        model: The drive.
        count: Number of draws.
        seed: The same seed gives the same draws.
    """
    drawn = model.draw(count, seed)
    return {name: drawn[name] for name in DRIVE_PARAMETERS if name in drawn}
