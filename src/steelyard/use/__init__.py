"""What a model is used for: to predict torques, to move as the robot would, to be judged, to be written for others."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
