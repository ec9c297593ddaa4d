"""Design of motions that make a robot's parameters identifiable."""

import lazy_loader

from steelyard.errors import ExcitationError as ExcitationError

__getattr__, __dir__, _own = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_own, "ExcitationError"]
