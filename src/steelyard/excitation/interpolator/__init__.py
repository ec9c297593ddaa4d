"""Via-point programs and their motion on an industrial controller."""

import lazy_loader

from steelyard.errors import ProgramError as ProgramError

__getattr__, __dir__, _own = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_own, "ProgramError"]
