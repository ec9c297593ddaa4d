"""Kinematic calibration: the true places of a robot's joints, from held poses that an external sensor measured."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
