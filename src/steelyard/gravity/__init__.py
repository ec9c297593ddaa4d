"""Gravity from poses at rest: identification, scores, compensation code, the next poses to hold."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
