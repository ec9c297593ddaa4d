"""`reproduce`: run papers item by item, with a bar to watch; an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console

from steelyard.dynamics import compiled_at_once
from steelyard.errors import SteelyardError
from steelyard.ground import (
    ProgressCallback,
    RunFolderError,
    build,
    check_target,
    explained,
    growing_folder,
    one_blas_thread,
    part,
    plain,
    read_json,
    reports_progress,
    steps,
    sweep_up,
    write_whole,
)
from steelyard.papers import load_paper
from steelyard.papers.paper import NO_NUMBER, Item, Paper, Reproduction, Statement, tables_and_figures
from steelyard.papers.pieces import Pieces
from steelyard.report import (
    CalloutKind,
    Html,
    Section,
    TableCell,
    Verdict,
    bold,
    callout,
    figure_html,
    join,
    line_panels,
    paragraph,
    render_report,
    say,
    table,
    table_html,
    text,
)


def paper_page(done: Reproduction) -> str:
    """The page of what is `done`, self-contained."""
    paper = done.paper
    sections = [Section("Statements", _summary(done))]
    sections += [Section(item.title, _item(item)) for item in done.items]
    sections.append(Section("Tables and figures of the paper", _contents(paper)))
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
    tested = [s for s in done.statements if s.kind == "shown" and s.holds is not None]
    against = [s for s in tested if not s.holds]
    also = f" Of {len(tested)} claims that were tested {_count(len(against))} not hold." if tested else ""
    reasons = tuple(f"Does not hold: {s.claim} {s.evidence}" for s in against)
    return Verdict("good", f"All {len(must)} asserted statements hold.{also}", reasons)


def _count(against: int) -> str:
    return {0: "none does", 1: "one does"}.get(against, f"{against} do")


def _summary(done: Reproduction) -> Html:
    rows: list[list[TableCell]] = [[s.claim, s.kind, s.result, s.evidence] for s in done.statements]
    explained = (
        "Asserted statements must hold, or the run fails. Those that are shown are claims that were tested: they hold "
        "here or they do not, and then it says why; where that cannot be told they are open. What is measured is no "
        "yes or no."
    )
    return join(
        paragraph(done.paper.about),
        table_html(["statement", "kind", "result", "what came out"], rows, dash=Statement.why_null["holds"]),
        paragraph(explained),
    )


def _item(item: Item) -> Html:
    pieces: list[Html] = [paragraph(item.text)] if item.text else []
    pieces += [
        Html(f'<div class="folded">{table_html(t.columns, t.rows, t.title, NO_NUMBER)}</div>') for t in item.tables
    ]
    pieces += [figure_html(line_panels(f.panels), f.title, f.caption) for f in item.figures]
    pieces += [callout(_tone(s), f"{s.claim} {s.evidence}", s.result.capitalize()) for s in item.statements]
    if item.differences:
        lines = "".join(f"<li>{text(line)}</li>" for line in item.differences)
        pieces.append(Html(f"<h3>Differences from the paper</h3><ul>{lines}</ul>"))
    return join(*pieces)


def _tone(statement: Statement) -> CalloutKind:
    if statement.holds is None:
        return "note"
    return "good" if statement.holds else "bad" if statement.failed else "warning"


def _contents(paper: Paper) -> Html:
    """Every table and figure: where it is on this page, or why it is not."""
    rows = [[c.name, "; ".join(c.shown_in), c.reason] for c in paper.contents]
    pieces = [table_html(["in print", "here", "what cannot be regenerated"], rows)]
    others = [[what, why] for what, why in paper.missing if not tables_and_figures(what)]
    return join(*pieces, table_html(["what else cannot be regenerated", "why"], others)) if others else join(*pieces)


def contents_list(paper: Paper) -> str:
    """The tables and figures of a `paper` as a list in Markdown: where each is on its page, or why it is not."""
    lines = []
    for where, names in groupby(paper.contents, key=lambda c: (c.shown_in, c.reason)):
        titles = "; ".join(title.partition(": ")[2] or title for title in where[0])
        lines.append(f"- {', '.join(c.name for c in names)}: " + (titles if titles else f"not regenerated. {where[1]}"))
    lines += [f"- {what}: not regenerated. {why}" for what, why in paper.missing if not tables_and_figures(what)]
    return "\n".join(lines) + "\n"


def reproduction_to_json(done: Reproduction) -> dict[str, Any]:
    """What is `done`, for machines."""
    paper = done.paper
    return explained(
        {
            "format": "steelyard-reproduction-1",
            "steelyard": version("steelyard"),
            "paper": {"name": paper.name, "title": paper.title, "source": paper.source},
            "fast": done.fast,
            "holds": not done.failures,
            "statements": done.statements,
            "items": done.items,
            "contents": paper.contents,
            "missing": [{"what": what, "why": why} for what, why in paper.missing],
        }
    )


def print_reproduction(done: Reproduction, out: Console, folder: str) -> None:
    """The statements of what is `done` on the terminal `out`, and the `folder` where the page is."""
    rows = [[s.claim, s.kind, s.result, s.evidence] for s in done.statements]
    out.print(table(f"{done.paper.name}: {done.paper.title}", ["statement", "kind", "result", "found"], rows))
    for failure in done.failures:
        say(out, bold("Fails:"), f" {failure.claim}")
    took = "" if done.processor_seconds is None else f" ({done.processor_seconds:.1f} processor seconds)"
    say(out, f"Written to {folder}: result.json, report.html{took}")


_UNFINISHED = "unfinished"


@reports_progress
def reproduce(
    names: Sequence[str],
    folder: Path,
    *,
    fast: bool = False,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> tuple[Reproduction, ...]:
    """Run the papers `names` one after the other: `folder`/NAME/result.json and report.html for each.

    `fast` takes seconds: fewer repetitions, the same statements. Items that an interrupted run has finished are not run
    again; a finished run is replaced only with `overwrite`. `progress` is told how far it is
    (`steelyard.ground.progress`); None: nobody.
    """
    papers = [load_paper(name) for name in dict.fromkeys(names)]
    for paper in papers:
        _check_target(folder / paper.name, overwrite)
    total = sum(len(paper.items) for paper in papers)
    made: list[Reproduction] = []
    for paper in papers:
        before = sum(len(one.paper.items) for one in made)
        with part(before / total, (before + len(paper.items)) / total):
            made.append(_written(paper, folder / paper.name, fast))
    return tuple(made)


def run_paper(paper: Paper, *, fast: bool = False, kept: Path | None = None) -> Reproduction:
    """Run the items of a `paper`, `fast` or in full. Those already in the folder `kept` are read from there, the others
    put there."""
    key = _key(paper, fast)

    @cache
    def lab() -> Any:
        made = paper.lab(fast)
        if isinstance(getattr(made, "pieces", None), Pieces):
            made.pieces = Pieces(kept, _source_key(fast, inspect.getfile(type(made))))
        return made

    items = []
    numbered = steps(enumerate(paper.items), f"Reproducing {paper.name}", lambda one: paper.item_title(one[0]))
    for index, make in numbered:
        title = paper.item_title(index)
        file = None if kept is None else kept / f"{index:02d}-{key}.json"
        if file is None or not file.exists():
            # Or the last digits would depend on which items were made before, and on the number of cores.
            with compiled_at_once(), one_blas_thread():
                item = replace(make(lab()), title=title)
            if file is not None:
                write_whole(file, json.dumps(plain(asdict(item)), ensure_ascii=False))
        if file is not None:  # also what was made just now: a run that was broken off ends in the same bytes
            saved = read_json(file, SteelyardError, "run it again", exact=True)
            try:
                item = build(Item, saved)
            except SteelyardError as error:
                raise SteelyardError(f"{error} Delete {file} to have it made again.") from None
        items.append(item)
    return Reproduction(paper, fast, tuple(items))


def _written(paper: Paper, place: Path, fast: bool) -> Reproduction:
    before = sum(os.times()[:4])  # with children that have ended
    with growing_folder(place, _UNFINISHED, resume=True):
        kept = place / _UNFINISHED
        kept.mkdir(exist_ok=True)
        sweep_up(kept)
        done = run_paper(paper, fast=fast, kept=kept)
    done.save(place, overwrite=True)
    return replace(done, processor_seconds=sum(os.times()[:4]) - before)


def _check_target(place: Path, overwrite: bool) -> None:
    """What is unfinished goes on; what is finished is replaced, but only with `overwrite`."""
    if (place / "result.json").exists() and not overwrite:
        raise RunFolderError(f"{place} holds a finished run; give another folder, or --overwrite to replace it.")
    check_target(place, overwrite=True)


def _key(paper: Paper, fast: bool) -> str:
    """What an item depends on: the version, the mode, and the paper's own scripts."""
    return _source_key(fast, *sorted({inspect.getfile(item) for item in paper.items}))


def _source_key(fast: bool, *scripts: str) -> str:
    digest = hashlib.sha256(f"{version('steelyard')} {fast}".encode())
    for script in scripts:
        digest.update(Path(script).read_bytes())
    return digest.hexdigest()[:12]
