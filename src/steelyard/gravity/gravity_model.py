"""`GravityModel`: the gravity torque of a robot from poses at rest, and its verdict from left-out poses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.gravity.columns import GravityColumns, random_postures
from steelyard.gravity.friction_at_rest import FrictionAtRest
from steelyard.ground.arrays import Array
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns, by_columns
from steelyard.ground.numbers import number, percent
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation, file_name
from steelyard.ground.short_repr import short_repr
from steelyard.ground.student import quantile
from steelyard.robot.robot import Robot
from steelyard.signals.held_poses import HeldPoses

# Number of postures for the band of the torque.
_POSTURES = 400
# A base parameter is open if the poses reduce its prior variance by less than half.
_OPEN = 0.5
# Standard deviations below this [N m or N] are rounding.
_LEAST = 1e-12
# A joint carries gravity if the model explains more than half of the variance of its torque.
_CARRIES = 0.5


@short_repr
@dataclass(frozen=True, eq=False)
class GravityScore:
    """Errors of the gravity torque at poses outside of the fit.

    Attributes:
        rms: Root mean square error of gravity and offset of each joint [N m or N].
        rms_with_friction: The same with the friction against the last motion, where a joint has it.
        std: Standard deviation of the measured torque of each joint [N m or N].
        poses: Number of poses.
    """

    rms: Array
    rms_with_friction: Array
    std: Array
    poses: int

    @classmethod
    def of(cls, errors: Array, friction: Array, tau: Array) -> GravityScore:
        """Compute the score of torques, shape (poses, joints).

        Args:
            errors: Measured torque minus gravity and offset [N m or N].
            friction: Friction against the last motion [N m or N].
            tau: Measured torque [N m or N].
        """
        alone, both = (np.sqrt(np.mean(x**2, axis=0)) for x in (errors, errors - friction))
        return cls(alone, both, tau.std(axis=0), len(tau))

    @property
    def percent(self) -> Array:
        """The error as a percentage of the standard deviation."""
        return np.asarray(100.0 * self.rms / np.maximum(self.std, _LEAST))

    @property
    def explained(self) -> Array:
        """Share of the variance of the torque that the model explains, per joint."""
        return np.asarray(1.0 - (self.rms / np.maximum(self.std, _LEAST)) ** 2)


@dataclass(frozen=True, eq=False, repr=False)
class GravityModel(OutcomeWithPage, DisplayMixin):
    """Gravity torque of a robot, identified from poses at rest.

    Attributes:
        model: Robot with masses, first moments and terms; its inertia tensors are zero.
        columns: Columns at rest, and the base parameters.
        poses: Poses of the fit.
        beta: Base parameters of the fit to the data alone.
        covariance: Covariance of `beta`.
        degrees: Degrees of freedom of the t interval.
        friction: Dry friction of each joint at rest.
        prior: Information about the base parameters before the data.
        scores: Errors at left-out poses, and at those for validation.
        errors: Errors at each left-out pose [N m or N], shape (poses, joints).
        border: Links whose mass is zero, or whose centre of mass is at the end of their reach.
        outliers: Poses rejected as outliers: number of the log and row, both from 1.
    """

    model: Model
    columns: GravityColumns
    poses: HeldPoses
    beta: Array
    covariance: Array
    degrees: float
    friction: tuple[FrictionAtRest, ...]
    prior: Array
    scores: Mapping[str, GravityScore]
    errors: Array
    border: tuple[str, ...] = ()
    outliers: tuple[tuple[int, int], ...] = ()

    @property
    def robot(self) -> Robot:
        return self.model.robot

    @property
    def standard_errors(self) -> Array:
        """Standard errors of the base parameters."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @cached_property
    def half_widths(self) -> Array:
        """Half the widths of the 95 % intervals of the base parameters."""
        return np.asarray(self._factor * self.standard_errors)

    @property
    def _factor(self) -> float:
        return quantile(0.95, int(self.degrees))

    @cached_property
    def open(self) -> tuple[bool, ...]:
        """Whether each base parameter is open: not determined by the poses."""
        before = np.diag(np.linalg.inv(self.prior))
        return tuple(bool(x) for x in np.diag(self.covariance) > _OPEN * before)

    @cached_property
    def carries(self) -> tuple[bool, ...]:
        """Whether each joint carries gravity, by the score of left-out poses."""
        return tuple(bool(x) for x in self.scores["left-out poses"].explained > _CARRIES)

    def torque(self, q: ArrayLike) -> Array:
        """Compute the torque that holds the robot at postures `q`: gravity and offsets, shape (poses, joints)."""
        return self.model.gravity_torque(q)

    def half_band(self, q: ArrayLike) -> Array:
        """Compute half the width of the 95 % interval of the torque without friction at postures `q` [N m or N]."""
        A = self.columns.base_rows(q)
        return np.asarray(self._factor * np.sqrt(np.maximum(np.sum(A @ self.covariance * A, axis=2), 0.0)))

    @cached_property
    def workspace_band(self) -> Array:
        """The 95 % quantile of each joint's half band over random postures within the limits [N m or N]."""
        q = random_postures(self.robot, _POSTURES, np.random.default_rng(0))
        return np.asarray(np.quantile(self.half_band(q), 0.95, axis=0))

    def headline(self) -> Headline:

        return gravity_verdict(self)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Joints ("joints") and base parameters ("parameters")."""
        return {"joints": self._joint_columns, "parameters": self._parameter_columns}

    def _joint_columns(self) -> NamedColumns:
        score = self.scores["left-out poses"]
        rows = [
            [j.name, j.effort_unit, float(score.std[k]), float(score.rms[k]), float(score.percent[k]),
             self.friction[k].kind, self.friction[k].half_width, float(self.workspace_band[k]), self.carries[k]]
            for k, j in enumerate(self.robot.joints)
        ]  # fmt: skip
        heads = ("joint", "unit", "torque_std", "left_out_error", "percent", "friction", "friction_half_width",
                 "workspace_half_band", "carries_gravity")  # fmt: skip
        return by_columns(heads, rows)

    def _parameter_columns(self) -> NamedColumns:
        return {
            "name": self.columns.base_names,
            "unit": self.columns.units,
            "value": self.beta,
            "half_width": self.half_widths,
            "open": self.open,
        }

    def to_json(self) -> dict[str, Any]:
        joints, parameters = self._joint_columns(), self._parameter_columns()
        glance = self.headline()
        return {
            "robot": self.robot.name,
            "verdict": {"kind": glance.kind, "sentence": glance.sentence, "points": list(glance.points)},
            "poses": len(self.poses),
            "odd_poses": [{"log": log, "row": row} for log, row in self.outliers],
            "joints": _by_rows(joints),
            "base_parameters": _by_rows(parameters),
            "links": [
                {"link": n, "mass": float(b[0]), "first_moment": b[1:4].tolist()}
                for n, b in zip(self.robot.link_names, self._blocks, strict=True)
            ],
            "links_at_border": list(self.border),
            "invisible": list(self.columns.invisible),
            "scores": {
                name: {
                    "poses": s.poses,
                    "rms": s.rms.tolist(),
                    "rms_with_friction": s.rms_with_friction.tolist(),
                    "percent": s.percent.tolist(),
                }
                for name, s in self.scores.items()
            },
        }

    @property
    def _blocks(self) -> Array:
        return np.asarray(self.model.theta[: self.robot.inertial_count]).reshape(-1, 10)

    def files(self) -> dict[str, Content]:
        from steelyard.gravity.gravity_files import gravity_files

        return gravity_files(self, file_name(self.robot.name))

    def view(self) -> Presentation:
        from steelyard.gravity.page import gravity_page, tell_gravity

        return gravity_page, tell_gravity


def _by_rows(columns: NamedColumns) -> list[dict[str, Any]]:
    plain = {name: np.asarray(x).tolist() for name, x in columns.items()}
    return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]


# With a larger error [% of the torque's standard deviation], a user who moves the arm by hand feels that the
# compensation is wrong.
_ROUGH = 25.0


def gravity_verdict(gravity: GravityModel) -> Headline:
    """Judge a `gravity` model by its errors at left-out poses."""
    score = gravity.scores["left-out poses"]
    joints, used = gravity.robot.joints, gravity.robot.torque_used
    carrying = [k for k, c in enumerate(gravity.carries) if c and used[k]]
    points = []
    if not carrying:
        kind: Any = "bad"
        sentence = "The model explains the torque of no joint at left-out poses; do not use it."
        points.append("Check signs, units and the order of the joints (`steelyard check`).")
    else:
        worst = max(carrying, key=lambda k: score.percent[k])
        shares = ", ".join(percent(float(score.percent[k])) for k in carrying)
        names = ", ".join(joints[k].name for k in carrying)
        kind = "warning" if score.percent[worst] > _ROUGH or any(gravity.open) else "good"
        sentence = f"At left-out poses the torque error is {shares} of the torque's std ({names})."
    rest = [joints[k].name for k in range(len(joints)) if k not in carrying and used[k]]
    if rest and carrying:
        points.append(
            f"Gravity explains less than half of the torque of {', '.join(rest)}: friction and offset remain."
        )
    if any(gravity.open):
        hidden = [n for n, o in zip(gravity.columns.base_names, gravity.open, strict=True) if o]
        points.append(f"The poses leave open: {'; '.join(hidden)}. Hold further poses (next_poses.csv).")
    for k in carrying:
        f = gravity.friction[k]
        if f.kind != "noise":
            how = "depends on the side of approach" if f.kind == "side" else "has any value in a tube"
            points.append(
                f"{joints[k].name}: dry friction of ± {number(abs(f.limit), 2)} {joints[k].effort_unit} {how}."
            )
    if gravity.outliers:
        places = ", ".join(f"row {row}" + (f" of log {log}" if log > 1 else "") for log, row in gravity.outliers[:8])
        points.append(
            f"Left out: {places}, whose torques fit no friction; was the robot touched, or is a number wrong?"
        )
    if gravity.border:
        points.append(
            f"At a bound (zero mass, or centre of mass at the end of its reach): {', '.join(gravity.border)}."
        )
    points.append(
        "Poses at rest show no inertia and no friction in motion; log a motion for these (`steelyard identify`)."
    )
    if not np.any(gravity.poses.side):
        points.append("Approach each pose from both sides to separate friction from gravity.")
    return Headline(kind, sentence, tuple(points))
