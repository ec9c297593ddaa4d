"""XML is read without loading other files and without unbounded growth, and every error has a line number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import RobotError
from steelyard.ground import xml
from steelyard.ground.field import LARGEST_NUMBER
from steelyard.ground.xml import Element, parse_xml


def write(folder: Path, text: str) -> Path:
    path = folder / "robot.urdf"
    path.write_text(text, encoding="utf-8")
    return path


def test_elements_store_line_text_and_owner(tmp_path: Path) -> None:
    root = parse_xml(
        write(tmp_path, '<robot name="arm">\n <link name="hand">\n  <mass value="2"/>hello</link>\n</robot>')
    )
    link = root.children[0]
    assert (root.line, link.line, link.children[0].line) == (1, 2, 3)
    assert link.children[0].label == "<mass> of link 'hand'"
    assert link.text.strip() == "hello"
    assert [element.tag for element in root.walk()] == ["robot", "link", "mass"]


def test_a_document_type_without_declarations_is_harmless(tmp_path: Path) -> None:
    assert parse_xml(write(tmp_path, "<!DOCTYPE robot><robot/>")).tag == "robot"


BOMB = '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>\n<r>&b;</r>'
INVALID = {
    "bomb": (BOMB, "declares the entity 'a'"),
    "external entity": ('<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><r>&a;</r>', "declares the entity 'a'"),
    "parameter entity": ('<!DOCTYPE r [<!ENTITY % a SYSTEM "http://x.invalid/a">%a;]><r/>', "declares the entity 'a'"),
    "external type": ('<!DOCTYPE r SYSTEM "http://x.invalid/r.dtd"><r/>', "refers to another file"),
    "default attributes": ('<!DOCTYPE r [<!ATTLIST r name CDATA "x">]><r/>', "attribute lists"),
    "undeclared entity": ("<r>&nothing;</r>", "line 1: this is not well-formed XML"),
    "not XML": ("\n\njoints:\n  - a", "line 3: this is not well-formed XML"),
    "cut off": ("<robot>\n<link>", "line 2: this is not well-formed XML"),
    "unknown encoding": ('<?xml version="1.0" encoding="klingon"?><r/>', "not well-formed XML"),
    "empty": (" \n ", "the file is empty"),
    "deep": ("<a>" * 300 + "</a>" * 300, "deeper than 256 levels"),
}


@pytest.mark.parametrize("case", INVALID, ids=str)
def test_dangerous_or_broken_xml_is_refused(case: str, tmp_path: Path) -> None:
    text, words = INVALID[case]
    with pytest.raises(RobotError, match=r"robot\.urdf") as caught:
        parse_xml(write(tmp_path, text))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_with_too_many_bytes_or_elements_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "<r>" + "<a/>" * 100 + "</r>")
    monkeypatch.setattr(xml, "MAX_ELEMENTS", 50)
    with pytest.raises(RobotError, match="more than 50 elements"):
        parse_xml(path)
    monkeypatch.setattr(xml, "MAX_BYTES", 200)
    with pytest.raises(RobotError, match=r"larger than 0\.0002 MB"):
        parse_xml(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(RobotError, match="no such file"):
        parse_xml(tmp_path / "nothing.urdf")
    with pytest.raises(RobotError, match="this is a folder"):
        parse_xml(tmp_path)


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e999", "0,5", "1_0", "two", "0x10"])
def test_only_finite_numbers_are_numbers(text: str) -> None:
    element = Element("mass", {"value": text}, "arm.urdf", 7, "link 'hand'")
    with pytest.raises(RobotError, match=r"arm\.urdf, line 7: <mass> of link 'hand' has '.*' in attribute 'value'"):
        element.number("value")


def test_vectors_have_the_right_length() -> None:
    element = Element("axis", {"xyz": "0 1"}, "arm.urdf", 7)
    with pytest.raises(RobotError, match="has 2 numbers in attribute 'xyz'; write 3"):
        element.vector("xyz", 3)
    with pytest.raises(RobotError, match="has no attribute 'rpy'"):
        element.vector("rpy", 3)
    assert element.vector("rpy", 3, (1.0, 2.0, 3.0)).tolist() == [1.0, 2.0, 3.0]


NUMBERS = st.floats(1e-60, LARGEST_NUMBER) | st.floats(-LARGEST_NUMBER, -1e-60) | st.just(0.0)


@given(st.lists(NUMBERS, min_size=3, max_size=3))
def test_vectors_are_read_back_exactly(values: list[float]) -> None:
    element = Element("origin", {"xyz": " ".join(map(repr, values))}, "arm.urdf", 1)
    assert np.array_equal(element.vector("xyz", 3), values)


def test_a_long_value_is_shortened_in_the_message() -> None:
    with pytest.raises(RobotError) as caught:
        Element("mass", {"value": "x" * 10_000}, "arm.urdf", 1).number("value")
    assert len(str(caught.value)) < 250
