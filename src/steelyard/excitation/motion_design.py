"""`MotionDesign`: designed motions, and the facts that a user needs before playing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExcitationError, SteelyardError
from steelyard.excitation._motion_rows import grams_along
from steelyard.excitation._plan_files import plan_files
from steelyard.excitation.constraints import Limits
from steelyard.excitation.constraints._space import options_in_space
from steelyard.excitation.controller_formats.target import MOTION_TARGETS
from steelyard.excitation.criteria import condition_number
from steelyard.excitation.evolution.via_points import with_jerk
from steelyard.excitation.excite import excite
from steelyard.excitation.excite_options import ExciteOptions
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
from steelyard.excitation.play_files import WHY_NO_TORQUE, Play
from steelyard.excitation.search import Progress
from steelyard.excitation.search_problem import comparison_motion
from steelyard.excitation.several import earlier_logs, excite_next, excite_several
from steelyard.excitation.trajectories import Fourier, Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns
from steelyard.ground.field import LARGEST_NUMBER
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation, json_text
from steelyard.ground.reasons import explained
from steelyard.ground.untrusted_files import read_json
from steelyard.ground.verb_options import with_changes, with_signature
from steelyard.parameters.terms import as_terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.as_logs import LogsLike, as_logs
from steelyard.signals.read import AnyMapping

_FORMAT = "steelyard-excitation-1"
# Via-points per second of a smooth motion, for controllers that take only via-points.
_VIA_POINTS_PER_SECOND = 2.0
_FLY = 0.5
# Torque noise of good drives: a share of the effort limit, or N m without a limit.
_NOISE, _NOISE_WITHOUT = 0.005, 0.1

_WHY_NULL = {
    "settings/*": "The option was not used.",
    "condition_number": "It is infinite: the motions do not excite all base parameters.",
    "criterion/fitness/*/mean": NO_MEAN,
    "plans/*/joints/*/torque": "The description gives no inertias, so torques are unknown.",
    "plans/*/joints/*/torque_limit": "The description gives no limit.",
    "plans/*/margins/*": "There is no such limit.",
    **{f"play/{where}": why for where, why in WHY_NO_TORQUE.items()},
    "programs/*": "No via-point program within the limits exists.",
}


@dataclass(frozen=True, eq=False, repr=False)
class MotionDesign(OutcomeWithPage, DisplayMixin):
    """Designed motions.

    Attributes:
        robot: The robot.
        plans: The motions.
        noise: Expected torque noise per joint [N m, N].
        settings: Settings of the design.
        notes: Notes for the user.
        targets: Names in `MOTION_TARGETS` to write files for, beside `trajectory.csv` and the ROS message.
    """

    robot: Robot
    plans: tuple[Plan, ...]
    noise: Array
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()

    targets: tuple[str, ...] = ("csv",)

    @cached_property
    def play(self) -> Play:
        """Files of the motions for controllers, slow speeds first."""
        motions = [p.trajectory for p in self.plans]
        return Play(self.robot, motions, self.targets, self.plan.rate, self.plan.limits.tau)

    @property
    def plan(self) -> Plan:
        """The last plan, whose value counts all motions."""
        return self.plans[-1]

    @property
    def unchecked_limits(self) -> tuple[str, ...]:
        """Sentences about limits that were not checked."""
        notes = tuple(note for note in self.notes if "not checked" in note or "were ignored" in note)
        checked = any(word in name for name in self.plan.margins for word in ("apart", "distance", "collision"))
        return notes if notes or checked else ("Collisions were not checked (--collision).",)

    @property
    def verdict(self) -> tuple[str, str]:
        """Grade of the motion, "good" or "warning", and a sentence."""
        if self.unchecked_limits:
            return "warning", ("The motion keeps the checked limits; view the arm in motion before you play it.")
        return "good", "The motion keeps all limits at every instant."

    def headline(self) -> Headline:
        kind, sentence = self.verdict
        what = "a motion" if len(self.plans) == 1 else f"{len(self.plans)} motions"
        return Headline(
            "good" if kind == "good" else "warning", f"{what} for {self.robot.name}. {sentence}", self.notes
        )

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
        """Expected standard error of every column after playing each motion once, at the expected noise."""
        return _errors([p.grams for p in self.plans], self._sigma)

    @cached_property
    def _sigma(self) -> Array:
        names = self.plan.equations
        return np.array([self.noise[self.robot.joint_index(n)] if n in self.robot.joint_names else 1.0 for n in names])

    @cached_property
    def random_motion(self) -> tuple[float, Array]:
        """Condition number and expected errors of as many random motions within the same limits, for comparison."""
        plan = self.plan
        base = base_parameters(self.robot, self.settings["bound_terms"])
        families = (Fourier(5, plan.trajectory.duration),) * self.robot.dof
        columns = np.array([base.independent[base.names.index(n)] for n in plan.columns])
        joints, grams_of = [self.robot.joint_index(n) for n in self._torque_equations], []
        for k in range(len(self.plans)):
            motion = comparison_motion(families, plan.limits, plan.seed + k)
            grams_of.append(grams_along(base.structure.dynamics, columns, motion, plan.rate, joints, self.settings))
        total = np.sum([g for grams in grams_of for g in grams], axis=0)
        try:
            errors = _errors(grams_of, self._sigma)
        except np.linalg.LinAlgError:
            errors = np.full(len(plan.columns), np.inf)
        return condition_number(total), errors

    @property
    def _torque_equations(self) -> tuple[str, ...]:
        names = self.plan.equations
        return names if all(n in self.robot.joint_names for n in names) else self.robot.joint_names

    def torque(self, plan: Plan) -> tuple[Array, Array] | None:
        """Return times [s] and nominal torques [N m, N] of a `plan`; None if the description has no inertias."""
        if not self.robot.has_inertia:
            return None
        t = plan.trajectory.times(max(plan.rate, 100.0))
        return t, Model.nominal(self.robot).torque(*plan.trajectory.sample(t))

    @cached_property
    def programs(self) -> tuple[tuple[Program, dict[str, Any]] | None, ...]:
        """A via-point program with its facts for every plan: its own, or one through postures of the smooth motion."""
        return tuple(self._program(plan) for plan in self.plans)

    def _program(self, plan: Plan) -> tuple[Program, dict[str, Any]] | None:
        if plan.program is not None:
            facts = {"of": "the motion itself", "duration": plan.trajectory.duration}
            return plan.program, {**facts, "condition_number": plan.condition_number}
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
        facts = {"of": f"{count} postures of the smooth motion; torques are not checked", "duration": motion.duration}
        return program, {**facts, "condition_number": condition_number(W.T @ W)}

    def to_json(self) -> dict[str, Any]:
        plan = self.plan
        random_number, random_errors = self.random_motion
        settings = {k: v for k, v in self.settings.items() if k != "bound_terms"}
        columns = zip(plan.columns, plan.units, self.standard_errors, random_errors, strict=True)
        return explained(
            {
                "format": _FORMAT,
                "steelyard": version("steelyard"),
                "robot": self.robot.name,
                "fingerprint": self.robot.fingerprint,
                "settings": settings,
                "motions": len(self.plans),
                "condition_number": self.condition_number,
                "condition_of": "columns of the structural base, unscaled, rows unweighted, all motions",
                "violation": max(p.violation for p in self.plans),
                "verdict": {
                    "grade": self.verdict[0], "sentence": self.verdict[1], "reasons": list(self.unchecked_limits),
                },
                "criterion": {
                    "name": plan.criterion, "of": plan.label, "value": plan.value, "start": plan.start_value,
                    "history": plan.history, "evaluations": sum(p.evaluations for p in self.plans),
                    "stopped": any(p.stopped for p in self.plans),
                    **({} if plan.fitness is None else {"fitness": plan.fitness.to_json()}),
                },
                "random_motion": {"condition_number": random_number},
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
        """Return tables for controllers, ROS messages and via-point programs; a second motion's files end in -2."""
        out: dict[str, Content] = self.play.files()
        for k, (plan, program) in enumerate(zip(self.plans, self.programs, strict=True)):
            end = "" if k == 0 else f"-{k + 1}"
            out |= {f"{name}{end}.{kind}": text for (name, kind), text in plan_files(plan).items()}
            if program is not None:
                out[f"program{end}.txt"] = program_text(program[0], self.robot)
                out[f"program{end}.json"] = json_text(program_to_dict(program[0]))
        return out

    def view(self) -> Presentation:
        from steelyard.excitation.page import design_report, print_design

        return design_report, print_design

    def _numbers(self, plan: Plan) -> dict[str, Any]:
        nominal = self.torque(plan)
        peaks = [plan.trajectory.peak_bounds(k) for k in (1, 2)]
        low, high = plan.trajectory.extents(0)
        torque = [None] * self.robot.dof if nominal is None else np.max(np.abs(nominal[1]), axis=0).tolist()
        keys = ("joint", "lowest", "highest", "velocity", "acceleration", "torque", "torque_limit")
        each = (*(x.tolist() for x in (low, high, *peaks)), torque, plan.limits.tau.tolist())
        joints = [dict(zip(keys, row, strict=True)) for row in zip(self.robot.joint_names, *each, strict=True)]
        return {"duration": plan.trajectory.duration, "margins": plan.margins, "joints": joints}


