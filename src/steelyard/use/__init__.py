"""What a model is used for: to move as the robot would, to be judged by that, to be found movement by movement."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
