"""The sum row: rigid links on link motion, rotor and friction on motor motion, without the stiffness.

    Y(q, q̇, q̈) β + Ia θ̈ + Fv θ̇ + Fc sgn θ̇ + τ₀ = τ_m

The sum of motor and link equation cancels the torque of the spring. The row gives the viscous friction and a torque
without sensor noise. The deflection row cannot separate viscous friction from a clock skew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.elasticity.elastic_table import ElasticTable
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.parameters.terms import TermsLike
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.robot import Robot

# Columns of each motor: rotor, viscous, Coulomb, offset.
MOTOR_COLUMNS = 4
# Relative eigenvalue of the scaled normal equations at the level of rounding, such as rotor against link behind a stiff
# spring; the solution is zero in these directions.
_RANK = 1e-12
# Iterations of the weights of the joints.
_ROUNDS = 2


@dataclass(frozen=True, eq=False)
class SumRow:
    """Fit of the sum row.

    Attributes:
        base: Base parameters of the links and additional terms.
        beta: Base parameters, then rotor, viscous, Coulomb and offset of each joint.
        viscous: Viscous friction of each joint [N m s/rad or N s/m].
        viscous_left: The same from jackknife fits, each without one block, shape (blocks, joints).
        coulomb: Coulomb friction of each joint [N m or N].
        torque: Torque that the fit predicts in each table [N m or N].
        residual_std: Standard deviation of the residuals of each joint [N m or N].
        explained: Share of the variance of each joint's torque that the fit explains.
    """

    base: BaseParameters
    beta: Array
    viscous: Array
    viscous_left: Array
    coulomb: Array
    torque: tuple[Array, ...]
    residual_std: Array
    explained: Array


def fit_sum_row(
    robot: Robot,
    tables: Sequence[ElasticTable],
    blocks: Sequence[NDArray[np.int64]],
    count: int,
    terms: TermsLike | None = None,
    base: BaseParameters | None = None,
) -> SumRow:
    """Fit the sum row of all joints together.

    Args:
        robot: Robot.
        tables: Rows of the logs.
        blocks: Block of each row of each table.
        count: Number of blocks.
        terms: Additional joint terms on the motion of the links, such as a counterbalance.
        base: Base parameters of the robot with these terms, if already computed.
    """
    base = base or base_parameters(robot, terms)
    regressors = [_columns(base, table) for table in tables]
    n, size = robot.dof, regressors[0].shape[2]
    moving = [table.moves for table in tables]
    if not all(any(m[:, k].any() for m in moving) for k in range(n)):
        still = next(k for k in range(n) if not any(m[:, k].any() for m in moving))
        raise SteelyardError(
            f"Joint '{robot.joint_names[still]}' moves in no log; select the moving joints (--joints) or lock it."
        )
    grams = np.zeros((n, count, size + 1, size + 1))
    with one_blas_thread():
        for table, Y, number in zip(tables, regressors, blocks, strict=True):
            for k in range(n):
                rows = np.column_stack([Y[:, k], table.tau[:, k]])[table.moves[:, k]]
                own = number[table.moves[:, k]]
                for b in np.unique(own):
                    part = rows[own == b]
                    grams[k, b] += part.T @ part
        samples = np.array([sum(int(m[:, k].sum()) for m in moving) for k in range(n)])
        weights = np.ones(n)
        for _ in range(_ROUNDS + 1):
            beta = _solve(np.einsum("k,kbij->ij", weights, grams))
            squares = np.array([_squares(g.sum(axis=0), beta) for g in grams])
            freedom = np.maximum(samples - size / n, 1.0)
            weights = freedom / np.maximum(squares, 1e-12 * grams[:, :, -1, -1].sum(axis=1) + 1e-300)
        weighted = np.einsum("k,kbij->bij", weights, grams)
        total = weighted.sum(axis=0)
        estimates = np.array([_solve(total - weighted[b]) for b in range(count)])
    first = len(base.names)
    places = first + MOTOR_COLUMNS * np.arange(n)
    torque = tuple(Y @ beta for Y in regressors)
    spread = np.array([
        np.var(np.concatenate([t.tau[m[:, k], k] for t, m in zip(tables, moving, strict=True)])) for k in range(n)
    ])  # fmt: skip
    residual = squares / freedom
    return SumRow(
        base, beta, beta[places + 1], estimates[:, places + 1], beta[places + 2], torque, np.sqrt(residual),
        1.0 - squares / np.maximum(samples * spread, 1e-300),
    )  # fmt: skip


def model_torque(model: Model, tables: Sequence[ElasticTable], count: int) -> SumRow:
    """Compute the link torque by a known model instead of a fit.

    Args:
        model: Known model, without its rotors and friction.
        tables: Rows of the logs.
        count: Number of blocks.
    """
    links = Dynamics(model.robot)
    theta, n = model.theta[: model.robot.inertial_count], model.robot.dof
    torque = tuple(links.inverse_dynamics(t.q, t.dq, t.ddq, theta) for t in tables)
    none = np.zeros(n)
    return SumRow(
        base_parameters(model.robot), np.zeros(0), none, np.zeros((count, n)), none, torque, none, np.full(n, np.nan)
    )


def _columns(base: BaseParameters, table: ElasticTable) -> Array:
    dynamics = base.structure.dynamics
    links = dynamics.torque_regressor(table.q, table.dq, table.ddq)[:, :, list(base.independent)]
    rows, n = table.q.shape
    motors = np.zeros((rows, n, MOTOR_COLUMNS * n))
    for k in range(n):
        own = (table.ddtheta[:, k], table.dtheta[:, k], table.direction[:, k], np.ones(rows))
        motors[:, k, MOTOR_COLUMNS * k : MOTOR_COLUMNS * (k + 1)] = np.column_stack(own)
    return np.concatenate([links, motors], axis=2)


def _solve(gram: Array) -> Array:
    scale = 1.0 / np.sqrt(np.maximum(np.diag(gram)[:-1], 1e-300))
    values, vectors = np.linalg.eigh(gram[:-1, :-1] * np.outer(scale, scale))
    inverse = np.where(values > _RANK * values[-1], 1.0 / np.maximum(values, 1e-300), 0.0)
    return np.asarray(scale * (vectors @ (inverse * (vectors.T @ (gram[:-1, -1] * scale)))))


def _squares(gram: Array, beta: Array) -> float:
    x = np.append(beta, -1.0)
    return max(float(x @ gram @ x), 0.0)
