"""What the studio prepares for itself as a job, such as the plots of a long log: `-m NAME WORDS…`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

# A function of words, by name, in the module that holds it.
PREPARED: dict[str, tuple[str, str]] = {"pyramid": ("steelyard.studio.meanings", "draw")}


def run(words: Sequence[str]) -> None:
    """Run what `words` name."""
    module, function = PREPARED[words[0]]
    getattr(import_module(module), function)(*words[1:])
