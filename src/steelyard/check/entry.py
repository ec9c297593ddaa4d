"""`Entry`: one thing that checking a log brought to light, how bad it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["ok", "note", "warning", "problem"]
SEVERITIES: tuple[Severity, ...] = ("ok", "note", "warning", "problem")


@dataclass(frozen=True)
class Entry:
    """What was looked at (`kind`, a word for programs), and what was seen (`message`, for people).

    An "ok" says that a check found nothing, a "note" is for information, a "warning" may spoil a result, a "problem"
    will. `joint` is None where it concerns the whole log; `advice` says what to do.
    """

    kind: str
    severity: Severity
    message: str
    advice: str = ""
    joint: str | None = None

    @property
    def rank(self) -> int:
        """0 for "ok" up to 3 for "problem"."""
        return SEVERITIES.index(self.severity)
