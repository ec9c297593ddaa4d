"""Matching of a whole robot to its commands: a simulator's numbers from goals and positions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
