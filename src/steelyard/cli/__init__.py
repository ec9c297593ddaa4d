"""The command line: one file per command. It only connects the other packages."""

from steelyard.cli.app import app, main

__all__ = ["app", "main"]
