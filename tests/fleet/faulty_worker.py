"""Functions that workers run in tests of faults; workers import them from this module."""

from __future__ import annotations

import os
import time


def squared(k: int) -> int:
    """Take a tenth of a second, so that a worker can be killed meanwhile."""
    time.sleep(0.1)
    return k * k


def deadly(k: int) -> int:
    """End the process that works on item 3."""
    if k == 3:
        os._exit(9)
    return k * k


def unfit(k: int) -> int:
    """Fail as on a machine without the package."""
    raise ModuleNotFoundError("No module named 'steelyard'")
