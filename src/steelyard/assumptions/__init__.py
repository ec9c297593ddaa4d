"""Tests the assumptions of a fit against the logs: zeros, scales, clock, gravity, description and drift."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
