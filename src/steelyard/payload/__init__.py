"""Payloads: the bodies that robots carry, identified from joint torques or from a sensor at the wrist."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
