"""A mapping with tables for single logs: each log is read by its own, in every way of reading."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from steelyard import LogError, load_robot, read_log
from steelyard.check.repair_mapping import as_toml
from steelyard.signals.mapping import LogMapping, file_key, mapping_table
from steelyard.signals.source import LogFile

MAPPING = """
position = "q{}"
torque = "tau{}"
[units]
position = "deg"

[files."logs/b.csv"]
position = "angle{}"
torque = "effort{}"
time = {rate = 50}
window = [11, 60]
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """The same motion twice: a.csv in degrees with a clock, b.csv with other names and without a clock."""
    (tmp_path / "logs").mkdir()
    t = np.arange(100) / 100.0
    q, tau = np.column_stack([np.sin(t), np.cos(t), t]), np.column_stack([t, 2.0 * t, -t])
    a = np.column_stack([t, np.degrees(q), tau])
    b = np.column_stack([q, tau])
    np.savetxt(tmp_path / "logs/a.csv", a, delimiter=",", header="t,q1,q2,q3,tau1,tau2,tau3", comments="")
    head = "angle1,angle2,angle3,effort1,effort2,effort3"
    np.savetxt(tmp_path / "logs/b.csv", b, delimiter=",", header=head, comments="")
    (tmp_path / "columns.toml").write_text(MAPPING)
    return tmp_path


def test_each_log_is_read_by_its_own_mapping(logs: Path) -> None:
    robot = load_robot("rotradi")
    a, b = (read_log(logs / "logs" / name, robot, logs / "columns.toml") for name in ("a.csv", "b.csv"))
    assert np.allclose(a.q[10:60], b.q, atol=1e-12)
    assert np.allclose(a.tau[10:60], b.tau, atol=1e-12)
    assert np.ptp(b.t) == pytest.approx(49 / 50)
    assert "files" not in a.meta["mapping"]
    file = LogFile(logs / "logs/b.csv", robot, logs / "columns.toml")
    assert file.row_count() == 50
    assert np.array_equal(np.concatenate([piece.q for piece in file.pieces()]), b.q)


def test_names_are_ends_of_paths_or_stems() -> None:
    names = ["b.csv", "logs/b.csv", "run"]
    assert file_key(names, "arm/logs/b.csv") == "logs/b.csv"
    assert file_key(names, Path("other/b.csv")) == "b.csv"
    assert file_key(names, "deep/run.parquet") == "run"
    assert file_key(names, "xb.csv") is None


def test_a_mapping_of_files_survives_writing(logs: Path) -> None:
    table = mapping_table(str(logs / "columns.toml"))
    (logs / "again.toml").write_text(as_toml(table))
    again, first = (LogMapping.read(logs / name) for name in ("again.toml", "columns.toml"))
    assert again.files["logs/b.csv"].plain() == first.files["logs/b.csv"].plain()
    assert again.plain() == first.plain()
    assert mapping_table(str(logs / "columns.toml"), "logs/b.csv")["torque"] == "effort{}"
    assert "files" not in mapping_table(str(logs / "columns.toml"), "logs/a.csv")


def test_wrong_tables_are_named() -> None:
    with pytest.raises(LogError, match="one file"):
        LogMapping.from_table({"files": {"a.csv": {"files": {}}}})
    with pytest.raises(LogError, match=r"a\.csv.*torqe|torqe.*a\.csv"):
        LogMapping.from_table({"files": {"a.csv": {"torqe": "x{}"}}})
