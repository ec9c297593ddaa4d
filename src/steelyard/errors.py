"""Errors about user input; each message states the problem and the remedy in one sentence."""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Iterable
from typing import Any
from unicodedata import category

# Messages quote names and lists from files, which may be of any length.
LONGEST_MESSAGE = 300
_NEARBY = 25


def shortened(text: str, most: int = LONGEST_MESSAGE) -> str:
    """Shorten a text in the middle and make it printable.

    Args:
        text: The text.
        most: Largest number of characters.
    """
    if len(text) > most:
        tail = most // 3
        head, end = text[: most - tail - 3], text[len(text) - tail :]
        # Cut between words if a space is near.
        last, first = head.rfind(" "), end.find(" ")
        head = head[:last] if last > len(head) - _NEARBY else head
        text = f"{head} … {end[first + 1 :] if first < _NEARBY else end}"
    return printable(text)


def printable(text: str) -> str:
    """Replace characters of `text` that move the cursor, change the writing direction or hide text."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


# Names are used in file formats, code, tables and terminals.
LONGEST_NAME = 1000
_LINES = ("Cc", "Cs", "Zl", "Zp")  # Categories of Unicode: control characters, unpaired surrogates, line separators
_FORMULA = re.compile(r"[=@]|[+-].*[|!(]")


def unfit_for_a_name(name: str) -> str:
    """Describe the problem with `name` as the name of a robot or a part of it; "" if it is fine.

    Control characters, unpaired surrogates, and text that readers of URDF (xacro) or spreadsheets take for a formula
    are problems.
    """
    if len(name) > LONGEST_NAME:
        return f"has {len(name)} characters, more than {LONGEST_NAME}"
    control = next((c for c in name if category(c) in _LINES), "") if not name.isprintable() else ""
    if control:
        return f"contains the control character U+{ord(control):04X}"
    if "${" in name or "$(" in name:
        return "looks like xacro that was not expanded"
    return "looks like a formula to spreadsheets" if _FORMULA.match(name) else ""


def warnings_as_notes() -> None:
    """Print warnings as one line on standard error, without their place in the source code."""

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        print(f"steelyard: note: {shortened(' '.join(str(message).split()))}", file=sys.stderr)

    warnings.showwarning = show


class SteelyardError(Exception):
    """Base of all errors that a user can cause and fix; the command line turns it into exit code 2."""

    def __str__(self) -> str:
        return shortened(super().__str__())


class RobotError(SteelyardError):
    """A robot description is invalid; the message names the file, the place in it, and the remedy."""


class UnknownNameError(SteelyardError):
    """A name is unknown; the message suggests the nearest known name.

    Args:
        kind: Kind of the named thing.
        name: The unknown name.
        known: All known names.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        near = difflib.get_close_matches(name, self.known, n=1, cutoff=0.5)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        super().__init__(f"There is no {kind} '{name}'.{hint} Known: {', '.join(self.known) or 'none'}.")


class ShapeError(SteelyardError):
    """An array does not fit the robot; the message names the argument, its shape, and the expected shape."""


class StructureError(SteelyardError):
    """The structure of a robot with its terms is ambiguous, for example its rank."""


class SimulationError(SteelyardError):
    """A simulation cannot continue; the message names the time, the robot of the batch and the reason."""


class LogError(SteelyardError):
    """A log cannot be used; the message names the file, the signal, the row or sample, and the remedy."""


class UnreachableError(LogError):
    """A remote server does not answer; the same may work later, or from another machine."""


class ExcitationError(SteelyardError):
    """A design problem cannot be solved; the message names the limit, the joint or the region, and the remedy."""


class ProgramError(SteelyardError):
    """A via-point program cannot be run; the message names the move, the joint or the pose, and the remedy."""


class LocalError(SteelyardError):
    """A region or a bank cannot be used as requested; the message names it, and the remedy."""


class OutsideError(LocalError):
    """A posture is outside of all regions of a bank."""


class ExportError(SteelyardError):
    """A format cannot represent a model; the message names the link, joint or term, and an alternative."""