@with_signature(ExciteOptions)
def design_motions(
    robot: RobotLike,
    options: ExciteOptions | None = None,
    *,
    motions: int = 1,
    given: LogsLike = (),
    mapping: AnyMapping = None,
    noise: float | Sequence[float] | None = None,
    settings: dict[str, Any] | None = None,
    targets: Sequence[str] = ("csv",),
    progress: Callable[[Progress], Any] | None = None,
    checkpoint: str | Path | None = None,
    **changes: Any,
) -> MotionDesign:
    """Design one or several motions with expected errors and checks, as `steelyard excite` does.

    Args:
        robot: The robot, as `load_robot` takes it.
        options: Options of the design; None: the defaults.
        motions: Number of complementary motions (by gradients alone, without earlier logs).
        given: Earlier logs of this robot, as paths, `Log`s, frames or dicts: design for the parameters that they leave
            uncertain.
        mapping: Meaning of the columns of these logs, as in `read_log`.
        noise: Torque noise for the expected errors [N m, N], one number or one per joint (default: good drives).
        settings: Settings stored with the result (default: the options).
        targets: Names in `MOTION_TARGETS` to write files for (ur, ros2, franka, kuka, abb, fanuc, csv).
        progress, checkpoint: As in `excite`.
        **changes: Fields of `ExciteOptions` that replace those of `options`.
    """
    robot = as_robot(robot)
    for name in targets:  # before a search of minutes
        MOTION_TARGETS[name].check(name, robot)
    o, given = with_changes(options or ExciteOptions(), changes, "design_motions"), as_logs(given, robot, mapping)
    if motions > 1 and (o.optimiser != "gradient" or given or checkpoint is not None):
        raise ExcitationError(
            "Several motions at once need the optimiser gradient and exclude given logs and a checkpoint."
        )
    if given and o.weights is not None:
        raise ExcitationError("Given logs determine the weights; leave the weights out.")
    terms, sigma = as_terms(robot, o.terms), expected_noise(robot, noise)
    o, notes = replace(o, terms=terms), list[str]()
    if motions > 1:  # Build the collision scene once for all motions.
        o, notes = options_in_space(robot, o)
        plans = excite_several(robot, motions, o, progress=progress)
    elif given:
        known = earlier_logs(robot, given, terms)
        plans = (excite_next(robot, known, o, progress=progress, checkpoint=checkpoint),)
    else:
        plans = (excite(robot, o, progress=progress, checkpoint=checkpoint),)
    notes += dict.fromkeys(note for plan in plans for note in plan.notes)
    if not robot.has_inertia:
        notes.append("The robot's file states no inertias: torques are unknown, and their limits were ignored.")
    if settings is None:
        usual = ExciteOptions()
        stated = {n: v for n, v in vars(o).items() if n in changes or v is not getattr(usual, n)}
        settings = {n: v for n, v in stated.items() if isinstance(v, (str, int, float))}
    return MotionDesign(robot, plans, sigma, {**settings, "bound_terms": terms}, tuple(notes), tuple(targets))


