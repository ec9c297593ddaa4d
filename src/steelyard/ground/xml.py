"""Reads the XML of robot descriptions safely: elements store their line, and no other file is read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np

from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.ground.field import LARGEST_NUMBER, SMALLEST_NUMBER
from steelyard.ground.untrusted_files import read_bytes

# The largest descriptions in use (humanoids) have about 1 MB, a few thousand elements and ten levels; nested bodies
# of MJCF add one level each. The limits protect memory and stack from hostile files.
MAX_BYTES = 16 * 1024 * 1024
MAX_ELEMENTS = 50_000
MAX_DEPTH = 256


def shorten(text: str, width: int = 60) -> str:
    """Shorten text of a file to one line for messages.

    Args:
        text: The text.
        width: Largest number of characters.
    """
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


@dataclass(eq=False)
class Element:
    """An XML element with its file and line."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    owner: str = ""  # nearest enclosing element with a name, e.g. "link 'forearm'"
    children: list[Element] = field(default_factory=list)
    text: str = ""

    @property
    def label(self) -> str:
        """Name of this element in messages: "joint 'elbow'", or "<mass> of link 'forearm'"."""
        if "name" in self.attributes:
            return f"{self.tag} '{shorten(self.attributes['name'])}'"
        return f"<{self.tag}> of {self.owner}" if self.owner else f"<{self.tag}>"

    def error(self, message: str) -> RobotError:
        """Return an error with file, line and element before `message`."""
        return RobotError(f"{self.file}, line {self.line}: {self.label} {message}")

    def find(self, tag: str) -> Element | None:
        """Return the first child with this `tag`, or None."""
        return next((child for child in self.children if child.tag == tag), None)

    def all(self, tag: str) -> list[Element]:
        """Return the children with this `tag`."""
        return [child for child in self.children if child.tag == tag]

    def walk(self) -> Iterator[Element]:
        """Yield this element and all elements inside it."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))

    def string(self, name: str) -> str:
        """Return the attribute `name`, which must exist and must not be empty."""
        value = self.attributes.get(name, "")
        if not value.strip():
            raise self.error(f"has no attribute '{name}'; add {name}=\"…\".")
        return value

    def numbers(self, name: str, infinite: bool = False) -> list[float]:
        """Return all numbers of an attribute.

        Args:
            name: Name of the attribute.
            infinite: Allow ±inf, for limits.
        """
        out = []
        for word in self.string(name).split():
            try:
                value = math.nan if "_" in word else float(word)
            except ValueError:
                value = math.nan
            if math.isnan(value) or (math.isinf(value) and not infinite):
                raise self.error(
                    f"has '{shorten(word)}' in attribute '{name}', which is not a finite number; "
                    f"write a number such as 0.5."
                )
            if abs(value) > LARGEST_NUMBER and not infinite:
                raise self.error(
                    f"has {value:g} in attribute '{name}', which is beyond {LARGEST_NUMBER:g}; write it in SI units."
                )
            out.append(value if abs(value) >= SMALLEST_NUMBER else 0.0)
        return out

    def number(self, name: str, default: float | None = None, *, infinite: bool = False) -> float:
        """Return the number of an attribute.

        Args:
            name: Name of the attribute.
            default: Value for a missing attribute; None: it must exist.
            infinite: Allow ±inf, for limits.
        """
        if name not in self.attributes and default is not None:
            return default
        values = self.numbers(name, infinite)
        if len(values) != 1:
            raise self.error(f"has {len(values)} numbers in attribute '{name}'; write one.")
        return values[0]

    def vector(self, name: str, count: int, default: tuple[float, ...] | None = None) -> Array:
        """Return the numbers of an attribute as an array.

        Args:
            name: Name of the attribute.
            count: Required number of numbers.
            default: Value for a missing attribute; None: it must exist.
        """
        if name not in self.attributes and default is not None:
            return np.array(default)
        values = self.numbers(name)
        if len(values) != count:
            raise self.error(f"has {len(values)} numbers in attribute '{name}'; write {count}, with spaces between.")
        return np.array(values)


def parse_xml(path: Path | str, text: str | None = None) -> Element:
    """Parse XML and return its root element.

    Robot descriptions need no document type. Entities can grow without bound or read other files, so they are refused,
    as are attribute lists and external document types.

    Args:
        path: Path of the file, or name of the text in messages.
        text: XML to parse instead of the file.
    """
    builder = _Builder(str(path), None if text is None else "utf-8")  # a declared encoding does not hold for a str
    data = read_bytes(Path(path), MAX_BYTES) if text is None else text.strip().encode()
    if len(data) > MAX_BYTES:
        raise RobotError(f"{path}: is larger than {MAX_BYTES // 2**20} MB, the limit for a robot description.")
    if not data.strip():
        raise RobotError(f"{path}: the file is empty; write a robot description (URDF or MJCF) into it.")
    try:
        return builder.parse(data)
    except (expat.ExpatError, LookupError, ValueError) as error:
        line = builder.parser.ErrorLineNumber
        reason = expat.ErrorString(error.code) if isinstance(error, expat.ExpatError) else str(error)
        raise RobotError(f"{path}, line {line}: this is not well-formed XML ({reason}); fix that line.") from None


class _Builder:
    """Builds elements from expat's events."""

    def __init__(self, file: str, encoding: str | None = None) -> None:
        self.file = file
        self.count = 0
        self.root: Element | None = None
        self.open: list[tuple[Element, list[str]]] = []
        self.parser = expat.ParserCreate(encoding)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.entity
        self.parser.AttlistDeclHandler = self.attribute_list

    def parse(self, data: bytes) -> Element:
        self.parser.Parse(data, True)
        assert self.root is not None  # expat refuses a document without a root
        return self.root

    def refuse(self, message: str) -> RobotError:
        return RobotError(f"{self.file}, line {self.parser.CurrentLineNumber}: {message}")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1 + len(attributes) // 20  # few elements have more than ten
        if self.count > MAX_ELEMENTS:
            raise self.refuse(f"more than {MAX_ELEMENTS} elements, the limit for a robot description; split the file.")
        if len(self.open) >= MAX_DEPTH:
            raise self.refuse(f"elements are nested deeper than {MAX_DEPTH} levels; flatten the description.")
        parent = self.open[-1][0] if self.open else None
        owner = ""
        if parent is not None:
            owner = parent.label if "name" in parent.attributes else parent.owner
        element = Element(tag, attributes, self.file, self.parser.CurrentLineNumber, owner)
        if parent is None:
            self.root = element
        else:
            parent.children.append(element)
        self.open.append((element, []))

    def end(self, tag: str) -> None:
        element, pieces = self.open.pop()
        element.text = "".join(pieces)

    def characters(self, data: str) -> None:
        if self.open:
            self.open[-1][1].append(data)

    def doctype(self, name: str, system: str | None, public: str | None, subset: bool) -> None:
        if system is not None or public is not None:
            raise self.refuse(
                "the document type refers to another file, which is refused; delete the <!DOCTYPE …> line."
            )

    def entity(self, name: str, *rest: object) -> None:
        raise self.refuse(
            f"the file declares the entity '{shorten(name)}', which is refused because entities can fetch other "
            f"files or grow without bound; delete the <!DOCTYPE …> block and write the text out."
        )

    def attribute_list(self, element: str, *rest: object) -> None:
        raise self.refuse("the file declares attribute lists, which are refused; delete the <!DOCTYPE …> block.")
