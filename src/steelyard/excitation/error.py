"""The error of a motion that cannot be designed as asked."""

from __future__ import annotations

from steelyard.errors import SteelyardError


class ExcitationError(SteelyardError):
    """A design problem without an answer: names the limit, the joint or the region, and what would help."""
