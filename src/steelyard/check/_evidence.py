"""Prepared rows of a log, shared by several checks, and plain fits to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.parameters.terms import identification_terms
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.observe import observe
from steelyard.robot.robot import Robot
from steelyard.signals.prepare import Motion
from steelyard.study import Study


@dataclass(frozen=True, eq=False)
class Evidence:
    """States and torques at the rows that remain after filtering, and y = A β of every joint whose torque is used.

    `A[e]` has the columns `columns[e]` of the base parameters (places in β). `joints[e]` is the joint of equation e.
    `moving` marks the rows in which a joint moves. `usual` are base parameters with terms without memory.
    """

    robot: Robot
    base: BaseParameters
    usual: BaseParameters
    motions: tuple[Motion, ...]
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    moving: NDArray[np.bool_]
    joints: tuple[int, ...]
    columns: tuple[Array, ...]
    A: tuple[Array, ...]
    y: tuple[Array, ...]

    @property
    def rows(self) -> int:
        return len(self.q)

    def thinned(self, most: int) -> slice:
        """Select at most `most` rows at equal distances."""
        return slice(None, None, max(1, -(-self.rows // most)))


def gather(study: Study, number: int) -> Evidence:
    """Collect the prepared rows of the beginning of a log, including rows that the fit leaves out.

    Args:
        study: Study of the log.
        number: Number of the log in the study.
    """
    robot, base = study.robot, study.base
    motions = tuple(m for m in study.first_motions(number) if m.long_enough)
    whole = study.scores_in_the_pass and not any(m.leaves_out for m in motions)
    data = study.parts.get(number) if whole else None
    blocks = () if data is None else data.first_blocks()  # short logs keep these rows
    if data is None or not blocks:
        data = observe(study.dynamics, base, lambda: [replace(m, fit_standing=True) for m in motions])
    parts: list[list[tuple[Array, Array]]] = [[] for _ in data.equations]
    for block in blocks or data.blocks():
        parts[block.equation].append((block.A, block.y))
    return Evidence(
        robot=robot,
        base=base,
        usual=_usual(study).base,
        motions=motions,
        q=_rows([m.q[m.keep] for m in motions]),
        dq=_rows([m.dq[m.keep] for m in motions]),
        ddq=_rows([m.ddq[m.keep] for m in motions]),
        tau=_rows([m.filter(m.tau, m.keep) for m in motions]),
        moving=_rows([_moving(m) for m in motions]),
        joints=tuple(robot.joint_index(e.name) for e in data.equations),
        columns=tuple(np.array(e.among(base.independent)[1]) for e in data.equations),
        A=tuple(np.concatenate([a for a, _ in part]) for part in parts),
        y=tuple(np.concatenate([b for _, b in part]) for part in parts),
    )


def _usual(study: Study) -> Study:
    return replace(study, terms=identification_terms(study.robot)) if study.terms.history else study


def _moving(motion: Motion) -> NDArray[np.bool_]:
    if motion.standing is None:
        return np.ones_like(motion.q[motion.keep], dtype=bool)
    return ~motion.standing[motion.keep]


def _rows(pieces: Sequence[Any]) -> Any:
    return np.concatenate(pieces) if pieces else np.empty((0, 0))


def basis(A: Array) -> Array:
    """Compute orthonormal columns that span those of `A`."""
    lengths = np.linalg.norm(A, axis=0)
    U, s, _ = np.linalg.svd(A / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    return np.asarray(U[:, s > 1e-8 * s[0]])


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit: coefficients, standard errors, remaining share of the variance, and residuals."""

    values: Array
    errors: Array
    left: float
    residual: Array


# A column's length against the longest of its equation, below which it is rounding; lengths of real ones differ by 1e4.
_ROUNDING = 1e-12


def fit(columns: Array, y: Array) -> Fit:
    """Fit by least squares; coefficients that the columns do not show become zero with an infinite error.

    Residuals of filtered signals are correlated; the errors use the number of independent residuals.

    Args:
        columns: Columns, shape (samples, coefficients).
        y: Signal to fit.
    """
    lengths = np.linalg.norm(columns, axis=0)
    # A column that vanishes by a trigonometric identity consists of rounding errors.
    columns = np.where(lengths > _ROUNDING * lengths.max(initial=0.0), columns, 0.0)
    lengths = np.linalg.norm(columns, axis=0)
    scale = np.where(lengths > 0.0, lengths, 1.0)
    count = columns.shape[1]
    R: Array = np.asarray(np.linalg.qr(np.column_stack([columns / scale, y]), mode="r"))[:count]
    U, s, V = np.linalg.svd(R[:, :count], full_matrices=False)
    identifiable = s > 1e-8 * s[0] if len(s) else s > 0.0
    inverse = np.where(identifiable, 1.0 / np.where(identifiable, s, 1.0), 0.0)
    values = (V.T * inverse) @ (U.T @ R[:, count])
    residual = y - (columns / scale) @ values
    freedom = max(len(y) / memory(residual) - float(np.sum(identifiable)), 1.0)
    noise = float(residual @ residual) / freedom
    standard_errors = np.sqrt(noise * np.sum((V.T * inverse) ** 2, axis=1)) / scale
    hidden = np.sum(V[~identifiable] ** 2, axis=0) > 1e-3
    total = float(np.sum((y - y.mean()) ** 2))
    left = float(residual @ residual) / total if total > 0.0 else 1.0
    standard_errors[hidden | (lengths == 0.0)] = np.inf
    return Fit(values / scale, standard_errors, min(left, 1.0), residual)


def memory(residual: Array) -> float:
    """Compute the number of residuals that count as one: 1 + 2 Σρ up to the first negative correlation."""
    x = residual - residual.mean()
    power = float(x @ x)
    if len(x) < 8 or power == 0.0:
        return 1.0
    size = 1 << (2 * len(x)).bit_length()
    rho = np.fft.irfft(np.abs(np.fft.rfft(x, size)) ** 2, size)[: len(x) // 4] / power
    end = int(np.argmax(rho < 0.0)) or len(rho)
    return float(max(1.0, 1.0 + 2.0 * rho[1:end].sum()))
