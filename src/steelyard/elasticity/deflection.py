"""The deflection row of a joint with two encoders.

    θ − q = c·(τ_m − Ia θ̈ − Fc sgn θ̇ − Fv θ̇) + T q̇ − (D/K)(θ̇ − q̇) + e₀

with the compliance c = 1/K, the clock skew T of the link encoder, and an offset e₀ of each log. The torque sensor is
noisy, so plain least squares underestimates c. The instrument is the torque that the sum row predicts: its error is
not the sensor noise, so c is unbiased. The sum row gives Fv, because Fv and the skew T have nearly the same
column here. Ia and Fc are free: the columns of c·Ia and c·Fc are separate. The damping D of a soft spring needs a
column, or it biases T. The data do not determine the damping of a stiff spring; a ridge keeps D/K within the usual
damping ratios of gears and springs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.elasticity.elastic_table import ElasticTable
from steelyard.elasticity.sum_row import SumRow
from steelyard.ground.arrays import Array
from steelyard.ground.student import quantile

# Unknowns before the offsets: compliance, compliance times rotor, times Coulomb friction, skew, damping over stiffness.
DEFLECTION_UNKNOWNS = 5
_DAMPING = 4
# Largest usual damping ratio ζ of gears and springs: the prior standard deviation of D/K is 2ζ/ω.
_RATIO = 0.1
# Iterations of the weight of the damping's prior.
_ROUNDS = 2
# Confidence level of the intervals.
_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class DeflectionFit:
    """Deflection row of one joint.

    Attributes:
        joint: Index of the joint.
        values: c, c·Ia, c·Fc, T, D/K [rad/(N m), …, s, s].
        errors: Standard errors of `values`.
        offsets: Offset of each log [rad or m]; NaN without rows.
        std: Standard deviation of the deflection about each log's mean [rad or m].
        residual_std: Standard deviation of the residuals [rad or m].
        freedom: Degrees of freedom of Student's distribution for 95 % intervals.
        rows: Number of rows.
    """

    joint: int
    values: Array
    errors: Array
    offsets: Array
    std: float
    residual_std: float
    freedom: int
    rows: int

    @property
    def explained(self) -> float:
        """Share of the variance of the deflection about each log's mean that the row explains."""
        return 1.0 - (self.residual_std / max(self.std, 1e-300)) ** 2

    @property
    def half_widths(self) -> Array:
        return np.asarray(quantile(_LEVEL, self.freedom) * self.errors)


def fit_deflection(
    joint: int,
    tables: Sequence[ElasticTable],
    sums: SumRow,
    blocks: Sequence[NDArray[np.int64]],
    count: int,
    logs: int,
    motor: bool = True,
) -> DeflectionFit | None:
    """Fit the deflection row of a joint; None with too few rows.

    Args:
        joint: Index of the joint.
        tables: Rows of the logs after the removal of a skew; T is the remaining skew.
        sums: Sum row of the same tables.
        blocks: Block of each row of each table.
        count: Number of blocks.
        logs: Number of logs.
        motor: True: motor torque, with rotor and friction; False: link torque.
    """
    size = DEFLECTION_UNKNOWNS + logs
    used = np.ones(size, dtype=bool)
    used[1:3] = motor
    # Sums by block of instruments × [columns, y, θ̇ column]: each fit without a block has its own viscous friction.
    cross = np.zeros((count, size, size + 2))
    squares = np.zeros((count, size + 2, size + 2))
    variance, rows = 0.0, 0
    for table, torque, number in zip(tables, sums.torque, blocks, strict=True):
        use = table.moves[:, joint]
        if use.sum() < 2:
            continue
        X = _regressors(table, joint, logs, table.tau[:, joint], table.deflection_rate[:, joint])[use]
        Z = _regressors(table, joint, logs, torque[:, joint], table.deflection_rate[:, joint])[use]
        y, v = table.deflection[use, joint], table.dtheta[use, joint]
        right = np.column_stack([X, y, v])
        for b in np.unique(number[use]):
            own = number[use] == b
            cross[b] += Z[own].T @ right[own]
            squares[b] += right[own].T @ right[own]
        variance += float(np.sum((y - y.mean()) ** 2))
        rows += len(y)
    if rows < 2 * size:
        return None
    viscous = float(sums.viscous[joint])
    total, all_squares = cross.sum(axis=0), squares.sum(axis=0)
    x = _solve(total, viscous, 0.0, used)
    for _ in range(_ROUNDS):
        full = np.concatenate([x, [-1.0, -x[0] * viscous]])
        noise = max(float(full @ all_squares @ full), 0.0) / max(rows - size, 1)
        # D/K = 2ζ/ω with ω² = K/I; the inertia I follows from torque and acceleration.
        inertia = np.sqrt(all_squares[0, 0] / max(all_squares[1, 1], 1e-300))
        usual = 2.0 * _RATIO * np.sqrt(max(x[0], 0.0) * inertia)
        x = _solve(total, viscous, ridge := noise / max(usual, 1e-12) ** 2, used)
    estimates = np.array([
        _solve(total - cross[b], float(sums.viscous_left[b, joint]), ridge, used) for b in range(count)
    ])  # fmt: skip
    errors = np.sqrt((count - 1) / count * np.sum((estimates - estimates.mean(axis=0)) ** 2, axis=0))
    full = np.concatenate([x, [-1.0, -x[0] * viscous]])
    residual = max(float(full @ all_squares @ full), 0.0)
    seen = np.array([np.any(squares[:, DEFLECTION_UNKNOWNS + k, DEFLECTION_UNKNOWNS + k] > 0.0) for k in range(logs)])
    offsets = np.where(seen, x[DEFLECTION_UNKNOWNS:], np.nan)
    own = slice(DEFLECTION_UNKNOWNS)
    std = float(np.sqrt(residual / max(rows - size, 1)))
    return DeflectionFit(joint, x[own], errors[own], offsets, float(np.sqrt(variance / rows)), std, count - 1, rows)


def predicted(fit: DeflectionFit, viscous: float, table: ElasticTable) -> Array:
    """Compute the deflection of a table without the offset [rad or m].

    Args:
        fit: Deflection row.
        viscous: Viscous friction of the joint.
        table: Rows, after the removal of the skew of the fit.
    """
    k = fit.joint
    own = _regressors(table, k, 0, table.tau[:, k] - viscous * table.dtheta[:, k], table.deflection_rate[:, k])
    return np.asarray(own @ fit.values)


def _regressors(table: ElasticTable, k: int, logs: int, torque: Array, rate: Array) -> Array:
    offsets = np.zeros((len(torque), logs))
    if logs:
        offsets[:, table.log] = 1.0
    own = (torque, -table.ddtheta[:, k], -table.direction[:, k], table.dq[:, k], -rate)
    return np.column_stack([*own, offsets])


def _solve(cross: Array, viscous: float, ridge: float, used: NDArray[np.bool_]) -> Array:
    """Solve Zᵀ(X − Fv·θ̇ in the torque's column) x = Zᵀ y for the used unknowns, with a ridge for the damping."""
    size = len(cross)
    A = cross[:, :size].copy()
    A[:, 0] -= viscous * cross[:, size + 1]
    A[_DAMPING, _DAMPING] += ridge
    A = A[np.ix_(used, used)]
    scale = 1.0 / np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    row = 1.0 / np.maximum(np.linalg.norm(A * scale, axis=1), 1e-300)
    out = np.zeros(size)
    out[used] = scale * np.linalg.lstsq(A * scale * row[:, None], cross[used, size] * row, rcond=1e-14)[0]
    return out
