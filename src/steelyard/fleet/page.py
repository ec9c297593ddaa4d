"""How a fleet is shown on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.terminal import say

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.fleet.fleet import FleetOutcome

# Of logs that could not be used, so many are named.
_NAMED = 10


def print_fleet(found: FleetOutcome, out: Console, folder: str = "") -> None:
    """Print in few lines what a fleet's logs told.

    Args:
        found: the result.
        out: where to.
        folder: the run folder that was written; "" if none was.
    """
    own, tally, skipped = found.factors, found.factors.tally, found.skipped
    used = len(own.logs) - len(skipped)
    say(out, f"{len(own.robots)} robots of {len(own.settings)} models, {used:,} of {len(own.logs):,} logs used.")
    seconds = tally.seconds.get("mapping", 0.0)
    if tally.mapped:
        pace = tally.samples / max(seconds * tally.cores, 1e-9)
        say(out, f"{tally.mapped:,} logs gone through ({tally.samples:,} samples, {pace:,.0f} a second and core), "
                 f"{tally.kept:,} taken from the store.")  # fmt: skip
    else:
        say(out, f"Nothing is new: {tally.kept:,} logs taken from the store.")
    peak = max(tally.peak_bytes.values(), default=0)
    say(out, f"Largest process: {peak / 1e6:,.0f} MB.")
    if tally.mended:
        say(out, f"{tally.mended} entries of the store were torn or not its own, and were made anew.")
    if tally.trouble:
        say(out, f"{tally.trouble}: {tally.unkept} entries are not kept, and will be made anew by the next run.")
    for reason in list(skipped.values())[:_NAMED]:
        say(out, f"Not used: {reason}")
    if len(skipped) > _NAMED:
        say(out, f"… and {len(skipped) - _NAMED} more logs, which result.json lists.")
    if folder:
        say(out, f"Written: {folder}")
