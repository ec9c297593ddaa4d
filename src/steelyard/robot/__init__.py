"""What is known of a robot before it moves: its joints, links, drives and, where stated, its inertias."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
