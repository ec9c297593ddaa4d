"""Hand-written data that knows where it stands, so that every complaint names the file, the place and the fix."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from steelyard.errors import RobotError
from steelyard.ground.arithmetic import Affine, FormulaError, evaluate_expression

if TYPE_CHECKING:
    import yaml

# Read a hand-written YAML or TOML file into plain data, safely, and say which line is wrong.


# A robot is a few kilobytes; PyYAML needs seconds for megabytes.
LARGEST = 1_000_000

Syntax = Literal["yaml", "toml"]


def read_document(path: Path) -> Mapping[str, Any]:
    """The top-level mapping of the file at `path`; `.toml` is TOML, all else is YAML (of which JSON is a part)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise RobotError(f"{path}: there is no such file; check the path.") from None
    except OSError as error:
        raise RobotError(f"{path}: cannot be read ({error.strerror}).") from None
    if len(data) > LARGEST:
        raise RobotError(f"{path}: {len(data)} bytes is too much for a robot; is it the right file?")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RobotError(f"{path}: is not text in UTF-8; save it as UTF-8.") from None
    return parse_document(text, str(path), "toml" if path.suffix.lower() == ".toml" else "yaml")


def parse_document(text: str, source: str, syntax: Syntax = "yaml") -> Mapping[str, Any]:
    """The top-level mapping of `text`, written in `syntax`; `source` names it in errors."""
    try:
        data = _load_toml(text, source) if syntax == "toml" else _load_yaml(text, source)
    except RecursionError:
        raise RobotError(f"{source}: is nested too deeply to be a robot.") from None
    except ValueError as error:  # a date such as 2020-13-45 is recognised by YAML and then refused by Python
        raise RobotError(f"{source}: holds a value that cannot be read: {error}.") from None
    if not isinstance(data, dict):
        raise RobotError(f"{source}: must be a table of keys and values, such as 'convention: standard'.")
    return data


def _load_toml(text: str, source: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RobotError(f"{source}: is not valid TOML: {error}.") from None


def _load_yaml(text: str, source: str) -> Any:
    import yaml

    try:
        _refuse_repeated_keys(yaml.compose(text, Loader=yaml.SafeLoader), source, set())
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise RobotError(f"{source}: {line}is not valid YAML: {error.problem or error.context}.") from None
    except yaml.YAMLError as error:
        raise RobotError(f"{source}: is not valid YAML: {str(error).splitlines()[0]}.") from None


def _refuse_repeated_keys(node: yaml.Node | None, source: str, seen: set[int]) -> None:
    """YAML would silently keep the last of two equal keys; a robot must not lose a mass that way."""
    import yaml

    if node is None or id(node) in seen:  # aliases share nodes, so this also keeps the walk short
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repeated_keys(item, source, seen)
    elif isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    line = key.start_mark.line + 1
                    raise RobotError(f"{source}: line {line}: key '{key.value}' appears twice; keep one of the two.")
                keys.add(key.value)
            _refuse_repeated_keys(value, source, seen)


@dataclass(frozen=True)
class Field:
    """A value of a file, the place it stands at, and the named constants that its formulas may use."""

    value: Any
    place: str
    names: Mapping[str, float] = field(default_factory=dict)

    def fail(self, message: str) -> NoReturn:
        """Refuse the value: an error of the place and `message`, which says what is wrong and what to write."""
        raise RobotError(f"{self.place}: {message}")

    def inside(self, value: Any, where: str) -> Field:
        """`value`, which stands within this one at `where`: a key or an entry's number, as messages tell it."""
        return replace(self, value=value, place=f"{self.place}: {where}")

    def table(self, required: Sequence[str] = (), optional: Sequence[str] = ()) -> dict[str, Field]:
        """The entries of a table. Keys neither `required` nor `optional` are refused, empty ones count as absent."""
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
        """The value, which must be one of the words `choices`."""
        if self.value not in choices:
            self.fail(f"{_shown(self.value)} is not known; write one of {', '.join(choices)}.")
        return str(self.value)

    def number(self, infinite: bool = False) -> float:
        """A finite number (with `infinite`, ±inf too), given as such or as a formula."""
        if isinstance(self.value, float) and math.isinf(self.value) and infinite:
            return self.value
        return self.affine()[0]

    def positive(self, infinite: bool = False) -> float:
        """A number above zero; `infinite` as in `number`."""
        number = self.number(infinite)
        if number <= 0.0:
            self.fail(f"{number:g} must be positive.")
        return number

    def affine(self, variables: Collection[str] = ()) -> Affine:
        """A number as (constant, slope), where the formula may hold a joint's variable: one of `variables`, by name."""
        value = self.value
        if isinstance(value, str):
            try:
                return evaluate_expression(value, self.names, variables)
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
