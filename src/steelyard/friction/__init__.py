"""Friction over velocity: measured at constant speeds or from any motion, as laws that can be drawn and subtracted."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
