"""`measure_friction`: measures friction over velocity, from constant-speed runs or from any motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.friction._table import Tables, moving_joints
from steelyard.friction.coordinates import Coordinates, FrictionSide
from steelyard.friction.friction_options import FrictionOptions
from steelyard.friction.laws import Choice, FittedLaw, choose_law, distinct_speeds, law_named
from steelyard.friction.plateaus import Plateau, plateaus_in, remove_gravity
from steelyard.ground.arrays import Array
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns, by_columns
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation
from steelyard.ground.progress import ProgressCallback, reports_progress, steps
from steelyard.ground.reasons import explained
from steelyard.ground.short_repr import short_repr
from steelyard.ground.verb_options import with_changes, with_signature
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.as_logs import LogsLike, as_logs
from steelyard.signals.log import Log
from steelyard.signals.read import AnyMapping
from steelyard.study import Study

# Plateaus are sufficient with this number of different speeds, this ratio of fastest to slowest, and this share of the
# time of motion, which excludes crests of sines.
_LEAST_SPEEDS, _SPAN, _SHARE = 3, 3.0, 0.3
_WHY_NULL = {
    "shape": "The law does not have a shape parameter.",
    "temperature": "No dependence is fitted: the logs lack temperatures, or these hardly vary.",
    "points/*/temperature": "The log lacks the temperature of this joint.",
    "points/*/standard_error": "A standard deviation needs more than one sample.",
}
_POINTS = ("joint", "velocity", "torque", "standard_error", "temperature")
# Least variation of the temperature for fitting slopes [°C].
_TEMPERATURE_SPAN = 5.0


@short_repr
@dataclass(frozen=True, eq=False)
class JointFriction:
    """Friction of one joint.

    Attributes:
        joint: Name of the joint or motor.
        points: Measured points.
        choice: Law through the points.
        how: Source of the points.
        notes: Remarks for the user.
    """

    joint: str
    points: tuple[Plateau, ...]
    choice: Choice
    how: str
    notes: tuple[str, ...] = ()

    @property
    def law(self) -> FittedLaw:
        return self.choice.fitted

    @property
    def velocity(self) -> Array:
        return np.array([p.velocity for p in self.points])

    @property
    def torque(self) -> Array:
        return np.array([p.torque for p in self.points])

    @property
    def error(self) -> Array:
        return np.array([p.error for p in self.points])

    def to_json(self) -> dict[str, Any]:
        law = self.law
        symbols = law.law.symbols
        document = {
            "joint": self.joint,
            "how": self.how,
            "law": law.law.name,
            "coefficients": dict(zip(symbols, law.coefficients.tolist(), strict=True)),
            "impossible_signs": list(law.impossible),
            "standard_errors": dict(zip(symbols, law.standard_errors[: len(symbols)].tolist(), strict=True)),
            "shape": law.shape if law.law.shaped else None,
            "covariance": law.covariance.tolist(),
            "fastest": law.fastest,
            "load_gain": law.load_gain,
            "temperature": None
            if law.slopes is None
            else {
                "reference": law.reference,
                "range": list(law.range),
                "slopes": dict(zip(symbols, law.slopes.tolist(), strict=True)),
            },
            "left_out_error": self.choice.scores,
            "points": [
                {"velocity": p.velocity, "torque": p.torque, "standard_error": p.error, "temperature": p.temperature}
                for p in self.points
            ],
            "notes": list(self.notes),
        }
        return explained(document, _WHY_NULL)


@dataclass(frozen=True, eq=False, repr=False)
class FrictionCurves(OutcomeWithPage, DisplayMixin):
    """Friction of joints or drives. Its `curves` can be the argument `known_friction` of `identify`.

    Attributes:
        robot: Robot.
        joints: Friction of each joint or drive.
        missing: Reason for each joint without a result.
        on: "joint" or "drive".
    """

    robot: Robot
    joints: tuple[JointFriction, ...]
    missing: dict[str, str] = field(default_factory=dict)
    on: FrictionSide = "joint"

    @property
    def curves(self) -> dict[str, FittedLaw]:
        return {j.joint: j.law for j in self.joints}

    def headline(self) -> Headline:
        laws = ", ".join(f"{j.joint} {j.law.law.name}" for j in self.joints)
        notes = [f"{j.joint}: {note}" for j in self.joints for note in j.notes]
        points = (*(f"{name}: {reason}" for name, reason in self.missing.items()), *notes)
        return Headline("warning" if self.missing else "good", f"friction of {self.robot.name}: {laws}", points)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Coefficients of the laws ("laws") and measured points ("points")."""
        laws = [
            [j.joint, j.law.law.name, symbol, float(value), float(error)]
            for j in self.joints
            for symbol, value, error in zip(j.law.law.symbols, j.law.coefficients, j.law.standard_errors, strict=False)
        ]
        points = [[j.joint, p.velocity, p.torque, p.error, p.temperature] for j in self.joints for p in j.points]
        return {
            "laws": lambda: by_columns(("joint", "law", "coefficient", "value", "standard_error"), laws),
            "points": lambda: by_columns(_POINTS, points),
        }

    def figures(self) -> Mapping[str, Callable[..., Any]]:
        """Points with error bars, and laws with their bands, over velocity ("curves")."""
        from steelyard.friction.page import curves_figure

        return {"curves": partial(curves_figure, self)}

    def to_json(self) -> dict[str, Any]:
        return explained({"joints": [j.to_json() for j in self.joints], "missing": self.missing, "on": self.on})

    def files(self) -> dict[str, Content]:
        rows = (
            [joint.joint, p.velocity, p.torque, p.error, "" if p.temperature is None else p.temperature]
            for joint in self.joints
            for p in joint.points
        )
        return {"points.csv": csv_text([_POINTS, *rows])}

    def view(self) -> Presentation:
        from steelyard.friction.page import friction_report, print_friction

        return friction_report, print_friction


