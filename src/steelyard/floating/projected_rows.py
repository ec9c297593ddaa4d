"""Rows of a mechanism with unknown contact forces: N(q)ᵀ D (Y θ − f) = noise.

The forces f_c of closed contacts enter the equations of motion as J_cᵀ f_c; an unmeasured torque enters the row of its
joint. U has the rows of J_c and of those torques, D = diag(1/σ) the noise of each row, and N spans the null space of
U D (`null_space`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.floating.motion import FloatingMotion, Preparer
from steelyard.floating.null_space import fixed_basis, null_space, precise
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.rows import Equation

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

    def projected(self, stretch: PhasePiece) -> Iterator[tuple[Array, NDArray[np.int64]]]:
        """Yield the rows Nᵀ D [Y f] of a `stretch`, `(samples, rows, base parameters + 1)`, in chunks, with samples.

        Machine code computes them; a chunk whose normal equations would lose digits takes the slow path.
        """
        m, columns = stretch.motion, list(self.base.independent)
        for first in range(0, len(stretch.samples), _CHUNK):
            chunk = replace(stretch, samples=stretch.samples[first : first + _CHUNK])
            rows = self._compiled_rows(chunk)
            if rows is not None:
                yield rows, chunk.samples
                continue
            for N, own in self.bases(chunk):
                M = N * self.scale[:, None]
                A = np.swapaxes(M, 1, 2) @ self._regressor(m, own)
                yield (
                    np.concatenate([A[:, :, columns], np.einsum("tnk,tn->tk", M, m.force[own])[:, :, None]], axis=2),
                    own,
                )

    def _compiled_rows(self, chunk: PhasePiece) -> Array | None:
        m, own = chunk.motion, chunk.samples
        missing = np.flatnonzero(m.missing)
        if self.preparer.mechanism is not None or not (chunk.closed or len(missing)):
            return None
        regressor = self.preparer.projected_regressor(self.dynamics)
        if not regressor.worth_compiling(len(own)):
            return None
        middle = own[len(own) // 2 : len(own) // 2 + 1]
        basis = fixed_basis(self.unknown_rows(m.q[middle], chunk.closed, m.missing)[0] * self.scale)
        if basis is None:
            return None
        made = regressor(
            m.q[own], m.dq[own], m.ddq[own], m.force[own], self.base.independent,
            self.preparer.jacobian_rows(chunk.closed), missing.tolist(),
            basis, self.scale,
        )  # fmt: skip
        return made[0] if made is not None and precise(made[1], made[2]).all() else None

    def _regressor(self, m: FloatingMotion, own: NDArray[np.int64]) -> Array:
        q, dq, ddq = m.q[own], m.dq[own], m.ddq[own]
        history = self.dynamics.history(q, dq, ddq) if self.dynamics.terms.history else None
        return np.asarray(self.dynamics.torque_regressor(q, dq, ddq, history=history))

    def data(self, stretches: Sequence[PhasePiece], spectral: bool = True) -> RegressionData:
        """Create the rows of stretches; equations of coordinates without unknown forces keep their names.

        Args:
            stretches: Stretches.
            spectral: Compute the spectra for error bars.
        """
        columns = list(self.base.independent)
        mechanism = self.preparer.mechanism
        used = np.flatnonzero(self.preparer.robot.torque_used)

        def source() -> Iterator[Block]:
            for stretch in stretches:
                if self.projects:
                    for rows, _ in self.projected(stretch):
                        for e in range(rows.shape[1]):
                            yield Block(e, rows[:, e, :-1], rows[:, e, -1])
                    continue
                for N, own in self.bases(stretch):
                    Y, f = self._regressor(stretch.motion, own), stretch.motion.force[own]
                    if mechanism is not None and self.exact:
                        names = [mechanism.measured_names.index(e.name) for e in self.equations]
                        M = N[:, :, names] * self.scale[:, None]
                        A, y = np.swapaxes(M, 1, 2) @ Y, np.einsum("tnk,tn->tk", M, f)
                    else:
                        A, y = Y[:, used] * self.scale[used, None], f[:, used] * self.scale[used]
                    for e in range(A.shape[1]):
                        yield Block(e, A[:, e, columns], y[:, e])

        period = stretches[0].motion.low_pass.period if stretches else 1.0
        count = len(self.base.parameters)
        return RegressionData(self.equations, count, source, period, spectral=spectral, stretched=False)

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
