"""Pictures of findings show the planted mistake and are restored from the run folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from checked_logs import clean, column, exchanged, robot_of, spoiled
from report_pages import figures
from typer.testing import CliRunner

from steelyard.check import Check, check_log
from steelyard.check.pictures import PictureLine
from steelyard.check.repair_mapping import repair_mapping
from steelyard.check.saved_checks import EVIDENCE, read_checks
from steelyard.check.several_checks import Checks
from steelyard.check.severity import by_severity
from steelyard.cli import app
from steelyard.errors import UnknownNameError
from steelyard.ground.documents import read_document
from steelyard.signals.log import Log


def _line(found: Check, key: str, role: str) -> PictureLine:
    (line,) = (line for line in found.pictures[key].lines if line.role == role)
    return line


def _alike(a: PictureLine, b: PictureLine) -> tuple[np.ndarray, np.ndarray]:
    """Two lines at the same times."""
    at = np.linspace(max(a.x[0], b.x[0]), min(a.x[-1], b.x[-1]), 2000)
    return np.interp(at, a.x, a.y), np.interp(at, b.x, b.y)


def _correlation(a: PictureLine, b: PictureLine) -> float:
    return float(np.corrcoef(*_alike(a, b))[0, 1])


def _distance(a: PictureLine, b: PictureLine) -> float:
    return float(np.std(np.subtract(*_alike(a, b))))


def _two_wrong() -> Log:
    """The sign of one torque, and a velocity in degrees."""
    log = clean("rotradi")
    return spoiled(log, tau=column(log.tau, 1, np.negative), dq=column(log.dq, 0, np.degrees))


def test_a_sound_log_needs_no_picture() -> None:
    found = check_log(robot_of("rotradi"), clean("rotradi"))
    assert not found.complaints
    assert not found.pictures
    assert EVIDENCE not in found.files()


def test_a_wrong_sign_is_a_mirror_image_of_the_described_torque() -> None:
    log = clean("rotradi")
    found = check_log(robot_of("rotradi"), spoiled(log, tau=column(log.tau, 1, np.negative)))
    measured, expected = (_line(found, "sign:q2", role) for role in ("measured", "expected"))
    # Friction is a tenth of the torque here.
    assert _correlation(measured, expected) < -0.95
    assert max(measured.y) == pytest.approx(-log.tau[:, 1].min(), rel=0.05)  # noise is filtered


def test_without_inertias_a_wrong_sign_falls_with_the_speed() -> None:
    robot, log = robot_of("rotradi"), clean("rotradi")
    bare = replace(robot, links=tuple(replace(link, inertia=None) for link in robot.links))
    found = check_log(bare, spoiled(log, tau=column(log.tau, 1, np.negative)))
    points = _line(found, "sign:q2", "points")
    assert np.polyfit(points.x, points.y, 1)[0] < 0.0


def test_exchanged_torques_show_that_the_partner_fits() -> None:
    log = clean("rotradi")
    found = check_log(robot_of("rotradi"), spoiled(log, tau=exchanged(log.tau, 1, 2)))
    key = found.of("order")[0].key
    expected, measured, other = (_line(found, key, role) for role in ("expected", "measured", "other"))
    # The description lacks friction, which is a large part of the torque of a wrist.
    assert _distance(other, expected) < 0.2 * _distance(measured, expected)


def test_a_velocity_in_degrees_is_larger_than_the_change_of_the_positions() -> None:
    log = clean("rotradi")
    found = check_log(robot_of("rotradi"), spoiled(log, dq=column(log.dq, 0, np.degrees)))
    logged, made = (_line(found, "velocity_degrees:q1", role) for role in ("measured", "expected"))
    # The change of rounded positions is noisy: medians, not extremes.
    ratio = np.median(np.abs(logged.y)) / np.median(np.abs(made.y))
    assert ratio == pytest.approx(180.0 / np.pi, rel=0.3)


def test_a_gap_shows_in_the_steps_of_the_clock(tmp_path: Path) -> None:
    log = clean("rotradi")
    log.save(tmp_path / "run.csv")
    rows = (tmp_path / "run.csv").read_text().splitlines()
    (tmp_path / "run.csv").write_text("\n".join([*rows[:2001], *rows[2501:]]) + "\n")  # 500 rows at 500 Hz: a second
    found = check_log(robot_of("rotradi"), tmp_path / "run.csv")
    (line,) = found.pictures["gap"].lines
    assert max(line.y) == pytest.approx(1002.0, rel=1e-3)
    assert np.median(line.y) == pytest.approx(2.0, rel=1e-2)


def test_a_run_folder_keeps_checks_with_their_pictures(tmp_path: Path) -> None:
    robot = robot_of("rotradi")
    one, two = check_log(robot, _two_wrong()), check_log(robot, clean("rotradi"))
    one.save(tmp_path / "one")
    assert read_checks(tmp_path / "one") == [("", one)]
    assert read_checks(tmp_path / "one")[0][1].pictures == one.pictures
    Checks(("a.csv", "b.csv"), (one, two)).save(tmp_path / "both")
    assert read_checks(tmp_path / "both") == [("a.csv", one), ("b.csv", two)]
    drawn = figures((tmp_path / "one" / "report.html").read_text("utf-8"))
    assert len(drawn) == len(one.pictures) + (one.excitation is not None)


def test_the_most_severe_comes_first() -> None:
    found = check_log(robot_of("rotradi"), _two_wrong())
    ranked = by_severity(found.entries)
    assert [e.rank for e in ranked] == sorted((e.rank for e in found.entries), reverse=True)
    assert ranked[0].kind == "velocity_degrees"


def test_one_finding_is_fixed_and_the_others_stay(tmp_path: Path) -> None:
    robot, bad = robot_of("rotradi"), _two_wrong()
    found = check_log(robot, bad)
    assert {e.key for e in found.complaints if e.fix} == {"sign:q2", "velocity_degrees:q1"}
    assert repair_mapping(found, robot, bad, {}, ["sign:q2"])[0] == {"sign": {"torque": [1, -1, 1]}}
    assert set(repair_mapping(found, robot, bad, {}, ["velocity_degrees"])[0]) == {"units"}
    assert set(repair_mapping(found, robot, bad, {})[0]) == {"units", "sign"}
    with pytest.raises(UnknownNameError, match="velocity_degrees:q1"):
        repair_mapping(found, robot, bad, {}, ["velocity_degrees:q2"])
    bad.save(tmp_path / "bad.csv")
    words = ["check", "rotradi", str(tmp_path / "bad.csv"), "--only", "sign:q2"]
    assert "--fix" in CliRunner().invoke(app, words).output
    CliRunner().invoke(app, [*words, "--fix", str(tmp_path / "mended.toml")])
    assert read_document(tmp_path / "mended.toml") == {"sign": {"torque": [1, -1, 1]}}
