"""`Terms`: joint terms bound to a robot, with a name, a unit and bounds for every column; those to start from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector, absolute
from steelyard.parameters.coordinate import Coordinate
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.parameters.history import RigidLoad
from steelyard.parameters.term import Along, Term, make_term, parse_term
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot

_T = TypeVar("_T")
Entries = dict[tuple[int, int], Scalar]
DEFAULT_TERMS = ("rotor", "viscous", "coulomb", "offset")


@dataclass(frozen=True)
class Parameter:
    """One number of the model: its name, its unit, and the bounds that physics sets."""

    name: str
    unit: str
    lower: float = -np.inf
    upper: float = np.inf


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a model, in order; columns run over terms, then coordinates, then the term's own parameters.

    Columns are functions of joint positions `q` (rad, m), velocities `dq` and accelerations `ddq`, one scalar (number,
    array, node) per joint; what is not zero is returned by (row, column). Terms that remember (`history` is not empty)
    need one more, `history`: the values of the signals along the motion, as `along` gives them.
    """

    robot: Robot
    terms: tuple[Term, ...]

    @cached_property
    def placed(self) -> tuple[tuple[Term, Coordinate], ...]:
        """Each term with each coordinate it acts on."""
        return tuple((term, c) for term in self.terms for c in _coordinates(self.robot, term))

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        out: list[Parameter] = []
        owners: dict[str, list[Term]] = {}
        for term, c in self.placed:
            for name in _names(term, c):
                owners.setdefault(name, []).append(term)
        for term, c in self.placed:
            for name, column in zip(_names(term, c), term.columns, strict=True):
                unit = column.unit if c.revolute else column.linear_unit
                out.append(Parameter(name + _difference(term, owners[name]), unit, column.lower, column.upper))
        names = [p.name for p in out]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise SteelyardError(f"Two terms have a parameter '{twice[0]}'; state each term once per coordinate.")
        return tuple(out)

    def per_parameter(self, say: Callable[[Term, Coordinate], _T]) -> list[_T]:
        """What `say` tells of a term and the coordinate it acts on, once for each of their parameters."""
        return [say(term, c) for term, c in self.placed for _ in term.columns]

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
    def history(self) -> tuple[tuple[Along, Coordinate], ...]:
        """The signals along the motion that the terms depend on, each with its coordinate, without repeats."""
        return tuple(self._signals.values())

    @cached_property
    def _signals(self) -> dict[tuple[Along, str, int], tuple[Along, Coordinate]]:
        return {(a, c.side, c.index): (a, c) for term, c in self.placed for a in term.history}

    @property
    def history_key(self) -> tuple[tuple[Along, str, int], ...]:
        """The signals of `history` with side and number of their coordinates: equal where `along` is."""
        return tuple(self._signals)

    @property
    def needs_rigid(self) -> bool:
        """Whether any of the signals is made from the torque of the rigid robot."""
        return any(a.of_torque for a, _ in self.history)

    def along(self, q: Array, dq: Array, period: float | None = None, rigid: Array | None = None) -> Array:
        """The signals of `history` at consecutive samples of one motion, `(samples, signals)`.

        Args:
            q: joint positions, `(samples, joints)`, rad or m.
            dq: joint velocities.
            period: between samples, s; rates are zero where it is None.
            rigid: joint torques of links and rotors, `(samples, joints)`; needed where `needs_rigid`.
        """
        if rigid is None and self.needs_rigid:
            raise SteelyardError(
                f"The terms {', '.join(sorted({t.kind for t in self.terms if t.history}))} depend on what the robot "
                "carries; hand over the torque of its links and rotors (rigid)."
            )
        postures, out = list(q.T), np.empty((len(q), len(self.history)))
        for k, (a, c) in enumerate(self.history):
            u = np.broadcast_to(c.position(postures), (len(q),))
            carried = c.torque(postures, list(rigid.T)) if rigid is not None and a.of_torque else np.zeros(len(q))
            out[:, k] = a.signal(u, carried, period)
        return out

    def refuse_history(self, who: str) -> None:
        """Refuse terms that remember on behalf of `who` ("A stream", …), which does not follow them along a motion."""
        kinds = sorted({f"'{term.kind}'" for term in self.terms if term.history})
        if kinds:
            raise SteelyardError(
                f"{who} cannot follow terms that remember ({', '.join(kinds)}); leave them out there, or identify from "
                "the whole log by an estimator of rows, such as wls."
            )

    def steady(self, q: Vector, dq: Vector, rigid: Vector) -> list[Scalar]:
        """The signals over scalars after a long motion at `q` and `dq`, under the torques `rigid` of the links."""
        return [a.steady(c.velocity(q, dq), absolute(c.torque(q, rigid))) for a, c in self.history]

    def random_history(self, rng: np.random.Generator, count: int) -> Array:
        """Values of the signals as motions may show them, by `rng`: `count` rows, a column per signal."""
        made = [a.random(rng, count) for a, _ in self.history]
        return np.column_stack(made) if made else np.zeros((count, 0))

    def unloaded(self, history: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        """The signals of `history` without any load, and with unit loads; rates are zero in both."""
        zero = [0.0 if a.of_torque else s for (a, _), s in zip(self.history, history, strict=True)]
        unit = [1.0 if isinstance(a, RigidLoad) else s for (a, _), s in zip(self.history, zero, strict=True)]
        return zero, unit

    # ---------------------------------------------------------------- columns over scalars

    def torque(self, q: Vector, dq: Vector, ddq: Vector, history: Vector = ()) -> Entries:
        """Joint torque per parameter: Jᵀ (ü of a rotor, the force of the others)."""
        out: Entries = {}
        for first, term, c in self._walk():
            values = [c.acceleration(q, dq, ddq)] if term.inertial else self._forces(term, c, q, dq, history)
            _pass_on(out, c, c.slope(q), values, first)
        return out

    def loaded(self, q: Vector, dq: Vector, history: Vector) -> list[tuple[Coordinate, int, Scalar, RigidLoad]]:
        """The force per unit of load of every parameter that the load multiplies, with coordinate, column and load."""
        _, unit = self.unloaded(history)
        return [
            (c, first + k, value, load)
            for first, term, c in self._walk()
            for load in (a for a in term.history if isinstance(a, RigidLoad))
            for k, value in enumerate(self._forces(term, c, q, dq, unit))
        ]

    def momentum(self, q: Vector, dq: Vector) -> Entries:
        out: Entries = {}
        for first, term, c in self._walk():
            if term.inertial:
                _pass_on(out, c, c.slope(q), [c.velocity(q, dq)], first)
        return out

    def remainder(self, q: Vector, dq: Vector, history: Vector = ()) -> Entries:
        """What is left of the torque when d/dt of the momentum is taken away."""
        out: Entries = {}
        for first, term, c in self._walk():
            if term.inertial:
                _pass_on(out, c, -c.slope_rate(q, dq), [c.velocity(q, dq)], first)
            else:
                _pass_on(out, c, c.slope(q), self._forces(term, c, q, dq, history), first)
        return out

    def kinetic(self, q: Vector, dq: Vector) -> Entries:
        out: Entries = {}
        for first, term, c in self._walk():
            if term.inertial:
                speed = c.velocity(q, dq)
                out[0, first] = 0.5 * speed * speed
        return out

    def potential(self, q: Vector) -> Entries:
        out: Entries = {}
        for first, term, c in self._walk():
            for k, value in enumerate(term.potential(c.position(q)) or ()):
                out[0, first + k] = value
        return out

    def dissipation(self, q: Vector, dq: Vector, history: Vector = ()) -> Entries:
        """Power that each parameter takes out of what is counted as energy (the springs of stops are not)."""
        out: Entries = {}
        for first, term, c in self._walk():
            if not term.inertial and term.potential(0.0) is None:
                speed = c.velocity(q, dq)
                for k, value in enumerate(self._forces(term, c, q, dq, history)):
                    out[0, first + k] = value * speed
        return out

    def inertia(self, q: Vector, theta: Vector) -> Entries:
        """What the terms with parameters `theta` add to the mass matrix: Jᵀ Ia J."""
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
        for term, c in self.placed:
            yield first, term, c
            first += len(term.columns)

    def _forces(self, term: Term, c: Coordinate, q: Vector, dq: Vector, history: Vector) -> Sequence[Scalar]:
        u, du = c.position(q), c.velocity(q, dq)
        if not term.history:
            return term.force(u, du)
        values = dict(zip(self._signals, history, strict=True))
        return term.force_along(u, du, [values[a, c.side, c.index] for a in term.history])


def _names(term: Term, c: Coordinate) -> list[str]:
    """What the parameters of a term on a coordinate are called where no other term has the same."""
    suffix = {"joint": f"{c.index + 1}", "drive": f"_{c.name}", "motor": f"_{c.name}_shaft"}[c.side]
    return [f"{column.symbol}{suffix}" for column in term.columns]


def _difference(term: Term, owners: Sequence[Term]) -> str:
    """The options by which a term differs from the others whose parameter has the same name, in brackets."""
    if len(owners) < 2:
        return ""
    own = term.options
    differ = [k for k in own if any(other.options.get(k, own[k]) != own[k] for other in owners)]
    said = [f"{k}={own[k]:g}" if isinstance(own[k], float) else f"{k}={own[k]}" for k in differ]
    return f"[{', '.join(said)}]" if said else ""


def _pass_on(out: Entries, c: Coordinate, lever: Scalar, values: Sequence[Scalar], first: int) -> None:
    """A torque on a coordinate reaches every joint that moves it."""
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
    """Joint terms for a `robot`; `which` by name ("rotor", "viscous", "coulomb", …) or as objects.

    >>> terms(robot, "viscous", Coulomb(smooth=0.01), Rotor(on="drive"))  # doctest: +SKIP
    """
    made = tuple(make_term(w) if isinstance(w, str) else w for w in which)
    bound = Terms(as_robot(robot), made)
    _ = bound.parameters  # names and coordinates are checked here, not at first use
    return bound


def nominal_terms(robot: Robot) -> tuple[Terms, Array]:
    """The terms that the description of `robot` states, and their values."""
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
    """The terms of `robot` that a caller means by `which`, as in `identification_terms`; None: none, links alone."""
    return None if which is None else identification_terms(robot, which)


def _listed(which: Any) -> Sequence[str | Term]:
    """One by one, as they were given: "viscous,coulomb" is two."""
    if isinstance(which, str):
        return [word.strip() for word in which.split(",") if word.strip()]
    listed = [which] if isinstance(which, Term) else list(which) if isinstance(which, Iterable) else [which]
    for item in listed:
        if not isinstance(item, str | Term):
            raise SteelyardError(
                f'Joint terms are given by name, "viscous,coulomb" or ["viscous", Coulomb(…)], not as '
                f"'{type(item).__name__}'."
            )
    return listed


def identification_terms(robot: Robot, which: TermsLike | None = None) -> Terms:
    """The terms that an identification starts from; dry friction by name is rounded off at `SMOOTHING_SPEED`.

    Args:
        robot: whose joints they act on.
        which: terms by name ("viscous,coulomb", or a list) or as objects; default: rotor, viscous, coulomb and offset,
            and rotor, viscous and coulomb of each motor that moves several joints at once. A name may carry a side and
            options: "rotor@drive", "coulomb:smooth=0.02" ("coulomb:smooth=0" takes the bare sign),
            "viscous@drive:where=motor6".
    """
    if isinstance(which, Terms):
        return which
    made: list[Term] = []
    usual: list[str | Term] = [*DEFAULT_TERMS, *coupled_drives(robot)]
    for item in usual if which is None else _listed(which):
        made.extend(terms_named(robot, item) if isinstance(item, str) else [item])
    return terms(robot, *made)


def coupled_drives(robot: Robot) -> list[Term]:
    """What a motor of `robot` that moves several joints has of its own: it turns and rubs by the sum of motions."""
    if robot.transmission is None:
        return []
    coupled = np.count_nonzero(robot.transmission.matrix, axis=1) > 1
    names = tuple(name for name, several in zip(robot.transmission.motors, coupled, strict=True) if several)
    kinds = ("rotor", "viscous", "coulomb") if names else ()
    return [term for kind in kinds for term in terms_named(robot, f"{kind}@drive", names)]


def terms_named(robot: Robot, text: str, where: tuple[str, ...] | None = None) -> list[Term]:
    """A term by name; one without a rounding (or width) of its own becomes one term per kind of joint.

    Args:
        robot: whose joints it acts on.
        text: as it is typed, "coulomb@drive:smooth=0.02".
        where: the joints or motors that it acts on, whose names may hold what `text` could not; None: as `text` says.
    """
    term, given = parse_term(text)
    term = term if where is None else replace(term, where=where)
    if not term.rounds or term.rounds in given:
        return [term]
    if term.on != "joint":
        return [term.rounded("revolute")]
    out: list[Term] = []
    for kind in SMOOTHING_SPEED:
        names = tuple(j.name for j in robot.joints if j.kind == kind and (term.where is None or j.name in term.where))
        if names:
            where = None if len(names) == robot.dof else names
            out.append(replace(term.rounded(kind), where=where))
    return out or [term]
