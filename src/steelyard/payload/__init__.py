"""Loads: what a robot carries, weighed from the torques of its joints or by a sensor at its wrist."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
