"""Example for an empty folder: the names of its robot and logs, and a function of the helper process that writes them."""

from __future__ import annotations

from collections.abc import Sequence

EXAMPLE_ROBOT = "arm7"
EXAMPLE_LOGS = {"identify": "example-1.csv", "validate": "example-2.csv"}


def write_example(paths: Sequence[str]) -> None:
    """Simulate two motions of the example robot, and write their logs.

    Args:
        paths: Files to write, one per motion.
    """
    from steelyard.demo import write_example_logs  # imported here to keep the server small

    write_example_logs(EXAMPLE_ROBOT, paths)
