"""Shared basics without any knowledge of robots: arrays, scalars, files, documents, outcomes, progress."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
