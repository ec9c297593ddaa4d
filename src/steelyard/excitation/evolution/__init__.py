"""Evolutionary design: populations of motions that need no derivatives, such as via-point programs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
