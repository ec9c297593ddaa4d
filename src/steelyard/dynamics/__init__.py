"""The physics, written once over scalars, traced per robot, and run on NumPy, machine code, JAX and GPUs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
