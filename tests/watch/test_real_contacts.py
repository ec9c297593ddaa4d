"""A UR10e that somebody pushes: every push that shows in the records is found, and nothing else is.

The model is of five excitation runs, the limits are of seven others; what is judged by is neither. The moments of the
pushes were read off the records by eye (docs/theory/contact.md).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steelyard import identify, load_robot, read_log
from steelyard.robot import Robot
from steelyard.signals.log import Log
from steelyard.watch.model import watched_model
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.parts import WatchEvent, WatchSetup
from steelyard.watch.threshold import calibrate, log_batches
from steelyard.watch.told.contact import ContactPart

DATA = Path(os.environ.get("STEELYARD_DATA", "")) / "ur10e"
MAP = Path(__file__).parents[2] / "benchmarks" / "maps" / "ur10e.toml"
FITTED = ("10-30sec_12harm", "12-40sec_12harm", "12-50sec_12harm", "05-20sec_8harm", "19_14harm50sec")
CALIBRATED = (
    *("19_12_23_free", "20_01_31-unload", "20_02_05-20sec_12harm", "20_02_06-20sec_10harm"),
    *("20_02_06-20sec_5harm", "20_02_10-20sec_7harm", "20_02_19_15harm50sec"),
)
UNSEEN = (*(f"val__20_01_17-p{k}" for k in range(1, 11)), "val__20_01_17-ptp_10_points",
          *(f"joint__20_01_22-joint_{k}" for k in range(1, 7)))  # fmt: skip
# Quiet moments before each push, s.
PUSHES = {"1": (1.6, 4.4, 8.1, 11.6), "2": (0.2, 2.2, 4.6, 7.7, 11.2, 14.1)}


@pytest.mark.proof
@pytest.mark.skipif(not DATA.is_dir(), reason="the UR10e's logs are not here ($STEELYARD_DATA)")
def test_all_pushes_on_a_ur10e_are_found_and_nothing_else(tmp_path: Path) -> None:
    robot: Robot = load_robot(DATA / "robot.urdf")

    def logs(*names: str) -> list[Log]:
        return [read_log(DATA / f"{name}.parquet", robot, mapping=MAP) for name in names]

    identify(robot, logs(*(f"ident__20_02_{name}" for name in FITTED))).save(tmp_path / "run")
    watched = watched_model(tmp_path / "run")
    made = calibrate(watched, logs(*(f"ident__{name}" for name in CALIBRATED)))

    def contacts(log: Log) -> list[WatchEvent]:
        part = ContactPart(WatchSetup(watched.model, watched.run, 1.0 / 3600.0, made))
        observer = MomentumObserver(watched.model, made.cutoff_hz)
        for batch in log_batches(log, watched.model.robot):
            part.take(observer.take(batch))
        return [event for event in part.fetch_events() if event.kind == "contact"]

    assert not [event.message for log in logs(*UNSEEN) for event in contacts(log)]
    for number, moments in PUSHES.items():
        (log,) = logs(f"collision__20_01_22-push_pose_{number}")
        found = [event.detail["found"] - log.t[0] for event in contacts(log)]
        assert len(found) == len(moments)
        # People push within half a second or so; 0.4 s of it were quiet by choice of the moment.
        assert all(0.0 < there - quiet < 1.0 for there, quiet in zip(found, moments, strict=True))
