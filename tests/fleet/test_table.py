"""Fleets are read from TOML, from tables and from folders, with the same result."""

from __future__ import annotations

import os
import pickle
from datetime import UTC, datetime

import numpy as np
import pytest
from log_files import URDF, columns, motion, write_csv, write_parquet
from refusals import refused

from steelyard.errors import LogError, SteelyardError
from steelyard.fleet.patterns import date_in_name
from steelyard.fleet.robot_table import RobotType, read_fleet
from steelyard.fleet.storage import FleetError, content_identity, file_state
from steelyard.robot.library import builtin
from steelyard.signals.read import read_log


def day(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.fixture
def folder(tmp_path):
    """Two robots with two logs each, named by their days, and one mapping for all."""
    (tmp_path / "arm.urdf").write_text(URDF)
    (tmp_path / "mapping.toml").write_text('position = ["q1"]\ntorque = ["tau1"]\n')
    for robot in ("a-1", "a-2"):
        (tmp_path / robot).mkdir()
        for when in ("2026-03-02", "2026-03-01"):
            write_csv(tmp_path / robot / f"run-{when}.csv", columns(motion(joints=1)))
    return tmp_path


def heads(fleet):
    return [(log.robot, log.url, log.date, log.temperature, log.load) for log in fleet.logs]


TOML = """
mapping = "mapping.toml"

[models.arm]
description = "arm.urdf"

[robots.a-2]
logs = "a-2/*.csv"

[robots.a-1]
model = "arm"
logs = ["a-1/run-2026-03-02.csv", {files = "a-1/run-2026-03-01.csv", temperature = 21.5, load = "gripper"}]
"""


def test_toml_folders_and_tables_give_the_same_fleet(folder):
    laid_out = read_fleet(folder)
    assert list(laid_out.robot_types) == ["arm"]
    assert laid_out.robots == {"a-1": "arm", "a-2": "arm"}
    assert [log.date for log in laid_out.logs] == 2 * [day("2026-03-01"), day("2026-03-02")]
    assert laid_out.robot_types["arm"].robot.joint_names == ("shoulder",)
    log = laid_out.logs[0]
    assert read_log(log.url, laid_out.type_of(log).robot, log.mapping).meta["columns"]["torque"] == ["tau1"]

    (folder / "some.toml").write_text(TOML)
    written = read_fleet(folder / "some.toml")
    assert [(x.robot, x.url, x.date) for x in written.logs] == [(x.robot, x.url, x.date) for x in laid_out.logs]
    assert [x.temperature for x in written.logs] == [21.5, None, None, None]
    assert [x.load for x in written.logs] == ["gripper", None, None, None]
    assert all(x.mapping == log.mapping for x in written.logs)

    rows = [["a-1", "arm", "arm.urdf", "mapping.toml", "a-1/run-2026-03-01.csv", "", "21.5", "gripper"]]
    rows += [["a-1", "arm", "arm.urdf", "mapping.toml", "a-1/run-2026-03-02.csv", "2026-03-02T00:00+00:00", "", ""]]
    rows += [["a-2", "arm", "arm.urdf", "mapping.toml", "a-2/", "", "", ""]]
    names = ["robot", "model", "description", "mapping", "log", "date", "temperature", "load"]
    (folder / "some.csv").write_text("\n".join(";".join(row) for row in [names, *rows]) + "\n")
    assert heads(read_fleet(folder / "some.csv")) == heads(written)

    import pyarrow as pa
    import pyarrow.parquet as pq

    held = {name: [row[k] or None for row in rows] for k, name in enumerate(names)}
    held["temperature"] = [21.5, None, None]
    held["date"] = [None, datetime(2026, 3, 2), None]
    pq.write_table(pa.table(held), folder / "some.parquet")
    assert heads(read_fleet(folder / "some.parquet")) == heads(written)


def test_robots_are_found_by_a_pattern(folder):
    text = '[models.arm]\ndescription = "arm.urdf"\nlogs = "{robot}/run-{date:%Y-%m-%d}.*"\n'
    (folder / "found.toml").write_text(text)
    fleet = read_fleet(folder / "found.toml")
    assert [(x.robot, x.url, x.date) for x in fleet.logs] == [(x.robot, x.url, x.date) for x in read_fleet(folder).logs]


def test_one_folder_per_robot_type(folder, tmp_path):
    several = tmp_path / "several"
    for model in ("short", "long"):
        (several / model / f"{model}-1").mkdir(parents=True)
        (several / model / "robot.urdf").write_text(URDF)
        write_csv(several / model / f"{model}-1" / "run.csv", columns(motion(joints=1)))
    (several / "notes").mkdir()
    fleet = read_fleet(several)
    assert fleet.robots == {"long-1": "long", "short-1": "short"}
    assert fleet.logs_of("long-1")[0].date is None


def test_run_folders_and_circular_links_are_skipped(folder):
    before = heads(read_fleet(folder))
    (folder / "a-1" / "old-run").mkdir()
    (folder / "a-1" / "old-run" / "manifest.json").write_text("{}")
    write_csv(folder / "a-1" / "old-run" / "logs.csv", columns(motion(joints=1)))
    (folder / "a-1" / "_aside").mkdir()
    write_csv(folder / "a-1" / "_aside" / "run.csv", columns(motion(joints=1)))
    (folder / "a-1" / "again").symlink_to(folder / "a-1")
    (folder / "a-2" / "notes.md").write_text("nothing")
    (folder / "docs").mkdir()
    (folder / "docs" / "notes.md").write_text("nothing")
    write_csv(folder / "beside.csv", columns(motion(joints=1)))
    assert heads(read_fleet(folder)) == before


def test_a_folder_may_be_a_log_and_have_a_mapping_of_its_own(folder):
    """A folder with one file per signal is a robot's only log, or one of several."""
    for place in ("a-3", "a-1/night"):
        (folder / place).mkdir()
        write_csv(folder / place / "q.csv", columns({"t": motion()["t"], "q": motion(joints=1)["q"]}))
        write_csv(folder / place / "tau.csv", columns({"t": motion()["t"], "tau": motion(joints=1)["tau"]}))
    (folder / "a-2" / "mapping.toml").write_text("[time]\nrate = 100\n")
    fleet = read_fleet(folder)
    assert [log.url for log in fleet.logs_of("a-3")] == [str(folder / "a-3")]
    assert str(folder / "a-1" / "night") in [log.url for log in fleet.logs_of("a-1")]
    assert [log.mapping.rate for log in fleet.logs_of("a-2")] == [100.0, 100.0]
    assert len(content_identity(str(folder / "a-3"))) == 64


def test_an_unreadable_folder_is_an_error(folder):
    if os.geteuid() == 0:
        pytest.skip("root may read every folder")
    (folder / "a-2").chmod(0)
    refused(lambda: read_fleet(folder), "a-2", error=FleetError)


def test_a_fleet_travels_to_another_process(folder):
    fleet = pickle.loads(pickle.dumps(read_fleet(folder)))
    assert heads(fleet) == heads(read_fleet(folder))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("run-2026-03-01.csv", "2026-03-01"),
        ("20260301_0630.mcap", "2026-03-01T06:30"),
        ("s3://b/2020-01-01/x-2026-03-01T06-30-15.parquet", "2026-03-01T06:30:15"),
        ("rosbag2_2026_03_01-06_30_15_0.mcap", "2026-03-01T06:30:15"),
        ("2026-03-01_12345.csv", "2026-03-01"),
        ("2026.03.01_12.csv", "2026-03-01"),
        ("run-20261399.csv", None),
        ("1202603011.csv", None),
        ("/2026-03-01/run.csv", None),
    ],
)
def test_dates_in_names(name, said):
    assert date_in_name(name) == (None if said is None else day(said))


