"""The part of plotly.js that reports need, cut out of the script that the Python package `plotly` carries.

That script is what esbuild makes: statements one after the other, nearly all of them modules that run when they are
first called (`var name=wrap((exports,module)=>{…})`), and at the end one that registers all kinds of traces. With a
few kinds registered, what the rest does not mention any more can go. Only the standard library is used here, because
the build of the package runs this file too, before there is a package.
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

# Scripts by name and the kinds of traces in them besides scatter, which is always there.
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
# A slash after these begins a regular expression; elsewhere it divides.
_BEFORE_REGEX = {*"(,=:[!&|?{};+-*%<>~^", "=>", "", "return", "typeof", "case", "in", "of", "delete", "void", "throw"}
_PAIRS = {"(": ")", "[": "]", "{": "}", "`": "}"}


class UnknownShapeError(ValueError):
    """The script is not laid out as expected, so that nothing can be cut out of it safely."""


@dataclass(frozen=True)
class _Statement:
    """One statement of the outermost level: its text, the names it declares, and all names that it mentions."""

    text: str
    declares: tuple[str, ...]
    mentions: frozenset[str]


def trimmed(script: str, kinds: Iterable[str]) -> str:
    """The `script` with the given `kinds` of traces (besides scatter) and whatever they need.

    A name counts as mentioned wherever it stands outside of strings, even where it means something local: too much
    may be kept for that, never too little.
    """
    begin = script.find(_BEGIN) + len(_BEGIN)
    if begin < len(_BEGIN):
        raise UnknownShapeError(f"There is no '{_BEGIN}'.")
    found = list(_statements(script, begin))
    end = begin + sum(len(s.text) for s in found)
    lazy, later, exports = _wrappers(found)
    owners: dict[str, list[_Statement]] = defaultdict(list)
    always = []
    for s in found:
        if found_exports := re.match(rf"\s*{re.escape(exports)}\(({_NAME}),", s.text):
            owners[found_exports.group(1)].append(s)
        elif re.match(r"\s*(async\s+)?function\b", s.text) or re.match(rf"\s*var {_NAME}=(\{{\}};|{lazy}\()", s.text):
            owners[s.declares[0]].append(s)
        elif re.match(rf"\s*var (?:{_NAME},)*{_NAME}={later}\(", s.text):
            # The variables of such a module have values only once its function, the last name, has been called.
            owners[s.declares[-1]].append(s)
        else:
            always.append(s)
    entry = next((s for s in reversed(found) if ".register([" in s.text), found[-1])
    listed = re.search(r"\.register\(\[((?:[\w$]+\(\),?)+)\]\)", entry.text)
    if listed is None:
        raise UnknownShapeError("There is no list of the kinds of traces.")
    names = re.findall(r"[\w$]+", listed.group(1))
    by_kind = {_kind(name, owners): name for name in names}
    if missing := set(kinds) - set(by_kind):
        raise UnknownShapeError(f"There are no traces {', '.join(sorted(missing))}.")
    kept_names = [by_kind[kind] for kind in kinds]
    fewer = entry.text.replace(listed.group(1), ",".join(f"{name}()" for name in kept_names))
    new_entry = _Statement(fewer, entry.declares, (entry.mentions - set(names)) | set(kept_names))
    owners[entry.declares[0]] = [new_entry]
    kept = _reachable(always, owners) | {id(s) for s in always}
    body = "".join(s.text for s in (new_entry if s is entry else s for s in found) if id(s) in kept)
    return script[:begin] + body + script[end:]


def _statements(script: str, begin: int) -> Iterator[_Statement]:
    """The statements from `begin` up to the bracket that closes what was open there; their texts leave no gaps."""
    place, start, depth = begin, begin, list[str]()
    before, mentions, declares = "", set[str](), list[str]()
    while True:
        token = _TOKEN.match(script, place)
        if token is None:
            raise UnknownShapeError("The script ends in the middle.")
        kind, text, place = token.lastgroup, token.group(), token.end()
        if kind == "space":
            continue
        if kind == "slash" and before in _BEFORE_REGEX:
            place, before = _end(_REGEX, script, place - 1).end(), "0"
            continue
        if kind == "close" and not depth:
            if script[start : token.start()].strip():
                raise UnknownShapeError("The last statement is open.")
            return
        opened = depth.pop() if kind == "close" else ""
        if opened and _PAIRS[opened] != text:
            raise UnknownShapeError(f"'{opened}' is closed by '{text}'.")
        if kind == "tick" or opened == "`":
            part = _end(_TEMPLATE, script, place)
            place, before = part.end(), "0"
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
        done = text == ";" or (text == "}" and script[start:place].lstrip().startswith(("function", "async function")))
        before = text
        if done and not depth:
            yield _Statement(script[start:place], tuple(declares), frozenset(mentions))
            start, before, mentions, declares = place, "", set(), []


def _end(pattern: re.Pattern[str], script: str, place: int) -> re.Match[str]:
    found = pattern.match(script, place)
    if found is None:
        raise UnknownShapeError(f"Something begins at {place} that does not end.")
    return found


def _wrappers(found: list[_Statement]) -> tuple[str, str, str]:
    """The short names of esbuild's helpers: for CommonJS modules, for ECMAScript modules, and for their exports."""
    head = "".join(s.text for s in found[:30])
    shapes = (
        rf"({_NAME})=\(\w+,\w+\)=>\(\)=>[^;]{{0,40}}\(\w+=\{{exports:\{{\}}\}}\)",
        rf"({_NAME})=\(\w+,\w+(?:,\w+)?\)=>\(\)=>[^=]{{0,60}}\(\w+=\w+\(\w+=0\)\)",
        rf"({_NAME})=\(\w+,\w+\)=>\{{for\(var \w+ in \w+\){_NAME}\(\w+,\w+,\{{get:",
    )
    names = [re.search(shape, head) for shape in shapes]
    if None in names:
        raise UnknownShapeError("The helpers of esbuild are not there.")
    lazy, later, exports = (re.escape(name.group(1)) for name in names if name is not None)
    return lazy, later, exports


