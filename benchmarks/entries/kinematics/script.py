"""A script of the usual kind: joint offsets as well, by Pinocchio and SciPy's least squares."""

from __future__ import annotations

from entries.kinematics import description


class Entry(description.Entry):
    name = "offsets"
    offsets = True
