"""`TorqueBand`: 95 % prediction band around predicted torques.

Its width combines the residuals of the fitted logs in motion, the variation of these residuals between blocks, and the
covariance of the base parameters along the motion. At standstill the dry friction is added, since it is undetermined.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.regression.base_parameters import BaseParameters

_LEVEL = 0.95
# Number of blocks of the fitted rows, and number of standard errors of the block mean that are added. With 5 to 20
# blocks the share of samples inside changes by less than 0.1 % on 13 real robots.
_BLOCKS, _ERRORS = 10, 2.0
# Minimum number of rows in motion for a quantile; below it all rows are used.
_FEWEST_ROWS = 40
# Instants at which the parameter error is computed; it is interpolated in between.
_INSTANTS = 1500


@dataclass(frozen=True)
class JointBand:
    """Parts of the band width of one joint.

    Args:
        joint: Name of the joint.
        noise_std: RMS residual of the fitted logs in motion [N m, N].
        structural_std: Standard deviation due to the variation of the residual between blocks [N m, N].
        quantile: Half-width of the band in standard deviations; 1.96 for Gaussian errors.
        standstill_friction: Addition to the half-width at standstill [N m, N].
    """

    joint: str
    noise_std: float
    structural_std: float
    quantile: float
    standstill_friction: float


@dataclass(frozen=True, eq=False)
class TorqueBand:
    """Prediction band of a model.

    Args:
        joints: Bands of the joints with a used torque.
        cutoff_hz: Cut-off of the filtered torques that the band applies to [Hz].
        base: Base parameters.
        covariance: Covariance of the base parameters.
        model: Model of the predictions.
    """

    joints: tuple[JointBand, ...]
    cutoff_hz: float
    base: BaseParameters
    covariance: Array
    model: Model

    def to_json(self) -> dict[str, Any]:
        """Return the data that are needed with covariance.csv to compute the band."""
        return {
            "level_percent": 100.0 * _LEVEL,
            "cutoff_hz": self.cutoff_hz,
            "joints": [asdict(j) for j in self.joints],
        }

    def half_width(self, q: Array, dq: Array, ddq: Array, standing: NDArray[np.bool_] | None) -> Array:
        """Compute the half-width of the band along a motion, shape (samples, used joints) [N m, N].

        Args:
            q: Positions [rad, m], shape (samples, joints).
            dq: Velocities [rad/s, m/s], shape (samples, joints).
            ddq: Accelerations [rad/s^2, m/s^2], shape (samples, joints).
            standing: Standstill of each used joint, shape (samples, used joints); None: all joints move.
        """
        noise, structure, quantile, friction = (
            np.array([getattr(j, name) for j in self.joints])
            for name in ("noise_std", "structural_std", "quantile", "standstill_friction")
        )
        out: Array = quantile * np.sqrt(self._variance(q, dq, ddq) + noise**2 + structure**2)
        return out if standing is None else out + standing * friction

    def _variance(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Compute the variance of the torques due to the parameter covariance, shape (samples, used joints)."""
        used = np.flatnonzero(self.base.robot.torque_used)
        some = np.unique(np.linspace(0, len(q) - 1, _INSTANTS).astype(int))
        q, dq, ddq, count = q[some], dq[some], ddq[some], len(q)
        dynamics = self.base.structure.dynamics
        theta = self.model.theta[: len(self.base.parameters)]
        past = dynamics.history(q, dq, ddq, theta) if dynamics.terms.history else None
        rows = self.base.regressor_columns(dynamics.torque_regressor(q, dq, ddq, history=past))[:, used]
        variance = np.maximum(np.einsum("ija,ab,ijb->ij", rows, self.covariance, rows, optimize=True), 0.0)
        return np.column_stack([np.interp(np.arange(count), some, column) for column in variance.T])


def error_spread(errors: Array, standing: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Compute `noise_std`, `structural_std` and `quantile` of a `JointBand`.

    Args:
        errors: Measured minus predicted torque of the fitted logs, in order of time [N m, N].
        standing: Standstill of the joint for each sample.
    """
    block = np.arange(len(errors)) * _BLOCKS // max(len(errors), 1)
    if np.count_nonzero(~standing) >= _FEWEST_ROWS:
        errors, block = errors[~standing], block[~standing]
    counts = np.bincount(block, minlength=_BLOCKS).astype(float)
    sums = np.bincount(block, errors**2, minlength=_BLOCKS)
    filled = counts > 0.0
    share, means = counts[filled] / counts.sum(), sums[filled] / counts[filled]
    mean = float(share @ means)
    if mean <= 0.0:
        return 0.0, 0.0, HALF_WIDTH_95
    blocks = len(means)
    deviation = np.sqrt(float(share @ (means - mean) ** 2) * blocks / max(blocks - 1, 1))
    structural = np.sqrt(_ERRORS * deviation / np.sqrt(blocks))
    return float(np.sqrt(mean)), float(structural), float(np.quantile(np.abs(errors), _LEVEL) / np.sqrt(mean))
