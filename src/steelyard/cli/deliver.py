"""`deliver`: how every command hands out what it found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import typer

from steelyard.ground.folders import check_target
from steelyard.ground.outcome import Outcome
from steelyard.ground.reasons import explained

Found = TypeVar("Found", bound=Outcome)


def deliver(make: Callable[[], Found], output: str = "", overwrite: bool = False, as_json: bool = False) -> Found:
    """Find something, write its run folder, and print it for people or for machines.

    Args:
        make: finds it; called when the folder is known to be one that may be written.
        output: the run folder; "" for none.
        overwrite: replace an existing run.
        as_json: print JSON instead of tables.
    """
    if output:
        check_target(Path(output), overwrite)
    found = make()
    if output:
        found.save(output, overwrite=overwrite)
    show(found, output, as_json)
    return found


def show(found: Outcome, output: str = "", as_json: bool = False) -> None:
    """Print what was `found`, `as_json` or for people; `output` is the folder that was written."""
    if as_json:
        print_json(found.to_json())
        return
    from steelyard.report.terminal import console

    found.tell(console(), output)


def print_json(value: Any) -> None:
    """`value` as JSON is printed: two spaces deep, a reason for every null."""
    made = [explained(x) for x in value] if isinstance(value, list) else explained(value)
    typer.echo(json.dumps(made, indent=2, ensure_ascii=False, allow_nan=False))
