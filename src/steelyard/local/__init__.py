"""Local models: one model per workspace region, and the bank that blends them (Pedrocchi et al. 2013)."""

import lazy_loader

from steelyard.errors import LocalError as LocalError
from steelyard.errors import OutsideError as OutsideError

__getattr__, __dir__, _own = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_own, "LocalError", "OutsideError"]
