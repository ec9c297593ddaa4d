"""`measure_friction`: friction over velocity of every joint, from constant-speed runs or from any motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.friction._table import Tables, moving_joints
from steelyard.friction.coordinates import Coordinates, FrictionSide
from steelyard.friction.laws import Choice, FittedLaw, choose_law, distinct_speeds, law_named
from steelyard.friction.plateaus import Plateau, plateaus_in, remove_gravity
from steelyard.ground.arrays import Array
from steelyard.ground.displayed import Displayed, Glance, NamedColumns, by_columns
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, Presentation, Viewed
from steelyard.ground.progress import ProgressCallback, reports_progress, steps
from steelyard.ground.reasons import explained
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.given import LogsLike, as_logs
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import AnyMapping
from steelyard.study import Study

_How = Literal["auto", "plateaus", "table"]
# Plateaus make a curve if they have so many different speeds, the fastest so many times the slowest, and if they are
# what the motion is about: this part of the time in which the joint moves. Crests of sines are not.
_ENOUGH, _SPAN, _SHARE = 3, 3.0, 0.3
_WHY_NULL = {
    "shape": "The law has none.",
    "temperature": "Friction is not taken to depend on it: the logs have no temperature, or one that hardly varies.",
    "points/*/temperature": "The log has no temperature of this joint.",
    "points/*/standard_error": "One sample has no spread.",
}
_POINTS = ("joint", "velocity", "torque", "standard_error", "temperature")
# Degrees over which a log's temperature must vary for slopes to be asked for.
_WARMER = 5.0


@dataclass(frozen=True, eq=False)
class JointFriction:
    """The measured points of one joint and the law through them."""

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
class FrictionCurves(Viewed, Displayed):
    """The friction of all joints that were measured, or of drives (`on`); `curves` serve `known_friction`."""

    robot: Robot
    joints: tuple[JointFriction, ...]
    missing: dict[str, str] = field(default_factory=dict)
    on: FrictionSide = "joint"

    @property
    def curves(self) -> dict[str, FittedLaw]:
        return {j.joint: j.law for j in self.joints}

    def glance(self) -> Glance:
        laws = ", ".join(f"{j.joint} {j.law.law.name}" for j in self.joints)
        said = [f"{j.joint}: {note}" for j in self.joints for note in j.notes]
        points = (*(f"{name}: {reason}" for name, reason in self.missing.items()), *said)
        return Glance("warning" if self.missing else "good", f"friction of {self.robot.name}: {laws}", points)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Coefficients of each joint's law ("laws"), and the measured "points" behind them."""
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
        """Points with error bars and laws with their bands over velocity ("curves")."""
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


@reports_progress
def measure_friction(
    robot: RobotLike,
    logs: LogsLike,
    *,
    joints: Sequence[str] = (),
    on: FrictionSide = "joint",
    how: _How = "auto",
    gravity: str = "auto",
    middle: float | None = None,
    model: Model | None = None,
    law: str = "auto",
    loaded: bool = False,
    preparation: Preparation | None = None,
    mapping: AnyMapping = None,
    progress: ProgressCallback | None = None,
) -> FrictionCurves:
    """Friction curves of the joints that move.

    Args:
        robot: whose logs these are, as `load_robot` takes it.
        logs: constant-speed runs, sweeps or any other motion, as paths, `Log`s, frames or dicts of arrays.
        joints: those to look at, by name; default: all that move.
        on: "joint", or "drive" where the robot has a transmission: friction over the speed of each motor's output,
            which may move several joints (IRp-6: motor 3 turns by q2 + q3); `joints` are then names of motors.
        how: "plateaus" averages stretches of constant speed, "table" fits rigid body and friction together; "auto"
            takes plateaus where there are enough.
        gravity: how it is taken off plateaus: "pairs", "symmetry" (about `middle`), "model", "none"; "auto": the model
            if there is one, else pairs.
        model: an identified model whose gravity is trusted.
        law: a name, or "auto" to choose by leaving speeds out.
        loaded: whether dry friction may grow with the load on the gear (needs `model`).
        preparation: how signals are made ready; None: the default way.
        mapping: what the columns of files and frames mean, as in `read_log`.
        progress: told how far it is (`steelyard.ground.progress`); None: nobody.
    """
    robot = as_robot(robot)
    listed = as_logs(logs, robot, mapping)
    if how not in ("auto", "plateaus", "table"):
        raise SteelyardError(f"Friction is measured from plateaus or as a table, not by '{how}'.")
    study = Study.of(robot, listed, (), preparation)
    places = Coordinates.of(study.robot, on)
    sight = _Sight(study, places, how, gravity, middle, model)
    seen = {log: places.log(log) for log in listed}
    wanted = [places.index(name) for name in joints] or moving_joints(list(seen.values()))
    found: list[JointFriction] = []
    missing: dict[str, str] = {}
    for joint in steps(wanted, "Measuring friction", lambda j: places.names[j]):
        name = places.names[joint]
        mine = [log for log in listed if joint in moving_joints([seen[log]])]
        try:
            points, used = sight.points(mine or listed, joint)
            found.append(_fitted(name, points, used, law, loaded, _temperatures(mine or listed, joint)))
        except SteelyardError as error:
            if joints or len(wanted) == 1:
                raise
            missing[name] = str(error)
    if not found:
        raise SteelyardError(f"No friction could be measured. {next(iter(missing.values()), '')}")
    return FrictionCurves(study.robot, tuple(found), missing, on)


