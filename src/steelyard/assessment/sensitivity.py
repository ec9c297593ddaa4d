"""How much a motion changes when a parameter does: every parameter swept, all robots simulated as one batch.

The measures are those of Urrea & Pascal 2017 (eqs. 45–47; the index of agreement with a plus in its denominator, as
Willmott 1981 has it: with the printed minus perfect tracking would not give 1).
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
from steelyard.ground.renamed import renamed
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.simulation.command import Drive
from steelyard.simulation.simulate import simulate
from steelyard.simulation.simulation import Ending


def rms(observed: ArrayLike, predicted: ArrayLike) -> Array:
    """Root mean square of `observed` − `predicted` `(…, samples, columns)`, per column, in the signal's own unit."""
    o, p = _pair(observed, predicted)
    return np.asarray(np.sqrt(np.mean((o - p) ** 2, axis=-2)))


def residual_standard_deviation(observed: ArrayLike, predicted: ArrayLike) -> Array:
    """RSD: √(Σ(o − p)²/Σo²) of `observed` and `predicted`, per column; 0 is perfect, 1 as good as nothing."""
    o, p = _pair(observed, predicted)
    size = np.sum(o**2, axis=-2)
    return np.asarray(np.sqrt(np.sum((o - p) ** 2, axis=-2) / np.where(size > 0.0, size, np.nan)))


def agreement_index(observed: ArrayLike, predicted: ArrayLike) -> Array:
    """AI: 1 − Σ(o − p)²/Σ(|o − ō| + |p − ō|)² of `observed` and `predicted`, per column; 1 is perfect, 0 none."""
    o, p = _pair(observed, predicted)
    mean = np.mean(o, axis=-2, keepdims=True)
    most = np.sum((np.abs(o - mean) + np.abs(p - mean)) ** 2, axis=-2)
    return np.asarray(1.0 - np.sum((o - p) ** 2, axis=-2) / np.where(most > 0.0, most, np.nan))


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Measures `(parameters, shares, joints)` of each swept robot's positions against the nominal one's.

    `shares` are the factors that a parameter was multiplied by. Where `completed` is False the robot with that
    parameter ran away or could not exist; its measures are NaN.
    """

    names: tuple[str, ...]
    shares: Array
    joints: tuple[str, ...]
    rms: Array
    residual_standard_deviation: Array
    agreement_index: Array
    completed: NDArray[np.bool_]

    def ranking(self) -> tuple[str, ...]:
        """Parameters by the largest RSD that they cause on any joint; those whose sweep did not finish come first."""
        worst = np.where(self.completed[..., None], np.nan_to_num(self.residual_standard_deviation), np.inf)
        order = np.argsort(-worst.max(axis=(1, 2)), kind="stable")
        return tuple(self.names[k] for k in order)


@renamed(spread="half_width")
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
    """Each parameter of `model` in `steps` over the share 1 ± `half_width` of itself, the others as they are.

    Parameters are those of `base` (None: the structural ones), or with `directions` (rows: the change of the full
    parameters that doubles one) any others, called `names`. `drive` and `options` are those of `simulate`: under a
    controller the loop hides much of what a parameter does, and the figures say how far the closed loop, not the model,
    is sensitive.
    """
    if not (half_width > 0.0 and steps >= 2):
        raise SteelyardError(f"A sweep needs a half-width above 0 and two steps or more, not {half_width} and {steps}.")
    moves, called = _directions(model, base, names, directions)
    shares = np.linspace(1.0 - half_width, 1.0 + half_width, steps)
    robots = (model.theta + (shares[None, :, None] - 1.0) * moves[:, None, :]).reshape(-1, len(model.theta))
    possible = _can_start(model, robots, options.get("q0"))
    run = simulate(model, drive, theta=np.vstack([model.theta, robots[possible]]), throw=False, **options)
    completed = np.asarray(run.outcome == Ending.COMPLETED)
    if not completed[0]:
        raise SteelyardError("The nominal robot itself does not finish its motion; check the drive and the step.")
    done = possible.copy()
    done[possible] = completed[1:]
    observed, swept = run.q[0][None], run.q[1:][completed[1:]]
    measures = []
    for measure in (rms, residual_standard_deviation, agreement_index):
        filled = np.full((len(robots), model.robot.dof), np.nan)
        filled[done] = measure(observed, swept)
        measures.append(filled.reshape(len(called), steps, -1))
    size, relative, index = measures
    completed_ones = done.reshape(len(called), steps)
    return Sensitivity(called, shares, model.robot.joint_names, size, relative, index, completed_ones)


def _can_start(model: Model, robots: Array, q0: Any) -> NDArray[np.bool_]:
    """Robots whose mass matrix is positive definite where they start; the simulation would refuse all for one."""
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
    found = base or base_parameters(model.robot, model.terms)
    moves = np.zeros((found.rank, len(model.theta)))
    moves[np.arange(found.rank), list(found.independent)] = found.values(model.theta)
    return moves, found.names


def _pair(observed: ArrayLike, predicted: ArrayLike) -> tuple[Array, Array]:
    o, p = np.asarray(observed, dtype=float), np.asarray(predicted, dtype=float)
    if o.ndim < 2 or p.ndim < 2 or o.shape[-2:] != p.shape[-2:]:
        raise ShapeError(f"Signals have shapes {o.shape} and {p.shape}; both need (…, samples, joints).")
    return o, p
