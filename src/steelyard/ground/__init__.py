"""The ground floor: arrays, scalars, files, documents, outcomes. It knows nothing of robots."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
