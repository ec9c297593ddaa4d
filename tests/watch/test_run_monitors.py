"""`monitor` from Python: logs in memory and files give the same events, and callbacks cannot disturb it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy

ROBOT = sy.load_robot("rotradi")
MODEL = sy.Model.nominal(ROBOT)


@pytest.fixture(scope="module")
def log() -> sy.Log:
    """Ten seconds of sines; the model's own torques with noise."""
    rng = np.random.default_rng(0)
    t = np.arange(2000) / 200.0
    w = np.array([1.3, 1.9, 2.9])
    q, dq, ddq = 0.8 * np.sin(t[:, None] * w), 0.8 * w * np.cos(t[:, None] * w), -0.8 * w**2 * np.sin(t[:, None] * w)
    return sy.Log(ROBOT.joint_names, t, q, dq, tau=MODEL.torque(q, dq, ddq) + rng.normal(scale=0.3, size=q.shape))


@pytest.fixture(scope="module")
def settings(log: sy.Log, tmp_path_factory: pytest.TempPathFactory) -> sy.WatchSettings:
    """Contacts only, calibrated with the same motion for 70 s: a minute is needed."""
    t = np.arange(14_000) / 200.0
    rng = np.random.default_rng(1)
    w = np.array([1.3, 1.9, 2.9])
    q, dq, ddq = 0.8 * np.sin(t[:, None] * w), 0.8 * w * np.cos(t[:, None] * w), -0.8 * w**2 * np.sin(t[:, None] * w)
    quiet = sy.Log(ROBOT.joint_names, t, q, dq, tau=MODEL.torque(q, dq, ddq) + rng.normal(scale=0.3, size=q.shape))
    file = tmp_path_factory.mktemp("calibration") / "calibration.json"
    sy.watch.calibrate_contact(sy.watch.load_uncertain_model(MODEL), [quiet]).write(file)
    return sy.WatchSettings(monitors=("contact",), calibration=str(file), speed=float("inf"))


def pushed(log: sy.Log) -> sy.Log:
    """The log with 15 N m from outside at joint 2, from 5.0 s to 5.3 s."""
    tau = log.tau.copy()
    tau[(log.t > 5.0) & (log.t < 5.3), 1] -= 15.0
    return replace(log, tau=tau)


def test_a_push_is_a_contact_at_its_time_and_quiet_logs_have_none(log: sy.Log, settings: sy.WatchSettings) -> None:
    assert sy.monitor(MODEL, log, settings=settings).events == ()
    result = sy.monitor(MODEL, pushed(log), settings=settings)
    (contact,) = (event for event in result.events if event.kind == "contact")
    assert 4.95 < contact.t < 5.1
    assert result.alarms == (contact,)
    assert len(result.to_arrow("events")) == len(result.events)
    assert result.headline().kind == "warning"


def test_a_log_in_memory_and_its_file_give_the_same_events(
    log: sy.Log, settings: sy.WatchSettings, tmp_path: Path
) -> None:
    pushed(log).save(tmp_path / "run.npz")
    in_memory, from_file = (
        sy.monitor(MODEL, source, settings=settings) for source in ([pushed(log)], tmp_path / "run.npz")
    )
    assert [event.plain() for event in in_memory.events] == [event.plain() for event in from_file.events]


def test_callbacks_get_events_and_reports_and_may_fail(log: sy.Log, settings: sy.WatchSettings) -> None:
    """An error of the caller's function ends the calls, not the monitor: the result holds every event."""
    kinds: list[str] = []
    reports: list[float] = []

    def fail(event: sy.watch.WatchEvent) -> None:
        kinds.append(event.kind)
        raise RuntimeError("the caller's fault")

    result = sy.monitor(MODEL, pushed(log), settings=settings, on_event=fail, on_report=lambda r: reports.append(r.t))
    assert kinds == ["contact"]
    assert {"contact", "contact over"} <= {event.kind for event in result.events}
    assert reports == sorted(reports)
    assert reports


@pytest.mark.parametrize(
    ("sources", "sentence"),
    [([], "No source is given"), (["nowhere.csv"], "neither an existing log nor a source")],
)
def test_a_source_that_is_none_is_refused(sources: list[str], sentence: str) -> None:
    with pytest.raises(sy.SteelyardError, match=sentence):
        sy.monitor(MODEL, sources)


def test_logs_in_memory_and_paths_are_not_mixed(log: sy.Log) -> None:
    with pytest.raises(sy.SteelyardError, match="either the ones or the others"):
        sy.monitor(MODEL, [log, "run.csv"])
