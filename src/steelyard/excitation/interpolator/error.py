"""What an interpolator refuses."""

from __future__ import annotations

from steelyard.errors import SteelyardError


class ProgramError(SteelyardError):
    """A via-point program that cannot be run: names the move, the joint or the pose, and what would fix it."""
