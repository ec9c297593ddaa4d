"""`DriveModel`: the parameters of a drive, with their covariance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr

DRIVE_KINDS = {
    "voltage": "duty = clip(duty_gain·kp·(goal − q), ±1); torque = clip(torque_per_volt·duty·supply − back_emf·dq, "
    "±torque_limit)",
    "torque": "torque = clip(kp_gain·kp·(goal − q) − kd_gain·kd·dq + feed-forward, ±torque_limit), less at speed",
    "position-loop": "torque = clip(stiffness·(goal − q) − damping·dq, ±torque_limit)",
}


@dataclass(frozen=True)
class DriveParameter:
    """A named parameter of drives.

    Args:
        unit: Its SI unit; "" for a dimensionless number.
        about: Its meaning, in a few words.
        positive: Negative values are impossible.
    """

    unit: str
    about: str
    positive: bool = True


# Friction parameters have the names of the extended friction models (Duclusaud et al., ICRA 2025).
DRIVE_PARAMETERS: dict[str, DriveParameter] = {
    "torque_per_volt": DriveParameter("N m/V", "torque of the motor at the joint per volt at standstill, kt/R"),
    "back_emf": DriveParameter("N m s/rad", "drag by the motor's own voltage while the drive is on, kt²/R"),
    "duty_gain": DriveParameter("1/rad", "duty per unit of kp and radian of error"),
    "kp_gain": DriveParameter("", "torque per unit of the logged kp and radian of error"),
    "kd_gain": DriveParameter("", "torque per unit of the logged kd and rad/s"),
    "stiffness": DriveParameter("N m/rad", "torque per radian of error"),
    "damping": DriveParameter("N m s/rad", "torque per rad/s of the loop, inside the torque limit"),
    "torque_limit": DriveParameter("N m", "largest torque of the motor at the joint"),
    "no_load_speed": DriveParameter("rad/s", "speed of zero available torque"),
    "goal_time": DriveParameter("s", "time constant of the goal's filter in the firmware"),
    "delay": DriveParameter("s", "time from the logged goal to its effect"),
    "feedback_delay": DriveParameter("s", "time from the logged position to its effect in the drive's loop"),
    "armature": DriveParameter("kg m²", "inertia of rotor and gears at the joint"),
    "friction_base": DriveParameter("N m", "Coulomb friction"),
    "friction_viscous": DriveParameter("N m s/rad", "viscous friction, also with the drive off"),
    "friction_stribeck": DriveParameter("N m", "additional friction at standstill"),
    "stribeck_velocity": DriveParameter("rad/s", "speed over which the additional friction fades"),
    "load_friction": DriveParameter("", "friction per torque through the gears"),
    "load_friction_quad": DriveParameter("1/(N m)", "friction per squared torque through the gears"),
    "load_friction_stribeck": DriveParameter("", "additional friction at standstill per torque through the gears"),
    "load_friction_motor": DriveParameter("", "friction per torque of the motor"),
    "load_friction_external": DriveParameter("", "friction per torque of the load"),
    "load_friction_motor_stribeck": DriveParameter("", "additional friction at standstill per torque of the motor"),
    "load_friction_external_stribeck": DriveParameter("", "additional friction at standstill per torque of the load"),
    "load_friction_motor_quad": DriveParameter(
        "1/(N m)", "friction at standstill per squared torque of a driven motor"
    ),
    "load_friction_external_quad": DriveParameter(
        "1/(N m)", "friction at standstill per squared torque of a lifted load"
    ),
    "backlash": DriveParameter("rad", "total play between gears and load, with the encoder at the load"),
    "offset": DriveParameter("rad", "true angle from the load's rest position minus the stated one", positive=False),
}
_DRIVE = {
    "voltage": ("torque_per_volt", "back_emf", "duty_gain"),
    "torque": ("kp_gain", "kd_gain"),
    "position-loop": ("stiffness", "damping"),
}
_DRY = ("friction_base", "friction_viscous")
DRIVE_FRICTION: dict[str, tuple[str, ...]] = {
    "M1": _DRY,
    "M2": (*_DRY, "friction_stribeck", "stribeck_velocity"),
    "M3": (*_DRY, "load_friction"),
    "M4": (*_DRY, "friction_stribeck", "stribeck_velocity", "load_friction", "load_friction_stribeck"),
    "M5": (
        *_DRY, "friction_stribeck", "stribeck_velocity", "load_friction_motor", "load_friction_external",
        "load_friction_motor_stribeck", "load_friction_external_stribeck",
    ),
    "M6": (
        *_DRY, "friction_stribeck", "stribeck_velocity", "load_friction_motor", "load_friction_external",
        "load_friction_motor_stribeck", "load_friction_external_stribeck", "load_friction_motor_quad",
        "load_friction_external_quad",
    ),
}  # fmt: skip
# Effects that a drive of any kind may have, each with one parameter of the same name.
DRIVE_EFFECTS = (
    "delay", "feedback_delay", "goal_time", "torque_limit", "no_load_speed", "load_friction_quad", "backlash",
)  # fmt: skip


@short_repr
@dataclass(frozen=True)
class DriveModel:
    """A drive: kind, friction model and parameters, with the covariance of the estimated ones.

    Args:
        kind: "voltage", "torque" or "position-loop" (`DRIVE_KINDS`).
        friction: "M1" to "M6".
        parameters: Values by name (`DRIVE_PARAMETERS`); missing parameters are 0, missing limits infinite.
        estimated: Names of the estimated parameters, in the order of the covariance.
        covariance: Covariance of the estimated parameters, or of their logarithms for the names in `logarithmic`.
        logarithmic: Names of parameters whose logarithm is normally distributed, so that intervals stay positive.
        stribeck_exponent: Exponent of |dq / stribeck_velocity|.
        name: Name of the drive.
    """

    kind: str
    friction: str
    parameters: Mapping[str, float]
    estimated: tuple[str, ...] = ()
    covariance: Array = field(default_factory=lambda: np.zeros((0, 0)))
    logarithmic: frozenset[str] = frozenset()
    stribeck_exponent: float = 1.0
    name: str = "drive"

    def __post_init__(self) -> None:
        if self.kind not in DRIVE_KINDS:
            raise UnknownNameError("kind of drive", self.kind, DRIVE_KINDS)
        if self.friction not in DRIVE_FRICTION:
            raise UnknownNameError("friction model", self.friction, DRIVE_FRICTION)
        for name in (*self.parameters, *self.estimated):
            if name not in DRIVE_PARAMETERS:
                raise UnknownNameError("parameter", name, DRIVE_PARAMETERS)
        if self.covariance.shape != (len(self.estimated),) * 2:
            raise SteelyardError(
                f"The covariance of the drive has shape {self.covariance.shape} for {len(self.estimated)} parameters."
            )

    def __getitem__(self, name: str) -> float:
        if name not in DRIVE_PARAMETERS:
            raise UnknownNameError("parameter", name, DRIVE_PARAMETERS)
        absent = math.inf if name in ("torque_limit", "no_load_speed") else 0.0
        return float(self.parameters.get(name, absent))

    # Constants of the motor, as simulators use them.
    @property
    def kt(self) -> float:
        """Torque constant at the joint [N m/A], kt; NaN where the drive is not of kind "voltage"."""
        per_volt = self["torque_per_volt"]
        return self["back_emf"] / per_volt if self.kind == "voltage" and per_volt else math.nan

    @property
    def resistance(self) -> float:
        """Resistance of the motor [ohm], R; NaN where the drive is not of kind "voltage"."""
        per_volt = self["torque_per_volt"]
        return self.kt / per_volt if self.kind == "voltage" and per_volt else math.nan

    def standard_error(self, name: str) -> float:
        """Return the standard error of the parameter `name` in its own unit; 0 for a given parameter."""
        if name not in self.estimated:
            return 0.0
        k = self.estimated.index(name)
        deviation = math.sqrt(max(float(self.covariance[k, k]), 0.0))
        return deviation * abs(self[name]) if name in self.logarithmic else deviation

    def interval(self, name: str, share: float = 0.95) -> tuple[float, float]:
        """Return the interval that contains a parameter with probability `share`.

        Args:
            name: Name of the parameter.
            share: Probability.
        """
        from scipy.special import ndtri

        value = self[name]
        if name not in self.estimated:
            return value, value
        k = self.estimated.index(name)
        half = float(ndtri(0.5 + share / 2.0)) * math.sqrt(max(float(self.covariance[k, k]), 0.0))
        if name in self.logarithmic:
            # A standard deviation of 300 of the logarithm means that the value is unknown; exp must not overflow.
            half = min(half, 300.0)
            return value * math.exp(-half), value * math.exp(half)
        low, high = value - half, value + half
        return (max(low, 0.0) if DRIVE_PARAMETERS[name].positive else low), high

    def draw(self, n: int, seed: int = 0) -> dict[str, Array]:
        """Draw parameters from their joint distribution, correlations included.

        Args:
            n: Number of draws.
            seed: The same seed gives the same draws.

        Returns:
            All parameters by name, `(n,)` each; given parameters are constant.
        """
        values = {name: np.full(n, self[name]) for name in self.parameters}
        if self.estimated:
            rng = np.random.default_rng(seed)
            eigenvalues, vectors = np.linalg.eigh(self.covariance)
            root = vectors * np.sqrt(np.clip(eigenvalues, 0.0, None))
            steps = rng.standard_normal((n, len(self.estimated))) @ root.T
            for k, name in enumerate(self.estimated):
                if name in self.logarithmic:
                    values[name] = self[name] * np.exp(np.clip(steps[:, k], -300.0, 300.0))
                else:
                    drawn = self[name] + steps[:, k]
                    values[name] = np.maximum(drawn, 0.0) if DRIVE_PARAMETERS[name].positive else drawn
        return values

    def with_values(self, values: Mapping[str, float]) -> DriveModel:
        """Return the drive with other `values` of some parameters, and without a covariance."""
        merged = {**self.parameters, **{k: float(v) for k, v in values.items()}}
        return replace(self, parameters=merged, estimated=(), covariance=np.zeros((0, 0)), logarithmic=frozenset())

    def motor_torque(
        self, error: Array, velocity: Array, *, kp: float = 1.0, kd: float = 1.0, volts: Array | float = 1.0,
        enabled: Array | bool = True, duty: Array | None = None, feedforward: Array | float = 0.0,
    ) -> Array:  # fmt: skip
        """Return the torque of the motor at the joint [N m], before friction.

        Args:
            error: Goal minus position [rad], with the goal delayed and filtered.
            velocity: Velocity [rad/s].
            kp: Position gain of the firmware; 1 if the drive's own gains contain it.
            kd: Velocity gain of the firmware.
            volts: Supply voltage [V].
            enabled: False where the drive is off.
            duty: Measured duty, instead of the error.
            feedforward: Feed-forward torque [N m].
        """
        error, velocity = np.asarray(error, dtype=float), np.asarray(velocity, dtype=float)
        if self.kind == "voltage":
            share = np.clip(self["duty_gain"] * kp * error, -1.0, 1.0) if duty is None else np.asarray(duty)
            torque = self["torque_per_volt"] * share * volts - self["back_emf"] * velocity
            torque = np.clip(torque, -self["torque_limit"], self["torque_limit"])
        else:
            stiffness = self["kp_gain"] * kp if self.kind == "torque" else self["stiffness"]
            damping = self["kd_gain"] * kd if self.kind == "torque" else self["damping"]
            low, high = self._limits(velocity)
            torque = np.clip(stiffness * error - damping * velocity + feedforward, low, high)
        return np.where(enabled, torque, 0.0)

    def _limits(self, velocity: Array) -> tuple[Array, Array]:
        """The torque-speed line: full torque at standstill and against the motion, zero at the no-load speed."""
        limit, speed = self["torque_limit"], self["no_load_speed"]
        if not math.isfinite(limit):
            return np.full_like(velocity, -np.inf), np.full_like(velocity, np.inf)
        share = velocity / speed
        return -limit * np.clip(1.0 + share, 0.0, 1.0), limit * np.clip(1.0 - share, 0.0, 1.0)

    def friction_torque(self, velocity: Array, motor: Array, external: Array) -> Array:
        """Return the largest friction torque [N m], at most as large as needed to stop the joint.

        Args:
            velocity: Velocity [rad/s].
            motor: Torque of the motor [N m].
            external: Torque of the load on the joint [N m], gravity included.
        """
        speed = np.abs(np.asarray(velocity, dtype=float))
        motor, external = np.asarray(motor, dtype=float), np.asarray(external, dtype=float)
        through = np.abs(motor - external)
        total = self["friction_base"] + self["load_friction"] * through + self["load_friction_quad"] * through**2
        total = total + np.abs(self["load_friction_motor"] * motor - self["load_friction_external"] * external)
        if self["stribeck_velocity"] > 0.0:
            fade = np.exp(-((speed / self["stribeck_velocity"]) ** self.stribeck_exponent))
            slow = self["friction_stribeck"] + self["load_friction_stribeck"] * through
            slow = slow + np.abs(
                self["load_friction_motor_stribeck"] * motor - self["load_friction_external_stribeck"] * external
            )
            lifting = (np.abs(motor) > np.abs(external)) & (motor * external < 0.0)
            driven = (np.abs(motor) < np.abs(external)) & (motor * external < 0.0)
            slow = slow + lifting * self["load_friction_external_quad"] * external**2
            slow = slow + driven * self["load_friction_motor_quad"] * motor**2
            total = total + fade * slow
        return np.asarray(total + self["friction_viscous"] * speed)

    def names(self) -> tuple[str, ...]:
        """Return the names of the parameters of this drive, in the order of `DRIVE_PARAMETERS`."""
        return tuple(name for name in DRIVE_PARAMETERS if name in self.parameters)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per parameter: name, value, unit, standard error, interval, estimated, meaning."""
        out = []
        for name in self.names():
            low, high = self.interval(name)
            out.append(
                {
                    "name": name, "value": self[name], "unit": DRIVE_PARAMETERS[name].unit,
                    "standard_error": self.standard_error(name), "low": low, "high": high,
                    "estimated": name in self.estimated, "about": DRIVE_PARAMETERS[name].about,
                }
            )  # fmt: skip
        return out

    def to_json(self) -> dict[str, Any]:
        """Return the drive as plain data; `DriveModel.from_json` reads it."""
        return {
            "kind": self.kind, "friction": self.friction, "name": self.name,
            "parameters": {name: self[name] for name in self.names()}, "estimated": list(self.estimated),
            "covariance": self.covariance.tolist(), "logarithmic": sorted(self.logarithmic),
            "stribeck_exponent": self.stribeck_exponent,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DriveModel:
        """Return a drive from the plain `data` of `to_json`."""
        estimated = tuple(data.get("estimated", ()))
        covariance = np.array(data.get("covariance", []), dtype=float).reshape(len(estimated), len(estimated))
        return cls(
            data["kind"], data["friction"], dict(data["parameters"]), estimated, covariance,
            frozenset(data.get("logarithmic", ())), float(data.get("stribeck_exponent", 1.0)),
            data.get("name", "drive"),
        )  # fmt: skip


@cache
def drive_parameters(kind: str, friction: str, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the names of the parameters of a structure, in the order of `DRIVE_PARAMETERS`.

    Args:
        kind: Kind of the drive.
        friction: Friction model.
        extra: Parameters of further effects (`DRIVE_EFFECTS`), such as delay.
    """
    wanted = {*_DRIVE[kind], *DRIVE_FRICTION[friction], "armature", "offset", *extra}
    return tuple(name for name in DRIVE_PARAMETERS if name in wanted)
