"""Identification of a model from logs: the function, its result, the structure search, the report and the files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
