"""`SoftCoulomb`: dry friction as MuJoCo's constraint solver has it, with the settings that files may state.

MuJoCo holds a joint back by up to its `frictionloss`, against the velocity that the joint would have a moment later:
the constraint's reference acceleration is −b·u̇, so that the force has the sign of ü + b·u̇. With the usual settings 1/b
is 9.5 ms; a fit that goes by the sign of u̇ takes a part of such friction for damping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, sign
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.parameters.history import RememberingTerm
from steelyard.parameters.term import Along, Column, Simple, Term

# MuJoCo's own: solreffriction 0.02 s at critical damping, solimpfriction up to 0.95; b = 2/(0.95 · 0.02 s).
USUAL_LEAD = 0.5 * 0.95 * 0.02  # s
# As sharp as MuJoCo's usual time step of 2 ms allows; with longer steps MuJoCo softens it by itself.
SHARP = {"solreffriction": "0.004 1", "solimpfriction": "0.99 0.99 0.001"}


@dataclass(frozen=True)
class _Direction(Along):
    """The sign of the velocity `lead` seconds ahead, rounded off below `smooth` (rad/s, m/s)."""

    lead: float
    smooth: float

    def signal(self, u: Array, rigid: Array, period: float | None) -> Array:
        if period is None or len(u) < 3:
            return np.zeros(len(u))
        du = np.gradient(u, period)
        return np.asarray(np.tanh((du + self.lead * np.gradient(du, period)) / self.smooth))

    def steady(self, du: Scalar, load: Scalar) -> Scalar:
        return sign(du)

    def random(self, rng: np.random.Generator, count: int) -> Array:
        return rng.uniform(-1.0, 1.0, count)


@dataclass(frozen=True, kw_only=True)
class SoftCoulomb(RememberingTerm):
    """Dry friction Fc against the direction that the coordinate moves in `lead` seconds later; for fits alone."""

    lead: float = USUAL_LEAD
    smooth: float = SMOOTHING_SPEED["revolute"]

    @property
    def history(self) -> tuple[Along, ...]:
        return (_Direction(self.lead, self.smooth),)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fc", "N m", "N", lower=0.0),)

    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]:
        return (history[0],)

    def simple(self, values: Sequence[float]) -> Simple:
        return Simple(friction=values[0], smooth=self.smooth)


def softened(term: Term) -> Term:
    """A Coulomb term as MuJoCo's usual settings have it; any other `term` as it is."""
    if term.kind != "coulomb":
        return term
    return SoftCoulomb(on=term.on, where=term.where, smooth=term.options["smooth"] or SMOOTHING_SPEED["revolute"])
