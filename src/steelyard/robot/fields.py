"""Hand-written data that knows where it stands, so that every complaint names the file, the place and the fix."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from steelyard.errors import RobotError
from steelyard.robot.arithmetic import Affine, FormulaError, evaluate


@dataclass(frozen=True)
class Field:
    """A value of a file, the place it stands at, and the named constants that its formulas may use."""

    value: Any
    place: str
    names: Mapping[str, float] = field(default_factory=dict)

    def fail(self, message: str) -> NoReturn:
        raise RobotError(f"{self.place}: {message}")

    def inside(self, value: Any, where: str) -> Field:
        """A value that stands within this one."""
        return replace(self, value=value, place=f"{self.place}: {where}")

    def table(self, required: Sequence[str] = (), optional: Sequence[str] = ()) -> dict[str, Field]:
        """The entries of a table of keys and values. Unknown keys are refused, empty ones count as absent."""
        known = [*required, *optional]
        if not isinstance(self.value, Mapping):
            self.fail(f"{_shown(self.value)} is not a table; write keys and values: {', '.join(known)}.")
        entries: dict[str, Field] = {}
        for key, value in self.value.items():
            # YAML 1.1 reads a bare `on` as true; here it can only be the key.
            name = "on" if key is True else key
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
                hint = f"did you mean '{near[0]}'? Known" if near else "known"
                self.fail(f"unknown key '{name}'; {hint}: {', '.join(known)}.")
            if value is not None:
                entries[name] = self.inside(value, name)
        for name in required:
            if name not in entries:
                self.fail(f"'{name}' is missing; add it.")
        return entries

    def items(self, what: str) -> list[Field]:
        """The items of a list, each called `what` and its number."""
        if not isinstance(self.value, list | tuple):
            self.fail(f"{_shown(self.value)} is not a list; write [ … ].")
        return [self.inside(item, f"{what} {index}") for index, item in enumerate(self.value, start=1)]

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value.strip():
            self.fail(f"{_shown(self.value)} is not a name; write text, in quotes if it looks like a number.")
        return self.value.strip()

    def texts(self) -> list[str]:
        return [item.text() for item in self.items("item")]

    def choice(self, choices: Sequence[str]) -> str:
        """One of a few words."""
        if self.value not in choices:
            self.fail(f"{_shown(self.value)} is not known; write one of {', '.join(choices)}.")
        return str(self.value)

    def number(self, infinite: bool = False) -> float:
        """A finite number (or, where it makes sense, an infinite one), given as such or as a formula."""
        if isinstance(self.value, float) and math.isinf(self.value) and infinite:
            return self.value
        return self.affine()[0]

    def positive(self, infinite: bool = False) -> float:
        number = self.number(infinite)
        if number <= 0.0:
            self.fail(f"{number:g} must be positive.")
        return number

    def affine(self, variables: Collection[str] = ()) -> Affine:
        """A number as (constant, slope), where the formula may hold a joint's variable."""
        value = self.value
        if isinstance(value, str):
            try:
                return evaluate(value, self.names, variables)
            except FormulaError as error:
                self.fail(f"{error}.")
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(f"{_shown(value)} is not a number; write a number or a formula such as 2*l1 + pi/2.")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.fail(f"{number} is not allowed here; write a finite number.")
        return number, 0.0

    def vector(self, count: int) -> list[float]:
        """A list of exactly `count` numbers."""
        items = self.items("number")
        if len(items) != count:
            self.fail(f"has {len(items)} numbers, not {count}.")
        return [item.number() for item in items]

    def matrix(self, columns: int) -> list[list[float]]:
        """A list of rows, each of `columns` numbers."""
        return [row.vector(columns) for row in self.items("row")]


def _shown(value: Any) -> str:
    """How a wrong value is quoted: what a person can recognise, never a whole nested structure."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
