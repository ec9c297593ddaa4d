"""The error of everything that cannot be written down in, or read back from, a foreign format."""

from __future__ import annotations

from steelyard.errors import SteelyardError


class ExportError(SteelyardError):
    """A model that a format cannot hold: names the link, joint or term, and what would work instead."""
