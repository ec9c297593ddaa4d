"""Contact phases of a trotting robot in MuJoCo, found from foot sensors and from joint torques."""

from __future__ import annotations

import numpy as np
import pytest
from legged_plants import GO1, Plant, Sensors, mapping_of, measured, motion

from steelyard.errors import LogError
from steelyard.floating.log_piece import LogPiece
from steelyard.floating.motion import Preparer
from steelyard.floating.sensor_errors import advanced
from steelyard.floating.setup import FloatingMapping
from steelyard.signals.log import Log

ROBOT_AND_MOTION = ("trot", 4.0, 5)


@pytest.fixture(scope="module")
def trot() -> tuple[dict, np.ndarray]:
    """A log, and which feet touch the ground in MuJoCo."""
    pytest.importorskip("mujoco")
    pytest.importorskip("pinocchio")
    out = Plant(GO1, seed=2).play(*motion(GO1, *ROBOT_AND_MOTION))
    return measured(out, Sensors(), 0), out["force"] > 0.0


def states(columns: dict, phases: str) -> tuple[Preparer, np.ndarray]:
    robot = GO1.robot()
    preparer = Preparer(robot, FloatingMapping.of(mapping_of(GO1, robot, phases), robot))
    channels = {f"contact.{f}.force": columns[f"force{k}"][:, None] for k, f in enumerate(GO1.feet)}
    channels |= {
        f"base.{name}": np.column_stack([columns[f"{short}{k}"] for k in range(width)])
        for name, short, width in (
            ("orientation", "att", 4),
            ("gyroscope", "gyro", 3),
            ("accelerometer", "specific", 3),
        )
    }
    q, tau = (np.column_stack([columns[f"{name}{k}"] for k in range(12)]) for name in ("q", "tau"))
    log = Log(robot.joint_names[6:], columns["t"], q, tau=tau, channels=channels)
    piece = LogPiece.of(log, 0, len(log))
    assert piece is not None
    return preparer, preparer.contact_states.standing(log.joints, piece)


@pytest.mark.parametrize("phases", ["force", "from_torques"])
def test_phases_are_those_of_the_simulator(phases: str, trot: tuple[dict, np.ndarray]) -> None:
    columns, touches = trot
    rng = np.random.default_rng(1)
    counts = {
        f"force{k}": np.round(3.0 * columns[f"force{k}"] + rng.normal(0.0, 4.0, len(columns["t"]))) for k in range(4)
    }
    preparer, closed = states(columns | counts, phases)
    assert np.all(np.mean(closed == touches, axis=0) > 0.96)
    # An identification leaves 20 ms on either side of a change out; a missed edge there does no harm.
    for k in range(4):
        edges, own = (np.flatnonzero(np.diff(x[:, k].astype(int))) for x in (touches, closed))
        away = np.array([np.abs(own - at).min() for at in edges])
        assert np.median(away) <= 10  # samples of 1 ms
    assert len(preparer.contact_states.sentences()) == 4


def test_a_foot_that_never_opens_stands_all_the_time(trot: tuple[dict, np.ndarray]) -> None:
    columns, _ = trot
    loaded = {f"force{k}": columns[f"force{k}"] + 50.0 for k in range(4)}
    preparer, closed = states(columns | loaded, "force")
    assert closed.all()
    assert preparer.contact_states.sentences() == []


def test_a_sensor_that_shows_no_contact_is_refused_with_the_remedy(trot: tuple[dict, np.ndarray]) -> None:
    columns, _ = trot
    noise = np.random.default_rng(2).normal(0.0, 1.0, (len(columns["t"]), 4))
    with pytest.raises(LogError, match=r"FL_foot.*state ="):
        states(columns | {f"force{k}": noise[:, k] for k in range(4)}, "force")


def test_a_contact_has_one_source_of_its_phases() -> None:
    robot = GO1.robot()
    mapping = mapping_of(GO1, robot)
    mapping["contacts"]["FL_foot"]["from_torques"] = True
    with pytest.raises(LogError, match="keep one"):
        FloatingMapping.of(mapping, robot)


def test_a_shift_by_a_part_of_a_sample_is_that_of_the_signal() -> None:
    t = np.arange(400) * 1e-2
    x = np.column_stack([np.sin(6.0 * t), np.cos(9.0 * t)])
    shifted = advanced(x, 2.3)[5:-5]
    later = np.column_stack([np.sin(6.0 * (t + 0.023)), np.cos(9.0 * (t + 0.023))])[5:-5]
    assert np.abs(shifted - later).max() < 5e-6  # the fourth difference of 9 rad/s at 10 ms
    assert advanced(x, 0.0) is x
