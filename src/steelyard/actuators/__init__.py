"""Drives from their own command logs: a servo identified from goals and positions, without a torque sensor."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
