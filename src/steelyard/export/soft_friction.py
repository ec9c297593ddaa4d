"""`SoftCoulomb`: dry friction of MuJoCo's constraint solver, and its settings in files.

MuJoCo's friction force opposes the velocity slightly ahead in time, up to `frictionloss` η: with the reference
acceleration −b·u̇ and the regularisation R the force is −(ü + b·u̇)/R, limited to ±η (MuJoCo's documentation,
"Computation", "Constraint model"). By default 1/b is 9.5 ms, and R a ninth of the joint's inverse inertia at zero
positions. A fit with the sign of u̇ assigns a part of this friction to damping; other smoothing causes errors of some
hundredths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, sign
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.parameters.hysteresis import HistoryTerm
from steelyard.parameters.term import Column, MotionSignal, SimpleTerm, Term
from steelyard.parameters.terms import Terms

# MuJoCo's defaults: solreffriction 0.02 s at critical damping, solimpfriction up to 0.95; b = 2/(0.95 · 0.02 s). A step
# updates first the velocity, then the position. So u̇ is half a time step old, and the lead is half a time step shorter.
USUAL_LEAD = 0.5 * 0.95 * 0.02  # s
# R divided by the inverse inertia: (1 − d)/d with the impedance d = 0.9 of a satisfied constraint.
_SOFTNESS = (1.0 - 0.9) / 0.9
# Smallest smoothing speed [rad/s or m/s].
_NARROWEST = 1e-4
# The sharpest setting for MuJoCo's default time step of 2 ms; with longer steps MuJoCo softens it automatically.
SHARP = {"solreffriction": "0.004 1", "solimpfriction": "0.99 0.99 0.001"}


@dataclass(frozen=True)
class _Direction(MotionSignal):
    """The velocity `lead` seconds ahead, divided by `smooth` [rad/s or m/s] and limited to ±1."""

    lead: float
    smooth: float

    def signal(self, u: Array, rigid: Array, period: float | None) -> Array:
        if period is None or len(u) < 3:
            return np.zeros(len(u))
        du = np.gradient(u, period)
        return np.clip((du + self.lead * np.gradient(du, period)) / self.smooth, -1.0, 1.0)

    def steady(self, du: Scalar, load: Scalar) -> Scalar:
        return sign(du)

    def random(self, rng: np.random.Generator, count: int) -> Array:
        return rng.uniform(-1.0, 1.0, count)


@dataclass(frozen=True, kw_only=True)
class SoftCoulomb(HistoryTerm):
    """Dry friction Fc against the velocity `lead` seconds ahead; only for fits."""

    lead: float = USUAL_LEAD
    smooth: float = SMOOTHING_SPEED["revolute"]

    @property
    def history(self) -> tuple[MotionSignal, ...]:
        return (_Direction(self.lead, self.smooth),)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fc", "N m", "N", lower=0.0),)

    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]:
        """Return the direction of the friction force.

        Args:
            u: Position; not used.
            du: Velocity; not used.
            history: Limited velocity ahead, from `_Direction`.
        """
        return (history[0],)

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        return SimpleTerm(friction=values[0], smooth=self.smooth)


def softened(term: Term) -> Term:
    """Convert a Coulomb term to MuJoCo's default settings; any other `term` is returned unchanged."""
    if term.kind != "coulomb":
        return term
    return SoftCoulomb(on=term.on, where=term.where, smooth=term.options["smooth"] or SMOOTHING_SPEED["revolute"])


def usual_widths(model: Model, friction: Array) -> Array:
    """Return the smoothing speeds of friction with MuJoCo's default settings [rad/s or m/s].

    Args:
        model: Links and rotors.
        friction: Dry friction of each joint [N m or N].
    """
    inverse = np.linalg.inv(model.mass_matrix(np.zeros(model.robot.dof)))
    return np.asarray(np.maximum(_SOFTNESS * np.diag(inverse) * friction * USUAL_LEAD, _NARROWEST))


def as_simulated(soft: Terms, widths: Array, step: float) -> Terms:
    """Return terms with the friction of MuJoCo's default settings for every joint.

    Args:
        soft: Terms of a robot with dry friction from `softened`.
        widths: Smoothing speed of each joint from `usual_widths` [rad/s or m/s].
        step: Time step of the simulator [s].
    """
    lead = USUAL_LEAD - 0.5 * step
    out: list[Term] = []
    for term in soft.terms:
        if not isinstance(term, SoftCoulomb) or term.on != "joint":
            out.append(term)
            continue
        for k, name in enumerate(soft.robot.joint_names):
            if term.where is None or name in term.where:
                out.append(replace(term, where=(name,), lead=lead, smooth=float(widths[k])))
    return Terms(soft.robot, tuple(out))
