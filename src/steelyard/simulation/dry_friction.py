"""Dry friction in a simulation: smoothed, or removed for a solver with stiction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector, absolute, dot, maximum, minimum
from steelyard.parameters import Column, DryTerm, LoadedCoulomb, StopElement, Term, Terms
from steelyard.parameters.coordinate import Coordinate

Friction = Literal["smooth", "stick"]


def _smooth_sign(v: Scalar, width: float) -> Scalar:
    """Compute a smooth sign: x(15 − 10x² + 3x⁴)/8 of x = v/width, and exactly ±1 beyond.

    It is twice continuously differentiable and needs eight operations and no division: on vectors of lanes much cheaper
    than tanh. Its slope at rest is 1.875/width.
    """
    x = minimum(maximum(v * (1.0 / width), -1.0), 1.0)
    z = x * x
    return x * (1.875 + z * (0.375 * z - 1.25))


@dataclass(frozen=True, kw_only=True)
class _SmoothDryTerm(DryTerm):
    """Dry friction that rises over the first `smooth` rad/s (m/s) instead of jumping."""

    term: DryTerm

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "kind", self.term.kind)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.term.columns

    @property
    def options(self) -> dict[str, Any]:
        return self.term.options | {"smooth": self.smooth}

    def direction(self, du: Scalar) -> Scalar:
        return _smooth_sign(du, self.smooth)

    def along(self, direction: Scalar, speed: Scalar) -> Sequence[Scalar]:
        return self.term.along(direction, speed)


@dataclass(frozen=True, kw_only=True)
class _SilentDryTerm(_SmoothDryTerm):
    """Dry friction with its parameters but without torque, which the stiction solver adds."""

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return [0.0] * len(self.columns)


@dataclass(frozen=True, kw_only=True)
class _SlidingStop(_SmoothDryTerm):
    """Friction with memory while it slides: dry friction."""

    term: Any

    def along(self, direction: Scalar, speed: Scalar) -> Sequence[Scalar]:
        return (direction,)


def smooth_terms(terms: Terms, width: float) -> Terms:
    """Return terms with every jump of dry friction spread over a speed range; a term's own smoothing remains.

    Args:
        terms: Terms of a robot.
        width: Speed range [rad/s, m/s].
    """

    def change(term: Term) -> Term:
        if isinstance(term, StopElement):
            return _SlidingStop(on=term.on, where=term.where, smooth=width, term=term)
        if isinstance(term, LoadedCoulomb) and not term.smooth:
            return replace(term, smooth=width)
        if not isinstance(term, DryTerm) or term.smooth:
            return term
        return _SmoothDryTerm(on=term.on, where=term.where, smooth=width, term=term)

    return replace(terms, terms=tuple(change(term) for term in terms.terms))


def without_dry_friction(terms: Terms) -> Terms:
    """Return `terms` without torque from dry friction; the parameters remain."""

    def change(term: Term) -> Term:
        return _SilentDryTerm(on=term.on, where=term.where, term=term) if isinstance(term, DryTerm) else term

    return replace(terms, terms=tuple(change(term) for term in terms.terms))


class DryFriction:
    """All contacts with dry friction of a robot's `terms`: directions in joint space, and friction levels over scalars.

    Contact k slides at the speed `directions[k]`·q̇, on either side of the gear. Contacts at the same speed up to a
    factor (a joint and its own drive) count as one.
    """

    def __init__(self, terms: Terms) -> None:
        self._shares: list[list[tuple[float, int, DryTerm, Coordinate]]] = []
        rows: list[Array] = []
        first = 0
        for term, coordinate in terms.with_coordinates:
            if isinstance(term, DryTerm):
                row = np.array(coordinate.weights)
                for k, other in enumerate(rows):
                    factor = float(row @ other) / float(other @ other)
                    if np.array_equal(row, factor * other):
                        self._shares[k].append((factor, first, term, coordinate))
                        break
                else:
                    rows.append(row)
                    self._shares.append([(1.0, first, term, coordinate)])
            first += len(term.columns)
        self.directions: Array = np.array(rows).reshape(len(rows), terms.robot.dof)

    def __len__(self) -> int:
        return len(self._shares)

    def levels(self, q: Vector, dq: Vector, theta: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """Compute friction against positive and against negative motion of every contact.

        Args:
            q: Positions [rad, m].
            dq: Velocities [rad/s, m/s].
            theta: Values of the terms.
        """
        up: list[Scalar] = []
        down: list[Scalar] = []
        for shares in self._shares:
            with_, against = 0.0, 0.0
            for factor, first, term, coordinate in shares:
                lever = factor * coordinate.slope(q)
                forward, backward = maximum(lever, 0.0), maximum(-lever, 0.0)
                speed = absolute(coordinate.velocity(q, dq))
                own = theta[first : first + len(term.columns)]
                positive = dot(term.along(1.0, speed), own)
                negative = dot([-1.0 * x for x in term.along(-1.0, speed)], own)
                with_ = with_ + (positive * forward + negative * backward)
                against = against + (negative * forward + positive * backward)
            up.append(with_)
            down.append(against)
        return up, down
