"""Robots whose friction remembers, stepped so that stiff presliding is stable and no energy is ever created.

A stop is a spring that gives way: over a step its state goes from s to s⁺ = clip(s + Δu/width, −1, 1), and its force is
K s⁺ (implicit, where the spring is too stiff for the step) or K (s + s⁺)/2 (where the step follows it). With the mean
velocity ½(v + v⁺) moving the joints, M (v⁺ − v)/h = τ − b − Σ forces is one piecewise linear, monotone system for v⁺:
which stops give way is found in a few rounds. The work of such a force is never less than what its spring takes up, so
friction can only lose energy; and a joint that its stops can hold comes to rest, truly. Bare dry friction is a stop of
no width to speak of; friction under load is one whose K follows what the joint carries, from round to round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.dynamics.native.kernel import Single
from steelyard.errors import SimulationError
from steelyard.ground.arrays import Array
from steelyard.parameters.coordinate import Coordinate
from steelyard.parameters.history import RigidLoad, Stop
from steelyard.parameters.term import Term
from steelyard.robot.transmission import ConstantRatio
from steelyard.simulation._fixed_steps import SimulationProblem
from steelyard.simulation.plant import Plant

# The width (rad, m) of dry friction where joints shall truly stick: far below what any encoder sees.
_DRY_WIDTH = 1e-9
# A spring is followed by the mean of its states up to this ω²h²; stiffer ones are damped out by the step.
_FOLLOWED = 0.1
# Steps are cut so that the stops ring at less than this (rad) per part, into so many parts at most.
_PHASE = 0.2
_MOST_PARTS = 20
# Rounds in which a step looks at what is carried, and at which stops give way.
_LOAD_ROUNDS = 2
_MOST_ROUNDS = 30


@dataclass(frozen=True, eq=False)
class _Element:
    """A stop on a coordinate: its level is Σ of its parameters (`held`), those under load (`loaded`) times that.

    Parameters are given by column and share, those under load with what counts of it.
    """

    coordinate: Coordinate
    width: float
    held: tuple[tuple[int, float], ...]
    loaded: tuple[tuple[int, float, RigidLoad], ...]
    remembers: bool


def _elements(model: Model) -> list[_Element]:
    """The stops of all terms that remember; terms under load without a stop are dry. Lag belongs to the measurement."""
    held: dict[tuple[str, int, float, bool], list[tuple[int, float]]] = {}
    loaded: dict[tuple[str, int, float, bool], list[tuple[int, float, RigidLoad]]] = {}
    coordinates: dict[tuple[str, int, float, bool], Coordinate] = {}
    first = model.robot.inertial_count
    for term, c in model.terms.placed:
        stop = next((a for a in term.history if isinstance(a, Stop)), None)
        load = next((a for a in term.history if isinstance(a, RigidLoad)), None)
        if stop is not None or load is not None:
            key = c.side, c.index, _DRY_WIDTH if stop is None else stop.width, stop is not None
            coordinates[key] = c
            if load is None:
                held.setdefault(key, []).extend(_shares(term, first))
            else:
                loaded.setdefault(key, []).extend((k, x, load) for k, x in _shares(term, first))
        first += len(term.columns)
    return [
        _Element(c, key[2], tuple(held.get(key, ())), tuple(loaded.get(key, ())), key[3])
        for key, c in coordinates.items()
    ]


def _shares(term: Term, first: int) -> list[tuple[int, float]]:
    """The columns of a term with what each asks for at the end of the stop, under unit load."""
    return [(first + k, float(value)) for k, value in enumerate(term.force(0.0, 1.0))]


class ImplicitStepper:
    """What stepping one robot whose friction has a state needs: bristles (`lugre`) or stops.

    M(v⁺ − v)/h = τ − b − F⁺, with the friction F⁺ at the end of the step as a function of the velocity there.

    Args:
        model: the robot, with its parameters.
        plant: the traced physics of its robot and terms.
    """

    def __init__(self, model: Model, plant: Plant) -> None:
        widths = {x: plant.widths[x] for x in ("q", "dq", "theta")}
        self._parts = Single(plant.parts, widths, theta=plant.lumped(model.theta[None])[0])
        self.model, self._n, self._places = model, model.robot.dof, len(plant.dry)

    def physics(self, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
        """M(q), the torque at `q` and `v` without acceleration and dry friction, and the levels of that, both ways."""
        n, m = self._n, self._places
        mass, bias, up, down = np.split(self._parts(q, v), [n * n, n * n + n, n * n + n + m])
        return mass.reshape(n, n), bias, up, down


class MemoryStepper(ImplicitStepper):
    """Steps of one robot.

    Args:
        model: the robot, with its parameters.
        plant: the traced physics of its robot and terms.
        sticks: whether dry friction truly holds joints; else it grows over the first `smoothing` rad/s (m/s).
        smoothing: that speed.
    """

    def __init__(self, model: Model, plant: Plant, sticks: bool, smoothing: float) -> None:
        super().__init__(model, plant)
        self._sticks, self._smoothing = sticks, smoothing
        self.elements = _elements(model)
        self._dry = plant.dry.directions
        held = [sum(model.theta[c] * x for c, x in e.held) for e in self.elements]
        self._held: Array = np.array(held + [0.0] * len(self._dry), dtype=float)
        self._loaded = any(e.loaded for e in self.elements)
        self._count = len(self.elements) + len(self._dry)
        self.width = np.array([e.width for e in self.elements] + [_DRY_WIDTH] * len(self._dry))
        self._remembers = np.array([e.remembers for e in self.elements] + [False] * len(self._dry), dtype=bool)
        self._constant = all(e.coordinate.side != "motor" or isinstance(e.coordinate.ratio, ConstantRatio)
                             for e in self.elements)  # fmt: skip

    # ---------------------------------------------------------------- states

    @cached_property
    def names(self) -> list[tuple[str, int, float]]:
        """Side, number and width of every stop that remembers, in the order of its states."""
        return [(e.coordinate.side, e.coordinate.index, e.width) for e in self.elements if e.remembers]

    def first(self, dq: Array, stops: Array | None) -> Array:
        """States to start from at velocities `dq`: `stops` for those that remember, or as a long motion left them."""
        G = self._directions(np.zeros(self._n))
        s = np.sign(G @ dq)
        if stops is not None:
            s[self._remembers] = stops
        return s

    def _directions(self, q: Array) -> Array:
        """How each element moves with the joints at `q`, `(elements, joints)`."""
        if self._constant and "_fixed" in self.__dict__:
            return self._fixed
        rows = [float(e.coordinate.slope(list(q))) * np.array(e.coordinate.weights) for e in self.elements]
        G = np.vstack([np.array(rows).reshape(len(rows), self._n), self._dry])
        if self._constant:
            self._fixed: Array = G
        return G

    # ---------------------------------------------------------------- physics

    def _levels(self, q: Array, carried: Array, s: Array, up: Array, down: Array) -> Array:
        """K of every element at `q` where links and rotors ask for the torques `carried`."""
        K = self._held.copy()
        for k, e in enumerate(self.elements):
            if e.loaded:
                size = abs(float(e.coordinate.torque(list(q), list(carried))))
                K[k] += sum(self.model.theta[c] * x * float(load.steady(0.0, size)) for c, x, load in e.loaded)
        K[len(self.elements) :] = np.where(s[len(self.elements) :] >= 0.0, up, down)
        return np.asarray(np.maximum(K, 0.0))

    def _weight(self, q: Array, v: Array) -> Array:
        """The torque of links and rotors without acceleration; zero where nothing goes by it."""
        return self.model.rigid_torque(q, v, np.zeros(self._n)) if self._loaded else np.zeros(self._n)

    def parts_per_step(self, q: Array, h: float) -> int:
        """Into how many parts a step of `h` seconds from `q` (rad, m) must be cut to follow its stops."""
        still = np.zeros(self._n)
        mass, _, up, down = self.physics(q, still)
        K = np.where(self._remembers, self._levels(q, self._weight(q, still), np.zeros(self._count), up, down), 0.0)
        G = self._directions(q)
        fastest = np.max(np.linalg.eigvals(np.linalg.solve(mass, (G.T * (K / self.width)) @ G)).real, initial=0.0)
        return int(np.clip(np.ceil(h * np.sqrt(max(float(fastest), 0.0)) / _PHASE), 1, _MOST_PARTS))

    def acceleration(self, q: Array, v: Array, s: Array, tau: Array) -> Array:
        """q̈ at `q` (rad, m) and `v`, under the torques `tau` (N m, N) and friction at the stops' states `s`."""
        mass, bias, up, down = self.physics(q, v)
        G = self._directions(q)
        s = self._seen(s, G @ v)
        a: Array = np.zeros(self._n)
        weight = self._weight(q, v)
        for _ in range(_MOST_ROUNDS):
            K = self._levels(q, mass @ a + weight, s, up, down)
            before, a = a, np.asarray(np.linalg.solve(mass, tau - bias - G.T @ (K * s)), dtype=np.float64)
            if not self._loaded or np.max(np.abs(a - before)) <= 1e-12 * np.max(np.abs(a)):
                break
        return np.asarray(a)

    def _seen(self, s: Array, speed: Array) -> Array:
        """States as they act: without true stick, dry friction goes by the velocity."""
        if self._sticks:
            return s
        return np.where(self._remembers, s, np.clip(speed / self._smoothing, -1.0, 1.0))

    def __call__(
        self, q: Array, v: Array, s: Array, a: Array, tau: Array, h: float
    ) -> tuple[Array, Array, Array, Array]:
        """Position, velocity, states and mean acceleration after `h` seconds from `q`, `v`, `s` on.

        The torques `tau` (N m, N) are held; `a` was the last acceleration.
        """
        middle = q + 0.5 * h * v
        mass, bias, up, down = self.physics(middle, v + 0.5 * h * a)
        G = self._directions(middle)
        inertia = mass / h
        known = inertia @ v + tau - bias
        # s⁺ = clip(base + slope · G v⁺).
        slope, base = 0.5 * h / self.width, s + 0.5 * h * (G @ v) / self.width
        if not self._sticks:
            slope = np.where(self._remembers, slope, 1.0 / self._smoothing)
            base = np.where(self._remembers, base, 0.0)
        own = np.einsum("ij,ij->i", G, np.linalg.solve(mass, G.T).T)
        new, after, mean = v, s, a
        weight = self._weight(middle, v + 0.5 * h * a)
        for _ in range(_LOAD_ROUNDS if self._loaded else 1):
            K = self._levels(middle, mass @ mean + weight, after, up, down)
            share = np.where(self._remembers & (K * own * h * h < _FOLLOWED * self.width), 0.5, 1.0)
            new, after = self._solved(inertia, known, G, K, share, s, base, slope, new)
            mean = (new - v) / h
        return q + 0.5 * h * (v + new), new, after, mean

    @staticmethod
    def _solved(
        inertia: Array,
        known: Array,
        G: Array,
        K: Array,
        share: Array,
        s: Array,
        base: Array,
        slope: Array,
        guess: Array,
    ) -> tuple[Array, Array]:
        """v⁺ and s⁺ with `inertia` v⁺ = `known` − Gᵀ K (share s⁺ + (1 − share) s).

        That is where a convex function of v⁺ is least, quadratic where no stop begins or ceases to give way; Newton's
        steps go there, shortened where they would climb.
        """
        right, pull = known - G.T @ (K * (1.0 - share) * s), K * share

        def cost(v: Array) -> float:
            size = np.abs(base + slope * (G @ v))
            held = np.where(size < 1.0, 0.5 * size**2, size - 0.5)
            return float(0.5 * v @ inertia @ v - right @ v + np.sum(pull / slope * held))

        here, at = guess, base + slope * (G @ guess)
        for _ in range(_MOST_ROUNDS):
            free = np.abs(at) < 1.0
            springs, still = np.where(free, pull * slope, 0.0), pull * np.where(free, base, np.sign(at))
            goal = np.asarray(np.linalg.solve(inertia + (G.T * springs) @ G, right - G.T @ still), dtype=np.float64)
            there = base + slope * (G @ goal)
            if np.all(np.where(free, np.abs(there) <= 1.0, at * there >= 0.0) & (free == (np.abs(there) < 1.0))):
                return goal, np.clip(there, -1.0, 1.0)
            part, now = 1.0, cost(here)
            while cost(here + part * (goal - here)) > now and part > 1e-6:
                part *= 0.5
            here = here + part * (goal - here)
            at = base + slope * (G @ here)
        return here, np.clip(at, -1.0, 1.0)


