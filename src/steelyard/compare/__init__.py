"""Estimators side by side: on simulated robots whose truth is known, or on a log with a part held out."""

import lazy_loader

from steelyard.simulation.controllers import CONTROLLERS as CONTROLLERS

__getattr__, __dir__, _own = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_own, "CONTROLLERS"]
