"""`Field`: an external value with its place, so that every error names the place and the remedy.

It validates all external data: robots, mappings, saved documents, options of commands.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from steelyard.errors import RobotError, SteelyardError, shortened
from steelyard.ground.arithmetic import Affine, FormulaError, evaluate_expression
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr

# No quantity of a robot is larger in SI units, and products of a few such numbers do not overflow.
LARGEST_NUMBER = 1e15
# Smaller numbers are rounding errors of zero; their squares underflow, and divisions by them overflow.
SMALLEST_NUMBER = 1e-60


@short_repr
@dataclass(frozen=True)
class Field:
    """A value of a file with its place.

    Args:
        value: Plain data.
        place: File, key and entry, as errors name it.
        names: Constants for formulas.
        error: Error class for invalid values.
        exact: Accept numbers of any size unchanged, for state that a program of ours saved.
    """

    value: Any
    place: str
    names: Mapping[str, float] = field(default_factory=dict)
    error: type[SteelyardError] = RobotError
    exact: bool = False

    def fail(self, message: str) -> NoReturn:
        """Raise an error with the place and a `message`, which states the problem and the remedy."""
        raise self.error(f"{self.place}: {message}")

    def inside(self, value: Any, where: str) -> Field:
        """Return a part of this value as a field.

        Args:
            value: The part.
            where: Key or number of the part, as errors name it.
        """
        return replace(self, value=value, place=f"{self.place}: {where}")

    def table(
        self, required: Sequence[str] = (), optional: Sequence[str] = (), others: bool = False
    ) -> dict[str, Field]:
        """Return the entries of a table by key; an empty entry counts as missing.

        Args:
            required: Keys that must be present.
            optional: Keys that may be present.
            others: Ignore other keys instead of refusing them.
        """
        known = [*required, *optional]
        if not isinstance(self.value, Mapping):
            self.fail(f"{shown_value(self.value)} is not a table; write keys and values: {', '.join(known)}.")
        entries: dict[str, Field] = {}
        for key, value in self.value.items():
            # YAML 1.1 reads the key `on` as true.
            name = "on" if key is True else key
            if name not in known and others:
                continue
            if name not in known:
                near = difflib.get_close_matches(str(name)[:80], known, n=1, cutoff=0.5)
                hint = f"did you mean '{near[0]}'? Known" if near else "known"
                self.fail(f"unknown key '{shortened(str(name), 60)}'; {hint}: {', '.join(known)}.")
            if value is not None:
                entries[name] = self.inside(value, name)
        for name in required:
            if name not in entries:
                self.fail(f"'{name}' is missing; add it.")
        return entries

    def entries(self) -> dict[str, Field]:
        """Return the entries of a table with arbitrary keys."""
        if not isinstance(self.value, Mapping):
            self.fail(f"{shown_value(self.value)} is not a table; write names and values.")
        return {str(key): self.inside(value, shortened(str(key), 60)) for key, value in self.value.items()}

    def items(self, what: str, most: int | None = None) -> list[Field]:
        """Return the items of a list.

        Args:
            what: Name of an item in errors, before its number.
            most: Largest number of items.
        """
        if not isinstance(self.value, list | tuple):
            self.fail(f"{shown_value(self.value)} is not a list; write [ … ].")
        if most is not None and len(self.value) > most:
            self.fail(f"has {len(self.value)} entries; the limit is {most}.")
        return [self.inside(item, f"{what} {index}") for index, item in enumerate(self.value, start=1)]

    def pair(self) -> tuple[Field, Field]:
        """Return the items of a list of two."""
        items = self.items("entry", 1000)
        if len(items) != 2:
            self.fail(f"has {len(items)} entries, not 2.")
        return items[0], items[1]

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value.strip():
            self.fail(f"{shown_value(self.value)} is not a name; write text, in quotes if it looks like a number.")
        return self.value

    def texts(self) -> list[str]:
        return [item.text() for item in self.items("item")]

    def choice(self, choices: Sequence[str]) -> str:
        """Return the value, which must be one of `choices`."""
        if not isinstance(self.value, str) or self.value not in choices:
            self.fail(f"{shown_value(self.value)} is unknown; write one of {', '.join(choices)}.")
        return self.value

    def flag(self) -> bool:
        """Return the value, which must be true or false."""
        if not isinstance(self.value, bool):
            self.fail(f"{shown_value(self.value)} must be true or false.")
        return self.value

    def number(self, infinite: bool = False, low: float = -math.inf, high: float = math.inf) -> float:
        """Return a number, which may be written as a formula.

        Args:
            infinite: Allow ±inf.
            low: Smallest value.
            high: Largest value.
        """
        if isinstance(self.value, float) and math.isinf(self.value) and infinite:
            return self.value
        number = self.affine()[0]
        if not low <= number <= high:
            allowed = f"at least {low:g}" if high == math.inf else f"{low:g} to {high:g}"
            self.fail(f"{number:g} is not allowed; give {allowed if low > -math.inf else f'at most {high:g}'}.")
        return number

    def positive(self, infinite: bool = False, low: float = -math.inf, high: float = math.inf) -> float:
        """Return a number above zero.

        Args:
            infinite: Allow inf.
            low: Smallest value.
            high: Largest value.
        """
        number = self.number(infinite, low, high)
        if number <= 0.0:
            self.fail(f"{number:g} must be positive.")
        return number

    def whole(self, low: int = 0, high: int = 1_000_000_000) -> int:
        """Return a whole number.

        Args:
            low: Smallest value.
            high: Largest value.
        """
        plain = isinstance(self.value, int) and not isinstance(self.value, bool)
        number = self.value if plain else self.number()
        if number != int(number) or not low <= number <= high:
            self.fail(f"{shown_value(number)} is not allowed; give a whole number from {low} to {high}.")
        return int(number)

    def array(self, *shape: int | None, missing: float | None = None) -> Array:
        """Return numbers of nested lists as an array.

        Args:
            shape: Length of each axis; None for any length.
            missing: Value for null; None refuses null.
        """
        out = np.array(self._nested(shape, missing), dtype=np.float64)
        return out.reshape([0 if n is None else n for n in shape]) if out.size == 0 else out

    def _nested(self, shape: tuple[int | None, ...], missing: float | None) -> Any:
        if not shape:
            return missing if self.value is None and missing is not None else self.number()
        values = self.value
        if not isinstance(values, list | tuple) or shape[0] not in (None, len(values)):
            wanted = "a list of numbers" if shape[0] is None else f"a list of {shape[0]}"
            self.fail(f"{shown_value(values)} is not {wanted}{' lists' if len(shape) > 1 else ''}.")
        if len(shape) > 1 and len({len(v) for v in values if isinstance(v, list | tuple)}) > 1:
            self.fail("its rows have different lengths.")
        if len(shape) == 1 and all(type(v) is float and (self.exact or abs(v) <= LARGEST_NUMBER) for v in values):
            return values
        return [self.inside(v, f"number {k + 1}")._nested(shape[1:], missing) for k, v in enumerate(values)]

    def affine(self, variables: Collection[str] = ()) -> Affine:
        """Return a number as (constant, slope), where a formula may contain a joint variable (one of `variables`)."""
        value = self.value
        if isinstance(value, str):
            try:
                constant, slope = evaluate_expression(value, self.names, variables)
                return self._sensible(constant), slope
            except FormulaError as error:
                self.fail(f"{error}.")
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(f"{shown_value(value)} is not a number; write a number or a formula such as 2*l1 + pi/2.")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.fail(f"{number} is not allowed here; write a finite number.")
        return self._sensible(number), 0.0

    def _sensible(self, number: float) -> float:
        if self.exact:
            return number
        if abs(number) > LARGEST_NUMBER:
            self.fail(f"{number:g} is beyond {LARGEST_NUMBER:g}; write it in SI units.")
        return number if abs(number) >= SMALLEST_NUMBER else 0.0

    def vector(self, count: int) -> list[float]:
        """Return a list of exactly `count` numbers."""
        items = self.items("number", max(count, 1000))
        if len(items) != count:
            self.fail(f"has {len(items)} numbers, not {count}.")
        return [item.number() for item in items]

    def matrix(self, columns: int) -> list[list[float]]:
        """Return a list of rows with `columns` numbers each."""
        return [row.vector(columns) for row in self.items("row")]


def shown_value(value: Any) -> str:
    """Return a short text of an invalid `value` for messages."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 1000:  # Python refuses to print very long integers
        return "a very long number"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