def expected_noise(robot: Robot, noise: float | Sequence[float] | None = None) -> Array:
    """Return the expected torque noise per joint [N m, N].

    Args:
        robot: The robot.
        noise: One number or one per joint [N m, N]; None: typical noise of good drives.
    """
    if noise is not None:
        sigma = np.asarray(noise, dtype=float)
        if sigma.shape not in ((), (robot.dof,)) or not np.all((sigma >= 0.0) & (sigma <= LARGEST_NUMBER)):
            raise ExcitationError(f"noise must be a number ≥ 0, or one per joint ({robot.dof}), in N m (N).")
        return np.array(np.broadcast_to(sigma, (robot.dof,)))
    effort = np.array([j.effort for j in robot.joints])
    return np.where(np.isfinite(effort) & (effort > 0.0), _NOISE * effort, _NOISE_WITHOUT)


def _errors(grams: Sequence[Sequence[Array]], sigma: Array) -> Array:
    information = np.sum([g / s**2 for one in grams for g, s in zip(one, sigma, strict=False)], axis=0)
    return np.asarray(np.sqrt(np.abs(np.diag(np.linalg.inv(information)))))


@dataclass(frozen=True, eq=False)
class DesignRun:
    """The contents of a run of `steelyard excite` that a rehearsal needs.

    Attributes:
        trajectories: The motions.
        limits: Limits of the joints.
        terms: Joint terms, as the user typed them.
    """

    trajectories: tuple[Trajectory, ...]
    limits: Limits
    terms: tuple[str, ...]


