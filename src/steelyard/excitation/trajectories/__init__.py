"""How a joint may move: families of smooth motions, linear in their coefficients, and trajectories made of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
