"""Reads hand-written YAML and TOML files safely into plain data; errors name the line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from steelyard.errors import RobotError, SteelyardError, shortened
from steelyard.ground.untrusted_files import DEEPEST, LONGEST_NUMBER, read_text

if TYPE_CHECKING:
    import yaml

# [bytes]. Robot files have at most 60 kB; PyYAML needs six seconds for a megabyte.
LARGEST = 250_000

Syntax = Literal["yaml", "toml"]
# Matches a dotted TOML key with too many parts. tomllib's time is quadratic in them: minutes for 250 kB. Because of the
# look-behind a match starts only at the beginning of a part, so the search takes linear time.
_DEEP_KEY = re.compile(rf"""(?<![\w"'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{DEEPEST}}}""")
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def read_document(path: Path, error: type[SteelyardError] = RobotError, most: int = LARGEST) -> Mapping[str, Any]:
    """Read the top-level mapping of a file.

    Args:
        path: Path of the file; `.toml` is read as TOML, any other file as YAML (which includes JSON).
        error: Error class for an unreadable file.
        most: Largest size [bytes].
    """
    text = read_text(path, most, error)
    return parse_document(text, str(path), "toml" if path.suffix.lower() == ".toml" else "yaml", error)


def parse_document(
    text: str, source: str, syntax: Syntax = "yaml", error: type[SteelyardError] = RobotError
) -> Mapping[str, Any]:
    """Parse the top-level mapping of a text.

    Args:
        text: Text of the document.
        source: Name of the text in errors.
        syntax: Language of the text.
        error: Error class for an unreadable text.
    """
    try:
        data = _load_toml(text) if syntax == "toml" else _load_yaml(text)
    except _RefusedError as why:
        raise error(f"{source}: {why}") from None
    except RecursionError:
        raise error(f"{source}: is nested too deeply for a robot file.") from None
    except ValueError as why:  # e.g. the date 2020-13-45, which matches YAML's syntax and fails in Python
        raise error(f"{source}: contains a value that cannot be read: {why}.") from None
    if not isinstance(data, dict):
        raise error(f"{source}: must be a table of keys and values, such as 'convention: standard'.")
    return data


class _RefusedError(Exception):
    """A text failed a check; the message gives line and reason."""


def _load_toml(text: str) -> Any:
    import tomllib

    if found := _DEEP_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise _RefusedError(f"line {line}: a key has more than {DEEPEST} parts; is it damaged?")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _RefusedError(f"is not valid TOML: {error}.") from None


def _load_yaml(text: str) -> Any:
    import yaml

    # libyaml's loader is five times as fast; some builds of PyYAML lack it.
    kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(text, kind)
        loader = kind(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check_node(node)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        # At the end of the text libyaml reports one line too many.
        line = f"line {min(error.problem_mark.line, text.count(chr(10))) + 1}: " if error.problem_mark else ""
        raise _RefusedError(f"{line}is not valid YAML: {error.problem or error.context}.") from None
    except yaml.YAMLError as error:
        raise _RefusedError(f"is not valid YAML: {str(error).splitlines()[0]}.") from None


def _check_events(text: str, loader: Any) -> None:
    """Refuse deep nesting and aliases, which turn a small file into a huge structure, before building it."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise _RefusedError("is nested too deeply for a robot file.")
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else 1
            name = shortened(event.anchor or "", 40)
            raise _RefusedError(f"line {line}: the alias *{name} is not allowed; write out the part that it copies.")


def _check_node(node: yaml.Node) -> None:
    """Refuse duplicate keys (YAML silently uses the last one), broken characters and very long numbers."""
    import yaml

    if isinstance(node, yaml.ScalarNode):
        if any("\ud800" <= c <= "\udfff" for c in node.value):
            raise _RefusedError(
                f"line {node.start_mark.line + 1}: contains half of a surrogate pair; write the whole character."
            )
        if node.tag in _NUMBERS and len(node.value) > LONGEST_NUMBER:
            line, digits = node.start_mark.line + 1, len(node.value)
            raise _RefusedError(f"line {line}: a number has {digits} digits; the limit is {LONGEST_NUMBER}.")
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_node(item)
    elif isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    line = key.start_mark.line + 1
                    raise _RefusedError(f"line {line}: key '{key.value}' appears twice; remove one.")
                keys.add(key.value)
            _check_node(key)
            _check_node(value)
