"""Declares the options of a verb once: its arguments, command line, form and project file follow from a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import Field as DataclassField
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from steelyard.errors import SteelyardError, UnknownNameError

_SAME: Any = object()
_Options = TypeVar("_Options")
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class OptionText:
    """How an option of a verb is written on the command line and in forms.

    Attributes:
        name: Name of the option in the program; "_" becomes "-" in `--name`.
        default: Value if it is not written.
        help: Help text; "{criteria:or}" lists the members of a registry.
        metavar: Placeholder of the value.
        kind: Type of the written value.
        flags: Spellings, if they do not follow from the name.
        parse: Converts the written text; called with the spelling and the text.
        complete: List of completions; with "," for several of them.
        keys: Keys of the project file that set the option.
        label: Label in forms.
        unit: Unit in forms.
    """

    name: str
    default: Any
    help: str
    metavar: str = ""
    kind: Any = str
    flags: tuple[str, ...] = ()
    parse: Callable[[str, str], Any] | None = None
    complete: str = ""
    keys: tuple[str, ...] = ()
    label: str = ""
    unit: str = ""

    @property
    def flag(self) -> str:
        """First spelling of the option, such as "--torque-margin"."""
        return self.flags[0].split("/")[0] if self.flags else f"--{self.name.replace('_', '-')}"

    def value(self, typed: Any) -> Any:
        """Convert the `typed` value to the argument of the verb."""
        return self.parse(self.flag, typed) if self.parse is not None and isinstance(typed, str) else typed


def verb_option(
    default: Any, help: str, metavar: str = "", *, name: str = "", kind: Any = None, text: Any = _SAME, **more: Any
) -> Any:
    """Declare a field of an options dataclass that is also an option of the command.

    Args:
        default: Default value.
        help: Help text.
        metavar: Placeholder of the value.
        name: Name of the option; "": the name of the field.
        kind: Type of the written value; default: the type of the default, or text.
        text: Default of the written value; if it is not stated: the same default, or "" for text.
        **more: Further attributes of `OptionText`.
    """
    kind = kind or (str if default is None else type(default))
    same = "" if default is None and kind is str else default
    written = same if text is _SAME else text
    return field(default=default, metadata={"option": OptionText(name, written, help, metavar, kind, **more)})


def option_texts(kind: Any) -> Iterator[tuple[str, OptionText]]:
    """Return the declared options of an options dataclass `kind`, by the names of its fields."""
    for each in fields(kind):
        if (text := _text(each)) is not None:
            yield each.name, text


def _text(each: DataclassField[Any]) -> OptionText | None:
    text: OptionText | None = each.metadata.get("option")
    return text if text is None or text.name else replace(text, name=each.name)


def with_changes(options: _Options, changes: Mapping[str, Any], verb: str, names: Collection[str] = ()) -> _Options:
    """Return options with changes; an unknown name is refused with the nearest known one.

    Args:
        options: Options dataclass.
        changes: New values by name.
        verb: Name of the function, for the message.
        names: Names that the function uses; default: all.
    """
    import difflib

    known = list(names) or [each.name for each in fields(options)]  # type: ignore[arg-type]
    for name in changes:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            raise TypeError(f"{verb}() has no option '{name}'.{f' Did you mean {near[0]!r}?' if near else ''}")
    return replace(options, **changes) if changes else options  # type: ignore[type-var]


def with_signature(kind: Any) -> Callable[[_Function], _Function]:
    """Return a decorator that shows the fields of an options dataclass `kind` as keyword arguments in `help()`."""

    def decorate(function: _Function) -> _Function:
        own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type)
            for f in fields(kind)
            if f.name not in {p.name for p in own}
        ]
        returns = inspect.signature(function).return_annotation
        function.__signature__ = inspect.Signature([*own, *more], return_annotation=returns)  # type: ignore[attr-defined]
        return function

    return decorate


def words(text: str) -> list[str]:
    """Split a comma-separated `text` into words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def word_list(option: str, text: str) -> list[str] | None:
    """Split a comma-separated text into words; None without words.

    Args:
        option: Name of the option.
        text: Text to split.
    """
    return words(text) or None


def numbers(option: str, text: str, count: int) -> list[float]:
    """Parse comma-separated numbers.

    Args:
        option: Name of the option, for the error.
        text: Text to parse.
        count: Required number of numbers.
    """
    from steelyard.ground.field import LARGEST_NUMBER

    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if len(values) != count or not all(abs(x) <= LARGEST_NUMBER for x in values):
        raise SteelyardError(f"{option} is '{text}'; give {count} finite numbers, separated by commas, e.g. 0,0,-9.81.")
    return values


def per_joint(option: str, text: str) -> Any:
    """Parse one number, one per joint, or pairs low:high; None for "none", which removes a limit.

    Args:
        option: Name of the option, for the error.
        text: Text to parse.
    """
    if text.lower() in ("none", "off", "inf"):
        return None
    parts = words(text)
    try:
        if any(":" in part for part in parts):
            pairs = [tuple(float(x) for x in part.split(":")) for part in parts]
            if any(len(pair) != 2 or any(x != x for x in pair) for pair in pairs):
                raise ValueError
            return pairs
        values = [float(part) for part in parts]
        if any(x != x for x in values):  # NaN
            raise ValueError
    except ValueError:
        values = []
    if not values:
        raise SteelyardError(
            f"{option} is '{text}'; give one number, one per joint separated by commas (positions also as low:high), "
            "or none."
        )
    return values[0] if len(values) == 1 else values


# ------------------------------------------------------------ options after a name, as in "ekf:start=prior"

_TRUTH = {"yes": True, "true": True, "no": False, "false": False}


def parse_named_options(
    noun: str, text: str, kinds: Mapping[str, str], *, example: str, shown: Iterable[str] | None = None
) -> tuple[str, dict[str, Any]]:
    """Parse a name and its options, converted to their types.

    Args:
        noun: Kind of the name, for messages: "scheme".
        text: Text to parse.
        kinds: Type annotations of all options, by name.
        example: Correct text for messages.
        shown: Options to list in messages; default: all.
    """
    name, _, tail = text.partition(":")
    options: dict[str, Any] = {}
    for pair in filter(None, tail.replace(":", ",").split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise SteelyardError(f"{noun.capitalize()} '{text}': write options as name=value, e.g. {example}.")
        if key not in kinds:
            raise UnknownNameError(f"option of {noun} '{name}'", key, kinds if shown is None else shown)
        options[key] = _value(f"{noun.capitalize()} '{text}'", kinds[key], value)
    return name, options


def _value(source: str, kind: str, value: str) -> Any:
    """Convert a text to the option's type; a choice of words is checked by its user."""
    if kind.startswith(("str", "Literal")):
        return value
    if "bool" in kind:
        if value.lower() not in _TRUTH:
            raise SteelyardError(f"{source}: '{value}' must be yes or no.")
        return _TRUTH[value.lower()]
    number = int if "int" in kind else float if "float" in kind else None
    if number is None:
        return value
    try:
        return number(value)
    except ValueError:
        expected = "a whole number" if number is int else "a number"
        raise SteelyardError(f"{source}: '{value}' is not {expected}.") from None
