"""Live monitoring of a robot: contact, payload, health of the drives, and validity of the model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
