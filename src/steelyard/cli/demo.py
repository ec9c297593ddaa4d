"""`steelyard demo`."""

from __future__ import annotations

from steelyard.cli.app import app
from steelyard.cli.options import AsJson, Output, print_json


@app.command(epilog="Example: steelyard demo -o demo-run")
def demo(
    output: Output = "demo-run",
    as_json: AsJson = False,
) -> None:
    """The whole story on a simulated 6-axis arm: motion, log, check, identification, report."""
    from pathlib import Path

    from steelyard.demo import print_demo, run_demo

    found = run_demo(Path(output))
    if as_json:
        print_json(found.to_json())
        return
    from steelyard.report.terminal import console

    print_demo(found, console())
