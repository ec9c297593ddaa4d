"""Everything that can go wrong with a user's input, said in one sentence that also tells how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# A message quotes names and lists out of files, which may be of any length.
LONGEST_MESSAGE = 300


def shortened(text: str, most: int = LONGEST_MESSAGE) -> str:
    """`text` for people: at most so many characters (`most`), cut in the middle, and none that moves a cursor."""
    if len(text) > most:
        tail = most // 3
        text = f"{text[: most - tail - 3]} … {text[len(text) - tail :]}"
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


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
