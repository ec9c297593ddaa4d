"""`Finding`: something that reading a log brought to light and that its owner should know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["note", "warning"]


@dataclass(frozen=True)
class Finding:
    """What was found, how often, where first, and one sentence about it.

    `kind` is a word for programs ("gap", "duplicate", …), `message` one for people. `row` is the row of the file,
    from 1, where it happens first, or None where it concerns the whole log. A "note" is for information, a
    "warning" may spoil a result. What makes a log useless is not a finding but an error.
    """

    kind: str
    message: str
    severity: Severity = "note"
    count: int = 1
    row: int | None = None
