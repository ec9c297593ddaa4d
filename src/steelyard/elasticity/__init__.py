"""Elastic joints: stiffness and encoder skew from two encoders, resonances from one, springs as torque sensors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
