"""Presents a ledger of assumptions as a report section and as terminal lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.assumptions.ledger import FALSE_REFUTATIONS, Entry, Ledger
from steelyard.ground.numbers import Known
from steelyard.report.elements import TableCell, join, paragraph, table_html
from steelyard.report.html import Section


def assumptions_section(ledger: Ledger | None) -> Section | None:
    """Build the report section: every assumption with estimate, interval and harm.

    Args:
        ledger: Assumptions; None if they were not tested.
    """
    if ledger is None:
        return None
    words = (
        "Every number that the fit assumes was estimated together with the parameters. Refuted: the estimate is "
        "significant and reduces the error on left-out blocks and on the validation logs. Confirmed: no value within "
        "the interval is harmful. Not testable: some value within the interval is harmful. Harm is the growth of the "
        f"torque error on the validation logs. The false-alarm rate is at most {100.0 * FALSE_REFUTATIONS:g} % per "
        "data set."
    )
    order = {"refuted": 0, "not testable": 1, "confirmed": 2}
    entries = sorted(ledger.entries, key=lambda e: order[e.answer])
    rows: list[Sequence[TableCell]] = [_row(e) for e in entries]
    columns = [
        "assumption", "answer", "estimate", "95 % interval", "unit", "cross-validation gain, %", "harm, %",
        "at most, %", "alternatives",
    ]  # fmt: skip
    dash = "Not identifiable together with the parameters."
    table = table_html(columns, rows, dash=dash, tall=True)
    return Section("Assumptions", join(*(paragraph(line) for line in lines(ledger)), paragraph(words), table))


def _row(e: Entry) -> tuple[TableCell, ...]:
    value = None if e.estimate is None else Known(e.estimate, e.standard_error or 0.0)
    interval = "" if e.interval is None else f"{e.interval[0]:.3g} … {e.interval[1]:.3g}"
    most = e.most_harm_percent if e.most_harm_percent < 1e6 else "no limit"
    gain = Known(e.gain_percent, e.gain_doubt_percent)
    return e.suspect.name, e.answer, value, interval, e.suspect.unit, gain, e.harm_percent, most, ", ".join(e.rivals)


def lines(ledger: Ledger | None, reasons: Sequence[str] = ()) -> Iterator[str]:
    """List refuted assumptions, then one line that counts the confirmed and the untestable ones.

    Args:
        ledger: Assumptions; None if they were not tested.
        reasons: Sentences that were printed before; assumptions in them are not repeated.
    """
    if ledger is not None:
        above = "\n".join(reasons)
        yield from (f"Refuted: {e.sentence}" for e in ledger.refuted if e.evidence not in above)
        torques, parameters = len(ledger.conditions), len(ledger.parameter_conditions)
        yield (
            f"{len(ledger.of('confirmed'))} of {len(ledger.entries)} assumptions are confirmed. These logs do not test "
            f"{torques} that affect torques, and {parameters} that affect parameters only. The report lists them with "
            "their intervals."
        )
