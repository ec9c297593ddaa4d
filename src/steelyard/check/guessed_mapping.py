"""`GuessedMapping`: the meaning of the columns of a log as far as names and numbers show it, and its gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from steelyard.ground.outcome import Outcome
from steelyard.ground.short_repr import short_repr
from steelyard.signals.mapping import LogMapping

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Guess:
    """Guessed columns of one key of the mapping.

    Attributes:
        key: Key of the mapping: "time", "position", …
        columns: Columns of the file.
        unit: Unit of the columns.
        why: Evidence.
        question: Question to the owner of the log; "" if the guess is certain.
        choices: Possible answers, each with its changes of the mapping; the first one is assumed.
    """

    key: str
    columns: tuple[str, ...]
    unit: str
    why: str
    question: str = ""
    choices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Lacking:
    """Missing information that only the owner of the log can give.

    Attributes:
        text: Description of the information and of its use.
        key: Key of the mapping for numbers: "time.rate", "torque_constants", …; "" for other information.
        lines: Lines for the mapping's file that the user completes, and where to find the numbers.
    """

    text: str
    key: str = ""
    lines: tuple[str, ...] = ()


@short_repr
@dataclass(frozen=True)
class GuessedMapping(Outcome):
    """A guessed mapping with its evidence.

    Attributes:
        source: Log.
        keys: Keys of the mapping, as in a file.
        guesses: Guesses with their evidence.
        unused: Columns that the mapping does not use.
        missing: Missing information.
        notes: Further notes for the owner of the log.
    """

    source: str
    keys: Mapping[str, Any]
    guesses: tuple[Guess, ...]
    unused: tuple[str, ...] = ()
    missing: tuple[Lacking, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def mapping(self) -> LogMapping:
        """Mapping for `read_log`."""
        return LogMapping.from_table(self.keys)

    @property
    def questions(self) -> tuple[Guess, ...]:
        """Guesses that are not certain."""
        return tuple(guess for guess in self.guesses if guess.question)

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0 if all is certain, 1 if something is assumed or missing."""
        return 1 if self.questions or self.missing else 0

    def answered(self, guess: Guess, answer: str) -> GuessedMapping:
        """Apply the answer to a question.

        Args:
            guess: Guess with the question.
            answer: One of its choices.
        """
        keys: dict[str, Any] = {k: dict(v) if isinstance(v, Mapping) else v for k, v in self.keys.items()}
        _apply(keys, guess.choices[answer])
        said = replace(guess, question="", choices={}, why=f"{guess.why}; your answer: {answer}")
        return replace(self, keys=keys, guesses=tuple(said if g is guess else g for g in self.guesses))

    def filled(self, gap: Lacking, numbers: Sequence[float]) -> GuessedMapping:
        """Fill in missing numbers.

        Args:
            gap: Missing information.
            numbers: One number, or one per joint.
        """
        keys: dict[str, Any] = {k: dict(v) if isinstance(v, Mapping) else v for k, v in self.keys.items()}
        value: Any = numbers[0] if len(numbers) == 1 else list(numbers)
        _apply(keys, {gap.key: value})
        LogMapping.from_table(keys)  # raises if the numbers do not fit
        return replace(self, keys=keys, missing=tuple(other for other in self.missing if other is not gap))

    def to_json(self) -> dict[str, Any]:
        rows = [
            {"key": g.key, "columns": list(g.columns), "unit": g.unit, "why": g.why, "question": g.question}
            for g in self.guesses
        ]
        missing = [gap.text for gap in self.missing]
        return {"source": self.source, "mapping": dict(self.keys), "guesses": rows, "unused": list(self.unused),
                "missing": missing, "notes": list(self.notes), "exit_code": self.exit_code}  # fmt: skip

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say, table

        def cells(g: Guess) -> list[str]:
            return [_shown(g.columns), g.key, g.unit or "–", g.why + (" (assumed)" if g.question else "")]

        rows = [cells(guess) for guess in self.guesses]
        out.print(table(f"Meaning of the columns of {self.source}", ["columns", "meaning", "unit", "why"], rows))
        if self.unused:
            say(out, f"Not used: {_shown(self.unused, 12)}.")
        for guess in self.questions:
            say(out, f"Assumed: {next(iter(guess.choices))}. {guess.question}")
        for gap in self.missing:
            say(out, f"Missing: {gap.text}")
            for line in gap.lines[1:]:
                say(out, f"  {line}")
        for text in self.notes:
            say(out, text)


def _apply(keys: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Apply changes to the keys of a mapping: "units.position" is a key in a table, None removes a key."""
    for key, value in changes.items():
        outer, _, inner = key.partition(".")
        if inner and value is not None:
            keys.setdefault(outer, {})[inner] = value
        elif inner:
            keys.get(outer, {}).pop(inner, None)
        elif value is None:
            keys.pop(outer, None)
        else:
            keys[outer] = value


def _value_of(keys: Mapping[str, Any], key: str) -> Any:
    outer, _, inner = key.partition(".")
    return keys.get(outer, {}).get(inner) if inner else keys.get(outer)


def _shown(names: Sequence[str], most: int = 3) -> str:
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])}, … {names[-1]} ({len(names)})"
