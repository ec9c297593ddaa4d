"""The command line: one file per command. It joins the rooms of the house and does nothing itself."""

# Each of these adds its command to the program.
from steelyard.cli import check, compare, demo, friction, identify, inspect, payload, robots  # noqa: F401
from steelyard.cli.app import app, main

__all__ = ["app", "main"]
