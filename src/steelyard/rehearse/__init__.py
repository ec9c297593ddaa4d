"""A designed motion played on a simulated robot, before anyone moves hardware."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
