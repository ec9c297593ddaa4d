"""Read a hand-written YAML or TOML file into plain data, safely, and say which line is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from steelyard.errors import RobotError, SteelyardError, shortened
from steelyard.ground.untrusted import DEEPEST, LONGEST_NUMBER, read_text

if TYPE_CHECKING:
    import yaml

# A robot is a few kilobytes, 60 at most; PyYAML needs six seconds for a megabyte.
LARGEST = 250_000

Syntax = Literal["yaml", "toml"]
# A dotted key of TOML with too many parts: the time that tomllib takes is quadratic in them, minutes for a file of
# 250 kB. A part is searched for at its beginning only, so that the search itself takes linear time.
_DEEP_KEY = re.compile(rf"""(?<![\w"'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{DEEPEST}}}""")
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def read_document(path: Path, error: type[SteelyardError] = RobotError, most: int = LARGEST) -> Mapping[str, Any]:
    """The top-level mapping of a file.

    Args:
        path: of the file; `.toml` is TOML, all else is YAML (of which JSON is a part).
        error: what is raised where it cannot be read.
        most: bytes that it may have.
    """
    text = read_text(path, most, error)
    return parse_document(text, str(path), "toml" if path.suffix.lower() == ".toml" else "yaml", error)


def parse_document(
    text: str, source: str, syntax: Syntax = "yaml", error: type[SteelyardError] = RobotError
) -> Mapping[str, Any]:
    """The top-level mapping of a text.

    Args:
        text: what is written.
        source: names it in errors.
        syntax: what it is written in.
        error: what is raised where it cannot be read.
    """
    try:
        data = _load_toml(text) if syntax == "toml" else _load_yaml(text)
    except _RefusedError as why:
        raise error(f"{source}: {why}") from None
    except RecursionError:
        raise error(f"{source}: is nested too deeply to be a robot.") from None
    except ValueError as why:  # a date such as 2020-13-45 is recognised by YAML and then refused by Python
        raise error(f"{source}: holds a value that cannot be read: {why}.") from None
    if not isinstance(data, dict):
        raise error(f"{source}: must be a table of keys and values, such as 'convention: standard'.")
    return data


class _RefusedError(Exception):
    """What is wrong with a text, and where."""


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

    # libyaml's is five times as fast, where PyYAML was built with it.
    kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _look_at_events(text, kind)
        loader = kind(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _look_at_node(node)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        # At the end of the text libyaml is a line further than there are.
        line = f"line {min(error.problem_mark.line, text.count(chr(10))) + 1}: " if error.problem_mark else ""
        raise _RefusedError(f"{line}is not valid YAML: {error.problem or error.context}.") from None
    except yaml.YAMLError as error:
        raise _RefusedError(f"is not valid YAML: {str(error).splitlines()[0]}.") from None


def _look_at_events(text: str, loader: Any) -> None:
    """Refuse what makes a small file a large structure, before there is one: depth, and copies of other parts."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise _RefusedError("is nested too deeply to be a robot.")
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else 1
            name = shortened(event.anchor or "", 40)
            raise _RefusedError(f"line {line}: *{name} copies another part of the file; write it out.")


def _look_at_node(node: yaml.Node) -> None:
    """YAML would silently keep the last of two equal keys; a robot must not lose a mass that way."""
    import yaml

    if isinstance(node, yaml.ScalarNode):
        if any("\ud800" <= c <= "\udfff" for c in node.value):
            raise _RefusedError(f"line {node.start_mark.line + 1}: holds half of a character; write it out.")
        if node.tag in _NUMBERS and len(node.value) > LONGEST_NUMBER:
            raise _RefusedError(f"line {node.start_mark.line + 1}: a number of {len(node.value)} digits; shorten it.")
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _look_at_node(item)
    elif isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    line = key.start_mark.line + 1
                    raise _RefusedError(f"line {line}: key '{key.value}' appears twice; keep one of the two.")
                keys.add(key.value)
            _look_at_node(key)
            _look_at_node(value)
