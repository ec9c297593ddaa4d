"""Constraints of a motion: limits of joints, drives and space, at every instant and between the samples."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
