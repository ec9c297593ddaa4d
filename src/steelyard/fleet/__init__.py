"""Fleets: identifies many robots from many logs. Each log is reduced once to small factors; all results use these."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
