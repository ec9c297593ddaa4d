"""The command line: one file per command. It joins the rooms of the house and does nothing itself."""

# Each of these adds its command to the program.
from steelyard.cli import (  # noqa: F401
    check,
    compare,
    compare_estimators,
    demo,
    excite,
    friction,
    identify,
    inspect,
    local,
    payload,
    rehearse,
    reproduce,
    robots,
)
from steelyard.cli.app import app, main

__all__ = ["app", "main"]
