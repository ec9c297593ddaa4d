"""The result of a check as JSON, on the terminal and from the command line."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import numpy as np
from checked_logs import clean, column, robot_of, spoiled
from report_pages import figures
from typer.testing import CliRunner

from steelyard.check import check_log
from steelyard.check.severity import MOST_ADVICES
from steelyard.cli import app


def test_json_is_plain() -> None:
    found = check_log(robot_of("rotradi"), clean("rotradi", still=1))
    text = json.dumps(found.to_json(), allow_nan=False)
    data = json.loads(text)
    assert data["grade"] == found.grade
    assert {"kind", "severity", "message", "advice", "joint"} <= set(data["entries"][0])
    assert data["excitation"]["count"] == 25


def test_advice_is_short_and_begins_with_the_most_severe() -> None:
    log = clean("rotradi")
    bad = spoiled(log, dq=-log.dq, tau=column(log.tau, 2, np.zeros_like))
    found = check_log(robot_of("rotradi"), bad)
    assert 0 < len(found.advice) <= MOST_ADVICES
    assert "'q3'" in found.advice[0]


def test_command_line(tmp_path: Path) -> None:
    log = clean("rotradi")
    log.save(tmp_path / "run.csv")
    shown = CliRunner().invoke(app, ["check", "rotradi", str(tmp_path / "run.csv"), "-o", str(tmp_path / "looked")])
    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "looked" / "report.html").read_text("utf-8")
    assert 'class="verdict good"' in page
    assert f"steelyard identify rotradi {tmp_path / 'run.csv'}" in unescape(page)
    (bars,) = figures(page)  # every base parameter is counted once, as JSON has it
    assert sum(sum(trace["x"]) for trace in bars["data"]) == 25
    assert "suitable for identification" in shown.output
    spoiled(log, tau=column(log.tau, 1, np.negative)).save(tmp_path / "bad.csv")
    told = CliRunner().invoke(
        app, ["check", "rotradi", str(tmp_path / "bad.csv"), "--json", "--terms", "viscous,coulomb"]
    )
    assert told.exit_code == 1, told.output
    data = json.loads(told.output)
    assert data["grade"] == "mend"
    assert [e["joint"] for e in data["entries"] if e["kind"] == "sign"] == ["q2"]


def test_bad_input_is_an_error(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["check", "rotradi", str(tmp_path / "none.csv")]).exit_code == 2