def test_identity_of_content_and_state_of_a_file(tmp_path):
    """A copy has the same identity, a changed byte another one; the state of a file changes with its time."""
    path = write_csv(tmp_path / "run.csv", columns(motion()))
    copy = tmp_path / "copy.csv"
    copy.write_bytes(path.read_bytes())
    assert content_identity(str(path)) == content_identity(str(copy))
    assert file_state(str(path)) != file_state(str(copy))
    copy.write_bytes(path.read_bytes()[:-1] + b" ")
    assert content_identity(str(path)) != content_identity(str(copy))
    before = content_identity(str(tmp_path))
    copy.rename(tmp_path / "other.csv")
    assert content_identity(str(tmp_path)) != before


def test_identity_of_a_robot_type(folder):
    where = str(folder / "arm.urdf")
    plain = RobotType("arm", where).identity
    assert RobotType("other name", where).identity == plain
    assert RobotType("arm", where, {"snap": 1e-4}).identity != plain
    assert RobotType("arm", "irp6").robot.joint_names == builtin("irp6").joint_names


def written(folder, text: str, name: str = "bad.toml"):
    (folder / name).write_text(text)
    return lambda: read_fleet(folder / name)


class TestRefusals:
    """Each error is one sentence that names the place and the remedy."""

    MODEL = '[models.arm]\ndescription = "arm.urdf"\n'

    def test_a_robot_twice(self, folder):
        text = "robot,model,log\na-1,arm.urdf,a-1/\na-1,irp6,a-2/\n"
        refused(written(folder, text, "bad.csv"), "robot 'a-1' appears twice", "arm", "irp6", error=FleetError)
        text = self.MODEL + '[robots.a-1]\nlogs="a-1/"\n[robots.a-1]\nlogs="a-2/"\n'
        refused(written(folder, text), "twice", error=FleetError)

    def test_a_model_without_description(self, folder):
        refused(written(folder, "robot,model,log\na,x9,a-1/\n", "bad.csv"), "'x9' has no description", error=FleetError)
        refused(written(folder, "[models.arm]\n"), "models: arm: 'description' is missing", error=FleetError)
        refused(written(folder, '[models.arm]\ndescription = "none.urdf"\n'), "none.urdf", "no such", error=FleetError)
        refused(written(folder, "robot,log\na-1,a-1/\n", "bad.csv"), "neither model nor description", error=FleetError)
        (folder / "arm.urdf").unlink()
        refused(lambda: read_fleet(folder), "description of a robot", error=FleetError)

    def test_unknown_columns_and_keys(self, folder):
        text = "robot,model,log,temprature\na-1,arm.urdf,a-1/,20\n"
        refused(written(folder, text, "bad.csv"), "'temprature'", "'temperature'", error=FleetError)
        refused(written(folder, "robot,model\na-1,arm.urdf\n", "bad.csv"), "no column 'log'", error=FleetError)
        refused(written(folder, self.MODEL + "descripton = 1\n"), "unknown key 'descripton'", error=FleetError)

    def test_a_mapping_that_is_missing(self, folder):
        text = self.MODEL + '[robots.a-1]\nlogs="a-1/"\nmapping="none.toml"\n'
        refused(written(folder, text), "none.toml: there is no such file", error=LogError)
        text = self.MODEL + '[robots.a-1]\nlogs="a-1/"\nmapping={positions="q"}\n'
        refused(written(folder, text), "unknown key 'positions'", error=LogError)

    def test_a_pattern_that_finds_nothing(self, folder):
        refused(written(folder, self.MODEL + '[robots.a-1]\nlogs="a-1/*.mcap"\n'), "a-1/*.mcap", error=FleetError)
        refused(written(folder, self.MODEL + 'logs="{robot}/*.mcap"\n'), "*.mcap", error=FleetError)
        refused(written(folder, self.MODEL + 'logs="{arm}/*.csv"\n'), "{arm}", "{robot}", error=FleetError)
        refused(written(folder, self.MODEL + 'logs="*/*.csv"\n'), "write {robot}", error=FleetError)
        refused(written(folder, self.MODEL + 'logs="{robot}/{date:%A}.csv"\n'), "%A", error=FleetError)

    def test_robots_without_logs_and_logs_of_two_robots(self, folder):
        refused(written(folder, self.MODEL), "names no log", error=FleetError)
        text = self.MODEL + '[robots.a-1]\nlogs="a-1/"\n[robots.a-2]\nlogs=[]\n'
        refused(written(folder, text), "robot 'a-2' has no logs", error=FleetError)
        text = self.MODEL + '[robots.a-1]\nlogs="a-1/"\n[robots.a-2]\nlogs="a-1/"\n'
        refused(written(folder, text), "'a-1'", "'a-2'", error=FleetError)

    def test_dates_and_temperatures(self, folder):
        for column, value in (("date", "yesterday"), ("temperature", "warm"), ("temperature", "-400")):
            text = f"robot,model,log,{column}\na-1,arm.urdf,a-1/,{value}\n"
            refused(written(folder, text, "bad.csv"), value, column, error=FleetError)

    def test_names_that_cannot_be_files(self, folder):
        for name in ("../a", "a/b", "a:b", "\x1b[2J", "x" * 200):
            text = f"robot,model,log\n{name},arm.urdf,a-1/\n"
            refused(written(folder, text, "bad.csv"), "the robot", error=FleetError)

    def test_a_robot_without_or_with_an_unknown_model(self, folder):
        text = self.MODEL + '[models.irp6]\ndescription="irp6"\n[robots.a-1]\nlogs="a-1/"\n'
        refused(written(folder, text), "states no model", "arm, irp6", error=FleetError)
        text = self.MODEL + '[robots.a-1]\nlogs="a-1/"\nmodel="amr"\n'
        refused(written(folder, text), "'amr'", "'arm'", error=FleetError)

    def test_sources_that_are_not_fleets(self, folder, tmp_path):
        refused(lambda: read_fleet(tmp_path / "none.toml"), "no such file", error=FleetError)
        refused(lambda: read_fleet(folder / "arm.urdf"), ".toml", ".csv", error=FleetError)
        refused(written(folder, "models = [", "bad.toml"), "not valid TOML", error=FleetError)
        (folder / "bad.parquet").write_bytes(b"PAR1 and no more")
        refused(lambda: read_fleet(folder / "bad.parquet"), "bad.parquet", error=SteelyardError)


def test_a_table_of_numbers_names_robots_as_whole_numbers(folder):
    table = {"robot": np.array([7.0, 7.0]), "model": np.array(["irp6", "irp6"]), "log": np.array(["a-1/", "a-2/"])}
    write_parquet(folder / "numbers.parquet", table)
    assert list(read_fleet(folder / "numbers.parquet").robots) == ["7"]


def test_a_pattern_matches_only_its_own_files(folder):
    (folder / "some.toml").write_text(
        '[models.arm]\ndescription = "arm.urdf"\n[robots.a-1]\nlogs = "a-1/run-{date:%Y-%m-%d}[.]*"\n'
    )
    write_csv(folder / "a-1" / "run-of-somebody.csv", columns(motion(joints=1)))
    assert len(read_fleet(folder / "some.toml").logs) == 2
