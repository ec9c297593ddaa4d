"""One page of HTML per paper: what holds on top, then its tables and figures in its own order."""

from __future__ import annotations

from importlib.metadata import version

from steelyard.papers.paper import Figure, Item, Reproduction, Statement, Table
from steelyard.report.elements import Cell, Html, Kind, callout, figure_html, join, paragraph, table_html, text
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.lines import line_panels

_RESULTS = {True: "holds", False: "does not hold", None: "–"}


def paper_page(done: Reproduction) -> str:
    """The page, self-contained."""
    paper = done.paper
    sections = [Section("Statements", _summary(done))]
    sections += [Section(item.title, _item(item)) for item in done.items]
    if paper.missing:
        rows = [[what, why] for what, why in paper.missing]
        sections.append(Section("What cannot be regenerated", table_html(["what", "why"], rows)))
    fast = " Fast mode: fewer repetitions and a shorter search than in a full run." if done.fast else ""
    return render_report(
        f"{paper.name}: a paper reproduced",
        sections,
        verdict=_verdict(done),
        subtitle=f"{paper.title}. {paper.source}.",
        footer=f"Made by steelyard {version('steelyard')}, steelyard reproduce {paper.name}.{fast}",
    )


def _verdict(done: Reproduction) -> Verdict:
    must = [s for s in done.statements if s.kind == "asserted"]
    if done.failures:
        return Verdict(
            "bad",
            f"{len(done.failures)} of {len(must)} asserted statements fail.",
            tuple(s.claim for s in done.failures),
        )
    rest = len(done.statements) - len(must)
    also = f"; {rest} more are shown from both sides or measured for the first time" if rest else ""
    return Verdict("good", f"All {len(must)} asserted statements hold{also}.")


def _summary(done: Reproduction) -> Html:
    rows: list[list[Cell]] = [[s.claim, s.kind, _RESULTS[s.holds], s.found] for s in done.statements]
    explained = (
        "Asserted statements must hold, or the run fails. Those that are shown hold under some conditions and not "
        "under others; those that are measured had not been looked at before."
    )
    return join(
        paragraph(done.paper.about),
        table_html(["statement", "kind", "result", "what came out"], rows),
        paragraph(explained),
    )


def _item(item: Item) -> Html:
    pieces: list[Html] = [paragraph(item.text)] if item.text else []
    pieces += [_table(t) for t in item.tables]
    pieces += [_figure(f) for f in item.figures]
    pieces += [callout(_tone(s), f"{s.claim} {s.found}") for s in item.statements]
    if item.differences:
        lines = "".join(f"<li>{text(line)}</li>" for line in item.differences)
        pieces.append(Html(f"<h3>Differences from the paper</h3><ul>{lines}</ul>"))
    return join(*pieces)


def _tone(statement: Statement) -> Kind:
    if statement.kind == "asserted":
        return "good" if statement.holds else "bad"
    return "note"


def _table(table: Table) -> Html:
    return Html(f'<div class="folded">{table_html(table.columns, table.rows, table.title)}</div>')


def _figure(figure: Figure) -> Html:
    return figure_html(line_panels(figure.panels), figure.title, figure.caption)