@with_signature(FrictionOptions)
@reports_progress
def measure_friction(
    robot: RobotLike,
    logs: LogsLike,
    options: FrictionOptions | None = None,
    *,
    mapping: AnyMapping = None,
    progress: ProgressCallback | None = None,
    **changes: Any,
) -> FrictionCurves:
    """Measure friction curves of joints or drives.

    Args:
        robot: Robot, as `load_robot` takes it.
        logs: Constant-speed runs, sweeps or any other motion, as paths, `Log`s, frames or dicts of arrays.
        options: Options of the measurement; None: the defaults.
        mapping: Meaning of the columns of files and frames, as in `read_log`.
        progress: Callback for the progress (`steelyard.ground.progress`).
        **changes: Fields of `FrictionOptions` that replace those of `options`, such as `law="stribeck"`.
    """
    o = with_changes(options or FrictionOptions(), changes, "measure_friction")
    robot = as_robot(robot)
    inputs = as_logs(logs, robot, mapping)
    if o.how not in ("auto", "plateaus", "table"):
        raise SteelyardError(f"The method of measuring friction is auto, plateaus or table, not '{o.how}'.")
    study = Study.of(robot, inputs, (), o.preparation)
    coordinates = Coordinates.of(study.robot, o.on)
    measurement = _Measurement(study, coordinates, o.how, o.gravity, o.middle, o.model)
    converted = {log: coordinates.log(log) for log in inputs}
    selected = [coordinates.index(name) for name in o.joints] or moving_joints(list(converted.values()))
    results: list[JointFriction] = []
    missing: dict[str, str] = {}
    for joint in steps(selected, "Measuring friction", lambda j: coordinates.names[j]):
        name = coordinates.names[joint]
        used = [log for log in inputs if joint in moving_joints([converted[log]])] or inputs
        try:
            points, source = measurement.points(used, joint)
            results.append(_fit(name, points, source, o.law, o.loaded, _temperatures(used, joint)))
        except SteelyardError as error:
            if o.joints or len(selected) == 1:
                raise
            missing[name] = str(error)
    if not results:
        raise SteelyardError(f"No friction could be measured. {next(iter(missing.values()), '')}")
    return FrictionCurves(study.robot, tuple(results), missing, o.on)


