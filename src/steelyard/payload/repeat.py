"""Statistics of a load that was weighed several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, t

from steelyard.errors import SteelyardError
from steelyard.payload.load import Load
from steelyard.robot.spatial import Array


@dataclass(frozen=True, eq=False)
class Repeats:
    """Mean and standard deviation of the ten parameters over `count` weighings in one frame."""

    count: int
    mean: Array
    deviation: Array

    def interval(self, level: float = 0.99) -> Array:
        """Half the width of the confidence interval of the mean: Student's t over √n."""
        return np.asarray(t.ppf(0.5 * (1.0 + level), self.count - 1) * self.deviation / np.sqrt(self.count))

    def interval_as_printed(self, level: float = 0.99) -> Array:
        """The same by the rule behind Table I of Kozłowski & Dutkiewicz 1996: the normal quantile over √(n − 1)."""
        return np.asarray(norm.ppf(0.5 * (1.0 + level)) * self.deviation / np.sqrt(self.count - 1))


def repeats(loads: Sequence[Load]) -> Repeats:
    """Statistics over several weighings of the same load."""
    if len(loads) < 2:
        raise SteelyardError("Statistics need at least two weighings.")
    frames = {load.frame for load in loads}
    if len(frames) > 1:
        raise SteelyardError(f"The loads are in different frames ({', '.join(sorted(frames))}); use seen_from first.")
    values = np.array([load.parameters for load in loads])
    return Repeats(len(loads), values.mean(axis=0), values.std(axis=0, ddof=1))
