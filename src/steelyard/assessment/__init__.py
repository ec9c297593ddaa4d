"""Model assessment: scores, hold-out data, replay, sensitivity and validation."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
