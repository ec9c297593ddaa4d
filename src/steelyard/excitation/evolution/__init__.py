"""Populations instead of gradients: motions that no derivative leads to, such as via-point programs, are bred."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
