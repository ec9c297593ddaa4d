"""What workers do in tests of faults: functions of a module that they can import."""

from __future__ import annotations

import os
import time


def squared(k: int) -> int:
    """Takes a tenth of a second, so that somebody can be killed meanwhile."""
    time.sleep(0.1)
    return k * k


def deadly(k: int) -> int:
    """Item 3 ends whoever works on it."""
    if k == 3:
        os._exit(9)
    return k * k


def unfit(k: int) -> int:
    """As on a machine without the package."""
    raise ModuleNotFoundError("No module named 'steelyard'")
