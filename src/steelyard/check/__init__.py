"""Looking at a log before identifying from it: is it sound, what can its motion show, and what to do."""

import lazy_loader

from steelyard.signals.log import Finding as Finding

__getattr__, __dir__, _own = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_own, "Finding"]
