"""Every null of a document has a sentence that says why it is one.

What the commands write is walked, too: `conftest.py` looks at every document and page that any test makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from report_pages import undashed

from steelyard.ground.reasons import explained, missing
from steelyard.report.elements import TableColumn, table_html


@dataclass(frozen=True)
class Body:
    why_null: ClassVar = {"mass": "Nobody weighed it.", "moments/*": "It does not turn."}
    name: str
    mass: float | None
    moments: tuple[float | None, ...] = ()


def test_who_leaves_a_value_out_says_why_and_a_list_says_it_once() -> None:
    made = explained({"bodies": [Body("a", None, (1.0, None)), Body("b", 2.0), Body("c", None)]})
    assert made["bodies"][0] == {"name": "a", "mass": None, "moments": [1.0, None]}
    assert made["why_null"] == {"bodies/*/mass": "Nobody weighed it.", "bodies/*/moments/*": "It does not turn."}
    assert list(missing(made)) == []


def test_what_a_part_says_moves_to_the_top_and_stays_its_own() -> None:
    parts = [explained({"error": None}, {"error": why}) for why in ("It diverged.", "It was too slow.")]
    made = explained({"runs": parts, "best": None}, {"best": "None finished."})
    assert made["why_null"] == {
        "runs/0/error": "It diverged.", "runs/1/error": "It was too slow.", "best": "None finished.",
    }  # fmt: skip
    assert list(missing(made)) == []
    assert explained(made) == made


def test_a_number_that_is_none_is_null_and_told_even_where_nobody_foresaw_it() -> None:
    made = explained({"a/b": float("inf"), "c": [float("nan"), 1.0]})
    assert made["a/b"] is None
    assert made["c"] == [None, 1.0]
    assert made["why_null"] == {"a~1b": "It is infinite.", "c/*": "It is not defined (0/0)."}
    assert list(missing(made)) == []


@pytest.mark.parametrize("document", [{"a": None}, {"a": [{"b": None}], "why_null": {"a/*/c": "No."}}, [None]])
def test_a_null_without_a_reason_is_seen(document: object) -> None:
    assert list(missing(document)) in (["a"], ["a/0/b"], ["0"])


@pytest.mark.parametrize("empty", [None, float("nan"), "–"])
def test_a_dash_of_a_table_is_told_below_it(empty: float | str | None) -> None:
    rows = [["x", empty], ["y", 1.0]]
    columns = ["joint", TableColumn("share", "%", places=1)]
    told = table_html(columns, rows, "Shares", dash="The joint has no limits.")
    assert "– The joint has no limits." in told
    assert undashed(told) == []
    assert undashed(table_html(columns, rows, "Shares")) == ["Shares"]
    assert "no limits" not in table_html(columns, rows[1:], "Shares", dash="The joint has no limits.")
