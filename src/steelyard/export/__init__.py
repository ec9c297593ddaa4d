"""The identified model for other programs: URDF with a sidecar, MJCF, C code, tables."""

import lazy_loader

from steelyard.errors import ExportError as ExportError

__getattr__, __dir__, _own = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_own, "ExportError"]
