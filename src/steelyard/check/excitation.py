"""Excitation of a log: how well its motion shows each joint and each base parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from steelyard.check._evidence import Evidence, Fit, memory
from steelyard.ground.arrays import Array
from steelyard.ground.display import NamedColumns, by_columns
from steelyard.ground.short_repr import short_repr

Shown = Literal["shown", "small", "not shown"]
# A parameter is shown if its standard error is below this part of it …
RELATIVE = 0.3
# … and small if its value plus two standard errors changes no torque by more than this part of its deviation.
EFFECT = 0.05
# Singular values below this part of the largest (columns of unit length) are rounding.
DEPENDENT = 1e-8
# Below this part of its top speed a joint counts as standing.
STANDING = 0.02


@short_repr
@dataclass(frozen=True)
class JointMotion:
    """Motion of a joint in SI units (rad or m); `standing` is a share of the time.

    `range_share` is the covered part of the range between its limits, None without limits. `shown`, `small` and
    `hidden` count the base parameters of its link and drive.
    """

    why_null: ClassVar = {"range_share": "The joint has no limits."}
    joint: str
    lowest: float
    highest: float
    range_share: float | None
    speed: float
    acceleration: float
    standing: float
    shown: int
    small: int
    hidden: tuple[str, ...]


@short_repr
@dataclass(frozen=True)
class BaseParameter:
    """A base parameter as the motion shows it; the relative error is None if it is not shown."""

    why_null: ClassVar = {
        "standard_error": "The motion does not show it.",
        "relative_error": "The motion does not show it, or it is zero.",
    }
    name: str
    joint: str
    value: float
    standard_error: float | None
    relative_error: float | None
    shown: Shown


@short_repr
@dataclass(frozen=True)
class Excitation:
    """Rank `rank` and size `count` of the base columns, and their cond₂, with rows weighted by 1/σ of their joint.

    `condition_number` is that of columns of unit length, `unscaled_condition_number` of unscaled ones; None: infinite.
    `floors` are, by joint, the torque errors of fits to this log on left-out blocks (rms) [N m, N].
    """

    why_null: ClassVar = {
        "condition_number": "It is infinite: the motion does not show all base parameters.",
        "unscaled_condition_number": "It is infinite: the motion does not show all base parameters.",
    }
    rank: int
    count: int
    condition_number: float | None
    unscaled_condition_number: float | None
    joints: tuple[JointMotion, ...]
    parameters: tuple[BaseParameter, ...]
    floors: dict[str, float] = field(default_factory=dict)


def excitation_of(evidence: Evidence, fits: Mapping[int, Fit]) -> Excitation:
    """Fit all joints by weighted least squares and judge each base parameter by its standard error.

    Args:
        evidence: Prepared rows of the log.
        fits: Fit of every joint's torque alone, by joint number; the residuals give the weights.
    """
    weights, blocks = [], []
    for e, joint in enumerate(evidence.joints):
        y = evidence.y[e]
        noise = float(np.std(fits[joint].residual)) * np.sqrt(memory(fits[joint].residual))
        weights.append(1.0 / max(noise, 1e-6 * float(np.std(y)), 1e-12))
        own = np.linalg.qr(np.column_stack([evidence.A[e], y]), mode="r")
        block = np.zeros((len(own), evidence.base.rank + 1))
        block[:, [*evidence.columns[e], -1]] = weights[-1] * own
        blocks.append(block)
    R: Array = np.asarray(np.linalg.qr(np.vstack(blocks), mode="r"))
    W, b = R[:, :-1], R[:, -1]
    lengths = np.linalg.norm(W, axis=0)
    scale = np.where(lengths > 0.0, lengths, 1.0)
    U, s, V = np.linalg.svd(W / scale, full_matrices=False)
    seen_values = s > DEPENDENT * s[0]
    inverse = np.where(seen_values, 1.0 / np.where(seen_values, s, 1.0), 0.0)
    beta = (V.T * inverse) @ (U.T @ b) / scale
    errors = np.sqrt(np.sum((V.T * inverse) ** 2, axis=1)) / scale
    hidden = (np.sum(V[~seen_values] ** 2, axis=0) > 1e-3) | (lengths == 0.0)
    errors = np.where(hidden, np.inf, errors)
    parameters = _parameters(evidence, beta, errors, _effects(evidence))
    plain = np.linalg.svd(W, compute_uv=False)
    full = bool(np.all(seen_values)) and bool(np.all(lengths > 0.0))
    return Excitation(
        rank=int(np.sum(seen_values)) if np.any(lengths > 0.0) else 0,
        count=evidence.base.rank,
        condition_number=float(s[0] / s[-1]) if full else None,
        unscaled_condition_number=float(plain[0] / plain[-1]) if full else None,
        joints=tuple(_motion(evidence, k, parameters) for k in range(evidence.robot.dof)),
        parameters=parameters,
    )


def _effects(evidence: Evidence) -> Array:
    """For each base column, the largest effect of one unit on a joint torque, in its standard deviations."""
    out = np.zeros(evidence.base.rank)
    for e in range(len(evidence.joints)):
        size = max(float(np.std(evidence.y[e])), 1e-12)
        reach = np.sqrt(np.mean(evidence.A[e] ** 2, axis=0)) / size
        out[evidence.columns[e]] = np.maximum(out[evidence.columns[e]], reach)
    return out


def _parameters(evidence: Evidence, beta: Array, errors: Array, effects: Array) -> tuple[BaseParameter, ...]:
    names = _owners(evidence)
    out = []
    for k, name in enumerate(evidence.base.names):
        known = bool(np.isfinite(errors[k]))
        relative = float(errors[k] / abs(beta[k])) if known and beta[k] != 0.0 else None
        shown: Shown = "not shown"
        if relative is not None and relative < RELATIVE:
            shown = "shown"
        elif known and (abs(beta[k]) + 2.0 * errors[k]) * effects[k] < EFFECT:
            shown = "small"
        out.append(BaseParameter(name, names[k], float(beta[k]), float(errors[k]) if known else None, relative, shown))
    return tuple(out)


def _owners(evidence: Evidence) -> list[str]:
    """Assign each base parameter to the joint of its link, or to the joint on which its term acts."""
    robot, links = evidence.robot, evidence.robot.inertial_count
    of_terms = evidence.base.terms.per_parameter(lambda _, c: robot.joints[int(np.flatnonzero(c.weights)[-1])].name)
    return [
        robot.joints[robot.links[k // 10].coordinate].name if k < links else of_terms[k - links]
        for k in evidence.base.independent
    ]


def _motion(evidence: Evidence, k: int, parameters: tuple[BaseParameter, ...]) -> JointMotion:
    joint = evidence.robot.joints[k]
    q, dq, ddq = evidence.q[:, k], np.abs(evidence.dq[:, k]), np.abs(evidence.ddq[:, k])
    room = joint.upper - joint.lower
    top = float(np.quantile(dq, 0.995))
    own = [p for p in parameters if p.joint == joint.name]
    return JointMotion(
        joint=joint.name,
        lowest=float(q.min()),
        highest=float(q.max()),
        range_share=float(np.ptp(q) / room) if np.isfinite(room) and room > 0.0 else None,
        speed=top,
        acceleration=float(np.quantile(ddq, 0.995)),
        standing=float(np.mean(dq <= STANDING * top)),
        shown=sum(p.shown == "shown" for p in own),
        small=sum(p.shown == "small" for p in own),
        hidden=tuple(p.name for p in own if p.shown == "not shown"),
    )


def joint_columns(excitation: Excitation) -> NamedColumns:
    """List the motion of each joint in `excitation` as columns."""
    heads = ("joint", "lowest", "highest", "range_share", "speed", "acceleration", "standing", "shown", "small")
    return by_columns(heads, [[getattr(j, head) for head in heads] for j in excitation.joints])


def parameter_columns(excitation: Excitation) -> NamedColumns:
    """List the base parameters of `excitation` as columns."""
    heads = ("name", "joint", "value", "standard_error", "relative_error", "shown")
    return by_columns(heads, [[getattr(p, head) for head in heads] for p in excitation.parameters])
