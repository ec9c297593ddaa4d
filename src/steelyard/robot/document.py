"""Read a hand-written YAML or TOML file into plain data, safely, and say which line is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml

from steelyard.errors import RobotError

# A robot is a few kilobytes; PyYAML needs seconds for megabytes.
LARGEST = 1_000_000

Syntax = Literal["yaml", "toml"]


def read_document(path: Path) -> Mapping[str, Any]:
    """The top-level mapping of a file; `.toml` is TOML, everything else is YAML (of which JSON is a part)."""
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
    """The top-level mapping of a text; `source` names it in errors."""
    try:
        data = tomllib.loads(text) if syntax == "toml" else _load_yaml(text, source)
    except tomllib.TOMLDecodeError as error:
        raise RobotError(f"{source}: is not valid TOML: {error}.") from None
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise RobotError(f"{source}: {line}is not valid YAML: {error.problem or error.context}.") from None
    except yaml.YAMLError as error:
        raise RobotError(f"{source}: is not valid YAML: {str(error).splitlines()[0]}.") from None
    except RecursionError:
        raise RobotError(f"{source}: is nested too deeply to be a robot.") from None
    except ValueError as error:  # a date such as 2020-13-45 is recognised by YAML and then refused by Python
        raise RobotError(f"{source}: holds a value that cannot be read: {error}.") from None
    if not isinstance(data, dict):
        raise RobotError(f"{source}: must be a table of keys and values, such as 'convention: standard'.")
    return data


def _load_yaml(text: str, source: str) -> Any:
    _refuse_repeated_keys(yaml.compose(text, Loader=yaml.SafeLoader), source, set())
    return yaml.safe_load(text)


def _refuse_repeated_keys(node: yaml.Node | None, source: str, seen: set[int]) -> None:
    """YAML would silently keep the last of two equal keys; a robot must not lose a mass that way."""
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
