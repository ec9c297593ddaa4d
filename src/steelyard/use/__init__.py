"""Uses of a model: torque prediction, simulation, validation, export, and sequential identification."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
