"""The command line: one file per command. It joins the rooms of the house and does nothing itself."""

from steelyard.cli import check, demo, friction, identify, inspect, payload, robots  # noqa: F401  (each adds its command)
from steelyard.cli.app import app, main

__all__ = ["app", "main"]
