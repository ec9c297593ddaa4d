"""Simulated robots: plants with friction, controllers, sensors, and the logs they give."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
