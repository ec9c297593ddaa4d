"""`reproduce`: run papers item by item with a progress bar; an interrupted run resumes."""

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
    Tone,
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
from steelyard.papers.result_cache import ResultCache
from steelyard.report import (
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


def paper_page(reproduction: Reproduction) -> str:
    """Return the self-contained page of a `reproduction`."""
    paper = reproduction.paper
    sections = [Section("Statements", _summary(reproduction))]
    sections += [Section(item.title, _item(item)) for item in reproduction.items]
    sections.append(Section("Tables and figures of the paper", _contents(paper)))
    fast = " Fast mode: fewer repetitions and a shorter search than in a full run." if reproduction.fast else ""
    return render_report(
        f"{paper.name}: a paper reproduced",
        sections,
        verdict=_verdict(reproduction),
        subtitle=f"{paper.title}. {paper.source}.",
        footer=f"Made by steelyard {version('steelyard')}, steelyard reproduce {paper.name}.{fast}",
    )


def _verdict(reproduction: Reproduction) -> Verdict:
    must = [s for s in reproduction.statements if s.kind == "asserted"]
    if reproduction.failures:
        return Verdict(
            "bad",
            f"{len(reproduction.failures)} of {len(must)} asserted statements fail.",
            tuple(s.claim for s in reproduction.failures),
        )
    tested = [s for s in reproduction.statements if s.kind == "shown" and s.holds is not None]
    against = [s for s in tested if not s.holds]
    also = f" Of {len(tested)} tested claims, {_count(len(against))} not hold." if tested else ""
    reasons = tuple(f"Does not hold: {s.claim} {s.evidence}" for s in against)
    return Verdict("good", f"All {len(must)} asserted statements hold.{also}", reasons)


def _count(against: int) -> str:
    return {0: "none does", 1: "one does"}.get(against, f"{against} do")


def _summary(reproduction: Reproduction) -> Html:
    rows: list[list[TableCell]] = [[s.claim, s.kind, s.result, s.evidence] for s in reproduction.statements]
    explanation = (
        "Asserted statements must hold, or the run fails. Shown statements are tested claims: they hold here, or they "
        "do not hold for the given reason, or they are open. Measured statements are results without a claim."
    )
    return join(
        paragraph(reproduction.paper.about),
        table_html(["statement", "kind", "result", "evidence"], rows, dash=Statement.why_null["holds"]),
        paragraph(explanation),
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


def _tone(statement: Statement) -> Tone:
    if statement.holds is None:
        return "note"
    return "good" if statement.holds else "bad" if statement.failed else "warning"


def _contents(paper: Paper) -> Html:
    """List every table and figure with its place on this page, or the reason why it is missing."""
    rows = [[c.name, "; ".join(c.shown_in), c.reason] for c in paper.contents]
    pieces = [table_html(["in print", "here", "reason if not regenerated"], rows)]
    others = [[name, why] for name, why in paper.missing if not tables_and_figures(name)]
    return join(*pieces, table_html(["not regenerated either", "reason"], others)) if others else join(*pieces)


def contents_list(paper: Paper) -> str:
    """List the tables and figures of a `paper` in Markdown, with their items or the reason why they are missing."""
    lines = []
    for where, names in groupby(paper.contents, key=lambda c: (c.shown_in, c.reason)):
        titles = "; ".join(title.partition(": ")[2] or title for title in where[0])
        lines.append(f"- {', '.join(c.name for c in names)}: " + (titles if titles else f"not regenerated. {where[1]}"))
    lines += [f"- {what}: not regenerated. {why}" for what, why in paper.missing if not tables_and_figures(what)]
    return "\n".join(lines) + "\n"


def reproduction_to_json(reproduction: Reproduction) -> dict[str, Any]:
    """Return a `reproduction` as JSON types."""
    paper = reproduction.paper
    return explained(
        {
            "format": "steelyard-reproduction-1",
            "steelyard": version("steelyard"),
            "paper": {"name": paper.name, "title": paper.title, "source": paper.source},
            "fast": reproduction.fast,
            "holds": not reproduction.failures,
            "statements": reproduction.statements,
            "items": reproduction.items,
            "contents": paper.contents,
            "missing": [{"what": what, "why": why} for what, why in paper.missing],
        }
    )


def print_reproduction(reproduction: Reproduction, out: Console, folder: str) -> None:
    """Print the statements.

    Args:
        reproduction: The reproduction.
        out: The terminal.
        folder: Folder of the page.
    """
    rows = [[s.claim, s.kind, s.result, s.evidence] for s in reproduction.statements]
    paper = reproduction.paper
    out.print(table(f"{paper.name}: {paper.title}", ["statement", "kind", "result", "evidence"], rows))
    for failure in reproduction.failures:
        say(out, bold("Fails:"), f" {failure.claim}")
    seconds = reproduction.processor_seconds
    duration = "" if seconds is None else f" ({seconds:.1f} processor seconds)"
    say(out, f"Written to {folder}: result.json, report.html{duration}")


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
    """Run papers one after the other and write `folder`/NAME/result.json and report.html for each.

    Finished items of an interrupted run are not run again.

    Args:
        names: Names of the papers.
        folder: Folder of the results.
        fast: Take seconds: fewer repetitions, the same statements.
        overwrite: Replace finished runs.
        progress: Function that gets the progress, or None.
    """
    papers = [load_paper(name) for name in dict.fromkeys(names)]
    for paper in papers:
        _check_target(folder / paper.name, overwrite)
    total = sum(len(paper.items) for paper in papers)
    finished: list[Reproduction] = []
    for paper in papers:
        before = sum(len(one.paper.items) for one in finished)
        with part(before / total, (before + len(paper.items)) / total):
            finished.append(_run_and_write(paper, folder / paper.name, fast))
    return tuple(finished)


def run_paper(paper: Paper, *, fast: bool = False, unfinished: Path | None = None) -> Reproduction:
    """Run the items of a paper.

    Args:
        paper: The paper.
        fast: Take seconds instead of the full run.
        unfinished: Folder for finished items, which are read instead of run again; None: none are stored.
    """
    key = _key(paper, fast)

    @cache
    def lab() -> Any:
        laboratory = paper.lab(fast)
        if isinstance(getattr(laboratory, "cache", None), ResultCache):
            laboratory.cache = ResultCache(unfinished, _source_key(fast, inspect.getfile(type(laboratory))))
        return laboratory

    items = []
    numbered = steps(enumerate(paper.items), f"Reproducing {paper.name}", lambda one: paper.item_title(one[0]))
    for index, make in numbered:
        title = paper.item_title(index)
        file = None if unfinished is None else unfinished / f"{index:02d}-{key}.json"
        if file is None or not file.exists():
            # Otherwise the last digits would depend on the earlier items and on the number of cores.
            with compiled_at_once(), one_blas_thread():
                item = replace(make(lab()), title=title)
            if file is not None:
                write_whole(file, json.dumps(plain(asdict(item)), ensure_ascii=False))
        if file is not None:  # new items too: an interrupted run ends with the same bytes
            saved = read_json(file, SteelyardError, "run it again", exact=True)
            try:
                item = build(Item, saved)
            except SteelyardError as error:
                raise SteelyardError(f"{error} Delete {file} to compute it again.") from None
        items.append(item)
    return Reproduction(paper, fast, tuple(items))


def _run_and_write(paper: Paper, folder: Path, fast: bool) -> Reproduction:
    before = sum(os.times()[:4])  # including finished children
    with growing_folder(folder, _UNFINISHED, resume=True):
        unfinished = folder / _UNFINISHED
        unfinished.mkdir(exist_ok=True)
        sweep_up(unfinished)
        reproduction = run_paper(paper, fast=fast, unfinished=unfinished)
    reproduction.save(folder, overwrite=True)
    return replace(reproduction, processor_seconds=sum(os.times()[:4]) - before)


def _check_target(folder: Path, overwrite: bool) -> None:
    """Refuse a folder with a finished run unless `overwrite`; an unfinished run resumes."""
    if (folder / "result.json").exists() and not overwrite:
        raise RunFolderError(f"{folder} has a finished run; give another folder, or --overwrite to replace it.")
    check_target(folder, overwrite=True)


def _key(paper: Paper, fast: bool) -> str:
    """Hash everything that an item depends on: the version, the mode, and the paper's own scripts."""
    return _source_key(fast, *sorted({inspect.getfile(item) for item in paper.items}))


def _source_key(fast: bool, *scripts: str) -> str:
    digest = hashlib.sha256(f"{version('steelyard')} {fast}".encode())
    for script in scripts:
        digest.update(Path(script).read_bytes())
    return digest.hexdigest()[:12]
