"""`TorqueBand`: the band around predicted torques that holds 95 % of the measured ones.

Three things make its width: what the fitted logs leave while a joint moves (noise and what the model lacks), how much
that changes between blocks of the logs, and the covariance of the base parameters along the motion. Where a joint
stands, dry friction may be anything between its two limits, which widens the band by this friction.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters

_LEVEL = 0.95
# Blocks of the fitted rows between which the error may change, and standard errors of its mean over blocks that are
# added. With 5 to 20 blocks the share of samples inside stays within 0.1 % on 13 real robots.
_BLOCKS, _ERRORS = 10, 2.0
# Rows of a moving joint below which a quantile says nothing; all rows serve then.
_FEWEST_ROWS = 40
# Instants at which the error of the parameters is computed; between them it changes slowly.
_INSTANTS = 1500


@dataclass(frozen=True)
class JointBand:
    """What the width of one joint's band is made of; torques in N m (N).

    Args:
        joint: the name.
        noise_std: root mean square of what the model leaves of the fitted logs while the joint moves.
        structural_std: what is added because this error changes from block to block.
        quantile: half the width of the band in standard deviations: 1.96 for Gaussian errors.
        standstill_friction: what is added to half the width while the joint stands.
    """

    joint: str
    noise_std: float
    structural_std: float
    quantile: float
    standstill_friction: float


@dataclass(frozen=True, eq=False)
class TorqueBand:
    """The band of a model.

    Args:
        joints: of the joints whose torque is used.
        cutoff_hz: of the low-pass of the torques that the band is about, Hz.
        base: the base parameters.
        covariance: of the base parameters.
        model: what predicts.
    """

    joints: tuple[JointBand, ...]
    cutoff_hz: float
    base: BaseParameters
    covariance: Array
    model: Model

    def to_json(self) -> dict[str, Any]:
        """What is needed beside covariance.csv to compute the band."""
        return {
            "level_percent": 100.0 * _LEVEL,
            "cutoff_hz": self.cutoff_hz,
            "joints": [asdict(j) for j in self.joints],
        }

    def half_width(self, q: Array, dq: Array, ddq: Array, standing: NDArray[np.bool_] | None) -> Array:
        """Half the width of the band along a motion, `(samples, used joints)`, N m (N).

        Args:
            q: positions, rad (m), `(samples, joints)`.
            dq: velocities, like `q`.
            ddq: accelerations, like `q`.
            standing: whether each used joint stands, `(samples, used joints)`; None: all of them move.
        """
        noise, structure, quantile, friction = (
            np.array([getattr(j, name) for j in self.joints])
            for name in ("noise_std", "structural_std", "quantile", "standstill_friction")
        )
        out: Array = quantile * np.sqrt(self._variance(q, dq, ddq) + noise**2 + structure**2)
        return out if standing is None else out + standing * friction

    def _variance(self, q: Array, dq: Array, ddq: Array) -> Array:
        """The variance of the torques by the covariance of the parameters, `(samples, used joints)`."""
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
    """Noise, structural standard deviation and quantile of one joint, as `JointBand` has them.

    Args:
        errors: measured less predicted torque of the fitted logs, in the order of time, N m (N).
        standing: whether the joint stands.
    """
    block = np.arange(len(errors)) * _BLOCKS // max(len(errors), 1)
    if np.count_nonzero(~standing) >= _FEWEST_ROWS:
        errors, block = errors[~standing], block[~standing]
    counts = np.bincount(block, minlength=_BLOCKS).astype(float)
    sums = np.bincount(block, errors**2, minlength=_BLOCKS)
    seen = counts > 0.0
    share, means = counts[seen] / counts.sum(), sums[seen] / counts[seen]
    mean = float(share @ means)
    if mean <= 0.0:
        return 0.0, 0.0, 1.96
    blocks = len(means)
    spread = np.sqrt(float(share @ (means - mean) ** 2) * blocks / max(blocks - 1, 1))
    structural = np.sqrt(_ERRORS * spread / np.sqrt(blocks))
    return float(np.sqrt(mean)), float(structural), float(np.quantile(np.abs(errors), _LEVEL) / np.sqrt(mean))
