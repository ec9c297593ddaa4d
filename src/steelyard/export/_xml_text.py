"""Edits XML files in place, and formats numbers, tags and comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ExportError
from steelyard.ground.untrusted_files import read_bytes
from steelyard.ground.xml import MAX_BYTES, Element, parse_xml

# Escapes for attribute values; xml.sax.saxutils would import urllib and ssl.
_ESCAPED = str.maketrans(
    {c: f"&#{ord(c)};" for c in "\n\r\t"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
)
_DECLARED = re.compile(rb"""^<\?xml[^>]*encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


@dataclass(frozen=True)
class Span:
    """Byte range of an element: the start tag is [start, inside), the whole element [start, end)."""

    start: int
    inside: int
    end: int
    empty: bool  # written as <tag/>


class Document:
    """A parsed file with its bytes and pending edits; everything else is kept."""

    def __init__(self, path: Path) -> None:
        self.root = parse_xml(path)
        self.path, self.data = path, read_bytes(path, MAX_BYTES)
        declared = _DECLARED.match(self.data.removeprefix(b"\xef\xbb\xbf"))
        self.encoding = declared[1].decode() if declared else "utf-8"
        spans = _spans(self.data)
        elements = list(self.root.walk())
        if len(spans) != len(elements) or any(self.data[s.start : s.start + 1] != b"<" for s in spans):
            raise ExportError(f"{path}: its encoding cannot be edited; save the file as UTF-8.")
        self._spans = {id(element): span for element, span in zip(elements, spans, strict=True)}
        self._edits: list[tuple[int, int, str]] = []

    def span(self, element: Element) -> Span:
        return self._spans[id(element)]

    def replace(self, element: Element, text: str) -> None:
        """Replace an element by `text`."""
        span = self.span(element)
        self._edits.append((span.start, span.end, text))

    def remove(self, element: Element) -> None:
        """Remove an element, and its line if nothing else is on it."""
        span = self.span(element)
        start = span.start - len(self.indent(element).encode(self.encoding))
        alone = self.data[start - 1 : start] == b"\n" and self.data[span.end : span.end + 2].startswith(
            (b"\n", b"\r\n")
        )
        self._edits.append((start - 1 if alone else span.start, span.end, ""))

    def replace_tag(self, element: Element, text: str) -> None:
        """Replace the start tag of an element by `text`, which must also be empty or not."""
        span = self.span(element)
        self._edits.append((span.start, span.inside, text))

    def insert_first(self, element: Element, lines: Sequence[str]) -> None:
        """Insert lines at the beginning of an element's content, with one more level of indent."""
        span, outer = self.span(element), self.indent(element)
        text = "".join(f"\n{outer}  {line}" for line in lines)
        if span.empty:
            head = self.data[span.start : span.end].decode(self.encoding)
            open_tag = head.rstrip("/> \t\r\n") + ">"
            self._edits.append((span.start, span.end, f"{open_tag}{text}\n{outer}</{element.tag}>"))
        else:
            self._edits.append((span.inside, span.inside, text))

    def insert_after(self, element: Element, text: str) -> None:
        """Insert `text` behind an element."""
        end = self.span(element).end
        self._edits.append((end, end, text))

    def indent(self, element: Element) -> str:
        """White space before an element on its line."""
        line = self.data[: self.span(element).start].rpartition(b"\n")[2].decode(self.encoding, "replace")
        return line if not line.strip() else ""

    def start_tag(self, element: Element) -> str:
        span = self.span(element)
        return self.data[span.start : span.inside].decode(self.encoding)

    def edited(self) -> bytes:
        """Apply all edits."""
        data = self.data
        # From the end, so that earlier offsets stay valid; later insertions at the same offset come first.
        for start, end, text in sorted(self._edits, key=lambda edit: edit[:2], reverse=True):
            data = data[:start] + text.encode(self.encoding, "xmlcharrefreplace") + data[end:]
        return data


def _spans(data: bytes) -> list[Span]:
    """Spans of all elements, in the order of their start tags."""
    starts: list[int] = []
    ends: dict[int, int] = {}
    open_elements: list[int] = []
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        open_elements.append(len(starts))
        starts.append(parser.CurrentByteIndex)

    def end(tag: str) -> None:
        ends[open_elements.pop()] = parser.CurrentByteIndex

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.Parse(data, True)
    out = []
    for k, begin in enumerate(starts):
        inside = _tag_end(data, begin)
        empty = data[inside - 2 : inside] == b"/>"
        out.append(Span(begin, inside, inside if empty else _tag_end(data, ends[k]), empty))
    return out


def _tag_end(data: bytes, start: int) -> int:
    """Offset after the > that ends a tag; a > inside quotes is ignored."""
    quote = 0
    for k in range(start, len(data)):
        byte = data[k]
        if quote:
            quote = 0 if byte == quote else quote
        elif byte in b"\"'":
            quote = byte
        elif byte == 0x3E:
            return k + 1
    return len(data)


def number(value: float) -> str:
    """The shortest text that gives the same number."""
    return repr(float(value) + 0.0)  # + 0.0 turns -0.0 into 0.0


def numbers(values: ArrayLike) -> str:
    return " ".join(number(x) for x in np.ravel(np.asarray(values, dtype=float)))


def tag(name: str, attributes: Mapping[str, str], closed: bool = True) -> str:
    """Return the element `<name a="…"/>`, or only its opening tag."""
    inside = "".join(f' {key}="{value.translate(_ESCAPED)}"' for key, value in attributes.items())
    return f"<{name}{inside}{'/' if closed else ''}>"


def comment(lines: Iterable[str], indent: str = "") -> str:
    """A comment of one or more lines; `--`, which XML forbids in comments, becomes `- -`."""
    body = [re.sub("-(?=-)", "- ", line).rstrip("-") for line in lines]
    if len(body) == 1:
        return f"{indent}<!-- {body[0]} -->"
    return "\n".join([f"{indent}<!--", *(f"{indent}  {line}" for line in body), f"{indent}-->"])
