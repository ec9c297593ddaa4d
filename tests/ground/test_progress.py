"""Long functions report their progress to a callback, which can cancel them."""

from __future__ import annotations

import inspect
import io

import numpy as np
import pytest
from rich.console import Console

import steelyard as sy
from steelyard.compare.monte_carlo import monte_carlo
from steelyard.compare.on_log import compare_on_log
from steelyard.compare.scheme_comparison import compare_schemes
from steelyard.demo import run_demo, simulated_log
from steelyard.friction.measure import measure_friction
from steelyard.ground.progress import (
    CancelledError,
    ProgressReport,
    part,
    report_progress,
    report_progress_to,
    reports_progress,
    steps,
)
from steelyard.local.identify import identify_locally
from steelyard.local.validate_bank import validate_bank
from steelyard.papers.reproduce import reproduce
from steelyard.payload.identify import identify_payload
from steelyard.rehearsal import rehearse
from steelyard.report import terminal

LONG = (
    sy.identify, sy.excite, rehearse, measure_friction, identify_payload, identify_locally, validate_bank,
    compare_on_log, compare_schemes, monte_carlo, reproduce, run_demo,
)  # fmt: skip


@pytest.mark.parametrize("function", LONG, ids=lambda f: f.__name__)
def test_every_long_function_accepts_a_progress_callback(function: object) -> None:
    parameter = inspect.signature(function).parameters["progress"]  # type: ignore[arg-type]
    assert parameter.default is None
    assert "progress" in (inspect.getdoc(function) or "")


def test_parts_report_fractions_of_the_whole() -> None:
    reports: list[ProgressReport] = []

    @reports_progress
    def whole(progress: object = None) -> None:
        report_progress("first")
        with part(0.2, 0.6):
            for letter in steps("ab", "letters"):
                report_progress("inside", 0.5, letter)
        report_progress("behind", 0.1)  # the fraction never decreases
        report_progress("last", 1.0)

    whole(progress=reports.append)
    assert [p.stage for p in reports] == [
        "first", "letters", "letters a · inside", "letters", "letters b · inside", "behind", "last",
    ]  # fmt: skip
    assert np.allclose([p.fraction for p in reports], [0.0, 0.2, 0.3, 0.4, 0.5, 0.5, 1.0])
    assert [p.message for p in reports if p.stage == "letters"] == ["a", "b"]
    report_progress("without a callback", 0.5)
    assert len(reports) == 7


def test_leaving_steps_early_restores_the_state() -> None:
    reports: list[float] = []
    with report_progress_to(lambda p: reports.append(p.fraction)):
        for _ in (walk := steps("abcd", "letters")):
            break
        walk.close()
        report_progress("behind", 0.75)
    assert reports == [0.0, 0.75]


@pytest.fixture(scope="module")
def robot() -> sy.Robot:
    return sy.load_robot("rotradi")


@pytest.fixture(scope="module")
def log(robot: sy.Robot) -> sy.Log:
    return simulated_log(sy.Model.nominal(robot), seed=1)


def test_identify_reports_its_stages_in_order(robot: sy.Robot, log: sy.Log) -> None:
    reports: list[ProgressReport] = []
    quiet = sy.identify(robot, log)
    reported = sy.identify(robot, log, progress=reports.append)
    assert np.array_equal(quiet.model.theta, reported.model.theta)
    stages = list(dict.fromkeys(p.stage for p in reports))
    assert stages == ["Preparing the rows", "Searching for the structure", "Fitting", "Validating", "Checking the logs"]
    shares = [p.fraction for p in reports]
    assert shares == sorted(shares)
    assert shares[-1] <= 1.0


def test_a_callback_can_cancel_a_comparison(robot: sy.Robot, log: sy.Log) -> None:
    """A comparison continues after a failed estimator, but not after a cancellation."""
    reports: list[str] = []

    def cancel(report: ProgressReport) -> None:
        reports.append(report.message)
        if report.stage == "Scheme dynamic · Fitting":
            raise CancelledError

    with pytest.raises(CancelledError):
        compare_schemes(robot, log, schemes=("dynamic", "power"), progress=cancel)
    assert reports[0] == "dynamic"
    assert "power" not in reports


def test_a_bar_shows_stage_and_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120, color_system=None)
    monkeypatch.setattr(terminal, "_standard_error", lambda quiet: console)
    monkeypatch.setattr(terminal, "_LEAST_SECONDS", 0.0)
    with terminal.bar() as callback:
        callback(ProgressReport("Fitting \x1b[31mq1", 0.5, "wls"))
    assert "Fitting" in out.getvalue()
    assert "50%" in out.getvalue()
    assert "0 s left" in out.getvalue()
    assert "\x1b[31mq1" not in out.getvalue()


def test_without_a_terminal_no_bar_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.bar() as callback:
        callback(ProgressReport("Fitting", 0.5))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("elapsed", "fraction", "words"),
    [
        (10.0, 0.5, "10 s left"),
        (60.0, 0.25, "3 min left"),
        (3600.0, 0.25, "3 h 0 min left"),
        (0.1, 0.5, ""),
        (9.0, 0.001, ""),
    ],
)
def test_the_remaining_time_is_given_once_it_can_be_estimated(elapsed: float, fraction: float, words: str) -> None:
    assert terminal.time_left(elapsed, fraction) == words


def test_the_remaining_time_decreases_between_reports() -> None:
    assert [terminal.time_left(10.0, 0.5, since) for since in (0.0, 4.0, 99.0)] == ["10 s left", "6 s left", "0 s left"]
