"""Changes over time: step and ramp templates, tests, scatter of series, control of false alarms."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
