"""The command line: one file per command. It joins the rooms of the house and does nothing itself."""

from steelyard.cli.app import app, main

__all__ = ["app", "main"]
