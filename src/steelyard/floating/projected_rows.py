"""Rows of a mechanism with unknown contact forces: N(q)ᵀ D (Y θ − f) = noise.

The forces f_c of closed contacts enter the equations of motion as J_cᵀ f_c; an unmeasured torque enters the row of its
joint. With U the rows of J_c and of those torques, and D = diag(1/σ) for the noise of each row, N has orthonormal
columns with U D N = 0, so N removes all unknown forces and keeps white noise white. N is the projection of a fixed
basis, so it varies smoothly along a motion and preserves the spectrum of coloured noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.floating.motion import FloatingMotion, Preparer
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.rows import Equation

# Singular values of U D below this share of the largest are zero: redundant contacts.
_DEPENDENT = 1e-8
# Smallest pivot relative to the largest for normal equations: twelve of sixteen digits remain.
_PIVOT = 1e-2
# Smallest eigenvalue of Bᵀ N Nᵀ B: below it, a sample is too far from the middle of its stretch for the fixed basis B.
_TURNED = 1e-3
# Rows closer than a fifth of the cut-off's period are redundant.
_STEP = 0.2
# Samples per chunk of regressors, to limit the memory.
_CHUNK = 2_000
# Shortest stretch of rows [samples].
_SHORTEST = 4


@dataclass(frozen=True, eq=False)
class PhasePiece:
    """Consecutive rows of one contact phase.

    Attributes:
        motion: Motion of the rows.
        samples: Samples of these rows in the motion.
        closed: Indices of the closed unknown contacts.
    """

    motion: FloatingMotion
    samples: NDArray[np.int64]
    closed: tuple[int, ...]

    def every(self, step: int) -> PhasePiece:
        """Return one of `step` rows."""
        return self if step == 1 else replace(self, samples=self.samples[::step])


def stretches_of(motions: Sequence[FloatingMotion]) -> list[PhasePiece]:
    """Cut `motions` into stretches of usable samples with the same closed contacts."""
    out = []
    for motion in motions:
        low = motion.low_pass
        step = max(1, int(_STEP / (low.cutoff_hz * low.period)))
        state = motion.standing @ (1 << np.arange(motion.standing.shape[1], dtype=np.int64))
        label = np.where(motion.usable, state, -1)
        edges = np.flatnonzero(np.diff(label)) + 1
        for part in np.split(np.arange(len(label)), edges):
            if len(part) and label[part[0]] >= 0 and len(own := part[::step]) >= _SHORTEST:
                closed = tuple(np.flatnonzero(motion.standing[part[0]]).tolist())
                out.append(PhasePiece(motion, own, closed))
    return out


def null_space(U: Array, scale: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Compute the smooth bases N of a stretch, `(samples, joints, rows)`, and flag samples with the usual rank.

    Args:
        U: Rows of the unknown forces, `(samples, unknowns, joints)`.
        scale: D, `(joints,)`.
    """
    n = U.shape[2]
    if not U.shape[1]:
        return np.broadcast_to(np.eye(n), (len(U), n, n)), np.ones(len(U), dtype=bool)
    rows = U * scale
    columns = np.swapaxes(rows, 1, 2)
    gram = rows @ columns
    if _regular(gram):
        middle, usual = np.linalg.qr(columns[len(columns) // 2])[0], np.ones(len(U), dtype=bool)
        B = _complement(middle)
        near = B - columns @ np.linalg.solve(gram, rows @ B)
    else:
        spanned, usual = _orthonormal(columns)
        B = _complement(spanned[len(spanned) // 2])
        near = B - spanned @ (np.swapaxes(spanned, 1, 2) @ B)
    # With W = Bᵀ near = L Lᵀ, near L⁻ᵀ has orthonormal columns; the Cholesky factor is as smooth as W.
    W = np.swapaxes(B, 0, 1) @ near
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(W))
    except np.linalg.LinAlgError:  # A sample is orthogonal to the middle of the stretch.
        turned = np.linalg.eigvalsh(W)[:, 0] <= _TURNED
        W[turned] = np.eye(W.shape[1])
        inverse = np.linalg.inv(np.linalg.cholesky(W))
        usual = usual & ~turned
    # The smallest eigenvalue of W is at least 1/‖L⁻¹‖².
    return near @ np.swapaxes(inverse, 1, 2), usual & (np.sum(inverse**2, axis=(1, 2)) < 1.0 / _TURNED)


def _regular(gram: Array) -> bool:
    """Whether the normal equations of unknown forces can be solved at all samples: they lose half of the digits."""
    try:
        pivots = np.diagonal(np.linalg.cholesky(gram), axis1=1, axis2=2)
    except np.linalg.LinAlgError:
        return False
    return bool(np.all(pivots.min(axis=1) > _PIVOT * pivots.max(axis=1)))


def _complement(spanned: Array) -> Array:
    """Return an orthonormal basis of the directions orthogonal to the orthonormal columns of `spanned`."""
    values, vectors = np.linalg.eigh(np.eye(len(spanned)) - spanned @ spanned.T)
    return np.asarray(vectors[:, values > 0.5])


def _orthonormal(columns: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return orthonormal bases of the spans of `columns`, and flag samples with the usual rank."""
    Q, R = np.linalg.qr(columns)
    size = np.abs(np.diagonal(R, axis1=1, axis2=2))
    if Q.shape[2] <= columns.shape[1] and np.all(size.min(axis=1) > _DEPENDENT * size.max(axis=1)):
        return Q, np.ones(len(columns), dtype=bool)
    # Redundant contacts need a reliable rank, so it follows from singular values.
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    ranks = np.sum(s > _DEPENDENT * s[:, :1], axis=1)
    rank = int(np.median(ranks))
    return u[:, :, :rank], ranks == rank


@dataclass(eq=False)
class RowMaker:
    """Makes the rows of stretches.

    Attributes:
        preparer: Robot, contacts and their Jacobians.
        dynamics: Physics with the terms.
        base: Base parameters of the columns.
        scale: D: 1/σ of each coordinate's equation.
        width: Largest number of rows of a sample after projection.
        equations: Equations of the rows.
    """

    preparer: Preparer
    dynamics: Dynamics
    base: BaseParameters
    scale: Array
    width: int = 0
    equations: tuple[Equation, ...] = field(init=False)

    def __post_init__(self) -> None:
        columns = np.array(self.base.independent)
        robot = self.preparer.robot
        names = [n for n, used in zip(robot.joint_names, robot.torque_used, strict=True) if used]
        if self.preparer.mechanism is not None:
            names = [n for n in self.preparer.mechanism.measured_names if n in names]
        if self.projects:
            names = [f"row {k + 1}" for k in range(self.width or robot.dof)]
        self.equations = tuple(Equation(name, columns) for name in names)

    @property
    def projects(self) -> bool:
        """Whether the rows are projections."""
        mechanism = self.preparer.mechanism
        return bool(self.preparer.unknown) or (mechanism is not None and mechanism.redundant)

    @property
    def exact(self) -> bool:
        """Whether the rows are torques of the measured joints of closed loops."""
        return self.preparer.mechanism is not None and not self.projects

    def unknown_rows(self, q: Array, closed: Sequence[int], missing: NDArray[np.bool_]) -> Array:
        """Compute U, `(samples, unknowns, joints)`.

        Args:
            q: Positions, `(samples, joints)`.
            closed: Indices of the closed unknown contacts.
            missing: Flags of the coordinates without a measured torque, `(joints,)`.
        """
        n = q.shape[1]
        parts = [np.zeros((len(q), 0, n))]
        if self.preparer.mechanism is not None:
            parts.append(self.preparer.mechanism.loop_rows(q))
        if closed:
            parts.append(self.preparer.closed_rows(closed, q))
        if missing.any():
            parts.append(np.broadcast_to(np.eye(n)[missing], (len(q), int(missing.sum()), n)))
        return parts[-1] if len(parts) == 2 else np.concatenate(parts, axis=1)

    def bases(self, stretch: PhasePiece) -> Iterator[tuple[Array, NDArray[np.int64]]]:
        """Yield N of the samples of `stretch`, in chunks, with the samples."""
        m = stretch.motion
        for first in range(0, len(stretch.samples), _CHUNK):
            own = stretch.samples[first : first + _CHUNK]
            if self.preparer.mechanism is not None and self.exact:
                yield self.preparer.mechanism.reduction(m.q[own]), own
                continue
            N, usual = null_space(self.unknown_rows(m.q[own], stretch.closed, m.missing), self.scale)
            yield (N, own) if usual.all() else (N[usual], own[usual])

    def tables(self, stretch: PhasePiece) -> Iterator[tuple[Array, Array, Array, NDArray[np.int64]]]:
        """Yield N, D Y and D f of the samples of `stretch`, in chunks, with the samples."""
        for N, own in self.bases(stretch):
            Y = self._regressor(stretch.motion, own)[:, :, list(self.base.independent)]
            yield N, Y * self.scale[:, None], stretch.motion.force[own] * self.scale, own

    def _regressor(self, m: FloatingMotion, own: NDArray[np.int64]) -> Array:
        q, dq, ddq = m.q[own], m.dq[own], m.ddq[own]
        history = self.dynamics.history(q, dq, ddq) if self.dynamics.terms.history else None
        return np.asarray(self.dynamics.torque_regressor(q, dq, ddq, history=history))

    def data(self, stretches: Sequence[PhasePiece]) -> RegressionData:
        """Create the rows of `stretches`; equations of coordinates without unknown forces keep their names."""
        columns = list(self.base.independent)
        mechanism = self.preparer.mechanism
        used = np.flatnonzero(self.preparer.robot.torque_used)

        def source() -> Iterator[Block]:
            for stretch in stretches:
                for N, own in self.bases(stretch):
                    Y, f = self._regressor(stretch.motion, own), stretch.motion.force[own]
                    if mechanism is not None and self.exact:
                        names = [mechanism.measured_names.index(e.name) for e in self.equations]
                        M = N[:, :, names] * self.scale[:, None]
                        A, y = np.swapaxes(M, 1, 2) @ Y, np.einsum("tnk,tn->tk", M, f)
                    elif not self.projects:
                        A, y = Y[:, used] * self.scale[used, None], f[:, used] * self.scale[used]
                    else:
                        M = N * self.scale[:, None]
                        A, y = np.swapaxes(M, 1, 2) @ Y, np.einsum("tnk,tn->tk", M, f)
                    for e in range(A.shape[1]):
                        yield Block(e, A[:, e, columns], y[:, e])

        period = stretches[0].motion.low_pass.period if stretches else 1.0
        return RegressionData(self.equations, len(self.base.parameters), source, period)

    def noise(self, stretches: Sequence[PhasePiece], theta: Array) -> Array:
        """Estimate the noise σ of each coordinate's equation from projected residuals.

        The squares of the residuals Nᵀ D ε have the means Σ_i N_ik² D_i² σ_i²: a linear system for σ².

        Args:
            stretches: Stretches of the rows.
            theta: All parameters.
        """
        from scipy.optimize import nnls

        n = len(self.scale)
        normal, right = np.zeros((n, n)), np.zeros(n)
        with one_blas_thread():
            for stretch in stretches:
                m = stretch.motion
                for N, own in self.bases(stretch):
                    q, dq, ddq = m.q[own], m.dq[own], m.ddq[own]
                    history = self.dynamics.history(q, dq, ddq) if self.dynamics.terms.history else None
                    force = self.dynamics.inverse_dynamics(q, dq, ddq, theta, history=history)
                    r = np.einsum("tnk,tn->tk", N, (force - m.force[own]) * self.scale)
                    squares = np.swapaxes(N**2, 1, 2).reshape(-1, n)
                    normal += squares.T @ squares
                    right += squares.T @ r.ravel() ** 2
        size = 1.0 / np.sqrt(np.maximum(np.diag(normal), 1e-300))
        root = np.linalg.cholesky(normal * size * size[:, None] + 1e-9 * np.eye(n)).T
        estimates = nnls(root, np.linalg.solve(root.T, right * size))[0] * size
        # An equation without a share in any row gets the typical noise; the lower limit is a tenth of it.
        typical = float(np.median(estimates[estimates > 0.0])) if np.any(estimates > 0.0) else 1.0
        variances = np.where(
            np.diag(normal) > 1e-12 * np.diag(normal).max(), np.maximum(estimates, 0.01 * typical), typical
        )
        return np.asarray(np.sqrt(variances) / self.scale)


def divided(stretches: Sequence[PhasePiece], parts: int) -> list[list[PhasePiece]]:
    """Divide stretches into parts of time with about equally many samples.

    Args:
        stretches: Stretches in order of time.
        parts: Largest number of parts.
    """
    total = sum(len(s.samples) for s in stretches)
    parts = max(min(parts, total // (2 * _SHORTEST)), 1)
    out: list[list[PhasePiece]] = [[] for _ in range(parts)]
    start = 0
    for stretch in stretches:
        number = (start + np.arange(len(stretch.samples))) * parts // max(total, 1)
        start += len(stretch.samples)
        for k in np.unique(number):
            own = stretch.samples[number == k]
            if len(own) >= _SHORTEST:
                out[int(k)].append(PhasePiece(stretch.motion, own, stretch.closed))
    return [part for part in out if part]
