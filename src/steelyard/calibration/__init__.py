"""Kinematic calibration: where the joints of a robot really are, from held poses measured from outside."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
