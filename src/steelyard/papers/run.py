"""`reproduce`: run papers item by item, with a bar to watch; an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from steelyard.files import write_whole
from steelyard.papers import load_paper
from steelyard.papers.page import paper_page
from steelyard.papers.paper import Item, Paper, Reproduction
from steelyard.papers.saved import item_from_json, item_to_json, reproduction_to_json
from steelyard.run_folder import RunFolderError

_UNFINISHED = "unfinished"


def reproduce(
    names: Sequence[str], folder: Path, *, fast: bool = False, overwrite: bool = False, out: Console | None = None
) -> tuple[Reproduction, ...]:
    """Run papers one after the other: `folder`/NAME/result.json and report.html for each.

    `fast` takes seconds: fewer repetitions, the same statements. Items that an interrupted run has finished are not run
    again; a finished run is replaced only with `overwrite`.
    """
    papers = [load_paper(name) for name in dict.fromkeys(names)]
    for paper in papers:
        _check_target(folder / paper.name, overwrite)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=out,
        disable=out is None,
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=sum(len(paper.items) for paper in papers))

        def watch(paper: Paper, title: str, done: int) -> None:
            bar.update(task, description=f"{paper.name} · {title}", advance=done)

        return tuple(_written(paper, folder / paper.name, fast, watch) for paper in papers)


def run_paper(
    paper: Paper, *, fast: bool = False, kept: Path | None = None, watch: Callable[[Paper, str, int], Any] | None = None
) -> Reproduction:
    """Run a paper's items; those already in the folder `kept` are read from there, the others put there."""
    lab = cache(lambda: paper.lab(fast))
    key = _key(paper, fast)
    items = []
    for index, make in enumerate(paper.items):
        title = paper.item_title(index)
        if watch is not None:
            watch(paper, title, 0)
        file = None if kept is None else kept / f"{index:02d}-{key}.json"
        items.append(_read(file) or _keep(file, replace(make(lab()), title=title)))
        if watch is not None:
            watch(paper, title, 1)
    return Reproduction(paper, fast, tuple(items))


def _written(paper: Paper, place: Path, fast: bool, watch: Callable[[Paper, str, int], Any]) -> Reproduction:
    kept = place / _UNFINISHED
    kept.mkdir(parents=True, exist_ok=True)
    done = run_paper(paper, fast=fast, kept=kept, watch=watch)
    text = json.dumps(reproduction_to_json(done), indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(place / "report.html", paper_page(done))
    write_whole(place / "result.json", text + "\n")
    shutil.rmtree(kept)
    return done


def _check_target(place: Path, overwrite: bool) -> None:
    if place.exists() and not place.is_dir():
        raise RunFolderError(f"{place} is a file; a run is a folder.")
    if (place / "result.json").exists() and not overwrite:
        raise RunFolderError(f"{place} holds a finished run; give another folder, or --overwrite to replace it.")
    known = {"result.json", "report.html", _UNFINISHED}
    strange = sorted(x.name for x in place.iterdir() if x.name not in known) if place.is_dir() else []
    if strange:
        raise RunFolderError(f"{place} holds '{strange[0]}', which is of no run; give another folder.")


def _key(paper: Paper, fast: bool) -> str:
    """What an item depends on: the version, the mode, and the paper's own scripts."""
    digest = hashlib.sha256(f"{version('steelyard')} {fast}".encode())
    for script in sorted({inspect.getfile(item) for item in paper.items}):
        digest.update(Path(script).read_bytes())
    return digest.hexdigest()[:12]


def _read(file: Path | None) -> Item | None:
    if file is None or not file.exists():
        return None
    return item_from_json(json.loads(file.read_text(encoding="utf-8")))


def _keep(file: Path | None, item: Item) -> Item:
    if file is not None:
        write_whole(file, json.dumps(item_to_json(item), ensure_ascii=False))
    return item
