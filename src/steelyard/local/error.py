"""What can go wrong with regions and banks of local models."""

from __future__ import annotations

from steelyard.errors import SteelyardError


class LocalError(SteelyardError):
    """A region or a bank that cannot be used as asked: names it, and what would help."""


class OutsideError(LocalError):
    """A question about a posture that no region of a bank knows anything of."""