def run_with_memory(
    problem: SimulationProblem, models: list[Model], sticks: bool, smoothing: float, bound: float, stops: Array | None,
    least_parts: int = 1,
) -> dict[str, Array]:  # fmt: skip
    """The signals of robots whose friction remembers, and the states of their stops (`history`).

    Args:
        problem: what is simulated; robot k has the parameters of `models`[k].
        models: one per robot of the batch.
        sticks: whether dry friction truly holds joints.
        smoothing: the speed over which it else grows, rad/s (m/s).
        bound: beyond ± this (rad, m) a run has gone wrong.
        stops: states to start from, one per stop; None: as a long motion at the first velocity would leave them.
        least_parts: every step is cut into so many parts or more.
    """
    command, schedule = problem.command, problem.schedule
    if command.states:
        raise SimulationError("A controller that remembers, such as PID, is not simulated where friction remembers.")
    results = problem.results()
    states = []
    for robot, model in enumerate(models):
        stepper = MemoryStepper(model, problem.plant, sticks, smoothing)
        q, v = problem.q0[robot].copy(), problem.dq0[robot].copy()
        s = stepper.first(v, stops)
        parts = max(stepper.parts_per_step(q, schedule.step), least_parts)
        h, tau, a = schedule.step / parts, np.zeros_like(q), None
        kept = np.full((schedule.samples, int(np.sum(stepper._remembers))), np.nan)
        for x in results.values():
            x[robot] = np.nan
        for k in range(schedule.steps + 1):
            if k % schedule.hold == 0:
                tau = command.torque(robot, k // schedule.hold, schedule.start + k * schedule.step, q, v)
                a = None
            here = stepper.acceleration(q, v, s, tau) if a is None or k % schedule.every == 0 else a
            if k % schedule.every == 0:
                sample = {"q": q, "dq": v, "ddq": here, "tau": tau}
                for name, value in sample.items():
                    results[name][robot, k // schedule.every] = value
                kept[k // schedule.every] = s[stepper._remembers]
            if k < schedule.steps:
                a = here
                for _ in range(parts):
                    q, v, s, a = stepper(q, v, s, a, tau, h)
                if not np.all(np.abs(q) < bound):
                    break
        states.append(kept)
    return {**results, "history": np.array(states)}
