"""The studio: a web server on this machine with six stages from robot file to model, and jobs in child processes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
