"""`Place`: a frame that is fixed to a link."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.arrays import Array


@dataclass(frozen=True, eq=False)
class Place:
    """A frame fixed to link `host` (−1: the base), at (`rotation`, `translation`) in that link's joint frame."""

    host: int = -1
    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))

    def at(self, rotation: ArrayLike, translation: ArrayLike) -> Place:
        """The frame that stands at (rotation, translation) in this one."""
        r, t = np.asarray(rotation, dtype=float), np.asarray(translation, dtype=float)
        return Place(self.host, self.rotation @ r, self.translation + self.rotation @ t)
