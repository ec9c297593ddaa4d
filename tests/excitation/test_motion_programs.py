"""Files for controllers: parsed back, each one is the designed motion at its speed."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest
import yaml
from oracles import public_robot_path
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import app
from steelyard.excitation.controller_formats.target import MOTION_TARGETS, SPEEDS, Playback
from steelyard.excitation.play_files import Play
from steelyard.excitation.trajectories import Fourier, Trajectory

NUMBER = r"-?\d+\.\d+"


def motion(joints, seed=0):
    """Return a series of three harmonics that is at rest at both ends."""
    families = (Fourier(3, 4.0),) * joints
    still = Trajectory.standing(families, np.linspace(-1.0, 1.0, joints))
    rng = np.random.default_rng(seed)
    return still.with_coefficients(still.coefficients + 0.3 * rng.normal(size=len(still.coefficients)))


@pytest.fixture(scope="module")
def arm():
    """Six joints with inertias, from a file that Pinocchio also reads."""
    return sy.load_robot(public_robot_path("ur10"))


@pytest.fixture(scope="module")
def six(arm):
    return Play(arm, [motion(6)], ("csv", "ros2", "ur", "kuka", "abb", "fanuc"))


def rows_of(text):
    head, *rows = csv.reader(text.splitlines())
    return head, np.array(rows, dtype=float)


def read_back(name, text):
    """Return times [s] and postures [rad] of a program by the grammar of its language."""
    if name == "ur":
        step = float(re.search(r"step = (\S+)", text)[1])
        q = [re.findall(NUMBER, row) for row in re.findall(r"servoj\(\[(.*?)\], t=step", text)]
        return step * np.arange(len(q)), np.array(q, dtype=float)
    if name == "kuka":
        q = [re.findall(rf"A\d ({NUMBER})", row) for row in re.findall(r"S?PTP \{(.*?)\}", text)]
        shares = np.array(re.findall(r"TIME_BLOCK PART = (\S+)", text), dtype=float)
        total = float(re.search(r"TIME_BLOCK END = (\S+)", text)[1])
        return np.concatenate([[0.0], np.cumsum(shares) / shares.sum() * total]), np.radians(np.array(q, dtype=float))
    if name == "abb":
        q = [row.split(",") for row in re.findall(r"MoveAbsJ \[\[(.*?)\],\[", text)]
        times = np.array(re.findall(r"\\T:=(\S+),", text), dtype=float)
        return np.concatenate([[0.0], np.cumsum(times)]), np.radians(np.array(q, dtype=float))
    taught = dict(re.findall(r"(P\[\d+\])\{(.*?)\};", text, re.S))
    moves = re.findall(r"\d+:  J (P\[\d+\]) (\S+) (?:CNT100|FINE) ;", text)
    q = [re.findall(rf"J\d = ({NUMBER}) deg", taught[point]) for point, _ in moves]
    times = [float(speed.removesuffix("msec")) / 1000.0 for _, speed in moves[1:]]
    return np.concatenate([[0.0], np.cumsum(times)]), np.radians(np.array(q, dtype=float))


@pytest.mark.parametrize(
    ("name", "end", "near"),
    [
        ("ur", "script", 1e-6),  # six decimals of rad
        ("kuka", "src", 1e-6),  # four decimals of degrees
        ("abb", "mod", 1e-6),
        ("fanuc", "ls", 1e-6),
    ],
)
def test_programs_contain_the_motion_at_its_times(six, name, end, near):
    files, trajectory = six.files(), six.trajectories[0]
    for order, speed in enumerate(SPEEDS, start=1):
        text = files[f"{name}/{order}-at-{round(100 * speed)}-percent.{end}"]
        t, q = read_back(name, text)
        assert t[-1] == pytest.approx(4.0 / speed, abs=0.02)  # Fanuc has whole milliseconds
        assert q == pytest.approx(trajectory.sample(np.linspace(0.0, 4.0, len(t)))[0], abs=near)
        assert q[0] == pytest.approx(q[-1], abs=near)  # a series is periodic


def test_tables_contain_positions_and_derivatives_at_every_speed(six):
    files, trajectory = six.files(), six.trajectories[0]
    for order, speed in enumerate(SPEEDS, start=1):
        stem = f"{order}-at-{round(100 * speed)}-percent"
        for name in (f"csv/{stem}.csv", f"ur/{stem}-rtde.csv"):
            _, table = rows_of(files[name])
            t, q, dq, ddq = table[:, 0], *np.split(table[:, 1:], 3, axis=1)
            assert q == pytest.approx(trajectory.sample(speed * t)[0], abs=1e-7)
            # Derivatives agree with central differences of the table's positions.
            step = t[1] - t[0]
            assert dq[1:-1] == pytest.approx((q[2:] - q[:-2]) / (2.0 * step), abs=0.02 * np.abs(dq).max())
            assert ddq[1:-1] == pytest.approx((dq[2:] - dq[:-2]) / (2.0 * step), abs=0.02 * np.abs(ddq).max())
        rsi, egm = (rows_of(files[name])[1] for name in (f"kuka/{stem}-rsi.csv", f"abb/{stem}-egm.csv"))
        assert np.diff(rsi[:, 0]) == pytest.approx(0.004)
        assert egm[:, 1:] == pytest.approx(np.degrees(trajectory.sample(speed * egm[:, 0])[0]), abs=1e-4)
        assert rsi[:, 1:] == pytest.approx(egm[:, 1:] - egm[0, 1:], abs=1e-5)


def test_a_goal_for_ros_is_a_message_of_its_type(six):
    """ROS's own definition of the message, from rosbags, accepts the goal field by field."""
    from rosbags.typesys import Stores, get_typestore

    text = six.files()["ros2/3-at-100-percent.yaml"]
    assert len(text) < 131_072  # a shell's limit for one argument
    goal = yaml.safe_load(text)
    assert set(goal) == {"trajectory"}
    kinds = get_typestore(Stores.ROS2_HUMBLE).types
    header = kinds["std_msgs/msg/Header"](kinds["builtin_interfaces/msg/Time"](0, 0), "")
    points = [
        kinds["trajectory_msgs/msg/JointTrajectoryPoint"](
            *(np.array(p[x]) for x in ("positions", "velocities", "accelerations")),
            np.array([]),
            kinds["builtin_interfaces/msg/Duration"](p["time_from_start"]["sec"], p["time_from_start"]["nanosec"]),
        )
        for p in goal["trajectory"]["points"]
    ]
    message = kinds["trajectory_msgs/msg/JointTrajectory"](header, goal["trajectory"]["joint_names"], points)
    raw = get_typestore(Stores.ROS2_HUMBLE).serialize_cdr(message, "trajectory_msgs/msg/JointTrajectory")
    back = get_typestore(Stores.ROS2_HUMBLE).deserialize_cdr(raw, "trajectory_msgs/msg/JointTrajectory")
    assert back.joint_names == list(six.robot.joint_names)
    t = np.array([p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in back.points])
    assert np.array([p.velocities for p in back.points]) == pytest.approx(six.trajectories[0].sample(t)[1], abs=1e-6)
    start = yaml.safe_load(six.files()["ros2/0-to-start.yaml"])["trajectory"]["points"]
    assert start[0]["positions"] == pytest.approx(goal["trajectory"]["points"][0]["positions"])
    assert start[0]["time_from_start"]["sec"] == 10