@dataclass(frozen=True, eq=False)
class _Measurement:
    """Settings of a measurement, with caches for prepared logs and fitted tables, which joints share."""

    study: Study
    coordinates: Coordinates
    how: str
    gravity: str
    middle: float | None
    model: Model | None
    _studies: dict[Log, Study] = field(default_factory=dict)
    _tables: dict[tuple[tuple[Log, ...], str], Tables] = field(default_factory=dict)

    def points(self, logs: Sequence[Log], joint: int) -> tuple[list[Plateau], str]:
        """Return the points of friction of one joint, and their source in words."""
        name, kind = self.coordinates.names[joint], self.coordinates.kind(joint)
        converted = [self.coordinates.log(log) for log in logs]
        raw = [] if self.how == "table" else [p for log in logs for p in self._plateaus(log, joint)]
        if self.how == "table" or (self.how == "auto" and not _are_sufficient(raw, converted, joint)):
            if joint not in moving_joints(converted):
                raise SteelyardError(f"Joint '{name}' does not move in the logs; its friction stays unknown.")
            key = (tuple(logs), kind)
            if key not in self._tables:
                self._tables[key] = Tables.of(self.study, logs, kind, self.coordinates.on)
            return self._tables[key].points_of(name, joint), "a table fitted together with the rigid body"
        if not raw:
            raise SteelyardError(
                f"Joint '{name}' never has a constant speed for 0.2 s; use --how table (in Python: how='table')."
            )
        method = self.gravity if self.gravity != "auto" else ("model" if self.model is not None else "pairs")
        points = remove_gravity(raw, method, self.model, self.middle, self.coordinates)
        if not points:
            raise SteelyardError(
                f"Joint '{name}': gravity could not be removed from any of its {len(raw)} plateaus by {method}; run "
                "both directions over the same positions, or give a model."
            )
        return points, f"plateaus, gravity by {method}"

    def _plateaus(self, log: Log, joint: int) -> Iterator[Plateau]:
        # Each log has the cut-off that its own motion needs.
        if log not in self._studies:
            self._studies[log] = self.study.with_logs([log])
        return plateaus_in(log, map(self.coordinates.motion, self._studies[log].motions()), joint)


def _are_sufficient(plateaus: Sequence[Plateau], logs: Sequence[Log], joint: int) -> bool:
    speeds = np.abs([p.velocity for p in plateaus])
    if distinct_speeds(speeds) < _LEAST_SPEEDS or speeds.max() < _SPAN * speeds.min():
        return False
    moving = sum(_moving_time(log, joint) for log in logs)
    return sum(p.duration for p in plateaus) >= _SHARE * moving


def _temperatures(logs: Sequence[Log], joint: int) -> tuple[float, float] | None:
    """Return the lowest and the highest temperature of the logs [°C], if they have any."""
    channels = [log.channels["temperature"] for log in logs if "temperature" in log.channels]
    columns = [x[:, min(joint, x.shape[1] - 1)] for x in channels]
    return (float(min(c.min() for c in columns)), float(max(c.max() for c in columns))) if columns else None


def _moving_time(log: Log, joint: int) -> float:
    """Return the time during which the joint is faster than 1 % of its top speed [s]."""
    speed = np.abs(np.gradient(log.q[:, joint], log.t) if log.dq is None else log.dq[:, joint])
    return float(np.mean(speed > 0.01 * speed.max(initial=0.0)) * (log.t[-1] - log.t[0]))


def _fit(
    name: str, points: Sequence[Plateau], how: str, law: str, loaded: bool, warm_range: tuple[float, float] | None
) -> JointFriction:
    velocity, torque = np.array([p.velocity for p in points]), np.array([p.torque for p in points])
    # The scatter of a plateau may be zero by chance; a floor limits the weight of single points.
    error = np.array([p.error for p in points])
    usual = float(np.median(error[np.isfinite(error)])) if np.any(np.isfinite(error)) else 1.0
    error = np.clip(np.where(np.isfinite(error), error, usual), 0.2 * usual + 1e-12, None)
    warm = [p.temperature for p in points]
    known = [t for t in warm if t is not None]
    varies = len(known) == len(points) and np.ptp(known) > _TEMPERATURE_SPAN
    temperature = np.array(known) if varies else None
    load = np.array([p.load for p in points]) if loaded else None
    candidates = () if law == "auto" else (law_named(law),)
    choice = choose_law(velocity, torque, error, candidates, temperature, load)
    notes = []
    if how.endswith("by pairs"):
        notes.append(
            "Both directions were averaged to remove gravity (by pairs), so differences between them, such as an "
            "offset or asymmetric friction, are not identifiable. Use a model (--model RUN), or sweeps about a "
            "symmetric posture (--gravity-by symmetry)."
        )
    if warm_range is not None and temperature is None and np.ptp(warm_range) > _TEMPERATURE_SPAN:
        notes.append(
            f"The points mix temperatures from {warm_range[0]:.0f} to {warm_range[1]:.0f} °C; plateaus separate them."
        )
    if not (np.any(velocity > 0.0) and np.any(velocity < 0.0)):
        notes.append("Only one direction was measured, so friction and offset are not separately identifiable.")
    for symbol in choice.fitted.impossible:
        notes.append(
            f"{symbol} is not identifiable: the best fit has an impossible sign. Add speeds or the other direction, or "
            "remove gravity by another method; the curve is only valid between the points."
        )
    return JointFriction(name, tuple(points), choice, how, tuple(notes))
