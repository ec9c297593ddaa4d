"""Base parameters, and the rows y = A·θ that estimators solve."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
