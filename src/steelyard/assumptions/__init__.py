"""What a fit takes for granted, and what the logs say of it: zeros, scales, clock, gravity, description, drift."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
