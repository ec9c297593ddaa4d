"""Description of a robot: joints, links, drives and, where stated, inertias."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
