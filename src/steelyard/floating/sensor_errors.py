"""Delays and biases of sensors, estimated along with the parameters.

A torque that is late by d reads f(t − d) ≈ f − d·ḟ; base signals that are late, and a bias b of the accelerometer,
change the left side Y θ in the same linear way. Each error is a column G of the rows at the estimated θ:

    y = A β + G δ + noise.

The description of the bodies is part of the fit, and each error has a prior with mean zero, so that errors which the
motion cannot tell from the parameters stay small. Two Gauss-Newton steps are enough: delays are short relative to the
cut-off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.robot.spatial import rotation_from_rpy

if TYPE_CHECKING:
    from steelyard.estimation.possible._formulate import Formulation
    from steelyard.floating.motion import FloatingMotion
    from steelyard.floating.projected_rows import PhasePiece, RowMaker

# Standard deviations of the errors before a log: delays of buses and filters of some milliseconds; the zero offset
# of accelerometers of a robot's IMU, 20 to 60 mg in their data sheets.
_DELAY, _BIAS = 0.01, 0.5
_NAMES = ("torque delay", "base delay", "bias x", "bias y", "bias z")
_UNITS = ("s", "s", "m/s²", "m/s²", "m/s²")
_PRIOR = np.array([_DELAY, _DELAY, _BIAS, _BIAS, _BIAS])
# Number of samples for the estimate; these are sufficient for the few unknowns.
_SAMPLES = 20_000


@dataclass(frozen=True, eq=False)
class SensorErrors:
    """Errors of the sensors relative to the joint encoders.

    Attributes:
        values: Delay of torques and of base signals [s], and bias of the accelerometer in its axes [m/s²].
        present: Which of them the logs can have.
        covariance: Covariance of the values.
    """

    values: Array = field(default_factory=lambda: np.zeros(5))
    present: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(5, dtype=bool))
    covariance: Array = field(default_factory=lambda: np.zeros((5, 5)))

    @property
    def bias(self) -> Array:
        return np.asarray(self.values[2:])

    def torque_at(self, x: Array, period: float) -> Array:
        """Return late torques at the times of the encoders.

        Args:
            x: Smooth torques, `(samples, joints)`.
            period: Time between samples [s].
        """
        return advanced(x, self.values[0] / period)

    def base_at(self, x: Array, period: float) -> Array:
        """Return late signals of the base at the times of the encoders.

        Args:
            x: Smooth signals, `(samples, columns)`.
            period: Time between samples [s].
        """
        return advanced(x, self.values[1] / period)

    def table(self) -> list[dict[str, str | float]]:
        """Return name, unit, value and standard error of each error that the logs can have."""
        errors = np.sqrt(np.diag(self.covariance))
        return [
            {"name": _NAMES[k], "unit": _UNITS[k], "value": float(self.values[k]), "standard_error": float(errors[k])}
            for k in np.flatnonzero(self.present)
        ]

    def sentences(self) -> list[str]:
        """State the errors that exceed twice their standard errors."""
        errors = np.sqrt(np.diag(self.covariance))
        out = []
        for k, (name, what) in enumerate((("torques", "Torques"), ("base", "Signals of the base"))):
            if self.present[k] and abs(self.values[k]) > 2.0 * errors[k]:
                late = "late" if self.values[k] > 0 else "early"
                out.append(
                    f"{what} are {1e3 * abs(self.values[k]):.2g} ± {2e3 * errors[k]:.1g} ms {late} relative to the "
                    f"joint angles; the {name} signals were shifted."
                )
        if self.present[2] and np.any(np.abs(self.values[2:]) > 2.0 * errors[2:]):
            numbers = ", ".join(f"{b:.3f} ± {2 * e:.3f}" for b, e in zip(self.values[2:], errors[2:], strict=True))
            out.append(f"The accelerometer has a bias of {numbers} m/s² in its axes, which was subtracted.")
        return out


def advanced(x: Array, samples: float) -> Array:
    """Return x(t + samples), by the cubic through four neighbours; the ends repeat.

    Args:
        x: Signal, `(samples, columns)`.
        samples: Shift in samples.
    """
    if samples == 0.0:
        return x
    whole = int(np.floor(samples))
    s = samples - whole
    weights = (-s * (s - 1) * (s - 2) / 6, (s + 1) * (s - 1) * (s - 2) / 2, -(s + 1) * s * (s - 2) / 2,
               (s + 1) * s * (s - 1) / 6)  # fmt: skip
    before, after = max(1 - whole, 0), max(whole + 2, 0)
    longer = np.concatenate([np.repeat(x[:1], before, axis=0), x, np.repeat(x[-1:], after, axis=0)])
    out = np.zeros_like(x)
    for weight, k in zip(weights, (-1, 0, 1, 2), strict=True):
        first = whole + k + before
        out += weight * longer[first : first + len(x)]
    return out


@dataclass(frozen=True, eq=False)
class ErrorRows:
    """Sums of the rows with the columns of the errors.

    Attributes:
        gram: AᵀA of the base parameters' columns.
        cross: AᵀG.
        own: GᵀG.
        right: Gᵀ(y − A β).
        present: Errors of the columns of G.
        columns: Columns of θ in A.
        share: Number of summed rows relative to the independent ones of all samples.
    """

    gram: Array
    cross: Array
    own: Array
    right: Array
    present: NDArray[np.bool_]
    columns: tuple[int, ...]
    share: float

    def step(self, formulation: Formulation, hessian: Array, values: Array) -> tuple[Array, Array]:
        """Return the change of the errors and their covariance, at the solution of the parameters.

        Args:
            formulation: Program of the parameters.
            hessian: Hessian of the weighted distance from the description in this program.
            values: Errors that are already subtracted.
        """
        lift = formulation.base.matrix @ formulation.lift
        kept = [self.columns.index(c) for c in formulation.base.independent]
        A = lift.T @ (self.gram[np.ix_(kept, kept)] / self.share) @ lift + hessian
        B = lift.T @ self.cross[kept] / self.share
        size = 1.0 / np.sqrt(np.maximum(np.diag(A), 1e-300))
        solved = size[:, None] * np.linalg.solve(A * size * size[:, None] + 1e-12 * np.eye(len(A)), size[:, None] * B)
        prior = 1.0 / _PRIOR[self.present] ** 2
        S = self.own / self.share - B.T @ solved + np.diag(prior)
        covariance = np.linalg.inv(S)
        change = covariance @ (self.right / self.share - prior * values[self.present])
        return np.asarray(change), np.asarray(covariance)

    def corrected(self, formulation: Formulation, hessian: Array, errors: SensorErrors) -> SensorErrors:
        """Return the errors after a step.

        Args:
            formulation: Program of the parameters.
            hessian: Hessian of the description's weight in it.
            errors: Errors that are already subtracted.
        """
        change, some = self.step(formulation, hessian, errors.values)
        values, covariance = errors.values.copy(), np.zeros((5, 5))
        values[self.present] += change
        covariance[np.ix_(self.present, self.present)] = some
        return SensorErrors(values, self.present, covariance)

    def widening(self, independent: Sequence[int], errors: SensorErrors) -> Array:
        """Return the covariance of base parameters due to the uncertainty of the errors.

        Args:
            independent: Columns of the base parameters of the fit.
            errors: The errors.
        """
        K = self.gain(independent)
        return np.asarray(K @ errors.covariance[np.ix_(self.present, self.present)] @ K.T)

    def gain(self, independent: Sequence[int]) -> Array:
        """Return ∂β/∂δ of a free fit, `(base parameters, errors)`.

        Args:
            independent: Columns of the base parameters of the fit.
        """
        kept = [self.columns.index(c) for c in independent]
        gram = self.gram[np.ix_(kept, kept)]
        size = 1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
        scaled = gram * size * size[:, None] + 1e-13 * np.eye(len(gram))
        solved = np.linalg.solve(scaled, size[:, None] * self.cross[kept])
        return np.asarray(-size[:, None] * solved)


def sensor_error_rows(maker: RowMaker, stretches: Sequence[PhasePiece], theta: Array) -> ErrorRows | None:
    """Sum the rows with the columns of the errors; None if the logs cannot have such errors.

    Args:
        maker: Rows.
        stretches: Stretches of the fit.
        theta: Parameters at which the columns are computed.
    """
    preparer = maker.preparer
    present = np.zeros(5, dtype=bool)
    present[0] = bool(np.any(stretches[0].motion.torque[stretches[0].samples]))
    present[1] = preparer.floating is not None and not stretches[0].motion.missing.all()
    if preparer.floating is not None and preparer.mapping.base is not None:
        present[2:] = "accelerometer" in preparer.mapping.base.columns
    if preparer.mechanism is not None or preparer.floating is None or preparer.robot.dof == 6 or not present.any():
        return None
    beta = maker.base.matrix @ theta
    p, g = len(beta), int(present.sum())
    total = sum(len(s.samples) for s in stretches)
    every = max(1, -(-total // _SAMPLES))
    sums = np.zeros((p + g + 1, p + g + 1))
    used = np.flatnonzero(preparer.robot.torque_used)
    count = 0
    with one_blas_thread():
        for stretch in stretches:
            for N, Y, f, own in maker.tables(stretch.every(every)):
                G = _columns(maker, stretch.motion, own, theta)[:, :, present] * maker.scale[:, None]
                table = np.concatenate([Y, G, (f - Y @ beta)[:, :, None]], axis=2)
                rows = np.swapaxes(N, 1, 2) @ table if maker.projects else table[:, used]
                flat = rows.reshape(-1, p + g + 1)
                sums += flat.T @ flat
                count += len(own)
    a, d = slice(0, p), slice(p, p + g)
    # A signal with the cut-off f has 2 f independent values per second; rows are denser.
    low = stretches[0].motion.low_pass
    dense = min(2.0 * low.cutoff_hz * low.period * float(np.median(np.diff(stretches[0].samples))), 1.0)
    share = count / max(total, 1) / dense
    return ErrorRows(sums[a, a], sums[a, d], sums[d, d], sums[d, -1], present, tuple(maker.base.independent), share)


def _columns(maker: RowMaker, motion: FloatingMotion, own: NDArray[np.int64], theta: Array) -> Array:
    """Compute the columns of all errors, `(samples, joints, 5)`."""
    preparer = maker.preparer
    assert preparer.floating is not None
    assert preparer.mapping.base is not None
    base = list(preparer.floating.coordinates)
    before, after = np.maximum(own - 1, 0), np.minimum(own + 1, len(motion.t) - 1)
    span = (motion.t[after] - motion.t[before])[:, None]
    out = np.zeros((len(own), preparer.robot.dof, 5))
    out[:, :, 0] = -(motion.torque[after] - motion.torque[before]) / span

    def force(at: NDArray[np.int64], push: Array | None = None) -> Array:
        q, dq, ddq = motion.q[own], motion.dq[own], motion.ddq[own]
        q[:, base], dq[:, base], ddq[:, base] = motion.q[at][:, base], motion.dq[at][:, base], motion.ddq[at][:, base]
        if push is not None:
            ddq[:, base[:3]] += push
        links = preparer.robot.inertial_count
        return preparer.robot.dynamics.inverse_dynamics(q, dq, ddq, theta[:links])

    out[:, :, 1] = (force(after) - force(before)) / span
    if "accelerometer" in preparer.mapping.base.columns:
        still = force(own)
        for k, axis in enumerate(rotation_from_rpy(*preparer.mapping.base.imu_rpy).T):
            out[:, :, 2 + k] = still - force(own, axis)
    return out
