"""Logs that differ: a new log that the project's mapping cannot read gets a mapping of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from run_cases import Visitor

from steelyard import load_robot, read_log

ROBOT = "rotradi"
HEAD_A = "t,q1,q2,q3,dq1,dq2,dq3,tau1,tau2,tau3"
HEAD_B = "time,angle1,angle2,angle3,velocity1,velocity2,velocity3,torque1,torque2,torque3"


def write_logs(folder: Path) -> None:
    """The same motion twice: with the names of two recorders."""
    (folder / "logs").mkdir()
    t = np.arange(400) / 100.0
    q = np.sin(t[:, None] * np.arange(1, 4))
    dq = np.cos(t[:, None] * np.arange(1, 4)) * np.arange(1, 4)
    rows = np.column_stack([t, q, dq, 3.0 * q])
    for name, head in (("a", HEAD_A), ("b", HEAD_B)):
        np.savetxt(folder / f"logs/{name}.csv", rows, delimiter=",", header=head, comments="")


@pytest.fixture
def visitor(tmp_path: Path) -> Visitor:
    """A project whose mapping names the columns of a.csv; b.csv was dropped later."""
    write_logs(tmp_path)
    (tmp_path / "own.toml").write_text('# by hand\nposition = "q{}"\nvelocity = "dq{}"\ntorque = "tau{}"\ntime = "t"\n')
    (tmp_path / "steelyard.toml").write_text(
        f'robot = "{ROBOT}"\nmapping = "own.toml"\n[logs]\nidentify = ["logs/a.csv"]\n'
    )
    return Visitor(tmp_path)


def columns(visitor: Visitor, log: str) -> np.ndarray:
    folder = visitor.folder.root
    return read_log(folder / log, load_robot(ROBOT), folder / visitor.folder.project().mapping).q


def test_a_log_with_other_columns_gets_its_own_mapping(visitor: Visitor) -> None:
    folder = visitor.folder.root
    own = (folder / "own.toml").read_text()
    visitor.do("data/add", file="logs/b.csv")
    assert np.array_equal(columns(visitor, "logs/a.csv"), columns(visitor, "logs/b.csv"))
    assert (folder / "own.toml").read_text() == own  # the user's file is not changed
    page = visitor.see("/data/data/meaning?log=logs/b.csv")
    assert "the part for logs/b.csv only" in page
    assert "This mapping is for" in page
    # The menu "only" changes one log, and "all logs" both.
    before = columns(visitor, "logs/a.csv")
    fields = {"log": "logs/b.csv", "scope": "log", "rate": ""}
    names = HEAD_B.split(",")
    for k, name in enumerate(names):
        signal = "time" if k == 0 else ("position", "velocity", "torque")[(k - 1) // 3]
        joint = "" if k == 0 else f"q{(k - 1) % 3 + 1}"
        sign = "-1" if name == "angle2" else "1"
        fields |= {f"column.{k}": name, f"signal.{k}": signal, f"joint.{k}": joint, f"unit.{k}": "", f"sign.{k}": sign}
    visitor.do("data/edit", **fields)
    assert np.array_equal(columns(visitor, "logs/a.csv"), before)
    assert np.array_equal(columns(visitor, "logs/b.csv"), before * [1.0, -1.0, 1.0])


def test_a_log_returns_to_the_mapping_of_all_logs(visitor: Visitor) -> None:
    visitor.do("data/add", file="logs/b.csv")
    visitor.do("data/common", log="logs/b.csv")
    page = visitor.see("/data/data/meaning?log=logs/b.csv")
    assert "Propose a mapping for this log only" in page
    assert 'class="callout bad"' in page  # the common mapping cannot read it
    assert np.isfinite(columns(visitor, "logs/a.csv")).all()
    visitor.do("data/use", log="logs/b.csv", scope="log")
    assert np.array_equal(columns(visitor, "logs/a.csv"), columns(visitor, "logs/b.csv"))
