"""Simulation of friction with memory, with stable steps for stiff presliding that never create energy.

A stop is a spring with a limited force: over a step its state changes from s to s⁺ = clip(s + Δu/width, −1, 1), and its
force is K s⁺ (implicit, for springs too stiff for the step) or K (s + s⁺)/2 (for softer ones). With the mean velocity
½(v + v⁺) moving the joints, M (v⁺ − v)/h = τ − b − Σ forces is one piecewise linear, monotone system for v⁺; a few
iterations find which stops slide. The work of such a force is never less than the energy its spring stores, so friction
only dissipates, and joints that stops can hold come to rest. Plain dry friction is a stop of negligible width. In
friction under load, K follows the transmitted torque from iteration to iteration.
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
from steelyard.parameters.hysteresis import RigidLoad, Stop
from steelyard.parameters.term import Term
from steelyard.robot.transmission import ConstantRatio
from steelyard.simulation._integrators import SimulationProblem
from steelyard.simulation.plant import Plant

# Stop width of dry friction with true stiction [rad, m]: far below the resolution of any encoder.
_DRY_WIDTH = 1e-9
# Up to this ω²h² a spring uses the mean of its states; the implicit step damps stiffer ones.
_FOLLOWED = 0.1
# Steps are divided so that stops oscillate by less than this phase per part [rad], with a maximum number of parts.
_PHASE = 0.2
_MOST_PARTS = 20
# Iterations per step for the transmitted torque, and for which stops slide.
_LOAD_ROUNDS = 2
_MOST_ROUNDS = 30


@dataclass(frozen=True, eq=False)
class _Element:
    """A stop on a coordinate; its level is Σ share · parameter, with a further factor (the load) under load.

    An entry of `constant` is (index of the parameter, share), one of `under_load` has the load signal as well.
    """

    coordinate: Coordinate
    width: float
    constant: tuple[tuple[int, float], ...]
    under_load: tuple[tuple[int, float, RigidLoad], ...]
    has_memory: bool


def _elements(model: Model) -> list[_Element]:
    """Return the stops of all terms; terms under load without a stop are dry. A lag belongs to the measurement."""
    constant: dict[tuple[str, int, float, bool], list[tuple[int, float]]] = {}
    under_load: dict[tuple[str, int, float, bool], list[tuple[int, float, RigidLoad]]] = {}
    coordinates: dict[tuple[str, int, float, bool], Coordinate] = {}
    first = model.robot.inertial_count
    for term, c in model.terms.with_coordinates:
        stop = next((a for a in term.history if isinstance(a, Stop)), None)
        load = next((a for a in term.history if isinstance(a, RigidLoad)), None)
        if stop is not None or load is not None:
            key = c.side, c.index, _DRY_WIDTH if stop is None else stop.width, stop is not None
            coordinates[key] = c
            if load is None:
                constant.setdefault(key, []).extend(_shares(term, first))
            else:
                under_load.setdefault(key, []).extend((k, x, load) for k, x in _shares(term, first))
        first += len(term.columns)
    return [
        _Element(c, key[2], tuple(constant.get(key, ())), tuple(under_load.get(key, ())), key[3])
        for key, c in coordinates.items()
    ]


def _shares(term: Term, first: int) -> list[tuple[int, float]]:
    """Return the columns of a term with their forces at the end of the stop, under unit load."""
    return [(first + k, float(value)) for k, value in enumerate(term.force(0.0, 1.0))]


class ImplicitStepper:
    """Base of the steppers for friction with states: bristles (`lugre`) or stops.

    M(v⁺ − v)/h = τ − b − F⁺, with the friction F⁺ at the end of the step as a function of the velocity there.

    Args:
        model: Robot model with its parameters.
        plant: Traced physics of its robot and terms.
    """

    def __init__(self, model: Model, plant: Plant) -> None:
        widths = {x: plant.widths[x] for x in ("q", "dq", "theta")}
        self._parts = Single(plant.parts, widths, theta=plant.lumped(model.theta[None])[0])
        self.model, self._n, self._contacts = model, model.robot.dof, len(plant.dry)

    def physics(self, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
        """Compute M(q), the torque without acceleration and dry friction, and the friction levels in both directions.

        Args:
            q: Positions [rad, m].
            v: Velocities [rad/s, m/s].
        """
        n, m = self._n, self._contacts
        mass, bias, up, down = np.split(self._parts(q, v), [n * n, n * n + n, n * n + n + m])
        return mass.reshape(n, n), bias, up, down


class MemoryStepper(ImplicitStepper):
    """Steps of one robot.

    Args:
        model: Robot model with its parameters.
        plant: Traced physics of its robot and terms.
        sticks: Simulate true stiction; otherwise dry friction rises over the first `smoothing`.
        smoothing: Speed range [rad/s, m/s].
    """

    def __init__(self, model: Model, plant: Plant, sticks: bool, smoothing: float) -> None:
        super().__init__(model, plant)
        self._sticks, self._smoothing = sticks, smoothing
        self.elements = _elements(model)
        self._dry = plant.dry.directions
        constant = [sum(model.theta[c] * x for c, x in e.constant) for e in self.elements]
        self._level: Array = np.array(constant + [0.0] * len(self._dry), dtype=float)
        self._under_load = any(e.under_load for e in self.elements)
        self._count = len(self.elements) + len(self._dry)
        self.width = np.array([e.width for e in self.elements] + [_DRY_WIDTH] * len(self._dry))
        self._has_memory = np.array([e.has_memory for e in self.elements] + [False] * len(self._dry), dtype=bool)
        self._constant = all(e.coordinate.side != "motor" or isinstance(e.coordinate.ratio, ConstantRatio)
                             for e in self.elements)  # fmt: skip

    # ---------------------------------------------------------------- states

    @cached_property
    def names(self) -> list[tuple[str, int, float]]:
        """Side, index and width of every stop with memory, in the order of its states."""
        return [(e.coordinate.side, e.coordinate.index, e.width) for e in self.elements if e.has_memory]

    def first(self, dq: Array, stops: Array | None) -> Array:
        """Return the initial states.

        Args:
            dq: Velocities [rad/s, m/s].
            stops: States of stops with memory; default: as after a long motion at these velocities.
        """
        G = self._directions(np.zeros(self._n))
        s = np.sign(G @ dq)
        if stops is not None:
            s[self._has_memory] = stops
        return s

    def _directions(self, q: Array) -> Array:
        """Compute the Jacobian of the elements at `q`, `(elements, joints)`."""
        if self._constant and "_fixed" in self.__dict__:
            return self._fixed
        rows = [float(e.coordinate.slope(list(q))) * np.array(e.coordinate.weights) for e in self.elements]
        G = np.vstack([np.array(rows).reshape(len(rows), self._n), self._dry])
        if self._constant:
            self._fixed: Array = G
        return G

    # ---------------------------------------------------------------- physics

    def _levels(self, q: Array, transmitted: Array, s: Array, up: Array, down: Array) -> Array:
        """Compute K of every element at `q` if links and rotors need the torques `transmitted`."""
        K = self._level.copy()
        for k, e in enumerate(self.elements):
            if e.under_load:
                size = abs(float(e.coordinate.torque(list(q), list(transmitted))))
                K[k] += sum(self.model.theta[c] * x * float(load.steady(0.0, size)) for c, x, load in e.under_load)
        K[len(self.elements) :] = np.where(s[len(self.elements) :] >= 0.0, up, down)
        return np.asarray(np.maximum(K, 0.0))

    def _weight(self, q: Array, v: Array) -> Array:
        """Compute the torque of links and rotors without acceleration; zero if no friction depends on load."""
        return self.model.rigid_torque(q, v, np.zeros(self._n)) if self._under_load else np.zeros(self._n)

    def parts_per_step(self, q: Array, h: float) -> int:
        """Return the number of parts per step that the stops need.

        Args:
            q: Positions [rad, m].
            h: Step [s].
        """
        still = np.zeros(self._n)
        mass, _, up, down = self.physics(q, still)
        K = np.where(self._has_memory, self._levels(q, self._weight(q, still), np.zeros(self._count), up, down), 0.0)
        G = self._directions(q)
        fastest = np.max(np.linalg.eigvals(np.linalg.solve(mass, (G.T * (K / self.width)) @ G)).real, initial=0.0)
        return int(np.clip(np.ceil(h * np.sqrt(max(float(fastest), 0.0)) / _PHASE), 1, _MOST_PARTS))

    def acceleration(self, q: Array, v: Array, s: Array, tau: Array) -> Array:
        """Compute q̈ for given states of the stops.

        Args:
            q: Positions [rad, m].
            v: Velocities [rad/s, m/s].
            s: States of the stops.
            tau: Torques [N m, N].
        """
        mass, bias, up, down = self.physics(q, v)
        G = self._directions(q)
        s = self._effective_states(s, G @ v)
        a: Array = np.zeros(self._n)
        weight = self._weight(q, v)
        for _ in range(_MOST_ROUNDS):
            K = self._levels(q, mass @ a + weight, s, up, down)
            before, a = a, np.asarray(np.linalg.solve(mass, tau - bias - G.T @ (K * s)), dtype=np.float64)
            if not self._under_load or np.max(np.abs(a - before)) <= 1e-12 * np.max(np.abs(a)):
                break
        return np.asarray(a)

    def _effective_states(self, s: Array, speed: Array) -> Array:
        """Return the states that act: without stiction, dry friction depends on the velocity."""
        if self._sticks:
            return s
        return np.where(self._has_memory, s, np.clip(speed / self._smoothing, -1.0, 1.0))

    def __call__(
        self, q: Array, v: Array, s: Array, a: Array, tau: Array, h: float
    ) -> tuple[Array, Array, Array, Array]:
        """Do one step; returns position, velocity, states and mean acceleration.

        Args:
            q: Positions [rad, m].
            v: Velocities [rad/s, m/s].
            s: States of the stops.
            a: Last acceleration.
            tau: Torques, constant over the step [N m, N].
            h: Step [s].
        """
        middle = q + 0.5 * h * v
        mass, bias, up, down = self.physics(middle, v + 0.5 * h * a)
        G = self._directions(middle)
        inertia = mass / h
        known = inertia @ v + tau - bias
        # s⁺ = clip(base + slope · G v⁺).
        slope, base = 0.5 * h / self.width, s + 0.5 * h * (G @ v) / self.width
        if not self._sticks:
            slope = np.where(self._has_memory, slope, 1.0 / self._smoothing)
            base = np.where(self._has_memory, base, 0.0)
        own = np.einsum("ij,ij->i", G, np.linalg.solve(mass, G.T).T)
        new, after, mean = v, s, a
        weight = self._weight(middle, v + 0.5 * h * a)
        for _ in range(_LOAD_ROUNDS if self._under_load else 1):
            K = self._levels(middle, mass @ mean + weight, after, up, down)
            share = np.where(self._has_memory & (K * own * h * h < _FOLLOWED * self.width), 0.5, 1.0)
            new, after = self._solve(inertia, known, G, K, share, s, base, slope, new)
            mean = (new - v) / h
        return q + 0.5 * h * (v + new), new, after, mean

    @staticmethod
    def _solve(
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
        """Solve `inertia` v⁺ = `known` − Gᵀ K (share s⁺ + (1 − share) s) for v⁺ and s⁺.

        The solution minimises a convex function of v⁺, which is quadratic while no stop changes between sticking and
        sliding. A Newton step that would increase this function is shortened.
        """
        right, pull = known - G.T @ (K * (1.0 - share) * s), K * share

        def cost(v: Array) -> float:
            size = np.abs(base + slope * (G @ v))
            potential = np.where(size < 1.0, 0.5 * size**2, size - 0.5)
            return float(0.5 * v @ inertia @ v - right @ v + np.sum(pull / slope * potential))

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
    """Simulate robots with friction memory; returns signals and the states of the stops (`history`).

    Args:
        problem: Inputs of the run; robot k has the parameters of `models`[k].
        models: One model per robot of the batch.
        sticks: Simulate true stiction.
        smoothing: Speed range of smoothed dry friction otherwise [rad/s, m/s].
        bound: A run diverges beyond ± this position [rad, m].
        stops: Initial states, one per stop; default: as after a long motion at the first velocity.
        least_parts: Minimum number of parts per step.
    """
    command, schedule = problem.command, problem.schedule
    if command.states:
        raise SimulationError(
            "A controller with states, such as PID, is not supported for friction with memory; use PD."
        )
    results = problem.results()
    states = []
    for robot, model in enumerate(models):
        stepper = MemoryStepper(model, problem.plant, sticks, smoothing)
        q, v = problem.q0[robot].copy(), problem.dq0[robot].copy()
        s = stepper.first(v, stops)
        parts = max(stepper.parts_per_step(q, schedule.step), least_parts)
        h, tau, a = schedule.step / parts, np.zeros_like(q), None
        recorded = np.full((schedule.samples, int(np.sum(stepper._has_memory))), np.nan)
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
                recorded[k // schedule.every] = s[stepper._has_memory]
            if k < schedule.steps:
                a = here
                for _ in range(parts):
                    q, v, s, a = stepper(q, v, s, a, tau, h)
                if not np.all(np.abs(q) < bound):
                    break
        states.append(recorded)
    return {**results, "history": np.array(states)}