def test_a_franka_gets_a_row_every_millisecond():
    robot = sy.load_robot("arm7")
    head, table = rows_of(Play(robot, [motion(7)], ("franka",)).files()["franka/2-at-50-percent.csv"])
    assert head[1:8] == [f"q{k}" for k in range(1, 8)]
    assert np.diff(table[:, 0]) == pytest.approx(0.001)
    assert table[-1, 0] == pytest.approx(8.0)
    # libfranka differentiates the positions, so they must be smooth at its millisecond.
    jerk = np.diff(table[:, 1:8], n=3, axis=0) / 0.001**3
    assert np.abs(jerk).max() < 100.0  # rounding to nine digits contributes 4


def test_peaks_by_speed_are_those_of_pinocchio(six):
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(public_robot_path("ur10")))
    data, trajectory = model.createData(), six.trajectories[0]
    for entry, speed in zip(six.expected[0], SPEEDS, strict=True):
        t = np.linspace(0.0, 4.0, 401)
        q, dq, ddq = trajectory.sample(t)
        tau = np.array([pin.rnea(model, data, *row) for row in zip(q, speed * dq, speed**2 * ddq, strict=True)])
        assert entry["torque"] == pytest.approx(np.abs(tau).max(axis=0), rel=1e-6)
        assert entry["duration"] == pytest.approx(4.0 / speed)


def test_deviation_of_a_controller_between_the_points():
    """Straight lines between points h apart deviate from a curve by h²·q̈/8, quintics by almost nothing."""
    trajectory = motion(7)
    playback = Playback(sy.load_robot("arm7"), trajectory, 1.0, 100.0)
    largest = np.abs(trajectory.sample(np.linspace(0.0, 4.0, 4001))[2]).max()
    assert MOTION_TARGETS["csv"].deviation(playback) == pytest.approx(0.01**2 * largest / 8.0, rel=0.02)
    assert MOTION_TARGETS["ros2"].deviation(playback) < 1e-6


def test_unsuitable_robots_are_refused_before_the_search():
    szabo = sy.load_robot("szabo3r")
    with pytest.raises(sy.ExcitationError, match="6 joints, all revolute"):
        sy.excitation.design_motions(szabo, targets=("ur",))
    with pytest.raises(sy.SteelyardError, match="fanuk"):
        sy.excitation.design_motions(szabo, targets=("fanuk",))


def test_a_run_is_written_for_another_controller(tmp_path):
    def run(*arguments):
        return CliRunner().invoke(app, ["excite", "szabo3r", *arguments], env={"COLUMNS": "120", "NO_COLOR": "1"})

    first = run(
        "--duration", "4", "--rate", "50", "--harmonics", "2", "--search-time", "0", "-o", str(tmp_path / "run")
    )
    assert first.exit_code == 0, first.output
    assert "Slow first" in first.output
    assert (tmp_path / "run" / "csv" / "1-at-25-percent.csv").exists()
    again = run("--motion", str(tmp_path / "run"), "--for", "ros2", "-o", str(tmp_path / "ros"))
    assert again.exit_code == 0, again.output
    names = {p.name for p in (tmp_path / "ros" / "ros2").iterdir()}
    assert names == {"0-to-start.yaml", *(f"{k}-at-{p}-percent.yaml" for k, p in ((1, 25), (2, 50), (3, 100)))}
    assert "ros2 action send_goal" in (tmp_path / "ros" / "play.md").read_text()
    still = run("--poses", "4", "--for", "ur")
    assert still.exit_code == 2
    assert "static postures" in still.output
    wrong = run("--motion", str(tmp_path / "run"), "--for", "ur")
    assert wrong.exit_code == 2
    assert "6 joints" in wrong.output
