"""Check a log before identification: whether it is sound, what its motion shows, and what to fix."""

import lazy_loader

from steelyard.signals.log import Finding as Finding

__getattr__, __dir__, _own = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_own, "Finding"]
