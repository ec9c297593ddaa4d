"""`Terms`: joint terms bound to a robot, with a name, a unit and bounds for every column; and the default terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector, absolute
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.coordinate import Coordinate
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.parameters.hysteresis import RigidLoad
from steelyard.parameters.term import MotionSignal, Term, make_term, parse_term
from steelyard.robot.free import driven_joints
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot

_T = TypeVar("_T")
Entries = dict[tuple[int, int], Scalar]
DEFAULT_TERMS = ("rotor", "viscous", "coulomb", "offset")


@dataclass(frozen=True)
class Parameter:
    """One number of the model: its name, its unit, and its physical bounds."""

    name: str
    unit: str
    lower: float = -np.inf
    upper: float = np.inf


@short_repr
@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a model, in order; columns run over terms, then coordinates, then the term's own parameters.

    Functions over scalars take one scalar (number, array, node) per joint and return nonzero entries by (row, column).

    Args:
        robot: Robot.
        terms: Terms.
        q: Joint positions [rad, m].
        dq: Joint velocities [rad/s, m/s].
        ddq: Joint accelerations [rad/s², m/s²].
        rigid: Joint torques of links and rotors [N m, N]; required if `needs_rigid`.
        period: Time between samples [s]; without it, rates are zero.
        theta: Parameters of the terms.
        history: Signals along the motion, computed by `along`, for terms with memory.
        rng, count: Random generator, and number of rows.
    """

    robot: Robot
    terms: tuple[Term, ...]

    @cached_property
    def with_coordinates(self) -> tuple[tuple[Term, Coordinate], ...]:
        """Pairs of a term and a coordinate it acts on."""
        return tuple((term, c) for term in self.terms for c in _coordinates(self.robot, term))

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        out: list[Parameter] = []
        owners: dict[str, list[Term]] = {}
        for term, c in self.with_coordinates:
            for name in _names(term, c):
                owners.setdefault(name, []).append(term)
        for term, c in self.with_coordinates:
            for name, column in zip(_names(term, c), term.columns, strict=True):
                unit = column.unit if c.revolute else column.linear_unit
                out.append(Parameter(name + _difference(term, owners[name]), unit, column.lower, column.upper))
        names = [p.name for p in out]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise SteelyardError(f"Two terms have a parameter '{twice[0]}'; state each term once per coordinate.")
        return tuple(out)

    def per_parameter(self, describe: Callable[[Term, Coordinate], _T]) -> list[_T]:
        """List the results of `describe` for the term and coordinate of each parameter."""
        return [describe(term, c) for term, c in self.with_coordinates for _ in term.columns]

    def __len__(self) -> int:
        return len(self.parameters)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    @property
    def lower(self) -> Array:
        return np.array([p.lower for p in self.parameters])

    @property
    def upper(self) -> Array:
        return np.array([p.upper for p in self.parameters])

    # ---------------------------------------------------------------- signals along a motion

    @cached_property
    def history(self) -> tuple[tuple[MotionSignal, Coordinate], ...]:
        """Signals along the motion that the terms depend on, each with its coordinate, without duplicates."""
        return tuple(self._signals.values())

    @cached_property
    def _signals(self) -> dict[tuple[MotionSignal, str, int], tuple[MotionSignal, Coordinate]]:
        return {(a, c.side, c.index): (a, c) for term, c in self.with_coordinates for a in term.history}

    @property
    def history_key(self) -> tuple[tuple[MotionSignal, str, int], ...]:
        """Key of the signals: terms with equal keys have equal signals."""
        return tuple(self._signals)

    @property
    def needs_rigid(self) -> bool:
        """Whether any of the signals depends on the torque of the rigid robot."""
        return any(a.of_torque for a, _ in self.history)

    def along(self, q: Array, dq: Array, period: float | None = None, rigid: Array | None = None) -> Array:
        """Compute the signals at consecutive samples of one motion, `(samples, signals)`."""
        if rigid is None and self.needs_rigid:
            raise SteelyardError(
                f"The terms {', '.join(sorted({t.kind for t in self.terms if t.history}))} depend on the load; "
                "pass the torque of links and rotors (rigid)."
            )
        postures, out = list(q.T), np.empty((len(q), len(self.history)))
        for k, (a, c) in enumerate(self.history):
            u = np.broadcast_to(c.position(postures), (len(q),))
            carried = c.torque(postures, list(rigid.T)) if rigid is not None and a.of_torque else np.zeros(len(q))
            out[:, k] = a.signal(u, carried, period)
        return out

    def refuse_history(self, user: str) -> None:
        """Raise an error if any term has memory; `user` ("A stream", …) is the method that does not support them."""
        kinds = sorted({f"'{term.kind}'" for term in self.terms if term.history})
        if kinds:
            raise SteelyardError(
                f"{user} does not support terms with memory ({', '.join(kinds)}); omit them, or identify from the "
                "whole log with a regression estimator such as wls."
            )

    def steady(self, q: Vector, dq: Vector, rigid: Vector) -> list[Scalar]:
        """Compute the signals over scalars after a long steady motion."""
        return [a.steady(c.velocity(q, dq), absolute(c.torque(q, rigid))) for a, c in self.history]

    def random_history(self, rng: np.random.Generator, count: int) -> Array:
        """Draw values of the signals, one row per sample."""
        made = [a.random(rng, count) for a, _ in self.history]
        return np.column_stack(made) if made else np.zeros((count, 0))

    def without_load(self, history: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        """Return the signals of `history` without load, and with unit loads; rates are zero in both."""
        zero = [0.0 if a.of_torque else s for (a, _), s in zip(self.history, history, strict=True)]
        unit = [1.0 if isinstance(a, RigidLoad) else s for (a, _), s in zip(self.history, zero, strict=True)]
        return zero, unit

    # ---------------------------------------------------------------- columns over scalars

    def torque(self, q: Vector, dq: Vector, ddq: Vector, history: Vector = ()) -> Entries:
        """Compute joint torque per parameter: Jᵀ (ü of a rotor, the force of the others)."""
        out: Entries = {}
        for first, term, c in self._walk():
            values = [c.acceleration(q, dq, ddq)] if term.inertial else self._forces(term, c, q, dq, history)
            _add_to_joints(out, c, c.slope(q), values, first)
        return out

    def load_forces(self, q: Vector, dq: Vector, history: Vector) -> list[tuple[Coordinate, int, Scalar, RigidLoad]]:
        """Compute the force per unit of load of every load-dependent parameter, with coordinate, column and load."""
        _, unit = self.without_load(history)
        return [
            (c, first + k, value, load)
            for first, term, c in self._walk()
            for load in (a for a in term.history if isinstance(a, RigidLoad))
            for k, value in enumerate(self._forces(term, c, q, dq, unit))
        ]

    def momentum(self, q: Vector, dq: Vector) -> Entries:
        """Compute momentum per parameter."""
        out: Entries = {}
        for first, term, c in self._walk():
            if term.inertial:
                _add_to_joints(out, c, c.slope(q), [c.velocity(q, dq)], first)
        return out

    def remainder(self, q: Vector, dq: Vector, history: Vector = ()) -> Entries:
        """Compute the torque per parameter minus the rate of its momentum."""
        out: Entries = {}
        for first, term, c in self._walk():
            if term.inertial:
                _add_to_joints(out, c, -c.slope_rate(q, dq), [c.velocity(q, dq)], first)
            else:
                _add_to_joints(out, c, c.slope(q), self._forces(term, c, q, dq, history), first)
        return out

    def kinetic(self, q: Vector, dq: Vector) -> Entries:
        """Compute kinetic energy per parameter."""
        out: Entries = {}
        for first, term, c in self._walk():
            if term.inertial:
                speed = c.velocity(q, dq)
                out[0, first] = 0.5 * speed * speed
        return out

    def potential(self, q: Vector) -> Entries:
        """Compute potential energy per parameter at positions `q` [rad, m]."""
        out: Entries = {}
        for first, term, c in self._walk():
            for k, value in enumerate(term.potential(c.position(q)) or ()):
                out[0, first + k] = value
        return out

    def dissipation(self, q: Vector, dq: Vector, history: Vector = ()) -> Entries:
        """Compute the power that each parameter removes from the energy (which excludes the springs of stops)."""
        out: Entries = {}
        for first, term, c in self._walk():
            if not term.inertial and term.potential(0.0) is None:
                speed = c.velocity(q, dq)
                for k, value in enumerate(self._forces(term, c, q, dq, history)):
                    out[0, first + k] = value * speed
        return out

    def inertia(self, q: Vector, theta: Vector) -> Entries:
        """Compute the contribution of the terms to the mass matrix: Jᵀ Ia J."""
        out: Entries = {}
        for first, term, c in self._walk():
            if term.inertial:
                slope = c.slope(q)
                value = theta[first] * slope * slope
                for i, a in enumerate(c.weights):
                    for j, b in enumerate(c.weights):
                        if a != 0.0 and b != 0.0:
                            out[i, j] = out.get((i, j), 0.0) + a * b * value
        return out

    def _walk(self) -> Iterable[tuple[int, Term, Coordinate]]:
        first = 0
        for term, c in self.with_coordinates:
            yield first, term, c
            first += len(term.columns)

    def _forces(self, term: Term, c: Coordinate, q: Vector, dq: Vector, history: Vector) -> Sequence[Scalar]:
        u, du = c.position(q), c.velocity(q, dq)
        if not term.history:
            return term.force(u, du)
        values = dict(zip(self._signals, history, strict=True))
        return term.force_along(u, du, [values[a, c.side, c.index] for a in term.history])


def _names(term: Term, c: Coordinate) -> list[str]:
    """Return the names of a term's parameters on a coordinate, if no other term has the same."""
    suffix = {"joint": f"{c.index + 1}", "drive": f"_{c.name}", "motor": f"_{c.name}_shaft"}[c.side]
    return [f"{column.symbol}{suffix}" for column in term.columns]


def _difference(term: Term, owners: Sequence[Term]) -> str:
    """Return the options that distinguish a term from others with the same parameter name, in brackets."""
    if len(owners) < 2:
        return ""
    own = term.options
    differ = [k for k in own if any(other.options.get(k, own[k]) != own[k] for other in owners)]
    texts = [f"{k}={own[k]:g}" if isinstance(own[k], float) else f"{k}={own[k]}" for k in differ]
    return f"[{', '.join(texts)}]" if texts else ""


def _add_to_joints(out: Entries, c: Coordinate, lever: Scalar, values: Sequence[Scalar], first: int) -> None:
    """Add a torque on a coordinate to every joint that moves it."""
    for joint, weight in enumerate(c.weights):
        if weight != 0.0:
            for k, value in enumerate(values):
                out[joint, first + k] = weight * (lever * value)


def _coordinates(robot: Robot, term: Term) -> list[Coordinate]:
    if term.on == "joint":
        names: tuple[str, ...] = robot.joint_names
    else:
        names = robot.transmission.motors if robot.transmission is not None else ("",)
    chosen = names if term.where is None else term.where
    out = []
    for name in chosen:
        if name not in names:
            raise UnknownNameError("joint" if term.on == "joint" else "motor", name, names)
        out.append(Coordinate(robot, term.on, name, names.index(name)))
    return out


def terms(robot: RobotLike, *which: str | Term) -> Terms:
    """Bind joint terms to a robot.

    >>> terms(robot, "viscous", Coulomb(smooth=0.01), Rotor(on="drive"))  # doctest: +SKIP

    Args:
        robot: Robot.
        which: Terms by name ("rotor", "viscous", "coulomb", …) or as objects.
    """
    made = tuple(make_term(w) if isinstance(w, str) else w for w in which)
    bound = Terms(as_robot(robot), made)
    _ = bound.parameters  # check names and coordinates now instead of at first use
    return bound


def nominal_terms(robot: Robot) -> tuple[Terms, Array]:
    """Return the terms in the description of `robot`, and their values."""
    made = Terms(robot, tuple(make_term(t.kind, **{**dict(t.options), "on": t.on}) for t in robot.nominal_terms))
    values: list[float] = []
    for term, given in zip(made.terms, robot.nominal_terms, strict=True):
        table = np.array(given.values, dtype=float)  # parameters × coordinates
        count = len(_coordinates(robot, term))
        if table.shape != (len(term.columns), count):
            raise SteelyardError(
                f"{robot.source or robot.name}: term '{term.kind}' needs {len(term.columns)} × {count} values, "
                f"not {' × '.join(map(str, table.shape))}."
            )
        values.extend(table.T.ravel())
    return made, np.array(values)


TermsLike = str | Term | Sequence[str | Term] | Terms


def as_terms(robot: Robot, which: TermsLike | None) -> Terms | None:
    """Convert an argument to `Terms`; None remains None and means a robot without joint terms.

    Args:
        robot: Robot.
        which: Terms as in `identification_terms`.
    """
    return None if which is None else identification_terms(robot, which)


def _as_list(which: Any) -> Sequence[str | Term]:
    """Split an argument into single terms: "viscous,coulomb" is two."""
    if isinstance(which, str):
        return [word.strip() for word in which.split(",") if word.strip()]
    listed = [which] if isinstance(which, Term) else list(which) if isinstance(which, Iterable) else [which]
    for item in listed:
        if not isinstance(item, str | Term):
            raise SteelyardError(
                f'Joint terms must be names or terms, "viscous,coulomb" or ["viscous", Coulomb(…)], not '
                f"'{type(item).__name__}'."
            )
    return listed


def identification_terms(robot: Robot, which: TermsLike | None = None) -> Terms:
    """Return the terms for an identification; dry friction by name is smoothed at `SMOOTHING_SPEED`.

    Args:
        robot: Robot.
        which: Terms by name ("viscous,coulomb", or a list) or as objects; default: rotor, viscous, coulomb and offset,
            and rotor, viscous and coulomb of each motor that moves several joints at once. A name may carry a side and
            options: "rotor@drive", "coulomb:smooth=0.02" ("coulomb:smooth=0" keeps the sign),
            "viscous@drive:where=motor6".
    """
    if isinstance(which, Terms):
        return which
    made: list[Term] = []
    usual: list[str | Term] = [*DEFAULT_TERMS, *coupled_drives(robot)]
    for item in usual if which is None else _as_list(which):
        made.extend(terms_named(robot, item) if isinstance(item, str) else [item])
    return terms(robot, *made)


def coupled_drives(robot: Robot) -> list[Term]:
    """Return rotor, viscous and Coulomb terms for the motors of `robot` that move several joints, else nothing."""
    if robot.transmission is None:
        return []
    coupled = np.count_nonzero(robot.transmission.matrix, axis=1) > 1
    names = tuple(name for name, several in zip(robot.transmission.motors, coupled, strict=True) if several)
    kinds = ("rotor", "viscous", "coulomb") if names else ()
    return [term for kind in kinds for term in terms_named(robot, f"{kind}@drive", names)]


def terms_named(robot: Robot, text: str, where: tuple[str, ...] | None = None) -> list[Term]:
    """Create terms by name; without an explicit rounding or width there is one term per kind of joint.

    Args:
        robot: Robot.
        text: Term with options, e.g. "coulomb@drive:smooth=0.02".
        where: Joints or motors on which the term acts (their names may contain any characters); None: those in `text`.
    """
    term, given = parse_term(text)
    if where is None and term.on == "joint" and term.where is None:
        where = driven_joints(robot)
    term = term if where is None else replace(term, where=where)
    if not term.rounds or term.rounds in given:
        return [term]
    if term.on != "joint":
        return [term.with_rounding("revolute")]
    out: list[Term] = []
    for kind in SMOOTHING_SPEED:
        names = tuple(j.name for j in robot.joints if j.kind == kind and (term.where is None or j.name in term.where))
        if names:
            out.append(replace(term.with_rounding(kind), where=None if len(names) == robot.dof else names))
    return out or [term]
