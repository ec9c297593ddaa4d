"""The sign of a joint's own inertia, which distinguishes a torque of the wrong sign from a braking motor.

A torque with the wrong sign makes inertia and friction negative. A motor that brakes, that something else drives, or
whose friction the controller compensates, makes friction negative only.
"""

from __future__ import annotations

import numpy as np

from steelyard.check.left_out import Channels, LeftOutFits
from steelyard.ground.arrays import Array
from steelyard.ground.student import quantile
from steelyard.regression.block_grams import Weighted

# Probability that an inertia of zero passes for a positive or negative one.
_FALSE = 0.02
# Postures for the mean inertia.
_POSTURES = 100


class InertiaSigns:
    """Inertias of joints, each estimated from its own torque with friction of either sign.

    Args:
        fits: Fits of the log.
    """

    def __init__(self, fits: LeftOutFits) -> None:
        self.fits = fits

    def of(self, joint: int) -> int:
        """Return 1 or −1 if the mean inertia of a joint is surely positive or negative, else 0.

        Args:
            joint: Number of the joint.
        """
        fits = self.fits
        alone = fits.weights * (np.array(fits.evidence.joints) == joint)
        free = Weighted(fits.parts, alone).fit(np.ones(len(fits.columns), dtype=bool)).free
        whole, *others = free @ self._columns(joint)
        less = np.array(others)
        count = len(less)
        error = float(np.sqrt((count - 1) / count * np.sum((less - less.mean()) ** 2)))
        return int(np.sign(whole)) if abs(whole) > quantile(1.0 - _FALSE, count - 1) * error else 0

    def _columns(self, joint: int) -> Array:
        """Return the mean of the columns of a unit acceleration, without gravity."""
        fits, e = self.fits, self.fits.evidence.joints.index(joint)
        q = fits.channels.q[:: max(1, len(fits.channels.q) // _POSTURES)]
        still = np.zeros_like(q)
        ends = [fits.table_of(joint, self._at(q, still, push)) for push in (still + np.eye(q.shape[1])[joint], still)]
        own, places = fits.equations[e].among(fits.columns)
        out = np.zeros(len(fits.columns))
        out[places] = np.mean(ends[0] - ends[1], axis=0)[own]
        return out

    def _at(self, q: Array, dq: Array, ddq: Array) -> Channels:
        return self.fits.channels.with_signals(q=q, dq=dq, ddq=ddq, tau=np.zeros_like(q))
