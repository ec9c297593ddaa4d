"""`Dynamics`: the physics of a robot with its joint terms, vectorised over samples, with exact derivatives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.dynamics import bodies, regressors
from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import Function, trace
from steelyard.dynamics.load_friction import with_rotors, without_load_friction
from steelyard.errors import RobotError, ShapeError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Vector
from steelyard.parameters.hysteresis import RigidLoad
from steelyard.parameters.inertial import inertial_parameters_of
from steelyard.parameters.terms import Entries, Parameter, Terms
from steelyard.robot.robot import Robot

# Maximum number of pairs of a joint and a link that it moves. A chain of 48 joints has this number of pairs,
# and the computation of its base parameters takes five seconds. A humanoid with hands has half this number.
MOST_MOVED = 1_200
# From this number of pairs on (a chain of 28 joints) tracing takes seconds and is announced.
LONG_MOVED = 400


class LongChainWarning(UserWarning):
    """Tracing the dynamics of this robot takes seconds; the text names it and says how to be faster."""


@lru_cache(maxsize=64)
def announce_long_chain(name: str, joints: int) -> None:
    """Warn, once per robot, that tracing its dynamics takes seconds.

    Args:
        name: Name of the robot or its file.
        joints: Number of joints.
    """
    warnings.warn(
        f"{name}: computing the dynamics of {joints} joints in long chains takes some seconds, and longer if machine "
        "code is compiled; select fewer joints (--joints) to be faster.",
        LongChainWarning,
        stacklevel=3,
    )


class Dynamics:
    """The physics of one robot with its joint terms.

    Methods take arrays `(samples, joints)` or single states `(joints,)`. A few samples are interpreted; more are
    compiled to machine code on first use, which is cached on disk. If terms have memory (`terms.history`), functions of
    forces have one more input, `history`. Without it, samples are consecutive ones of one motion, and the load is that
    of `theta`, or of the robot's description.

    Args:
        robot: Tree of links.
        terms: Friction, rotors and the like; default: rigid bodies alone.
        q: Positions [rad, m].
        dq: Velocities [rad/s, m/s].
        ddq: Accelerations [rad/s², m/s²].
        tau: Joint torques [N m, N].
        theta: Values of `parameters`: ten per link, then those of the terms [SI].
        history: Values of the signals along the motion, `(samples, signals)`.
        out: Array for the result.
        threads: Number of threads; default: all processors.
        name: Name of a function, which is that of its method.
        inputs: Inputs of that function by name.
        derivative: Empty, or "adjoint" or "tangent" with the inputs of the derivative.
        cotangent: Array with the shape of the function's result.
        tangents: Tangents by name of the input.
        wrt: Name of an input.
        signals: Inputs by name, as scalars.
        period: Time between samples [s]; without it, rates are zero.
    """

    def __init__(self, robot: Robot, terms: Terms | None = None) -> None:
        moved = sum(len(robot.ancestors(k)) for k in range(len(robot.links)))
        if moved > MOST_MOVED:
            raise RobotError(
                f"{robot.source or robot.name}: its chains of joints are too long ({moved} pairs of a joint and a link "
                f"that it moves; the maximum is {MOST_MOVED}); select fewer joints (--joints, joints=[…])."
            )
        if moved >= LONG_MOVED:
            announce_long_chain(robot.source or robot.name, robot.dof)
        self.robot = robot
        self.terms = terms if terms is not None else Terms(robot, ())
        self._functions: dict[tuple[str, ...], Function] = {}
        self._evaluators: dict[tuple[str, ...], Evaluator] = {}
        self.cache: dict[object, Any] = {}  # for other rooms: functions traced from this object

    def __reduce__(self) -> tuple[type[Dynamics], tuple[Robot, Terms]]:
        """Pickle without machine code; another process traces again and loads the code from disk."""
        return Dynamics, (self.robot, self.terms)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameter of each column of a regressor."""
        return inertial_parameters_of(self.robot) + self.terms.parameters

    # ---------------------------------------------------------------- the physics

    def torque_regressor(
        self,
        q: ArrayLike,
        dq: ArrayLike,
        ddq: ArrayLike,
        out: Array | None = None,
        threads: int | None = None,
        history: ArrayLike | None = None,
    ) -> Array:
        """Compute Y with τ = Y θ, `(samples, joints, parameters)`."""
        inputs = self._with_history({"q": q, "dq": dq, "ddq": ddq}, history)
        return self.evaluator("torque_regressor")(inputs, out, threads)

    def momentum_regressor(self, q: ArrayLike, dq: ArrayLike) -> Array:
        """Compute P with p = M q̇ = P θ, `(samples, joints, parameters)`."""
        return self.evaluator("momentum_regressor")({"q": q, "dq": dq})

    def remainder_regressor(self, q: ArrayLike, dq: ArrayLike, history: ArrayLike | None = None) -> Array:
        """Compute D with τ = d/dt(P θ) + D θ, `(samples, joints, parameters)`."""
        return self.evaluator("remainder_regressor")(self._with_history({"q": q, "dq": dq}, history))

    def kinetic_energy_regressor(self, q: ArrayLike, dq: ArrayLike) -> Array:
        """Compute kinetic energy per parameter, `(samples, parameters)`."""
        return self.evaluator("kinetic_energy_regressor")({"q": q, "dq": dq})

    def potential_energy_regressor(self, q: ArrayLike) -> Array:
        """Compute potential energy per parameter, `(samples, parameters)`, at `q`."""
        return self.evaluator("potential_energy_regressor")({"q": q})

    def dissipation_regressor(self, q: ArrayLike, dq: ArrayLike, history: ArrayLike | None = None) -> Array:
        """Compute power lost to friction per parameter, `(samples, parameters)`."""
        return self.evaluator("dissipation_regressor")(self._with_history({"q": q, "dq": dq}, history))

    def inverse_dynamics(
        self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, theta: ArrayLike, history: ArrayLike | None = None
    ) -> Array:
        """Compute joint torques τ, `(samples, joints)`."""
        inputs = self._with_history({"q": q, "dq": dq, "ddq": ddq, "theta": theta}, history)
        return self.evaluator("inverse_dynamics")(inputs)

    def forward_dynamics(
        self, q: ArrayLike, dq: ArrayLike, tau: ArrayLike, theta: ArrayLike, history: ArrayLike | None = None
    ) -> Array:
        """Compute joint accelerations q̈, `(samples, joints)`.

        Of `history` only the stops are used: loads depend on q̈ and are part of the solution.
        """
        inputs = self._with_history({"q": q, "dq": dq, "tau": tau, "theta": theta}, history)
        return self.evaluator("forward_dynamics")(inputs)

    def mass_matrix(self, q: ArrayLike, theta: ArrayLike) -> Array:
        """Compute M(q), `(samples, joints, joints)`."""
        return self.evaluator("mass_matrix")({"q": q, "theta": theta})

    def gravity_torque(self, q: ArrayLike, theta: ArrayLike) -> Array:
        """Compute the static torque with springs and offsets, without friction, `(samples, joints)`."""
        return self.evaluator("gravity_torque")({"q": q, "theta": theta})

    def bias_torque(self, q: ArrayLike, dq: ArrayLike, theta: ArrayLike, history: ArrayLike | None = None) -> Array:
        """Compute τ at zero acceleration: Coriolis, centrifugal, gravity and friction, `(samples, joints)`."""
        return self.evaluator("bias_torque")(self._with_history({"q": q, "dq": dq, "theta": theta}, history))

    # ---------------------------------------------------------------- memory

    @cached_property
    def rigid(self) -> Dynamics:
        """The same robot with its rotors but without other terms."""
        return Dynamics(self.robot, Terms(self.robot, tuple(t for t in self.terms.terms if t.inertial)))

    @cached_property
    def rigid_columns(self) -> NDArray[np.int64]:
        """Indices of the parameters of `rigid`."""
        kept = [True] * self.robot.inertial_count + self.terms.per_parameter(lambda term, _: term.inertial)
        return np.flatnonzero(kept)

    def history(
        self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, theta: ArrayLike | None = None, period: float | None = None
    ) -> Array:
        """Compute the signals along one motion that terms with memory need, `(samples, signals)`."""
        x, dx, ddx = np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (q, dq, ddq)))
        if x.ndim > 2:
            parts = [self.history(*p, theta, period) for p in zip(x, dx, ddx, strict=True)]
            return np.array(parts)
        x, dx, ddx = (np.atleast_2d(a) for a in (x, dx, ddx))
        rigid = None
        if self.terms.needs_rigid:
            own, columns = self.rigid, self.rigid_columns
            if theta is None:
                own, columns = self.robot.dynamics, np.arange(self.robot.inertial_count)
            values = self.robot.inertial_parameters if theta is None else np.asarray(theta, dtype=float)
            rigid = np.atleast_2d(own.inverse_dynamics(x, dx, ddx, values[..., columns]))
        signals = self.terms.along(x, dx, period, rigid)
        return signals if np.ndim(q) == 2 or np.ndim(dq) == 2 or np.ndim(ddq) == 2 else signals[0]

    def _with_history(self, inputs: dict[str, ArrayLike], history: ArrayLike | None) -> dict[str, ArrayLike]:
        """Add the signals along the motion, if any, to the inputs of a function of forces."""
        if not self.terms.history:
            return inputs
        if history is None:
            q = inputs["q"]
            still = np.zeros_like(np.asarray(q, dtype=float))
            history = self.history(q, inputs["dq"], inputs.get("ddq", still), inputs.get("theta"))
        return {**inputs, "history": history}

    # ---------------------------------------------------------------- derivatives

    def adjoint(self, name: str, cotangent: ArrayLike, **inputs: ArrayLike) -> dict[str, Array]:
        """Compute (∂f/∂x)ᵀ · cotangent for every input x of a function, by reverse mode.

        It is exact and costs about four evaluations, whatever the number of inputs.
        """
        function = self.function(name)
        shape = np.shape(cotangent)
        tail = shape[len(shape) - len(function.shape) :]
        if tail != function.shape:
            raise ShapeError(
                f"cotangent has shape {shape}; {name} gives (samples, {', '.join(map(str, function.shape))})."
            )
        flat = np.reshape(cotangent, (*shape[: len(shape) - len(function.shape)], function.size))
        joined = self.evaluator(name, "adjoint")({**inputs, "cotangent": flat})
        ends = np.cumsum(list(function.inputs.values()))[:-1]
        return dict(zip(function.inputs, np.split(joined, ends, axis=-1), strict=True))

    def tangent(self, name: str, tangents: Mapping[str, ArrayLike], **inputs: ArrayLike) -> Array:
        """Compute Σ (∂f/∂x) · tangents[x] by forward mode; inputs without a tangent are constant."""
        function = self.function(name)
        for x in tangents:
            if x not in function.inputs:
                raise UnknownNameError(f"input of {name}", x, function.inputs)
        moves = {f"tangent_{x}": v for x, v in tangents.items()}
        return self.evaluator(name, "tangent", *tangents)({**inputs, **moves})

    def jacobian(self, name: str, wrt: str, **inputs: ArrayLike) -> Array:
        """Compute ∂f/∂x, `(samples, *shape of f, width of x)`, by forward mode."""
        width = self.function(name).inputs.get(wrt)
        if width is None:
            raise UnknownNameError(f"input of {name}", wrt, self.function(name).inputs)
        columns = [self.tangent(name, {wrt: unit}, **inputs) for unit in np.eye(width)]
        return np.stack(columns, axis=-1)

    # ---------------------------------------------------------------- traced functions

    def function(self, name: str, *derivative: str) -> Function:
        """Return a traced function or its derivative."""
        key = (name, *derivative)
        if key not in self._functions:
            if derivative:
                maker = getattr(self.function(name), derivative[0])
                self._functions[key] = maker(derivative[1:] or None)
            else:
                self._functions[key] = self._trace(name)
        return self._functions[key]

    def evaluator(self, name: str, *derivative: str) -> Evaluator:
        key = (name, *derivative)
        if key not in self._evaluators:
            self._evaluators[key] = Evaluator(self.function(name, *derivative))
        return self._evaluators[key]

    def _trace(self, name: str) -> Function:
        inputs, body, shape = self._definition(name)
        n, p = self.robot.dof, self.robot.inertial_count + len(self.terms)
        widths = {"q": n, "dq": n, "ddq": n, "tau": n, "theta": p, "history": len(self.terms.history)}
        return trace(name, {x: widths[x] for x in inputs.split()}, body, shape)

    def _definition(self, name: str) -> tuple[str, Callable[..., Mapping[Any, Any]], tuple[int, ...]]:
        """Return the inputs of a function, its body over scalars, and the shape of its result."""
        n, p = self.robot.dof, self.robot.inertial_count + len(self.terms)
        past = " history" if self.terms.history else ""
        known: dict[str, tuple[str, Callable[..., Mapping[Any, Any]], tuple[int, ...]]] = {
            "torque_regressor": ("q dq ddq" + past, self._torque, (n, p)),
            "momentum_regressor": ("q dq", self._momentum, (n, p)),
            "remainder_regressor": ("q dq" + past, self._remainder, (n, p)),
            "kinetic_energy_regressor": ("q dq", self._kinetic, (p,)),
            "potential_energy_regressor": ("q", self._potential, (p,)),
            "dissipation_regressor": ("q dq" + past, self._dissipation, (p,)),
            "inverse_dynamics": ("q dq ddq theta" + past, self._inverse, (n,)),
            "forward_dynamics": ("q dq tau theta" + past, self._forward, (n,)),
            "mass_matrix": ("q theta", self._mass, (n, n)),
            "gravity_torque": ("q theta", self._gravity, (n,)),
            "bias_torque": ("q dq theta" + past, self._bias, (n,)),
        }
        if name not in known:
            raise UnknownNameError("function", name, known)
        return known[name]

    def _with_terms(self, links: Entries, of_terms: Entries) -> Entries:
        shift = self.robot.inertial_count
        return {**links, **{(row, shift + k): value for (row, k), value in of_terms.items()}}

    def _torque(self, q: Vector, dq: Vector, ddq: Vector, history: Vector = ()) -> Entries:
        links = regressors.torque_regressor(self.robot, q, dq, ddq)
        return self._with_terms(links, self.terms.torque(q, dq, ddq, history))

    def _momentum(self, q: Vector, dq: Vector) -> Entries:
        return self._with_terms(regressors.momentum_regressor(self.robot, q, dq), self.terms.momentum(q, dq))

    def _remainder(self, q: Vector, dq: Vector, history: Vector = ()) -> Entries:
        links = regressors.remainder_regressor(self.robot, q, dq)
        return self._with_terms(links, self.terms.remainder(q, dq, history))

    def _kinetic(self, q: Vector, dq: Vector) -> dict[tuple[int, ...], Any]:
        return _row(self._with_terms(regressors.kinetic_regressor(self.robot, q, dq), self.terms.kinetic(q, dq)))

    def _potential(self, q: Vector) -> dict[tuple[int, ...], Any]:
        return _row(self._with_terms(regressors.potential_regressor(self.robot, q), self.terms.potential(q)))

    def _dissipation(self, q: Vector, dq: Vector, history: Vector = ()) -> dict[tuple[int, ...], Any]:
        return _row(self._with_terms({}, self.terms.dissipation(q, dq, history)))

    def _inverse(
        self, q: Vector, dq: Vector, ddq: Vector, theta: Vector, history: Vector | None = None
    ) -> dict[tuple[int, ...], Any]:
        return dict(_enumerate_keys(self.inverse_over_scalars(q, dq, ddq, theta, history)))

    def _bias(self, q: Vector, dq: Vector, theta: Vector, history: Vector | None = None) -> dict[tuple[int, ...], Any]:
        return self._inverse(q, dq, [0.0] * self.robot.dof, theta, history)

    def _gravity(self, q: Vector, theta: Vector) -> dict[tuple[int, ...], Any]:
        still = [0.0] * self.robot.dof
        return self._inverse(q, still, still, theta, [0.0] * len(self.terms.history))

    def _mass(self, q: Vector, theta: Vector) -> Entries:
        return self.mass_over_scalars(q, theta)

    def _forward(
        self, q: Vector, dq: Vector, tau: Vector, theta: Vector, history: Vector | None = None
    ) -> dict[tuple[int, ...], Any]:
        return dict(_enumerate_keys(self.forward_over_scalars(q, dq, tau, theta, history)))

    # ---------------------------------------------------------------- over scalars, for further tracing

    def over_scalars(self, name: str, signals: Mapping[str, Vector]) -> Mapping[Any, Any]:
        """Compute the nonzero entries of a function by index, over scalars."""
        inputs, body, _ = self._definition(name)
        return body(*(signals[x] for x in inputs.split()))

    def inverse_over_scalars(
        self, q: Vector, dq: Vector, ddq: Vector, theta: Vector, history: Vector | None = None
    ) -> list[Any]:
        """Compute joint torques over scalars, terms included.

        If `history` or one of its signals is None, the value of a steady motion is used.
        """
        links = self.robot.inertial_count
        torque = bodies.inverse_dynamics(self.robot, q, dq, ddq, theta[:links])
        signals = [None] * len(self.terms.history) if history is None else list(history)
        if any(signal is None for signal in signals):
            steady = self.terms.steady(q, dq, with_rotors(self, torque, q, dq, ddq, theta))
            signals = [b if a is None else a for a, b in zip(signals, steady, strict=True)]
        history = signals
        for (joint, k), value in self.terms.torque(q, dq, ddq, history).items():
            torque[joint] = torque[joint] + theta[links + k] * value
        return torque

    def mass_over_scalars(self, q: Vector, theta: Vector) -> Entries:
        """Compute the nonzero entries of the mass matrix over scalars, terms included."""
        links = self.robot.inertial_count
        matrix = bodies.mass_matrix(self.robot, q, theta[:links])
        for key, value in self.terms.inertia(q, theta[links:]).items():
            matrix[key] = matrix.get(key, 0.0) + value
        return matrix

    def forward_over_scalars(
        self, q: Vector, dq: Vector, tau: Vector, theta: Vector, history: Vector | None = None
    ) -> list[Any]:
        """Compute joint accelerations over scalars, terms included; without `history`, signals are those of a steady
        motion.

        Friction under load is solved for, since it depends on the acceleration; a delay of the torque measurement is
        ignored.
        """
        still = [0.0] * self.robot.dof
        if history is None:
            history = self.terms.steady(q, dq, still)
        zero, _ = self.terms.without_load(history)
        bias = self.inverse_over_scalars(q, dq, still, theta, zero)
        if any(isinstance(a, RigidLoad) for a, _ in self.terms.history):
            tau = without_load_friction(self, q, dq, tau, theta, zero)
        right = [t - b for t, b in zip(tau, bias, strict=True)]
        return bodies.solve_spd(self.mass_over_scalars(q, theta), right, bodies.elimination_order(self.robot))


def _row(entries: Entries) -> dict[tuple[int, ...], Any]:
    """Return entries of a single equation, by column."""
    return {(column,): value for (_, column), value in entries.items()}


def _enumerate_keys(values: Sequence[Any]) -> list[tuple[tuple[int, ...], Any]]:
    return [((k,), value) for k, value in enumerate(values)]