def _kind(name: str, owners: dict[str, list[_Statement]]) -> str:
    """The kind of trace that a module of the list registers, perhaps by handing on another module."""
    text = "".join(s.text for s in owners.get(name, ()))
    if other := re.search(rf"exports=({_NAME})\(\)\}}\);$", text):
        text = "".join(s.text for s in owners.get(other.group(1), ()))
    said = re.search(r'moduleType[:=]"trace".{0,40}?name[:=]"(\w+)"', text)
    return said.group(1) if said else name


def _reachable(roots: list[_Statement], owners: dict[str, list[_Statement]]) -> set[int]:
    """Identities of all statements that the roots mention, or that those mention, and so on."""
    seen: set[int] = set()
    todo = list(roots)
    while todo:
        for name in todo.pop().mentions:
            for other in owners.get(name, ()):
                if id(other) not in seen:
                    seen.add(id(other))
                    todo.append(other)
    return seen


def installed_script() -> str:
    """plotly.js as the installed Python package `plotly` carries it; that package is not imported."""
    spec = find_spec("plotly")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    for folder in folders:
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise FileNotFoundError("The Python package 'plotly', which carries plotly.js, is not installed.")


def compressed(script: str, kinds: Iterable[str]) -> bytes:
    """`script` trimmed to `kinds` of traces and compressed; where it cannot be trimmed, the whole of it."""
    try:
        text = trimmed(script, kinds)
    except UnknownShapeError as error:
        print(f"plotly.js is taken whole, reports will be about 1 MB larger: {error}", file=sys.stderr)
        text = script
    return gzip.compress(text.encode("utf-8"), 9, mtime=0)  # without the time, so that a build repeats


def make(folder: Path = ASSETS) -> list[Path]:
    """Write all scripts from the installed `plotly` into `folder`."""
    script = installed_script()
    made = []
    for name, kinds in SCRIPTS.items():
        (folder / name).write_bytes(compressed(script, kinds))
        made.append(folder / name)
    return made


if __name__ == "__main__":
    for path in make():
        print(f"{path}: {path.stat().st_size / 1000.0:.0f} kB")
