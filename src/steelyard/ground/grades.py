"""Grades of results: one tone for every grade, its sign, word and colours, and the width of 95 % intervals."""

from __future__ import annotations

from typing import Literal

Tone = Literal["good", "note", "warning", "bad"]
# Grades of models and logs, and severities of findings.
_TONES: dict[str, Tone] = {
    "good": "good", "ok": "good", "note": "note", "usable": "warning", "warning": "warning",
    "poor": "bad", "mend": "bad", "unusable": "bad", "problem": "bad", "bad": "bad",
}  # fmt: skip
SIGNS: dict[Tone, tuple[str, str]] = {
    "good": ("✓", "Good"), "note": ("i", "Note"), "warning": ("!", "Warning"), "bad": ("✕", "Problem"),
}  # fmt: skip
TONE_COLOURS: dict[Tone, str] = {"good": "#009E73", "note": "#0072B2", "warning": "#E69F00", "bad": "#D55E00"}
TERMINAL_COLOURS: dict[Tone, str] = {"good": "", "note": "", "warning": "yellow", "bad": "red"}
# Half of a 95 % interval in standard errors.
HALF_WIDTH_95 = 1.96


def tone(grade: object) -> Tone:
    """Return the tone of a `grade` or severity; that of an unknown one is "note"."""
    return _TONES.get(grade, "note") if isinstance(grade, str) else "note"
