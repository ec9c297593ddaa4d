"""All pushes in records of a UR10e are detected, without false alarms.

The model comes from five excitation runs, the limits from seven others; the tested records are different ones. The
times of the pushes were read from the records by eye (docs/theory/contact.md).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steelyard import identify, load_robot, read_log
from steelyard.robot import Robot
from steelyard.signals.log import Log
from steelyard.watch.monitor_base import WatchEvent, WatchSetup
from steelyard.watch.monitors.contact import ContactMonitor
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.threshold import calibrate_contact, log_batches
from steelyard.watch.uncertain_model import load_uncertain_model

DATA = Path(os.environ.get("STEELYARD_DATA", "")) / "ur10e"
MAP = Path(__file__).parents[2] / "benchmarks" / "maps" / "ur10e.toml"
FITTED = ("10-30sec_12harm", "12-40sec_12harm", "12-50sec_12harm", "05-20sec_8harm", "19_14harm50sec")
CALIBRATED = (
    *("19_12_23_free", "20_01_31-unload", "20_02_05-20sec_12harm", "20_02_06-20sec_10harm"),
    *("20_02_06-20sec_5harm", "20_02_10-20sec_7harm", "20_02_19_15harm50sec"),
)
UNSEEN = (*(f"val__20_01_17-p{k}" for k in range(1, 11)), "val__20_01_17-ptp_10_points",
          *(f"joint__20_01_22-joint_{k}" for k in range(1, 7)))  # fmt: skip
# Times shortly before each push [s].
PUSHES = {"1": (1.6, 4.4, 8.1, 11.6), "2": (0.2, 2.2, 4.6, 7.7, 11.2, 14.1)}


@pytest.mark.proof
@pytest.mark.skipif(not DATA.is_dir(), reason="the UR10e's logs are not here ($STEELYARD_DATA)")
def test_all_pushes_on_a_ur10e_are_detected_without_false_alarms(tmp_path: Path) -> None:
    robot: Robot = load_robot(DATA / "robot.urdf")

    def logs(*names: str) -> list[Log]:
        return [read_log(DATA / f"{name}.parquet", robot, mapping=MAP) for name in names]

    identify(robot, logs(*(f"ident__20_02_{name}" for name in FITTED))).save(tmp_path / "run")
    uncertain_model = load_uncertain_model(tmp_path / "run")
    calibration = calibrate_contact(uncertain_model, logs(*(f"ident__{name}" for name in CALIBRATED)))

    def contacts(log: Log) -> list[WatchEvent]:
        monitor = ContactMonitor(WatchSetup(uncertain_model.model, uncertain_model.run, 1.0 / 3600.0, calibration))
        observer = MomentumObserver(uncertain_model.model, calibration.cutoff_hz)
        for batch in log_batches(log, uncertain_model.model.robot):
            monitor.update(observer.observe(batch))
        return [event for event in monitor.fetch_events() if event.kind == "contact"]

    assert not [event.message for log in logs(*UNSEEN) for event in contacts(log)]
    for number, moments in PUSHES.items():
        (log,) = logs(f"collision__20_01_22-push_pose_{number}")
        found = [event.detail["found"] - log.t[0] for event in contacts(log)]
        assert len(found) == len(moments)
        # A push lasts about half a second; the chosen times are up to 0.4 s before it.
        assert all(0.0 < time - quiet < 1.0 for time, quiet in zip(found, moments, strict=True))
