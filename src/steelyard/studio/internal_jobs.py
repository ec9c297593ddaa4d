"""Jobs that are not commands of the package, such as the plot of a long log: `-m NAME WORDS…`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

# Module and function by name; the function takes the remaining words.
INTERNAL_JOBS: dict[str, tuple[str, str]] = {"pyramid": ("steelyard.studio.mapping_editor", "draw")}


def run(words: Sequence[str]) -> None:
    """Run the internal job that the first of `words` names."""
    module, function = INTERNAL_JOBS[words[0]]
    getattr(import_module(module), function)(*words[1:])
