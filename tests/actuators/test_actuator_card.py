"""The actuator card and the run folder of a drive: errors, parameters, plots and links to files that exist."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_files import VOLTAGE, log_of

from steelyard.actuators.actuator_identification import ActuatorIdentification, Inseparable, RunError, Structure
from steelyard.actuators.card import actuator_card
from steelyard.actuators.command_log import CommandLog


def result(holdout: bool = True, reason: str = "") -> ActuatorIdentification:
    logs = [replace(log_of(VOLTAGE), name=name, kp=kp) for name, kp in (("slow <b>", 100.0), ("fast", 800.0))]
    paths = {log.name: np.sin(2.0 * log.time) for log in logs}
    measured: list[CommandLog] = [replace(log, position=paths[log.name] + 0.02 * (k + 1)) for k, log in enumerate(logs)]
    runs = (
        RunError(measured[0].name, "fit", 0.02, 0.03, 0.4, not reason, reason),
        RunError(measured[1].name, "hold-out" if holdout else "fit", 0.04, math.nan, 0.4),
    )
    return ActuatorIdentification(
        (measured[0],) if holdout else tuple(measured), VOLTAGE, runs,
        (Structure("M1", 6, 0.03, 0.002, True), Structure("M3", 7, 0.031, 0.002)),
        (Inseparable(("load_friction", "torque_per_volt"), "One load.", "Add a second mass.", "Load friction is 0."),),
        paths, (measured[1],) if holdout else (), "kp",
    )  # fmt: skip


def test_the_card_states_the_error_on_logs_that_the_fit_never_saw() -> None:
    page = actuator_card(result())
    assert "The drive predicts the positions of held-out runs to 40" in page
    assert "left-out runs to 30" in actuator_card(result(holdout=False))
    for text in ("One load.", "Add a second mass.", "kt = 0.375", "M3", "slow &lt;b&gt;"):
        assert text in page
    assert "slow <b>" not in page


def test_a_run_that_others_cannot_predict_is_named() -> None:
    page = actuator_card(result(reason="its torque is off"))
    assert "is not predictable from the others: its torque is off" in page


def test_a_drive_that_predicts_no_better_than_its_goal_is_bad() -> None:
    poor = result()
    poor = replace(poor, runs=tuple(replace(r, goal_error=0.01) for r in poor.runs))
    assert "no better than the goal itself" in actuator_card(poor)


def test_all_links_of_the_card_lead_to_files_of_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("mujoco", "3.12", reason="MuJoCo scores the written files")
    robot = tmp_path / "my arm.xml"
    robot.write_text('<mujoco><worldbody><body><joint name="elbow"/><geom size=".1"/></body></worldbody></mujoco>')
    found = result().for_simulators(joint="elbow", robot=robot)
    page = actuator_card(found, found.delivered)
    folder = tmp_path / "run"
    folder.mkdir()
    for name, content in found.files().items():
        if callable(content):
            content(folder / name)
        else:
            (folder / name).write_text(content)
    links = re.findall(r'<a href="([^"#]+)"', page)
    assert {link.replace("%20", " ") for link in links} <= {p.name for p in folder.iterdir()}
    assert {"my%20arm.xml", "isaaclab.py", "mjlab.py", "bam-m1.json", "randomisation.csv"} <= set(links)
    saved = json.loads((folder / "simulators.json").read_text())
    replays = {r["format"]: r for r in saved["replays"]}
    # The error beside it is that of the full model, on the same logs.
    assert replays["mjcf"]["full"] == pytest.approx(found.error("fit"))
    assert replays["mjcf"]["full_holdout"] == pytest.approx(found.error("hold-out"))
    assert saved["joint"] == "elbow"
