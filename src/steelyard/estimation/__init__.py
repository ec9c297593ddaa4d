"""Estimators: parameters and covariance from the rows of a log; one file per method, one interface."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
