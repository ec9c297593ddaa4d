"""`Designed`: motions that were designed, with all that a person wants to know before playing them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.excitation.constraints import Limits
from steelyard.excitation.evolution.via_points import with_jerk
from steelyard.excitation.interpolator import MotionLimits, Program, ProgramError, interpolate
from steelyard.excitation.plan import Plan
from steelyard.excitation.requirements import random_motion
from steelyard.excitation.trajectories import Fourier, Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.files import plain
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.robot import Robot

FORMAT = "steelyard-excitation-1"
# Via-points per second of a smooth motion, for controllers that take nothing else.
_VIA_POINTS_PER_SECOND = 2.0
_FLY = 0.5


@dataclass(frozen=True, eq=False)
class Designed:
    """Plans, the robot they are for, the settings they came from, and the torque noise (N m, N) that is expected."""

    robot: Robot
    plans: tuple[Plan, ...]
    noise: Array
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        """The last one, whose value counts all."""
        return self.plans[-1]

    @cached_property
    def gram(self) -> Array:
        """WᵀW of all motions together."""
        return np.asarray(np.sum([p.gram for p in self.plans], axis=0))

    @property
    def condition_number(self) -> float:
        return _cond(self.gram)

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
        """Condition number and expected errors of as many random motions within the same joint limits."""
        plan = self.plan
        base = base_parameters(self.robot, self.settings["bound_terms"])
        families = (Fourier(5, plan.trajectory.duration),) * self.robot.dof
        columns = np.array([base.independent[base.names.index(n)] for n in plan.columns])
        each = []
        for k in range(len(self.plans)):
            motion = random_motion(families, plan.limits, plan.seed + k)
            Y = base.structure.dynamics.torque_regressor(*motion.sample(motion.times(plan.rate)))
            rows = [Y[:, self.robot.joint_index(n)][:, columns] for n in self._torque_equations]
            each.append(tuple(W.T @ W for W in rows))
        total = np.sum([g for grams in each for g in grams], axis=0)
        try:
            errors = _errors(each, self._sigma)
        except np.linalg.LinAlgError:
            errors = np.full(len(plan.columns), np.inf)
        return _cond(total), errors

    @property
    def _torque_equations(self) -> tuple[str, ...]:
        names = self.plan.equations
        return names if all(n in self.robot.joint_names for n in names) else self.robot.joint_names

    def torque(self, plan: Plan) -> tuple[Array, Array] | None:
        """Times and torques of the nominal model, where the description states one."""
        if not self.robot.has_inertia:
            return None
        t = plan.trajectory.times(max(plan.rate, 100.0))
        return t, Model.nominal(self.robot).torque(*plan.trajectory.sample(t))

    # ---------------------------------------------------------------- via-points

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
        return program, {**said, "condition_number": _cond(W.T @ W)}

    # ---------------------------------------------------------------- for machines

    def to_json(self) -> dict[str, Any]:
        plan = self.plan
        careless, careless_errors = self.careless
        settings = {k: v for k, v in self.settings.items() if k != "bound_terms"}
        columns = zip(plan.columns, plan.units, self.standard_errors, careless_errors, strict=True)
        return plain(  # type: ignore[no-any-return]
            {
                "format": FORMAT,
                "steelyard": version("steelyard"),
                "robot": self.robot.name,
                "fingerprint": self.robot.fingerprint,
                "settings": settings,
                "motions": len(self.plans),
                "condition_number": self.condition_number,
                "condition_of": "columns as they stand in the structural base, unscaled, rows unweighted, all motions",
                "violation": max(p.violation for p in self.plans),
                "criterion": {
                    "name": plan.criterion, "of": plan.label, "value": plan.value, "start": plan.start_value,
                    "history": plan.history, "evaluations": sum(p.evaluations for p in self.plans),
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
                "notes": list(self.notes),
            }
        )  # fmt: skip

    def _numbers(self, plan: Plan) -> dict[str, Any]:
        found = self.torque(plan)
        peaks = [plan.trajectory.peak_bounds(k) for k in (1, 2)]
        low, high = plan.trajectory.extents(0)
        joints = []
        for k, joint in enumerate(self.robot.joints):
            joints.append(
                {
                    "joint": joint.name,
                    "lowest": float(low[k]),
                    "highest": float(high[k]),
                    "velocity": float(peaks[0][k]),
                    "acceleration": float(peaks[1][k]),
                    "torque": None if found is None else float(np.max(np.abs(found[1][:, k]))),
                    "torque_limit": float(plan.limits.tau[k]),
                }
            )
        return {"duration": plan.trajectory.duration, "margins": plan.margins, "joints": joints}


def _cond(gram: Array) -> float:
    values = np.linalg.eigvalsh(gram)
    return float(np.sqrt(values[-1] / values[0])) if values[0] > 0.0 else float("inf")


def _errors(grams: Sequence[Sequence[Array]], sigma: Array) -> Array:
    information = np.sum([g / s**2 for one in grams for g, s in zip(one, sigma, strict=False)], axis=0)
    return np.asarray(np.sqrt(np.abs(np.diag(np.linalg.inv(information)))))


@dataclass(frozen=True, eq=False)
class Read:
    """A run of `steelyard excite`, as a rehearsal needs it."""

    trajectories: tuple[Trajectory, ...]
    limits: Limits
    settings: dict[str, Any]


def read_designed(folder: str | Path, robot: Robot) -> Read:
    """The motions of a run folder; they must be this robot's."""
    place = Path(folder)
    try:
        plans = [json.loads((place / "trajectory.json").read_text("utf-8"))]
        plans += [json.loads(p.read_text("utf-8")) for p in sorted(place.glob("trajectory-*.json"))]
        result = json.loads((place / "result.json").read_text("utf-8"))
        settings = result["settings"]
        tables = {k: np.array(_endless(k, v)) for k, v in plans[0]["limits"].items()}
        motions = tuple(Trajectory.from_dict(p["trajectory"]) for p in plans)
        names = plans[0]["joints"]
    except OSError:
        raise SteelyardError(
            f"{place} is no run of `steelyard excite`: it lacks trajectory.json or result.json."
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise SteelyardError(f"{place} cannot be read as a run of `steelyard excite` ({error!r}).") from None
    if tuple(names) != robot.joint_names:
        raise SteelyardError(
            f"{place} was designed for joints {', '.join(names)}; "
            f"robot '{robot.name}' has {', '.join(robot.joint_names)}; name those of the motion (--joints)."
        )
    return Read(motions, Limits(**tables), settings)


def _endless(name: str, values: list[float | None]) -> list[float]:
    """JSON holds no infinity; nothing there means none."""
    return [(-np.inf if name == "lower" else np.inf) if v is None else float(v) for v in values]
