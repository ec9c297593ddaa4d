"""Find the true dynamic model of a robot from its own motion.

The public names are listed in `__init__.pyi`, and imported when they are first used: `import steelyard` stays quick.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
