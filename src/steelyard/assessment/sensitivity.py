"""Computes the sensitivity of a simulated motion to each parameter, with all varied robots in one batch.

The measures follow Urrea & Pascal 2017 (eqs. 45–47). The index of agreement has a plus in its denominator as in
Willmott 1981; with the printed minus, perfect tracking would not give 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.dynamics.model import Model
from steelyard.errors import ShapeError, SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.simulation.command import Drive
from steelyard.simulation.simulate import simulate
from steelyard.simulation.simulation import Ending


def rms(observed: ArrayLike, predicted: ArrayLike) -> Array:
    """Compute the RMS difference of two signals per column, in their unit.

    Args:
        observed: Observed signals, shape (…, samples, columns).
        predicted: Predicted signals of the same shape.
    """
    o, p = _pair(observed, predicted)
    return np.asarray(np.sqrt(np.mean((o - p) ** 2, axis=-2)))


def residual_standard_deviation(observed: ArrayLike, predicted: ArrayLike) -> Array:
    """Compute RSD = √(Σ(o − p)²/Σo²) per column: 0 is perfect, 1 is as bad as predicting zero.

    Args:
        observed: Observed signals o, shape (…, samples, columns).
        predicted: Predicted signals p of the same shape.
    """
    o, p = _pair(observed, predicted)
    size = np.sum(o**2, axis=-2)
    return np.asarray(np.sqrt(np.sum((o - p) ** 2, axis=-2) / np.where(size > 0.0, size, np.nan)))


def agreement_index(observed: ArrayLike, predicted: ArrayLike) -> Array:
    """Compute AI = 1 − Σ(o − p)²/Σ(|o − ō| + |p − ō|)² per column: 1 is perfect, 0 is no agreement.

    Args:
        observed: Observed signals o, shape (…, samples, columns).
        predicted: Predicted signals p of the same shape.
    """
    o, p = _pair(observed, predicted)
    mean = np.mean(o, axis=-2, keepdims=True)
    most = np.sum((np.abs(o - mean) + np.abs(p - mean)) ** 2, axis=-2)
    return np.asarray(1.0 - np.sum((o - p) ** 2, axis=-2) / np.where(most > 0.0, most, np.nan))


@short_repr
@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Differences between the positions of varied robots and the nominal robot.

    The measures have the shape (parameters, shares, joints); `shares` are the factors of a parameter. `completed` is
    False if the simulation diverged or the robot is impossible; its measures are then NaN.
    """

    names: tuple[str, ...]
    shares: Array
    joints: tuple[str, ...]
    rms: Array
    residual_standard_deviation: Array
    agreement_index: Array
    completed: NDArray[np.bool_]

    def ranking(self) -> tuple[str, ...]:
        """Return the parameters by their largest RSD on any joint; those with failed simulations come first."""
        worst = np.where(self.completed[..., None], np.nan_to_num(self.residual_standard_deviation), np.inf)
        order = np.argsort(-worst.max(axis=(1, 2)), kind="stable")
        return tuple(self.names[k] for k in order)


def sweep(
    model: Model,
    drive: Drive = None,
    *,
    base: BaseParameters | None = None,
    names: Sequence[str] = (),
    directions: ArrayLike | None = None,
    half_width: float = 0.5,
    steps: int = 11,
    **options: Any,
) -> Sensitivity:
    """Vary each parameter of a model separately and simulate the motion.

    Under a controller the result is the sensitivity of the closed loop, which is lower than that of the model.

    Args:
        model: Nominal model.
        drive: Torques or controller, as in `simulate`.
        base: Base parameters to vary; None: the structural ones.
        names: Names of the parameters of `directions`.
        directions: Other parameters to vary; each row is the change of the full parameters that doubles one of them.
        half_width: Each parameter is multiplied by 1 ± this value.
        steps: Number of values per parameter.
        **options: Options of `simulate`.
    """
    if not (half_width > 0.0 and steps >= 2):
        raise SteelyardError(
            f"half_width is {half_width} and steps is {steps}; a sweep needs a half-width above 0 and at least 2 steps."
        )
    moves, labels = _directions(model, base, names, directions)
    shares = np.linspace(1.0 - half_width, 1.0 + half_width, steps)
    robots = (model.theta + (shares[None, :, None] - 1.0) * moves[:, None, :]).reshape(-1, len(model.theta))
    possible = _can_start(model, robots, options.get("q0"))
    run = simulate(model, drive, theta=np.vstack([model.theta, robots[possible]]), throw=False, **options)
    completed = np.asarray(run.outcome == Ending.COMPLETED)
    if not completed[0]:
        raise SteelyardError("The simulation of the nominal robot did not finish. Check the drive and the step.")
    done = possible.copy()
    done[possible] = completed[1:]
    observed, swept = run.q[0][None], run.q[1:][completed[1:]]
    measures = []
    for measure in (rms, residual_standard_deviation, agreement_index):
        filled = np.full((len(robots), model.robot.dof), np.nan)
        filled[done] = measure(observed, swept)
        measures.append(filled.reshape(len(labels), steps, -1))
    size, relative, index = measures
    completed_ones = done.reshape(len(labels), steps)
    return Sensitivity(labels, shares, model.robot.joint_names, size, relative, index, completed_ones)


def _can_start(model: Model, robots: Array, q0: Any) -> NDArray[np.bool_]:
    """Mark robots with a positive definite mass matrix at the start; a batch must not contain others."""
    q = np.zeros(model.robot.dof) if q0 is None else np.asarray(q0, dtype=float)
    return np.asarray(np.linalg.eigvalsh(model.dynamics.mass_matrix(q, robots))[:, 0] > 0.0)


def _directions(
    model: Model, base: BaseParameters | None, names: Sequence[str], directions: ArrayLike | None
) -> tuple[Array, tuple[str, ...]]:
    if directions is not None:
        moves = np.atleast_2d(np.asarray(directions, dtype=float))
        if moves.shape[1] != len(model.theta) or len(names) != len(moves):
            raise ShapeError(
                f"directions have shape {moves.shape} and {len(names)} names; each needs a name and "
                f"{len(model.theta)} columns."
            )
        return moves, tuple(names)
    varied = base or base_parameters(model.robot, model.terms)
    moves = np.zeros((varied.rank, len(model.theta)))
    moves[np.arange(varied.rank), list(varied.independent)] = varied.values(model.theta)
    return moves, varied.names


def _pair(observed: ArrayLike, predicted: ArrayLike) -> tuple[Array, Array]:
    o, p = np.asarray(observed, dtype=float), np.asarray(predicted, dtype=float)
    if o.ndim < 2 or p.ndim < 2 or o.shape[-2:] != p.shape[-2:]:
        raise ShapeError(f"Signals have shapes {o.shape} and {p.shape}; both need (…, samples, joints).")
    return o, p