@dataclass(frozen=True, eq=False)
class _Sight:
    """How friction is looked for, and what has been made ready for it: each log, and each fit, once for all joints."""

    study: Study
    places: Coordinates
    how: _How
    gravity: str
    middle: float | None
    model: Model | None
    _alone: dict[Log, Study] = field(default_factory=dict)
    _tables: dict[tuple[tuple[Log, ...], str], Tables] = field(default_factory=dict)

    def points(self, logs: Sequence[Log], joint: int) -> tuple[list[Plateau], str]:
        """Points of friction of one joint in some of the logs, and where they come from."""
        name, kind = self.places.names[joint], self.places.kind(joint)
        seen = [self.places.log(log) for log in logs]
        raw = [] if self.how == "table" else [p for log in logs for p in self._plateaus(log, joint)]
        if self.how == "table" or (self.how == "auto" and not _make_a_curve(raw, seen, joint)):
            if joint not in moving_joints(seen):
                raise SteelyardError(f"Joint '{name}' does not move in the logs; its friction stays unknown.")
            key = (tuple(logs), kind)
            if key not in self._tables:
                self._tables[key] = Tables.of(self.study, logs, kind, self.places.on)
            return self._tables[key].named(name, joint), "a table fitted together with the rigid body"
        if not raw:
            raise SteelyardError(
                f"Joint '{name}' nowhere turns at a constant speed for 0.2 s; use --how table (in Python: how='table')."
            )
        way = self.gravity if self.gravity != "auto" else ("model" if self.model is not None else "pairs")
        points = remove_gravity(raw, way, self.model, self.middle, self.places)
        if not points:
            raise SteelyardError(
                f"Joint '{name}': none of its {len(raw)} plateaus could be freed from gravity by {way}; run both "
                "directions over the same way, or give a model."
            )
        return points, f"plateaus, gravity by {way}"

    def _plateaus(self, log: Log, joint: int) -> Iterator[Plateau]:
        # Plateaus of a log are looked for at the cut-off that its own motion needs.
        if log not in self._alone:
            self._alone[log] = self.study.with_logs([log])
        return plateaus_in(log, map(self.places.motion, self._alone[log].motions()), joint)


def _make_a_curve(plateaus: Sequence[Plateau], logs: Sequence[Log], joint: int) -> bool:
    speeds = np.abs([p.velocity for p in plateaus])
    if distinct_speeds(speeds) < _ENOUGH or speeds.max() < _SPAN * speeds.min():
        return False
    moving = sum(_moving_time(log, joint) for log in logs)
    return sum(p.duration for p in plateaus) >= _SHARE * moving


def _temperatures(logs: Sequence[Log], joint: int) -> tuple[float, float] | None:
    """The coldest and the warmest of the logs, °C, where they tell."""
    told = [log.channels["temperature"] for log in logs if "temperature" in log.channels]
    columns = [x[:, min(joint, x.shape[1] - 1)] for x in told]
    return (float(min(c.min() for c in columns)), float(max(c.max() for c in columns))) if columns else None


def _moving_time(log: Log, joint: int) -> float:
    """Seconds in which the joint is faster than a hundredth of its top speed."""
    speed = np.abs(np.gradient(log.q[:, joint], log.t) if log.dq is None else log.dq[:, joint])
    return float(np.mean(speed > 0.01 * speed.max(initial=0.0)) * (log.t[-1] - log.t[0]))


def _fitted(
    name: str, points: Sequence[Plateau], how: str, law: str, loaded: bool, warm_range: tuple[float, float] | None
) -> JointFriction:
    velocity, torque = np.array([p.velocity for p in points]), np.array([p.torque for p in points])
    # A plateau's own scatter may be zero by chance; a floor keeps single points from ruling the curve.
    error = np.array([p.error for p in points])
    usual = float(np.median(error[np.isfinite(error)])) if np.any(np.isfinite(error)) else 1.0
    error = np.clip(np.where(np.isfinite(error), error, usual), 0.2 * usual + 1e-12, None)
    warm = [p.temperature for p in points]
    known = [t for t in warm if t is not None]
    varies = len(known) == len(points) and np.ptp(known) > _WARMER
    temperature = np.array(known) if varies else None
    load = np.array([p.load for p in points]) if loaded else None
    candidates = () if law == "auto" else (law_named(law),)
    choice = choose_law(velocity, torque, error, candidates, temperature, load)
    notes = []
    if how.endswith("by pairs"):
        notes.append(
            "Both directions were averaged to take gravity off (by pairs): what differs between them, an offset or "
            "friction that is stronger one way, does not show. A model (--model RUN), or sweeps about a symmetric "
            "posture (--gravity-by symmetry), would tell."
        )
    if warm_range is not None and temperature is None and np.ptp(warm_range) > _WARMER:
        notes.append(
            f"Temperatures from {warm_range[0]:.0f} to {warm_range[1]:.0f} °C are mixed; plateaus tell them apart."
        )
    if not (np.any(velocity > 0.0) and np.any(velocity < 0.0)):
        notes.append("Only one direction was measured; friction and offset cannot be told apart.")
    for symbol in choice.fitted.impossible:
        notes.append(
            f"{symbol} is not identifiable: the best fit gives it a sign that no friction has. Other speeds, both "
            "directions, or gravity taken off in another way would tell; the curve holds between the points alone."
        )
    return JointFriction(name, tuple(points), choice, how, tuple(notes))