def read_design(folder: str | Path, robot: Robot) -> DesignRun:
    """Read the motions of a run.

    Args:
        folder: Folder of the run.
        robot: The robot of the motions.
    """
    path = Path(folder)
    files = [path / "trajectory.json", *sorted(path.glob("trajectory-*.json"))]
    documents = [read_json(file, SteelyardError, "give a run of `steelyard excite`", exact=True) for file in files]
    plans = [plan.table(("trajectory", "joints", "limits"), others=True) for plan in documents]
    result = read_json(path / "result.json", SteelyardError, "give a run of `steelyard excite`")
    settings = result.table(("settings",), others=True)["settings"].table((), ("terms",), others=True)
    names = plans[0]["joints"].texts()
    if tuple(names) != robot.joint_names:
        raise SteelyardError(
            f"{path} was designed for joints {', '.join(names)}; "
            f"robot '{robot.name}' has {', '.join(robot.joint_names)}; name the joints of the motion (--joints)."
        )
    motions = tuple(Trajectory.from_field(plan["trajectory"]) for plan in plans)
    if any(motion.joints != robot.dof for motion in motions):
        documents[0].fail(f"its motions do not have {robot.dof} joints.")
    limits = plans[0]["limits"].table(tuple(f.name for f in fields(Limits)))
    # JSON has no infinity: null means no limit.
    tables = {k: x.array(robot.dof, missing=-np.inf if k == "lower" else np.inf) for k, x in limits.items()}
    return DesignRun(motions, Limits(**tables), tuple(settings["terms"].texts()) if "terms" in settings else ())
