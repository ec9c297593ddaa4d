"""Rank findings by severity, select the advice, and give the verdict on the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from steelyard.signals.log import Finding

Grade = Literal["good", "usable", "mend", "unusable"]
MOST_ADVICES = 5
# Kinds of findings that make a log useless.
FATAL = ("no_torque", "current", "held_poses", "short", "aligned", "nothing_moves", "all_dead")
# First faults of the whole log, then faults of a joint, then improvements.
_ORDER = (
    *FATAL, "degrees", "velocity_degrees", "clock", "echo", "drop_out", "spike", "order", "gravity", "sign",
    "position_sign", "zero", "coupled", "dead_torque", "velocity_sign", "torque_scale", "velocity_factor",
    "unexplained", "inconsistent", "quantised", "saturated", "motionless", "delay", "position_steps", "rank",
    "condition", "hidden",
)  # fmt: skip


def by_severity(entries: Iterable[Finding]) -> list[Finding]:
    """Sort the `entries`, most severe first."""
    places = {kind: k for k, kind in enumerate(_ORDER)}
    return sorted(entries, key=lambda e: (-e.rank, places.get(e.kind, len(places))))


def advices(entries: Sequence[Finding]) -> tuple[str, ...]:
    """Select at most five remedies for `entries`, most severe first; joints with the same fault share one."""
    serious = [e for e in entries if e.advice and e.severity in ("problem", "warning")]
    notes = [e for e in entries if e.advice and e.severity == "note" and e.kind == "hidden"]
    ranked = by_severity(serious) + notes
    out: list[str] = []
    done: set[tuple[str, str]] = set()
    for entry in ranked:
        if entry.advice in out or (entry.kind, entry.severity) in done:
            continue
        alike = [e.joint for e in ranked if e.kind == entry.kind and e.severity == entry.severity and e.joint]
        done.add((entry.kind, entry.severity))
        others = [name for name in dict.fromkeys(alike) if name != entry.joint]
        same = f" The same for {', '.join(others)}." if others and entry.joint else ""
        out.append(entry.advice + same)
    return tuple(out[:MOST_ADVICES])


def verdict(entries: Sequence[Finding]) -> tuple[Grade, str]:
    """Grade a log by its `entries`."""
    problems = [e for e in entries if e.severity == "problem"]
    warnings = [e for e in entries if e.severity == "warning"]
    fatal = [e for e in problems if e.kind in FATAL]
    if fatal:
        why = fatal[0].message
        return "unusable", f"This log cannot be identified from: {why[:1].lower()}{why[1:]}"
    if problems:
        return "mend", f"Fix {_count(problems, 'problem')} before identifying from this log."
    if warnings:
        return "usable", f"This log can be identified from, with {_count(warnings, 'reservation')}."
    return "good", "This log is suitable for identification."


def _count(entries: Sequence[Finding], word: str) -> str:
    joints = list(dict.fromkeys(e.joint for e in entries if e.joint))
    many = f"{len(entries)} {word}{'s' if len(entries) > 1 else ''}"
    return f"{many} ({', '.join(joints)})" if joints else many
