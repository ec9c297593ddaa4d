"""Families of smooth motions of a joint, linear in their coefficients, and trajectories of all joints."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
