"""`SoftCoulomb`: dry friction as MuJoCo's constraint solver has it, with the settings that files may state.

MuJoCo holds a joint back by up to its `frictionloss` η, against the velocity that the joint would have a moment later:
the constraint's reference acceleration is −b·u̇ and its regularisation R, so that the force is −(ü + b·u̇)/R, cut off at
±η (MuJoCo's documentation, "Computation", "Constraint model"). With the usual settings 1/b is 9.5 ms, and R a ninth of
the joint's inverse inertia in the posture of zero positions. A fit that goes by the sign of u̇ takes a part of such
friction for damping; one that rounds it off otherwise, some hundredths.
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

# MuJoCo's own: solreffriction 0.02 s at critical damping, solimpfriction up to 0.95; b = 2/(0.95 · 0.02 s). Its steps
# first change the velocity, then with it the position: u̇ is that of half a time step before, and the lead shorter by so
# much.
USUAL_LEAD = 0.5 * 0.95 * 0.02  # s
# R over the inverse inertia, (1 − d)/d with the impedance d = 0.9 of a constraint that is not violated.
_SOFTNESS = (1.0 - 0.9) / 0.9
# rad/s, m/s; narrower than this a jump is as good.
_NARROWEST = 1e-4
# As sharp as MuJoCo's usual time step of 2 ms allows; with longer steps MuJoCo softens it by itself.
SHARP = {"solreffriction": "0.004 1", "solimpfriction": "0.99 0.99 0.001"}


@dataclass(frozen=True)
class _Direction(MotionSignal):
    """The velocity `lead` seconds ahead over `smooth` (rad/s, m/s), cut off at ±1."""

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
    """Dry friction Fc against the direction that the coordinate moves in `lead` seconds later; for fits alone."""

    lead: float = USUAL_LEAD
    smooth: float = SMOOTHING_SPEED["revolute"]

    @property
    def history(self) -> tuple[MotionSignal, ...]:
        return (_Direction(self.lead, self.smooth),)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fc", "N m", "N", lower=0.0),)

    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]:
        return (history[0],)

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        return SimpleTerm(friction=values[0], smooth=self.smooth)


def softened(term: Term) -> Term:
    """A Coulomb term as MuJoCo's usual settings have it; any other `term` as it is."""
    if term.kind != "coulomb":
        return term
    return SoftCoulomb(on=term.on, where=term.where, smooth=term.options["smooth"] or SMOOTHING_SPEED["revolute"])


def usual_widths(model: Model, friction: Array) -> Array:
    """The speeds below which MuJoCo's usual settings round off the friction of each joint [rad/s, m/s].

    Args:
        model: Links and rotors.
        friction: Dry friction of each joint [N m, N].
    """
    inverse = np.linalg.inv(model.mass_matrix(np.zeros(model.robot.dof)))
    return np.asarray(np.maximum(_SOFTNESS * np.diag(inverse) * friction * USUAL_LEAD, _NARROWEST))


def as_simulated(soft: Terms, widths: Array, step: float) -> Terms:
    """The terms with the friction of every joint as MuJoCo has it with its usual settings.

    Args:
        soft: Terms of a robot, its dry friction as `softened` gives it.
        widths: Of each joint, from `usual_widths` [rad/s, m/s].
        step: The simulator's time step [s].
    """
    lead = USUAL_LEAD - 0.5 * step
    made: list[Term] = []
    for term in soft.terms:
        if not isinstance(term, SoftCoulomb) or term.on != "joint":
            made.append(term)
            continue
        for k, name in enumerate(soft.robot.joint_names):
            if term.where is None or name in term.where:
                made.append(replace(term, where=(name,), lead=lead, smooth=float(widths[k])))
    return Terms(soft.robot, tuple(made))
