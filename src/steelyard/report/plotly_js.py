"""Cuts the part of plotly.js that reports need out of the script in the Python package `plotly`.

esbuild made that script: a list of statements, nearly all of them modules that run at their first call
(`var name=wrap((exports,module)=>{…})`). The last one registers all kinds of traces. Reports register only the kinds
that they use, so all statements that no other statement needs can be removed. This file uses only the standard library,
because the build of the package runs it before the package exists.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

# File name of each script, and its kinds of traces besides scatter, which is always included.
SCRIPTS = {"plotly-plane.js.gz": ("bar", "box", "heatmap"), "plotly-space.js.gz": ("bar", "box", "scatter3d")}
ASSETS = Path(__file__).with_name("assets")

_BEGIN = "var Plotly=(()=>{"
_NAME = r"[A-Za-z_$][\w$]*"
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<word>[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*)
    |(?P<number>\.?\d[\w.]*)
    |(?P<tick>`)|(?P<slash>/)|(?P<open>[(\[{])|(?P<close>[)\]}])
    |(?P<sign>=>|\.\.\.|.)""",
    re.VERBOSE | re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[A-Za-z]*")
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(`|\$\{)", re.DOTALL)
# A slash after these begins a regular expression; elsewhere it is a division.
_BEFORE_REGEX = {*"(,=:[!&|?{};+-*%<>~^", "=>", "", "return", "typeof", "case", "in", "of", "delete", "void", "throw"}
_PAIRS = {"(": ")", "[": "]", "{": "}", "`": "}"}


class UnknownShapeError(ValueError):
    """The script does not have the expected layout, so it cannot be trimmed safely."""


@dataclass(frozen=True)
class _Statement:
    """One top-level statement: its text, the names that it declares, and all names that it mentions."""

    text: str
    declares: tuple[str, ...]
    mentions: frozenset[str]


def trim(script: str, kinds: Iterable[str]) -> str:
    """Reduce plotly.js to some kinds of traces and everything that they need.

    A name counts as mentioned wherever it appears outside of strings, even as a local name. This may keep too much,
    never too little.

    Args:
        script: Text of plotly.js.
        kinds: Kinds of traces to keep besides scatter.

    Raises:
        UnknownShapeError: If the script does not have the expected layout.
    """
    begin = script.find(_BEGIN) + len(_BEGIN)
    if begin < len(_BEGIN):
        raise UnknownShapeError(f"'{_BEGIN}' is missing.")
    statements = list(_statements(script, begin))
    end = begin + sum(len(s.text) for s in statements)
    lazy, later, exports = _wrappers(statements)
    owners: dict[str, list[_Statement]] = defaultdict(list)
    always = []
    for s in statements:
        if export := re.match(rf"\s*{re.escape(exports)}\(({_NAME}),", s.text):
            owners[export.group(1)].append(s)
        elif re.match(r"\s*(async\s+)?function\b", s.text) or re.match(rf"\s*var {_NAME}=(\{{\}};|{lazy}\()", s.text):
            owners[s.declares[0]].append(s)
        elif re.match(rf"\s*var (?:{_NAME},)*{_NAME}={later}\(", s.text):
            # The variables of such a module get their values when its function, the last name, is called.
            owners[s.declares[-1]].append(s)
        else:
            always.append(s)
    entry = next((s for s in reversed(statements) if ".register([" in s.text), statements[-1])
    registry = re.search(r"\.register\(\[((?:[\w$]+\(\),?)+)\]\)", entry.text)
    if registry is None:
        raise UnknownShapeError("The list of the kinds of traces is missing.")
    names = re.findall(r"[\w$]+", registry.group(1))
    by_kind = {_kind(name, owners): name for name in names}
    if missing := set(kinds) - set(by_kind):
        raise UnknownShapeError(f"Kinds of traces are missing: {', '.join(sorted(missing))}.")
    wanted = [by_kind[kind] for kind in kinds]
    shorter = entry.text.replace(registry.group(1), ",".join(f"{name}()" for name in wanted))
    new_entry = _Statement(shorter, entry.declares, (entry.mentions - set(names)) | set(wanted))
    owners[entry.declares[0]] = [new_entry]
    needed = _reachable(always, owners) | {id(s) for s in always}
    body = "".join(s.text for s in (new_entry if s is entry else s for s in statements) if id(s) in needed)
    return script[:begin] + body + script[end:]


