"""What a motion must keep to: limits of joints, of drives and of space, at every instant and not only at samples."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
