"""Measurement of friction over velocity, from constant speeds or any motion, and friction laws."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
