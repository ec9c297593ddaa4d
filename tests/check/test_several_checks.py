"""Several logs are checked together with the same results as alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from checked_logs import clean, column, robot_of, spoiled
from typer.testing import CliRunner, Result

from steelyard.cli import app
from steelyard.identification._verdict import grade_model
from steelyard.identification.identify import identify


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A sound log, and one whose third torque has the wrong sign."""
    folder: Path = tmp_path_factory.mktemp("logs")
    log = clean("rotradi")
    wrong = spoiled(log, tau=column(log.tau, 2, np.negative))
    for name, each in (("sound", log), ("wrong", wrong)):
        each.save(folder / f"{name}.npz")
    return [str(folder / "sound.npz"), str(folder / "wrong.npz")]


def check(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["check", "rotradi", *arguments], env={"COLUMNS": "200"})


def test_several_logs_have_the_results_of_each_alone(logs: list[str]) -> None:
    both = check(*logs, "--json")
    alone = [json.loads(check(log, "--json").stdout) for log in logs]
    found = json.loads(both.stdout)
    said = [{k: v for k, v in log.items() if k != "log"} for log in found["logs"]]
    assert said == [{k: v for k, v in log.items() if k not in ("why_null", "command")} for log in alone]
    assert [log["log"] for log in found["logs"]] == logs
    assert [log["grade"] for log in found["logs"]] == [alone[0]["grade"], "mend"]
    assert both.exit_code == found["exit_code"] == 1
    assert check(logs[0], logs[0]).exit_code == 0


def test_one_table_has_a_row_for_every_log_and_then_what_is_wrong(logs: list[str]) -> None:
    shown = check(*logs).stdout
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    head = next(k for k, row in enumerate(rows) if row.startswith("log verdict problems warnings notes worst"))
    assert rows[head + 2].split()[1] in ("good", "usable")
    assert rows[head + 3].split()[1:3] == ["mend", "1"]
    assert "1 of 2 logs can be identified from; not" in " ".join(rows)


def test_one_mapping_repairs_one_log(logs: list[str], tmp_path: Path) -> None:
    done = check(*logs, "--fix", str(tmp_path / "mended.toml"))
    assert done.exit_code == 2
    assert "--fix works on one log at a time; give one log." in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_mistake_in_a_minority_of_the_fitted_logs_is_a_doubt() -> None:
    """All logs have one mapping: with three sound ones beside it, the fourth is named, and the mapping stands."""
    sound = [clean("rotradi", seed) for seed in range(3)]
    wrong = spoiled(clean("rotradi", 3), tau=column(clean("rotradi", 3).tau, 2, np.negative))
    few = grade_model(identify(robot_of("rotradi"), [*sound, wrong], plain=True, files=False))
    reason = next(text for text in few.reasons if "wrong sign" in text)
    assert reason.startswith("log 4: ")
    assert "The other fitted logs do not show this." in reason
    most = grade_model(identify(robot_of("rotradi"), [sound[0], wrong], plain=True, files=False))
    assert most.grade == "poor"
