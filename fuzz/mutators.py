"""Mutators that know the structure of what they change: bytes, text, trees of XML and of JSON, archives, tables."""

from __future__ import annotations

import copy
import io
import json
import random
import re
import struct
import zipfile
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

Mutator = Callable[[random.Random, bytes], bytes]

ODD_NUMBERS = (
    "nan", "inf", "-inf", "1e308", "-1e308", "1e-308", "1e999", "1e15", "1e16", "-1e14", "1e-200", "0", "-0.0", "-1",
    "1", "2", "0.5", "3.14159265358979", "1e6", "1e9", "256", "257", "65536", "4294967296", "9223372036854775808",
    "1_0", "0x1F", "0b1", "1:30:00", "1,5", "1e", "--1", "+1", "1/0", "2**1000", "pi/2", "q1", "9" * 60, "9" * 500,
    "1" + "0" * 5000,
)  # fmt: skip
ODD_WORDS = (
    "", " ", "null", "true", "false", "none", "base", "world", "q1", "t", "..", "../../etc/passwd", "/dev/zero",
    "a" * 300, "a" * 6000, "\x1b[2J", "\x00", "\u202e", "\ufeff", "é", "日本", "<b>", "'; --", "{}", "{joint}", "%s%n",
    "${HOME}", "&a", "*a", "<<", "#", "\n", "!!python/object/apply:os.system ['touch ran']",
    "__import__('os').system('touch ran')",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, 0.5, -0.0, 1e308, -1e308, 5e-324, 1e15, 1e16, "", "x",
    "a" * 3000, "1e308", "nan", [], {}, [[]], [None], [1, 2, 3], [[1.0, 2.0], [3.0]], {"a": 1}, {"": None},
    ["a", 1, None, {}],
)  # fmt: skip
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def change_bytes(rng: random.Random, data: bytes) -> bytes:
    """Flip, insert, delete, repeat or cut some bytes."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(out) + 1)
        end = min(len(out), at + rng.choice((1, 2, 4, 8, 64)))
        match rng.randrange(7):
            case 0 if out:
                out[at % len(out)] ^= 1 << rng.randrange(8)
            case 1 if out:
                out[at % len(out)] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            case 2:
                out[at:at] = rng.randbytes(rng.choice((1, 2, 4, 8)))
            case 3:
                del out[at:end]
            case 4:
                out[at:at] = out[at:end] * rng.choice((1, 2, 50))
            case 5 if len(out) >= 8:
                struct.pack_into("<q", out, at % (len(out) - 7), rng.choice((0, -1, 2**31, 2**62, rng.getrandbits(62))))
            case 6 if rng.random() < 0.2:
                del out[at:]
    return bytes(out)


def change_text(rng: random.Random, data: bytes) -> bytes:
    """Replace numbers and words by odd ones, exchange lines, repeat them, nest what is in brackets."""
    text = data.decode("utf-8", "replace")
    for _ in range(rng.choice((1, 1, 2, 5))):
        lines = text.split("\n")
        a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(9):
            case 0 | 1:
                text = _replaced(rng, text, _NUMBER, ODD_NUMBERS)
            case 2:
                text = _replaced(rng, text, _WORD, ODD_WORDS)
            case 3:
                text = _replaced(rng, text, _WORD, tuple(_WORD.findall(text)) or ("x",))
            case 4:
                lines[a], lines[b] = lines[b], lines[a]
                text = "\n".join(lines)
            case 5:
                lines[a:a] = lines[b : b + rng.choice((1, 2, 5))] * rng.choice((1, 2, 300))
                text = "\n".join(lines)
            case 6:
                del lines[a : a + rng.choice((1, 3))]
                text = "\n".join(lines)
            case 7:
                at, mark = (
                    rng.randrange(len(text) + 1),
                    rng.choice(("[", "{", "(", "<a>", "- ", " ", '"', "\t", "[[", "a.")),
                )
                text = text[:at] + mark * rng.choice((1, 2, 70, 3000)) + text[at:]
            case 8:
                return change_bytes(rng, text.encode("utf-8", "replace"))
    return text.encode("utf-8", "replace")


def _replaced(rng: random.Random, text: str, pattern: re.Pattern[str], odd: tuple[str, ...]) -> str:
    found = list(pattern.finditer(text))
    other = number(rng) if odd is ODD_NUMBERS else rng.choice(odd)
    if not found:
        return text + other
    one = rng.choice(found)
    return text[: one.start()] + other + text[one.end() :]


def number(rng: random.Random) -> str:
    """A number: half the time an odd one, else one that a robot might have."""
    if rng.random() < 0.5:
        return rng.choice(ODD_NUMBERS)
    return f"{rng.gauss(0.0, 1.0) * 10.0 ** rng.choice((-12, -3, 0, 0, 0, 1, 3, 7, 14)):.6g}"


def change_xml(rng: random.Random, data: bytes) -> bytes:
    """Change attributes and elements of a tree that stays well-formed; now and then its text."""
    if rng.random() < 0.15:
        return change_text(rng, data)
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, RecursionError):
        return change_text(rng, data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        every = list(root.iter())
        one, other = rng.choice(every), rng.choice(every)
        names = list(one.attrib)
        match rng.randrange(8):
            case 0 | 1 if names:
                name = rng.choice(names)
                words = one.attrib[name].split()
                if words:
                    words[rng.randrange(len(words))] = number(rng)
                one.attrib[name] = " ".join(words * rng.choice((1, 1, 1, 2)))
            case 2 if names:
                one.attrib[rng.choice(names)] = rng.choice((*ODD_WORDS, *other.attrib.values()))
            case 3 if names:
                del one.attrib[rng.choice(names)]
            case 4 if other.attrib:
                name, value = rng.choice(list(other.attrib.items()))
                one.attrib[name] = value
            case 5 if len(one):
                one.remove(rng.choice(list(one)))
            case 6 if len(every) < 2000:
                inner = copy.deepcopy(other)
                for _ in range(rng.choice((1, 1, 3, 40))):
                    outer = ElementTree.Element(one.tag, dict(one.attrib))
                    outer.append(inner)
                    inner = outer
                one.append(inner)
            case 7:
                one.tag = rng.choice(every).tag
    try:
        return ElementTree.tostring(root)
    except (RecursionError, ValueError, TypeError):
        return data


def change_tree(rng: random.Random, value: Any) -> Any:
    """Plain data with some entries replaced, removed, repeated, exchanged or wrapped."""
    root = [copy.deepcopy(value)]
    for _ in range(rng.choice((1, 1, 2, 4))):
        places: list[tuple[Any, Any]] = []
        stack: list[Any] = [root]
        while stack and len(places) < 5000:
            inside = stack.pop()
            for key in list(inside) if isinstance(inside, dict) else range(len(inside)):
                places.append((inside, key))
                if isinstance(inside[key], dict | list):
                    stack.append(inside[key])
        (inside, key), (there, other) = rng.choice(places), rng.choice(places)
        match rng.randrange(8):
            case 0 | 1 | 2:
                plain = type(inside[key]) is float and rng.random() < 0.5
                scale = 10.0 ** rng.randrange(-9, 15)
                inside[key] = rng.gauss(0.0, 1.0) * scale if plain else copy.deepcopy(rng.choice(ODD_VALUES))
            case 3 if inside is not root:
                del inside[key]
            case 4:
                inside[key] = copy.deepcopy(there[other])
            case 5 if isinstance(inside[key], list):
                inside[key] = inside[key] * rng.choice((2, 3, 100)) if len(inside[key]) < 500 else inside[key][:1]
            case 6 if isinstance(inside, dict):
                inside[rng.choice((*ODD_WORDS, "on", "schema", "format"))] = inside.pop(key)
            case 7:
                for _ in range(rng.choice((1, 1, 2, 80))):
                    inside[key] = [inside[key]] if rng.random() < 0.5 else {"a": inside[key]}
    return root[0]


def change_json(rng: random.Random, data: bytes) -> bytes:
    """A JSON document with its tree changed; now and then its text."""
    try:
        if rng.random() < 0.15:
            return change_text(rng, data)
        return json.dumps(change_tree(rng, json.loads(data))).encode()
    except (ValueError, RecursionError):
        return change_text(rng, data)


def change_yaml(rng: random.Random, data: bytes) -> bytes:
    """A YAML document with its tree changed, or its text."""
    import yaml

    try:
        if rng.random() < 0.5:
            return change_text(rng, data)
        return yaml.dump(change_tree(rng, yaml.safe_load(data)), sort_keys=False, allow_unicode=True).encode()
    except (ValueError, RecursionError, OverflowError, yaml.YAMLError):
        return change_text(rng, data)


def change_csv(rng: random.Random, data: bytes) -> bytes:
    """A table of text with odd cells, names, rows, delimiters, quotes and encodings; now and then its bytes."""
    if rng.random() < 0.2:
        return change_bytes(rng, data)
    rows = [line.split(",") for line in data.decode("utf-8", "replace").split("\n")]
    for _ in range(rng.choice((1, 1, 2, 6))):
        a, b = rng.randrange(len(rows)), rng.randrange(len(rows))
        cell = rng.randrange(len(rows[a]))
        match rng.randrange(9):
            case 0 | 1:
                rows[a][cell] = rng.choice(
                    (number(rng), number(rng), number(rng), "2024-01-01T00:00:00", "12:30", "", "NULL")
                )
            case 2:
                rows[0][rng.randrange(len(rows[0]))] = rng.choice((*ODD_WORDS, *rows[0]))
            case 3:
                rows[a:a] = [list(rows[b]) for _ in range(rng.choice((1, 5, 200)))]
            case 4:
                del rows[a]
                rows = rows or [["t"]]
            case 5:
                rows[a] = rows[a][: cell + 1] if rng.random() < 0.5 else [*rows[a], "1"]
            case 6:
                rows[a][cell] = rng.choice(('"', '"a,b"', '"a\nb"', "a\rb", "\t", "#", "\x00"))
            case 7:
                for row in rows:
                    row[cell % len(row)] = number(rng)
            case 8:
                rows[0:0] = [["# " + rng.choice(ODD_WORDS)]] * rng.choice((1, 3, 1200))
    delimiter, ending = rng.choice((",", ",", ",", ";", "\t")), rng.choice(("\n", "\n", "\n", "\r\n", "\r"))
    text = ending.join(delimiter.join(row) for row in rows)
    return text.encode(rng.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1")), "replace")


_KINDS = (
    "<f8",
    "<f4",
    "<i8",
    "<u8",
    "|b1",
    "<U5",
    "|S3",
    "<M8[ns]",
    "<M8[D]",
    "<c16",
    "|O",
    "<f2",
    ">f8",
    "|V8",
    "<m8[s]",
)


def change_npz(rng: random.Random, data: bytes) -> bytes:
    """An archive with odd members, headers, names and ways to pack; now and then its bytes."""
    if rng.random() < 0.3:
        return change_bytes(rng, data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except Exception:  # it has been changed before
        return change_bytes(rng, data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not members:
            break
        at = rng.randrange(len(members))
        name, content = members[at]
        match rng.randrange(8):
            case 0 | 1 | 2:
                members[at] = name, _other_header(rng, content)
            case 3:
                members[at] = rng.choice((*(n for n, _ in members), *(f"{w[:80]}.npy" for w in ODD_WORDS))), content
            case 4:
                del members[at]
            case 5:
                members.append(
                    (f"{rng.choice(('q', 'q1', 'dq', 'tau', 't', 'joints', 'meta', 'segments'))}.npy", content)
                )
            case 6:
                members[at] = name, change_bytes(rng, content)
            case 7:
                members[at] = name, content[: rng.randrange(len(content) + 1)]
    out = io.BytesIO()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that stand twice
        with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
            for name, content in members:
                archive.writestr(name.replace("\x00", "0") or "x", content)
    return out.getvalue()


def _other_header(rng: random.Random, content: bytes) -> bytes:
    head, _, numbers = content.partition(b"\n")
    start = head.find(b"{")
    sizes = (0, 1, 2, 3, 20, 40, 60, 10**6, 10**12, -1, 2**63)
    shape = rng.choice(
        ("", f"{rng.choice(sizes)},", f"{rng.choice(sizes)}, {rng.choice(sizes)}", "2, 3, 4", "1.5,", "'a',")
    )
    kind = rng.choice((*(f"'{k}'" for k in _KINDS), "[('a', '<f8')]", "None", "1", "(" * 90, "'" + "f8," * 500 + "'"))
    text = f"{{'descr': {kind}, 'fortran_order': {rng.choice(('True', 'False', 'None'))}, 'shape': ({shape})}}"
    if start < 0 or rng.random() < 0.3:
        text = rng.choice((text[:-1], text + " " * 70_000, "{" * 300, "", text.replace("shape", "form")))
    encoded = text.encode() + b"\n"
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(encoded)) + encoded + numbers


def change_parquet(rng: random.Random, data: bytes) -> bytes:
    """A table with odd columns, types and names; half the time its bytes, or what its pages say of their size."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    if rng.random() < 0.4:
        return change_bytes(rng, data)
    if rng.random() < 0.2:
        out = bytearray(data)
        for header in rng.sample(found := list(re.finditer(rb"\x15[\x00\x04\x06]\x15", data)), min(2, len(found))):
            at = header.end() + rng.choice((0, 0, 2, 3, 6))
            out[at : at + 5] = rng.choice((b"\x80\x80\x80\x80\x08", b"\xfe\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x0f"))
        return bytes(out)
    try:
        table = pq.read_table(io.BytesIO(data))
        columns, names = list(table.columns), list(table.column_names)
        for _ in range(rng.choice((1, 1, 2, 4))):
            at, rows = rng.randrange(len(names)), table.num_rows
            numbers = np.asarray([rng.choice((0.0, 1.0, -1e300, 1e16, np.nan, np.inf, 5e-324)) for _ in range(rows)])
            match rng.randrange(9):
                case 0:
                    columns[at] = pa.chunked_array([pa.array(numbers)])
                case 1:
                    columns[at] = pa.chunked_array([pa.array([rng.choice((None, 1.0)) for _ in range(rows)])])
                case 2:
                    columns[at] = pa.chunked_array([pa.array([rng.choice(ODD_WORDS[:9]) for _ in range(rows)])])
                case 3:
                    kind = rng.choice((pa.timestamp("ns", "UTC"), pa.timestamp("s"), pa.date64(), pa.duration("ms")))
                    columns[at] = pa.chunked_array([pa.array(range(rows), pa.int64()).cast(kind)])
                case 4:
                    columns[at] = pa.chunked_array([pa.array([[1.0, 2.0]] * rows)])
                case 5:
                    columns[at] = pa.chunked_array([pa.array([{"a": 1}] * rows)])
                case 6:
                    columns[at] = pa.chunked_array([pa.nulls(rows, rng.choice((pa.null(), pa.float64(), pa.string())))])
                case 7:
                    names[at] = rng.choice((*ODD_WORDS[:20], *names)).replace("\x00", "0")
                case 8:
                    whole = [rng.choice((0, 2**63, 2**64 - 1)) for _ in range(rows)]
                    columns[at] = pa.chunked_array([pa.array(whole, pa.uint64())])
        out = io.BytesIO()
        pq.write_table(
            pa.Table.from_arrays(columns, names=names), out, compression=rng.choice(("none", "zstd", "snappy"))
        )
        return out.getvalue()
    except Exception:  # what was changed before may not be readable
        return change_bytes(rng, data)
