"""`Designed`: motions that were designed, with all that a person wants to know before playing them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExcitationError, SteelyardError
from steelyard.excitation._motion_rows import grams_along
from steelyard.excitation.constraints import Limits
from steelyard.excitation.constraints._space import keeps_apart
from steelyard.excitation.controllers.target import MOTION_TARGETS
from steelyard.excitation.criteria import condition_number
from steelyard.excitation.evolution.via_points import with_jerk
from steelyard.excitation.excite import excite
from steelyard.excitation.fitness import NO_MEAN
from steelyard.excitation.interpolator import (
    MotionLimits,
    Program,
    ProgramError,
    interpolate,
    program_text,
    program_to_dict,
)
from steelyard.excitation.plan import Plan
from steelyard.excitation.play import WHY_NO_TORQUE, Play
from steelyard.excitation.problem import comparison_motion
from steelyard.excitation.several import excite_next, excite_several, given_by
from steelyard.excitation.trajectories import Fourier, Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.displayed import Displayed, Glance, NamedColumns
from steelyard.ground.field import LARGEST_NUMBER
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, Presentation, Viewed, json_text
from steelyard.ground.reasons import explained
from steelyard.ground.untrusted import read_json
from steelyard.parameters.terms import as_terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.given import LogsLike, as_logs

_FORMAT = "steelyard-excitation-1"
# Via-points per second of a smooth motion, for controllers that take nothing else.
_VIA_POINTS_PER_SECOND = 2.0
_FLY = 0.5
# Torque noise as a share of what the motors can do, or N m where that is not stated: what good drives have.
_NOISE, _NOISE_WITHOUT = 0.005, 0.1

_WHY_NULL = {
    "settings/*": "It was not asked for.",
    "condition_number": "It is infinite: the motions do not show all base parameters.",
    "criterion/fitness/*/mean": NO_MEAN,
    "plans/*/joints/*/torque": "The description gives no inertias to reckon torques with.",
    "plans/*/joints/*/torque_limit": "The description gives no limit.",
    "plans/*/margins/*": "There is no such limit.",
    **{f"play/{where}": why for where, why in WHY_NO_TORQUE.items()},
    "programs/*": "No program of via-points was asked for, or none keeps to the limits.",
}


@dataclass(frozen=True, eq=False, repr=False)
class Designed(Viewed, Displayed):
    """Plans, the robot they are for, the settings they came from, and the torque noise (N m, N) that is expected."""

    robot: Robot
    plans: tuple[Plan, ...]
    noise: Array
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()
    # What the motions are written for, beside `trajectory.csv` and the ROS message: names in `MOTION_TARGETS`.
    targets: tuple[str, ...] = ("csv",)

    @cached_property
    def play(self) -> Play:
        """The motions as controllers play them, slow first."""
        motions = [p.trajectory for p in self.plans]
        return Play(self.robot, motions, self.targets, self.plan.rate, self.plan.limits.tau)

    @property
    def plan(self) -> Plan:
        """The last one, whose value counts all."""
        return self.plans[-1]

    @property
    def unseen(self) -> tuple[str, ...]:
        """Limits that were not looked at, in words."""
        told = tuple(note for note in self.notes if "not looked at" in note or "were not kept" in note)
        kept = any(word in name for name in self.plan.margins for word in ("apart", "distance", "collision"))
        return told if told or kept else ("Collisions were not looked at (--collision).",)

    @property
    def verdict(self) -> tuple[str, str]:
        """Whether the motion may be played: "good" or "warning", and a sentence."""
        if self.unseen:
            return "warning", (
                "The motion keeps to the limits that were looked at; look at the arm in motion before you play it."
            )
        return "good", "The motion keeps to all limits at every instant."

    def glance(self) -> Glance:
        kind, sentence = self.verdict
        what = "a motion" if len(self.plans) == 1 else f"{len(self.plans)} motions"
        return Glance("good" if kind == "good" else "warning", f"{what} for {self.robot.name}. {sentence}", self.notes)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        return self.plan.tables()

    def figures(self) -> Mapping[str, Callable[..., Any]]:
        return self.plan.figures()

    @cached_property
    def gram(self) -> Array:
        """WᵀW of all motions together."""
        return np.asarray(np.sum([p.gram for p in self.plans], axis=0))

    @property
    def condition_number(self) -> float:
        return condition_number(self.gram)

    @cached_property
    def standard_errors(self) -> Array:
        """Expected of every column after all motions, once each, at the expected noise."""
        return _errors([p.grams for p in self.plans], self._sigma)

    @cached_property
    def _sigma(self) -> Array:
        names = self.plan.equations
        return np.array([self.noise[self.robot.joint_index(n)] if n in self.robot.joint_names else 1.0 for n in names])

    @cached_property
    def careless(self) -> tuple[float, Array]:
        """Condition number and expected errors of as many random motions within the same limits, by the same rows."""
        plan = self.plan
        base = base_parameters(self.robot, self.settings["bound_terms"])
        families = (Fourier(5, plan.trajectory.duration),) * self.robot.dof
        columns = np.array([base.independent[base.names.index(n)] for n in plan.columns])
        joints, each = [self.robot.joint_index(n) for n in self._torque_equations], []
        for k in range(len(self.plans)):
            motion = comparison_motion(families, plan.limits, plan.seed + k)
            each.append(grams_along(base.structure.dynamics, columns, motion, plan.rate, joints, self.settings))
        total = np.sum([g for grams in each for g in grams], axis=0)
        try:
            errors = _errors(each, self._sigma)
        except np.linalg.LinAlgError:
            errors = np.full(len(plan.columns), np.inf)
        return condition_number(total), errors

    @property
    def _torque_equations(self) -> tuple[str, ...]:
        names = self.plan.equations
        return names if all(n in self.robot.joint_names for n in names) else self.robot.joint_names

    def torque(self, plan: Plan) -> tuple[Array, Array] | None:
        """Times (s) of a `plan` and torques (N m, N) of the nominal model, where the description states one."""
        if not self.robot.has_inertia:
            return None
        t = plan.trajectory.times(max(plan.rate, 100.0))
        return t, Model.nominal(self.robot).torque(*plan.trajectory.sample(t))

    @cached_property
    def programs(self) -> tuple[tuple[Program, dict[str, Any]] | None, ...]:
        """A via-point program for every plan: its own, or one through postures of the smooth motion."""
        return tuple(self._program(plan) for plan in self.plans)

    def _program(self, plan: Plan) -> tuple[Program, dict[str, Any]] | None:
        if plan.program is not None:
            said = {"of": "the motion itself", "duration": plan.trajectory.duration}
            return plan.program, {**said, "condition_number": plan.condition_number}
        count = max(4, round(_VIA_POINTS_PER_SECOND * plan.trajectory.duration))
        postures = plan.trajectory.derivative(np.linspace(0.0, plan.trajectory.duration, count + 1), 0)
        own = with_jerk(plan.limits)
        postures = np.clip(postures, own.lower, own.upper)
        program = Program.through(postures, 1.0, _FLY)
        try:
            motion = interpolate(self.robot, program, MotionLimits(own.lower, own.upper, own.dq, own.ddq, own.jerk))
        except ProgramError:
            return None
        base = base_parameters(self.robot, self.settings["bound_terms"])
        t = np.arange(int(motion.duration * plan.rate) + 1) / plan.rate
        Y = base.structure.dynamics.torque_regressor(*motion.sample(t))
        columns = np.array([base.independent[base.names.index(n)] for n in plan.columns])
        rows = [self.robot.joint_index(n) for n in self._torque_equations]
        W = Y[:, rows][:, :, columns].reshape(-1, len(columns))
        said = {"of": f"{count} postures of the smooth motion; torques are not checked", "duration": motion.duration}
        return program, {**said, "condition_number": condition_number(W.T @ W)}

    def to_json(self) -> dict[str, Any]:
        plan = self.plan
        careless, careless_errors = self.careless
        settings = {k: v for k, v in self.settings.items() if k != "bound_terms"}
        columns = zip(plan.columns, plan.units, self.standard_errors, careless_errors, strict=True)
        return explained(
            {
                "format": _FORMAT,
                "steelyard": version("steelyard"),
                "robot": self.robot.name,
                "fingerprint": self.robot.fingerprint,
                "settings": settings,
                "motions": len(self.plans),
                "condition_number": self.condition_number,
                "condition_of": "columns as they stand in the structural base, unscaled, rows unweighted, all motions",
                "violation": max(p.violation for p in self.plans),
                "verdict": {"grade": self.verdict[0], "sentence": self.verdict[1], "reasons": list(self.unseen)},
                "criterion": {
                    "name": plan.criterion, "of": plan.label, "value": plan.value, "start": plan.start_value,
                    "history": plan.history, "evaluations": sum(p.evaluations for p in self.plans),
                    "stopped": any(p.stopped for p in self.plans),
                    **({} if plan.fitness is None else {"fitness": plan.fitness.to_json()}),
                },
                "random_motion": {"condition_number": careless},
                "torque_noise": dict(zip(self.robot.joint_names, self.noise.tolist(), strict=True)),
                "base_parameters": {
                    "count": len(plan.columns),
                    "list": [
                        {"name": n, "unit": u, "expected_standard_error": float(e), "of_random_motion": float(r)}
                        for n, u, e, r in columns
                    ],
                },
                "plans": [self._numbers(p) for p in self.plans],
                "programs": [None if p is None else p[1] for p in self.programs],
                "play": self.play.numbers(),
                "notes": list(self.notes),
            },
            _WHY_NULL,
        )  # fmt: skip

    def files(self) -> dict[str, Content]:
        """Tables for controllers, ROS messages, via-point programs; those of a second motion are named …-2."""
        out: dict[str, Content] = self.play.files()
        for k, (plan, found) in enumerate(zip(self.plans, self.programs, strict=True)):
            end = "" if k == 0 else f"-{k + 1}"
            out |= {f"{name}{end}.{kind}": text for (name, kind), text in _plan_files(plan).items()}
            if found is not None:
                out[f"program{end}.txt"] = program_text(found[0], self.robot)
                out[f"program{end}.json"] = json_text(program_to_dict(found[0]))
        return out

    def view(self) -> Presentation:
        from steelyard.excitation.page import designed_report, print_designed

        return designed_report, print_designed

    def _numbers(self, plan: Plan) -> dict[str, Any]:
        found = self.torque(plan)
        peaks = [plan.trajectory.peak_bounds(k) for k in (1, 2)]
        low, high = plan.trajectory.extents(0)
        torque = [None] * self.robot.dof if found is None else np.max(np.abs(found[1]), axis=0).tolist()
        keys = ("joint", "lowest", "highest", "velocity", "acceleration", "torque", "torque_limit")
        each = (*(x.tolist() for x in (low, high, *peaks)), torque, plan.limits.tau.tolist())
        joints = [dict(zip(keys, row, strict=True)) for row in zip(self.robot.joint_names, *each, strict=True)]
        return {"duration": plan.trajectory.duration, "margins": plan.margins, "joints": joints}


def design_motions(
    robot: RobotLike,
    *,
    motions: int = 1,
    given: LogsLike = (),
    noise: float | Sequence[float] | None = None,
    settings: dict[str, Any] | None = None,
    targets: Sequence[str] = ("csv",),
    **options: Any,
) -> Designed:
    """One motion or several, with all that a person wants to know before playing them: what `steelyard excite` does.

    Args:
        robot: the robot, as `load_robot` takes it.
        motions: how many that complement each other (by gradients alone, from nothing known).
        given: logs of this robot, as paths, `Log`s, frames or dicts: design for what they leave unknown.
        noise: of torque, N m (N), one number or one per joint, for the expected errors; default: that of good drives.
        settings: what to keep with the result; default: the options.
        targets: what the motions are written for: names in `MOTION_TARGETS` (ur, ros2, franka, kuka, abb, fanuc, csv).
        options: of `excite`.
    """
    robot = as_robot(robot)
    for name in targets:  # before a search of minutes
        MOTION_TARGETS[name].check(name, robot)
    given = as_logs(given, robot, options.pop("mapping", None))
    bred = options.get("optimiser", "gradient") != "gradient"
    if motions > 1 and (bred or given or options.get("checkpoint") is not None):
        raise ExcitationError(
            "Several motions at once go with the optimiser gradient, without given logs or checkpoint."
        )
    if given and options.get("weights") is not None:
        raise ExcitationError("With given logs the weights follow from them; leave the weights out.")
    terms, sigma = as_terms(robot, options.pop("terms", None)), expected_noise(robot, noise)
    options["terms"] = terms
    if motions > 1:
        # The scene is built once for all of them.
        usual = {"collision": False, "clearance": 0.02, "packages": (), "srdf": None}
        bodies, notes = keeps_apart(robot, *(options.pop(name, value) for name, value in usual.items()))
        options["constraints"] = [*bodies, *options.get("constraints", ())]
        plans = excite_several(robot, motions, **options)
    elif given:
        options.pop("weights", None)
        # With the criterion and the rate that motions have when no log is given.
        as_usual: dict[str, Any] = {"criterion": "cond", "rate": 100.0} | options
        plans, notes = (excite_next(robot, given_by(robot, given, terms), **as_usual),), []
    else:
        plans, notes = (excite(robot, **options),), []
    notes += dict.fromkeys(note for plan in plans for note in plan.notes)
    if not robot.has_inertia:
        notes.append("The robot's file states no inertias: torques are unknown, and their limits were not kept.")
    kept = settings if settings is not None else {k: v for k, v in options.items() if isinstance(v, (str, int, float))}
    return Designed(robot, plans, sigma, {**kept, "bound_terms": terms}, tuple(notes), tuple(targets))


def expected_noise(robot: Robot, noise: float | Sequence[float] | None = None) -> Array:
    """Of torque, N m (N), per joint of `robot`: `noise` as given, or what good drives have."""
    if noise is not None:
        given = np.asarray(noise, dtype=float)
        if given.shape not in ((), (robot.dof,)) or not np.all((given >= 0.0) & (given <= LARGEST_NUMBER)):
            raise ExcitationError(f"noise must be a number from 0 on, or one per joint ({robot.dof}), in N m (N).")
        return np.array(np.broadcast_to(given, (robot.dof,)))
    effort = np.array([j.effort for j in robot.joints])
    return np.where(np.isfinite(effort) & (effort > 0.0), _NOISE * effort, _NOISE_WITHOUT)


def _plan_files(plan: Plan) -> dict[tuple[str, str], str]:
    rows = ([x if isinstance(x, str) else f"{x:.10g}" for x in row] for row in plan.csv_rows())
    message = plan.to_ros()
    return {
        ("trajectory", "json"): plan.to_json(),
        ("trajectory", "csv"): csv_text(rows),
        **({} if plan.fitness is None else {("fitness", "csv"): plan.fitness.csv()}),
        ("joint_trajectory", "json"): json.dumps(message) + "\n",
        ("joint_trajectory", "yaml"): _yaml(message),
    }


def _yaml(message: dict[str, Any]) -> str:
    """The message as YAML with one line per field of a point, as `ros2 topic pub` reads it."""
    import yaml

    named = {"joint_names": message["joint_names"]}
    head = yaml.safe_dump(named, default_flow_style=None, allow_unicode=True, width=math.inf)
    lines = [head.rstrip("\n"), "points:"]
    for point in message["points"]:
        first = "- "
        for name in ("positions", "velocities", "accelerations"):
            lines.append(f"{first}{name}: [{', '.join(_number(x) for x in point[name])}]")
            first = "  "
        at = point["time_from_start"]
        lines.append(f"  time_from_start: {{sec: {at['sec']}, nanosec: {at['nanosec']}}}")
    return "\n".join(lines) + "\n"


def _number(x: float) -> str:
    """Always with a point: YAML 1.1 takes 1e-05 for a word."""
    text = f"{x:.10g}"
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def _errors(grams: Sequence[Sequence[Array]], sigma: Array) -> Array:
    information = np.sum([g / s**2 for one in grams for g, s in zip(one, sigma, strict=False)], axis=0)
    return np.asarray(np.sqrt(np.abs(np.diag(np.linalg.inv(information)))))


@dataclass(frozen=True, eq=False)
class Read:
    """A run of `steelyard excite`, as a rehearsal needs it."""

    trajectories: tuple[Trajectory, ...]
    limits: Limits
    terms: tuple[str, ...]  # as they were typed


def read_designed(folder: str | Path, robot: Robot) -> Read:
    """The motions of a run `folder`; they must be those of `robot`."""
    place = Path(folder)
    files = [place / "trajectory.json", *sorted(place.glob("trajectory-*.json"))]
    read = [read_json(path, SteelyardError, "give a run of `steelyard excite`", exact=True) for path in files]
    plans = [plan.table(("trajectory", "joints", "limits"), others=True) for plan in read]
    result = read_json(place / "result.json", SteelyardError, "give a run of `steelyard excite`")
    settings = result.table(("settings",), others=True)["settings"].table((), ("terms",), others=True)
    names = plans[0]["joints"].texts()
    if tuple(names) != robot.joint_names:
        raise SteelyardError(
            f"{place} was designed for joints {', '.join(names)}; "
            f"robot '{robot.name}' has {', '.join(robot.joint_names)}; name those of the motion (--joints)."
        )
    motions = tuple(Trajectory.from_field(plan["trajectory"]) for plan in plans)
    if any(motion.joints != robot.dof for motion in motions):
        read[0].fail(f"its motions are not of {robot.dof} joints.")
    given = plans[0]["limits"].table(tuple(f.name for f in fields(Limits)))
    # JSON holds no infinity; nothing there means none.
    tables = {k: x.array(robot.dof, missing=-np.inf if k == "lower" else np.inf) for k, x in given.items()}
    return Read(motions, Limits(**tables), tuple(settings["terms"].texts()) if "terms" in settings else ())
