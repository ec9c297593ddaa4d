"""Exports of an identified model: URDF with a sidecar, MJCF, C code, tables and others."""

import lazy_loader

from steelyard.errors import ExportError as ExportError

__getattr__, __dir__, _own = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_own, "ExportError"]