def _statements(script: str, begin: int) -> Iterator[_Statement]:
    """Yield the statements from `begin` to the closing bracket of that level; their texts leave no gaps."""
    at, start, depth = begin, begin, list[str]()
    before, mentions, declares = "", set[str](), list[str]()
    while True:
        token = _TOKEN.match(script, at)
        if token is None:
            raise UnknownShapeError("The script ends inside a statement.")
        kind, text, at = token.lastgroup, token.group(), token.end()
        if kind == "space":
            continue
        if kind == "slash" and before in _BEFORE_REGEX:
            at, before = _end(_REGEX, script, at - 1).end(), "0"
            continue
        if kind == "close" and not depth:
            if script[start : token.start()].strip():
                raise UnknownShapeError("The last statement is not closed.")
            return
        opened = depth.pop() if kind == "close" else ""
        if opened and _PAIRS[opened] != text:
            raise UnknownShapeError(f"'{opened}' is closed by '{text}'.")
        if kind == "tick" or opened == "`":
            part = _end(_TEMPLATE, script, at)
            at, before = part.end(), "0"
            if part.group(1) == "${":
                depth.append("`")
                before = "("
            continue
        if kind == "open":
            depth.append(text)
        elif kind == "word" and before != ".":
            mentions.add(text)
            if not depth and before in ("var", "function", ","):
                declares.append(text)
        done = text == ";" or (text == "}" and script[start:at].lstrip().startswith(("function", "async function")))
        before = text
        if done and not depth:
            yield _Statement(script[start:at], tuple(declares), frozenset(mentions))
            start, before, mentions, declares = at, "", set(), []


def _end(pattern: re.Pattern[str], script: str, at: int) -> re.Match[str]:
    match = pattern.match(script, at)
    if match is None:
        raise UnknownShapeError(f"The string or regular expression at character {at} has no end.")
    return match


def _wrappers(statements: list[_Statement]) -> tuple[str, str, str]:
    """Find the short names of esbuild's helpers: for CommonJS modules, ECMAScript modules, and their exports."""
    head = "".join(s.text for s in statements[:30])
    shapes = (
        rf"({_NAME})=\(\w+,\w+\)=>\(\)=>[^;]{{0,40}}\(\w+=\{{exports:\{{\}}\}}\)",
        rf"({_NAME})=\(\w+,\w+(?:,\w+)?\)=>\(\)=>[^=]{{0,60}}\(\w+=\w+\(\w+=0\)\)",
        rf"({_NAME})=\(\w+,\w+\)=>\{{for\(var \w+ in \w+\){_NAME}\(\w+,\w+,\{{get:",
    )
    names = [re.search(shape, head) for shape in shapes]
    if None in names:
        raise UnknownShapeError("The helper functions of esbuild are missing.")
    lazy, later, exports = (re.escape(name.group(1)) for name in names if name is not None)
    return lazy, later, exports


def _kind(name: str, owners: dict[str, list[_Statement]]) -> str:
    """Return the kind of trace that a module registers, directly or through another module."""
    text = "".join(s.text for s in owners.get(name, ()))
    if other := re.search(rf"exports=({_NAME})\(\)\}}\);$", text):
        text = "".join(s.text for s in owners.get(other.group(1), ()))
    match = re.search(r'moduleType[:=]"trace".{0,40}?name[:=]"(\w+)"', text)
    return match.group(1) if match else name


def _reachable(roots: list[_Statement], owners: dict[str, list[_Statement]]) -> set[int]:
    """Return the identities of all statements that the roots mention directly or indirectly."""
    visited: set[int] = set()
    todo = list(roots)
    while todo:
        for name in todo.pop().mentions:
            for other in owners.get(name, ()):
                if id(other) not in visited:
                    visited.add(id(other))
                    todo.append(other)
    return visited


def installed_script() -> str:
    """Read plotly.js from the installed Python package `plotly`, without importing that package."""
    spec = find_spec("plotly")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    for folder in folders:
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise FileNotFoundError("The Python package 'plotly', which contains plotly.js, is not installed.")


def trim_and_compress(script: str, kinds: Iterable[str]) -> bytes:
    """Trim and compress plotly.js; if it cannot be trimmed, warn and compress all of it.

    Args:
        script: Text of plotly.js.
        kinds: Kinds of traces to keep besides scatter.
    """
    try:
        text = trim(script, kinds)
    except UnknownShapeError as error:
        print(f"plotly.js cannot be trimmed; reports will be about 1 MB larger: {error}", file=sys.stderr)
        text = script
    return gzip.compress(text.encode("utf-8"), 9, mtime=0)  # no time stamp: builds are reproducible


def write_scripts(folder: Path = ASSETS) -> list[Path]:
    """Write all scripts from the installed `plotly` into `folder`."""
    script = installed_script()
    paths = []
    for name, kinds in SCRIPTS.items():
        (folder / name).write_bytes(trim_and_compress(script, kinds))
        paths.append(folder / name)
    return paths


if __name__ == "__main__":
    for path in write_scripts():
        print(f"{path}: {path.stat().st_size / 1000.0:.0f} kB")
