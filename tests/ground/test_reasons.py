"""Every null in a document has a reason. `conftest.py` checks this for every document and page of any test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from report_pages import undashed

from steelyard.ground.reasons import explained, missing
from steelyard.report.elements import TableColumn, table_html


@dataclass(frozen=True)
class Body:
    why_null: ClassVar = {"mass": "It was not weighed.", "moments/*": "It does not turn."}
    name: str
    mass: float | None
    moments: tuple[float | None, ...] = ()


def test_a_reason_is_given_for_each_null_and_once_for_a_list() -> None:
    document = explained({"bodies": [Body("a", None, (1.0, None)), Body("b", 2.0), Body("c", None)]})
    assert document["bodies"][0] == {"name": "a", "mass": None, "moments": [1.0, None]}
    assert document["why_null"] == {"bodies/*/mass": "It was not weighed.", "bodies/*/moments/*": "It does not turn."}
    assert list(missing(document)) == []


def test_reasons_of_parts_move_to_the_top() -> None:
    parts = [explained({"error": None}, {"error": why}) for why in ("It diverged.", "It was too slow.")]
    document = explained({"runs": parts, "best": None}, {"best": "None finished."})
    assert document["why_null"] == {
        "runs/0/error": "It diverged.", "runs/1/error": "It was too slow.", "best": "None finished.",
    }  # fmt: skip
    assert list(missing(document)) == []
    assert explained(document) == document


def test_a_number_that_is_not_finite_becomes_null_with_a_default_reason() -> None:
    document = explained({"a/b": float("inf"), "c": [float("nan"), 1.0]})
    assert document["a/b"] is None
    assert document["c"] == [None, 1.0]
    assert document["why_null"] == {"a~1b": "It is infinite.", "c/*": "It is not defined (0/0)."}
    assert list(missing(document)) == []


@pytest.mark.parametrize("document", [{"a": None}, {"a": [{"b": None}], "why_null": {"a/*/c": "No."}}, [None]])
def test_a_null_without_a_reason_is_detected(document: object) -> None:
    assert list(missing(document)) in (["a"], ["a/0/b"], ["0"])


@pytest.mark.parametrize("empty", [None, float("nan"), "–"])
def test_a_dash_in_a_table_is_explained_below_it(empty: float | str | None) -> None:
    rows = [["x", empty], ["y", 1.0]]
    columns = ["joint", TableColumn("share", "%", places=1)]
    html = table_html(columns, rows, "Shares", dash="The joint has no limits.")
    assert "– The joint has no limits." in html
    assert undashed(html) == []
    assert undashed(table_html(columns, rows, "Shares")) == ["Shares"]
    assert "no limits" not in table_html(columns, rows[1:], "Shares", dash="The joint has no limits.")
