"""Reproductions of the source papers, each a short script over the public interface.

To add one, write a module with a `Paper` called `PAPER` and list it here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from steelyard.errors import UnknownNameError

if TYPE_CHECKING:
    from steelyard.papers.paper import Paper

PAPERS: tuple[str, ...] = ("rotradi", "irp6", "szabo3r", "prrrp", "ns16")


def load_paper(name: str) -> Paper:
    """Return the paper with this `name`."""
    if name not in PAPERS:
        raise UnknownNameError("paper", name, (*PAPERS, "all"))
    paper: Paper = import_module(f"steelyard.papers.{name}").PAPER
    return paper
