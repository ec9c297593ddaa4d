"""A ledger of assumptions as a section of a page, and in a few lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.assumptions.ledger import FALSE_REFUTATIONS, Entry, Ledger
from steelyard.ground.numbers import Known
from steelyard.report.elements import TableCell, join, paragraph, table_html
from steelyard.report.html import Section


def assumptions_section(ledger: Ledger | None) -> Section | None:
    """Make the section of a page: every assumption with its estimate, its interval and what follows.

    Args:
        ledger: All assumptions; None: nobody looked.
    """
    if ledger is None:
        return None
    words = (
        "Every number that the fit takes for granted was estimated beside its parameters. Refuted: the estimate is not "
        "zero, and left-out blocks and the logs that judge are predicted better with it. Confirmed: no value within "
        "the interval does harm. Not testable: some value within it does, and the logs cannot exclude it. Harm is by "
        "how much the torque error on the logs that judge would grow. A sound log is refuted in at most "
        f"{100.0 * FALSE_REFUTATIONS:g} % of cases."
    )
    order = {"refuted": 0, "not testable": 1, "confirmed": 2}
    entries = sorted(ledger.entries, key=lambda e: order[e.answer])
    rows: list[Sequence[TableCell]] = [_row(e) for e in entries]
    columns = [
        "assumption", "answer", "estimate", "95 % interval", "unit", "gain on left-out blocks, %", "harm, %",
        "at most, %", "explain the same",
    ]  # fmt: skip
    dash = "There is no estimate where the parameters can take its place."
    table = table_html(columns, rows, dash=dash, tall=True)
    return Section("Assumptions", join(*(paragraph(line) for line in lines(ledger)), paragraph(words), table))


def _row(e: Entry) -> tuple[TableCell, ...]:
    value = None if e.estimate is None else Known(e.estimate, e.standard_error or 0.0)
    interval = "" if e.interval is None else f"{e.interval[0]:.3g} … {e.interval[1]:.3g}"
    most = e.most_harm_percent if e.most_harm_percent < 1e6 else "no limit"
    gain = Known(e.gain_percent, e.gain_doubt_percent)
    return e.suspect.name, e.answer, value, interval, e.suspect.unit, gain, e.harm_percent, most, ", ".join(e.rivals)


def lines(ledger: Ledger | None, reasons: Sequence[str] = ()) -> Iterator[str]:
    """Say what is refuted, then in one line what is confirmed and what is not testable.

    Args:
        ledger: All assumptions; None: nobody looked.
        reasons: Sentences that stand above already; what they say of a refuted assumption is not repeated.
    """
    if ledger is not None:
        above = "\n".join(reasons)
        yield from (f"Refuted: {e.sentence}" for e in ledger.refuted if e.evidence not in above)
        yield f"Assumptions {ledger.summary}."
