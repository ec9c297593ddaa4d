"""The joint terms an identification starts from, and how people write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.parameters.library import TERMS, make_term
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms, terms
from steelyard.robot.robot import Robot

DEFAULT_TERMS = ("rotor", "viscous", "coulomb", "offset")
# Below these speeds the direction of a filtered velocity is not known, and its sign would be that of noise; dry
# friction is therefore rounded off there (0.01 rad/s is 0.6°/s).
SMOOTHING = {"revolute": 0.01, "prismatic": 0.001}


def identification_terms(
    robot: Robot, which: Sequence[str | Term] | Terms | None = None, smoothing: float = 1.0
) -> Terms:
    """Terms by name, as objects, or the default ones.

    A name may carry a side and options: "rotor@drive", "coulomb:smooth=0.02", "viscous@drive:where=motor6". Dry
    friction by name is smoothed at the speeds above, times `smoothing`; "coulomb:smooth=0" takes the bare sign.
    """
    if isinstance(which, Terms):
        return which
    made: list[Term] = []
    for item in which if which is not None else DEFAULT_TERMS:
        made.extend(_smoothed(robot, item, smoothing) if isinstance(item, str) else [item])
    return terms(robot, *made)


def smoothable(which: Sequence[str | Term] | Terms | None) -> bool:
    """Whether any of the terms leaves the speed at which it is rounded off to us."""
    if isinstance(which, Terms):
        return False
    return any(_rounded_by_us(item) for item in (which if which is not None else DEFAULT_TERMS))


def _rounded_by_us(item: str | Term) -> bool:
    if not isinstance(item, str):
        return False
    term, given = _parsed(item)
    return "smooth" not in given and any(f.name == "smooth" for f in fields(term))


def _smoothed(robot: Robot, text: str, smoothing: float) -> list[Term]:
    """A term by name; dry friction without a smoothing of its own becomes one term per kind of joint."""
    term, _ = _parsed(text)
    if not _rounded_by_us(text):
        return [term]
    if term.on != "joint":
        return [_with(term, smooth=smoothing * SMOOTHING["revolute"])]
    out: list[Term] = []
    for kind, speed in SMOOTHING.items():
        names = tuple(j.name for j in robot.joints if j.kind == kind and (term.where is None or j.name in term.where))
        if names:
            out.append(_with(term, smooth=smoothing * speed, where=None if len(names) == robot.dof else names))
    return out or [term]


def _with(term: Term, **changes: Any) -> Term:
    return replace(term, **changes)


def _parsed(text: str) -> tuple[Term, dict[str, Any]]:
    head, _, tail = text.partition(":")
    kind, _, side = head.partition("@")
    if kind not in TERMS:
        raise UnknownNameError("term", kind, TERMS)
    options: dict[str, Any] = {"on": side} if side else {}
    for pair in filter(None, tail.split(":")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise SteelyardError(f"Term '{text}': write options as name=value, e.g. coulomb:smooth=0.02.")
        if key == "where":
            options[key] = tuple(value.split("+"))
            continue
        try:
            options[key] = float(value)
        except ValueError:
            raise SteelyardError(f"Term '{text}': '{value}' is not a number.") from None
    return make_term(kind, **options), options
