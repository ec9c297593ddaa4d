"""`Dynamics`: all the physics of a robot with its joint terms, vectorised over samples, with exact derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics import bodies, regressors
from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import Function, trace
from steelyard.errors import ShapeError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Vector
from steelyard.parameters.inertial import inertial_parameters_of
from steelyard.parameters.terms import Entries, Parameter, Terms
from steelyard.robot.robot import Robot


class Dynamics:
    """The physics of one robot with its joint terms.

    Every method takes arrays `(samples, joints)` or single states `(joints,)`: `q` in rad (m on slides), its rates `dq`
    and `ddq`, `tau` in N m (N). `theta` is the vector of `parameters`: ten per link, then the terms', in SI units. Work
    of a few samples runs at once; more is compiled to machine code on first use and kept on disk for the next time.

    A function has a `name`, that of its method, and `inputs`, the method's arguments. `derivative` is empty, or
    "adjoint" or "tangent" with the inputs it is taken by. Results go to `out` where it is given. `threads`: None takes
    as many as the machine has.

    Args:
        robot: the tree of links.
        terms: friction, rotors and the like; None: rigid bodies alone.
    """

    def __init__(self, robot: Robot, terms: Terms | None = None) -> None:
        self.robot = robot
        self.terms = terms if terms is not None else Terms(robot, ())
        self._functions: dict[tuple[str, ...], Function] = {}
        self._evaluators: dict[tuple[str, ...], Evaluator] = {}

    def __reduce__(self) -> tuple[type[Dynamics], tuple[Robot, Terms]]:
        """Machine code stays in its process; another one traces anew, and finds it on the disk."""
        return Dynamics, (self.robot, self.terms)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What each column of a regressor stands for."""
        return inertial_parameters_of(self.robot) + self.terms.parameters

    # ---------------------------------------------------------------- the physics

    def torque_regressor(
        self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, out: Array | None = None, threads: int | None = None
    ) -> Array:
        """Y with τ = Y θ, `(samples, joints, parameters)`."""
        return self.evaluator("torque_regressor")({"q": q, "dq": dq, "ddq": ddq}, out, threads)

    def momentum_regressor(self, q: ArrayLike, dq: ArrayLike) -> Array:
        """P with p = M q̇ = P θ, `(samples, joints, parameters)`."""
        return self.evaluator("momentum_regressor")({"q": q, "dq": dq})

    def remainder_regressor(self, q: ArrayLike, dq: ArrayLike) -> Array:
        """D with τ = d/dt(P θ) + D θ, `(samples, joints, parameters)`."""
        return self.evaluator("remainder_regressor")({"q": q, "dq": dq})

    def kinetic_energy_regressor(self, q: ArrayLike, dq: ArrayLike) -> Array:
        """Kinetic energy per parameter, `(samples, parameters)`."""
        return self.evaluator("kinetic_energy_regressor")({"q": q, "dq": dq})

    def potential_energy_regressor(self, q: ArrayLike) -> Array:
        """Potential energy per parameter, `(samples, parameters)`."""
        return self.evaluator("potential_energy_regressor")({"q": q})

    def dissipation_regressor(self, q: ArrayLike, dq: ArrayLike) -> Array:
        """Power lost to friction per parameter, `(samples, parameters)`."""
        return self.evaluator("dissipation_regressor")({"q": q, "dq": dq})

    def inverse_dynamics(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, theta: ArrayLike) -> Array:
        """Joint torques τ, `(samples, joints)`."""
        return self.evaluator("inverse_dynamics")({"q": q, "dq": dq, "ddq": ddq, "theta": theta})

    def forward_dynamics(self, q: ArrayLike, dq: ArrayLike, tau: ArrayLike, theta: ArrayLike) -> Array:
        """Joint accelerations q̈, `(samples, joints)`."""
        return self.evaluator("forward_dynamics")({"q": q, "dq": dq, "tau": tau, "theta": theta})

    def mass_matrix(self, q: ArrayLike, theta: ArrayLike) -> Array:
        """M(q), `(samples, joints, joints)`."""
        return self.evaluator("mass_matrix")({"q": q, "theta": theta})

    def gravity_torque(self, q: ArrayLike, theta: ArrayLike) -> Array:
        """The torque that holds the robot still (springs and offsets included), `(samples, joints)`."""
        return self.evaluator("gravity_torque")({"q": q, "theta": theta})

    def bias_torque(self, q: ArrayLike, dq: ArrayLike, theta: ArrayLike) -> Array:
        """τ at zero acceleration: Coriolis, centrifugal, gravity and friction, `(samples, joints)`."""
        return self.evaluator("bias_torque")({"q": q, "dq": dq, "theta": theta})

    # ---------------------------------------------------------------- derivatives

    def adjoint(self, name: str, cotangent: ArrayLike, **inputs: ArrayLike) -> dict[str, Array]:
        """Reverse mode: (∂f/∂x)ᵀ · cotangent for every input x of the function `name`.

        `cotangent` has the shape of the function's result. Exact, and about as dear as four evaluations,
        whatever the number of inputs.
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
        """Forward mode: Σ (∂f/∂x) · `tangents`[x]; inputs without a tangent are held."""
        function = self.function(name)
        for x in tangents:
            if x not in function.inputs:
                raise UnknownNameError(f"input of {name}", x, function.inputs)
        moves = {f"tangent_{x}": v for x, v in tangents.items()}
        return self.evaluator(name, "tangent", *tangents)({**inputs, **moves})

    def jacobian(self, name: str, wrt: str, **inputs: ArrayLike) -> Array:
        """∂f/∂x by the input x named `wrt`, `(samples, *shape of f, width of wrt)`, by forward mode."""
        width = self.function(name).inputs.get(wrt)
        if width is None:
            raise UnknownNameError(f"input of {name}", wrt, self.function(name).inputs)
        columns = [self.tangent(name, {wrt: unit}, **inputs) for unit in np.eye(width)]
        return np.stack(columns, axis=-1)

    # ---------------------------------------------------------------- traced functions

    def function(self, name: str, *derivative: str) -> Function:
        """The traced function, or its derivative: ("adjoint", inputs…) or ("tangent", inputs…)."""
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
        inputs, body, shape = self._known(name)
        n, p = self.robot.dof, self.robot.inertial_count + len(self.terms)
        widths = {"q": n, "dq": n, "ddq": n, "tau": n, "theta": p}
        return trace(name, {x: widths[x] for x in inputs.split()}, body, shape)

    def _known(self, name: str) -> tuple[str, Callable[..., Mapping[Any, Any]], tuple[int, ...]]:
        """The inputs of a function, what it is over scalars, and the shape of its result."""
        n, p = self.robot.dof, self.robot.inertial_count + len(self.terms)
        known: dict[str, tuple[str, Callable[..., Mapping[Any, Any]], tuple[int, ...]]] = {
            "torque_regressor": ("q dq ddq", self._torque, (n, p)),
            "momentum_regressor": ("q dq", self._momentum, (n, p)),
            "remainder_regressor": ("q dq", self._remainder, (n, p)),
            "kinetic_energy_regressor": ("q dq", self._kinetic, (p,)),
            "potential_energy_regressor": ("q", self._potential, (p,)),
            "dissipation_regressor": ("q dq", self._dissipation, (p,)),
            "inverse_dynamics": ("q dq ddq theta", self._inverse, (n,)),
            "forward_dynamics": ("q dq tau theta", self._forward, (n,)),
            "mass_matrix": ("q theta", self._mass, (n, n)),
            "gravity_torque": ("q theta", self._gravity, (n,)),
            "bias_torque": ("q dq theta", self._bias, (n,)),
        }
        if name not in known:
            raise UnknownNameError("function", name, known)
        return known[name]

    def _with_terms(self, links: Entries, of_terms: Entries) -> Entries:
        shift = self.robot.inertial_count
        return {**links, **{(row, shift + k): value for (row, k), value in of_terms.items()}}

    def _torque(self, q: Vector, dq: Vector, ddq: Vector) -> Entries:
        return self._with_terms(regressors.torque_regressor(self.robot, q, dq, ddq), self.terms.torque(q, dq, ddq))

    def _momentum(self, q: Vector, dq: Vector) -> Entries:
        return self._with_terms(regressors.momentum_regressor(self.robot, q, dq), self.terms.momentum(q, dq))

    def _remainder(self, q: Vector, dq: Vector) -> Entries:
        return self._with_terms(regressors.remainder_regressor(self.robot, q, dq), self.terms.remainder(q, dq))

    def _kinetic(self, q: Vector, dq: Vector) -> dict[tuple[int, ...], Any]:
        return _row(self._with_terms(regressors.kinetic_regressor(self.robot, q, dq), self.terms.kinetic(q, dq)))

    def _potential(self, q: Vector) -> dict[tuple[int, ...], Any]:
        return _row(self._with_terms(regressors.potential_regressor(self.robot, q), self.terms.potential(q)))

    def _dissipation(self, q: Vector, dq: Vector) -> dict[tuple[int, ...], Any]:
        return _row(self._with_terms({}, self.terms.dissipation(q, dq)))

    def _inverse(self, q: Vector, dq: Vector, ddq: Vector, theta: Vector) -> dict[tuple[int, ...], Any]:
        return dict(_enumerate_keys(self.inverse_over_scalars(q, dq, ddq, theta)))

    def _bias(self, q: Vector, dq: Vector, theta: Vector) -> dict[tuple[int, ...], Any]:
        return self._inverse(q, dq, [0.0] * self.robot.dof, theta)

    def _gravity(self, q: Vector, theta: Vector) -> dict[tuple[int, ...], Any]:
        still = [0.0] * self.robot.dof
        return self._inverse(q, still, still, theta)

    def _mass(self, q: Vector, theta: Vector) -> Entries:
        return self.mass_over_scalars(q, theta)

    def _forward(self, q: Vector, dq: Vector, tau: Vector, theta: Vector) -> dict[tuple[int, ...], Any]:
        return dict(_enumerate_keys(self.forward_over_scalars(q, dq, tau, theta)))

    # ---------------------------------------------------------------- over scalars, for those who trace more

    def over_scalars(self, name: str, signals: Mapping[str, Vector]) -> Mapping[Any, Any]:
        """The non-zero entries of a function by index; `signals` holds its inputs by name, as scalars."""
        inputs, body, _ = self._known(name)
        return body(*(signals[x] for x in inputs.split()))

    def inverse_over_scalars(self, q: Vector, dq: Vector, ddq: Vector, theta: Vector) -> list[Any]:
        """Joint torques over scalars, terms included."""
        links = self.robot.inertial_count
        torque = bodies.inverse_dynamics(self.robot, q, dq, ddq, theta[:links])
        for (joint, k), value in self.terms.torque(q, dq, ddq).items():
            torque[joint] = torque[joint] + theta[links + k] * value
        return torque

    def mass_over_scalars(self, q: Vector, theta: Vector) -> Entries:
        """The non-zero entries of the mass matrix over scalars, terms included."""
        links = self.robot.inertial_count
        matrix = bodies.mass_matrix(self.robot, q, theta[:links])
        for key, value in self.terms.inertia(q, theta[links:]).items():
            matrix[key] = matrix.get(key, 0.0) + value
        return matrix

    def forward_over_scalars(self, q: Vector, dq: Vector, tau: Vector, theta: Vector) -> list[Any]:
        """Joint accelerations over scalars, terms included."""
        bias = self.inverse_over_scalars(q, dq, [0.0] * self.robot.dof, theta)
        right = [t - b for t, b in zip(tau, bias, strict=True)]
        return bodies.solve_spd(self.mass_over_scalars(q, theta), right, bodies.elimination_order(self.robot))


def _row(entries: Entries) -> dict[tuple[int, ...], Any]:
    """Entries of a single equation, by column."""
    return {(column,): value for (_, column), value in entries.items()}


def _enumerate_keys(values: Sequence[Any]) -> list[tuple[tuple[int, ...], Any]]:
    return [((k,), value) for k, value in enumerate(values)]
