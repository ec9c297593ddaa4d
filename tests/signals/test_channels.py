"""Further signals: temperatures, and the wrench of a sensor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from steelyard.assessment.holdout import split_last
from steelyard.errors import LogError
from steelyard.robot import load_robot
from steelyard.signals.log import Log
from steelyard.signals.read import load_log, read_log

ROBOT = load_robot("rotradi")
HEADER = "t,q1,q2,q3,tau1,tau2,tau3,temp1,temp2,temp3,fx,fy,fz,tx,ty,tz"


def written(tmp_path: Path, hole: str = "") -> Path:
    path = tmp_path / "log.csv"
    rows = [f"{0.01 * k},{k},{k},{k},1,1,1,20,21,{hole if k == 5 and hole else 22 + k},1,2,3,4,5,6" for k in range(20)]
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def test_channels_are_recognised_by_name_and_preserved_by_splits_and_files(tmp_path: Path) -> None:
    log = read_log(written(tmp_path), ROBOT)
    np.testing.assert_array_equal(log.channels["wrench"][0], [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(log.channels["temperature"][:, 2], 22 + np.arange(20))
    last = split_last(log, 0.5)[1]
    np.testing.assert_array_equal(last.channels["temperature"][:, 2], 22 + np.arange(20)[-len(last) :])
    log.save(tmp_path / "log.npz")
    np.testing.assert_array_equal(load_log(tmp_path / "log.npz").channels["wrench"], log.channels["wrench"])


def test_mapped_columns(tmp_path: Path) -> None:
    mapping = {"temperature": ["temp3", "temp2", "temp1"], "wrench": ["tx", "ty", "tz", "fx", "fy", "fz"]}
    log = read_log(written(tmp_path), ROBOT, mapping)
    assert log.channels["temperature"][0].tolist() == [22, 21, 20]
    assert log.channels["wrench"][0].tolist() == [4, 5, 6, 1, 2, 3]
    with pytest.raises(LogError, match="must name six columns"):
        read_log(written(tmp_path), ROBOT, {"wrench": ["fx", "fy"]})


def test_a_gap_only_matters_in_a_mapped_channel(tmp_path: Path) -> None:
    path = written(tmp_path, hole="nan")
    assert "temperature" not in read_log(path, ROBOT).channels
    with pytest.raises(LogError, match="row 6, column 'temp3'"):
        read_log(path, ROBOT, {"temperature": "temp{}"})


def test_channels_share_the_clock() -> None:
    with pytest.raises(Exception, match="this clock needs"):
        Log(("a",), [0.0, 1.0], [[0.0], [1.0]], channels={"wrench": np.zeros((3, 6))})


@pytest.mark.parametrize(
    "names",
    ["wrench1 wrench2 wrench3 wrench4 wrench5 wrench6", "wrench_0 wrench_1 wrench_2 wrench_3 wrench_4 wrench_5",
     "Wrench.1 Wrench.2 Wrench.3 Wrench.4 Wrench.5 Wrench.6",
     "wrench/fx wrench/fy wrench/fz wrench/tx wrench/ty wrench/tz"],
)  # fmt: skip
def test_a_wrench_by_number_is_recognised(tmp_path: Path, names: str) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text().replace("fx,fy,fz,tx,ty,tz", ",".join(names.split())))
    np.testing.assert_array_equal(read_log(path, ROBOT).channels["wrench"][0], [1, 2, 3, 4, 5, 6])
