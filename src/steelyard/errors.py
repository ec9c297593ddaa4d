"""Everything that can go wrong with a user's input, said in one sentence that also tells how to mend it."""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Iterable
from typing import Any
from unicodedata import category

# A message quotes names and lists out of files, which may be of any length.
LONGEST_MESSAGE = 300
_NEARBY = 25


def shortened(text: str, most: int = LONGEST_MESSAGE) -> str:
    """`text` for people: at most so many characters (`most`), cut in the middle, and none that moves a cursor."""
    if len(text) > most:
        tail = most // 3
        head, end = text[: most - tail - 3], text[len(text) - tail :]
        # Between words, where there is a space nearby.
        last, first = head.rfind(" "), end.find(" ")
        head = head[:last] if last > len(head) - _NEARBY else head
        text = f"{head} … {end[first + 1 :] if first < _NEARBY else end}"
    return printable(text)


def printable(text: str) -> str:
    """`text` as a terminal may have it: what moves the cursor, turns the direction of writing or hides something is
    shown as a question mark in a box."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


# Names end up in file formats, code, tables and terminals.
LONGEST_NAME = 1000
_LINES = ("Cc", "Cs", "Zl", "Zp")  # Unicode's categories of control characters, halves of characters, ends of lines
_FORMULA = re.compile(r"[=@]|[+-].*[|!(]")


def unfit_for_a_name(name: str) -> str:
    """What is wrong with `name` for a robot or a part of it, in words; "" where nothing is.

    Any writing and any sign will do, but for what would break lines apart (control characters), half a character,
    and what readers of URDF (xacro) or of tables (spreadsheets) would take for a formula.
    """
    if len(name) > LONGEST_NAME:
        return f"is a name of {len(name)} characters, more than {LONGEST_NAME}"
    odd = next((c for c in name if category(c) in _LINES), "") if not name.isprintable() else ""
    if odd:
        return f"holds the control character U+{ord(odd):04X}"
    if "${" in name or "$(" in name:
        return "looks like xacro that was not expanded"
    return "would be taken for a formula by spreadsheets" if _FORMULA.match(name) else ""


def warnings_as_notes() -> None:
    """From now on a warning is one line on standard error: where in the program it arose, and that line of it, help
    nobody who uses it."""

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        print(f"steelyard: note: {shortened(' '.join(str(message).split()))}", file=sys.stderr)

    warnings.showwarning = show


class SteelyardError(Exception):
    """Base of all errors that a user can cause and can mend. The command line turns it into exit code 2."""

    def __str__(self) -> str:
        return shortened(super().__str__())


class RobotError(SteelyardError):
    """A robot description that cannot be understood: names the file, the place in it, and what would fix it."""


class UnknownNameError(SteelyardError):
    """There is no `kind` of thing called `name`. Carries the `known` names, and suggests the nearest."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        near = difflib.get_close_matches(name, self.known, n=1, cutoff=0.5)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        super().__init__(f"There is no {kind} '{name}'.{hint} Known: {', '.join(self.known) or 'none'}.")


class ShapeError(SteelyardError):
    """An array that does not fit the robot: names the argument, its shape, and the shape that was expected."""


class StructureError(SteelyardError):
    """The structure of a robot plus terms leaves no clear answer, e.g. a rank that cannot be decided."""


class SimulationError(SteelyardError):
    """A simulation that cannot go on: names the time, the robot of the batch and the reason."""


class LogError(SteelyardError):
    """A log that cannot be used: names the file, the signal, the row or sample, and what would fix it."""


class UnreachableError(LogError):
    """What lies elsewhere does not answer: the same may work later, or from another machine."""


class ExcitationError(SteelyardError):
    """A design problem without an answer: names the limit, the joint or the region, and what would help."""


class ProgramError(SteelyardError):
    """A via-point program that cannot be run: names the move, the joint or the pose, and what would fix it."""


class LocalError(SteelyardError):
    """A region or a bank that cannot be used as asked: names it, and what would help."""


class OutsideError(LocalError):
    """A question about a posture that no region of a bank knows anything of."""


class ExportError(SteelyardError):
    """A model that a format cannot hold: names the link, joint or term, and what would work instead."""
