"""`steelyard robots`."""

from __future__ import annotations

from steelyard.cli.app import command
from steelyard.cli.deliver import deliver
from steelyard.cli.options import AsJson


@command("robots", epilog="Example: steelyard robots --json")
def robots(as_json: AsJson = False) -> None:
    """List the robots that come with the package."""
    from steelyard.robot.library import catalogue

    deliver(catalogue, as_json=as_json)
