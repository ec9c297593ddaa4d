"""`steelyard robots`."""

from __future__ import annotations

from steelyard.cli.app import app
from steelyard.cli.options import AsJson, print_json


@app.command(epilog="Example: steelyard robots --json")
def robots(as_json: AsJson = False) -> None:
    """List the robots that come with the package."""
    from steelyard.robot.library import catalogue

    entries = catalogue()
    if as_json:
        print_json([{"name": e.name, "joints": e.joints, "description": e.description} for e in entries])
        return
    from steelyard.report.terminal import console, table

    rows = [[e.name, str(e.joints), e.description] for e in entries]
    console().print(table("Built-in robots", ["name", "joints", "what it is"], rows, right=("joints",)))
