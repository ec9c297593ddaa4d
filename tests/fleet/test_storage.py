"""Remote fleets: in a bucket, behind http, in an archive; and the number of requests."""

from __future__ import annotations

import sys
import zipfile
from datetime import UTC, datetime

import numpy as np
import pytest
from bags import joint_states, write_bag
from elsewhere import http_server, s3_bucket
from log_files import URDF, columns, motion, real_logs, write_parquet
from refusals import refused

from steelyard.errors import LogError, SteelyardError, UnreachableError
from steelyard.fleet.fleet import identify_fleet
from steelyard.fleet.robot_table import read_fleet
from steelyard.fleet.storage import FleetError, content_identity, file_state, files_at
from steelyard.ground.remote import any_path
from steelyard.signals.read import read_log
from steelyard.signals.source import open_log
from tests.fleet.planar_fleet import write_fleet

DAYS = ("2026-03-01", "2026-03-02")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A robot with Parquet files, one with bags, and their description and mapping."""
    where = tmp_path_factory.mktemp("fleet")
    (where / "arm.urdf").write_text(URDF)
    (where / "mapping.toml").write_text('joints = ["shoulder"]\n')
    (where / "a-1").mkdir()
    (where / "a-2").mkdir()
    signals = motion(joints=1, samples=200)
    for k, day in enumerate(DAYS):
        write_parquet(where / "a-1" / f"{day}.parquet", columns({**signals, "tau": signals["tau"] + k}))
        bag = write_bag(where / "bag", {"/joint_states": joint_states(["shoulder"], signals)}, "mcap")
        next(bag.glob("*.mcap")).rename(where / "a-2" / f"{day}.mcap")
        (bag / "metadata.yaml").unlink()
        bag.rmdir()
    with zipfile.ZipFile(where.parent / "fleet.zip", "w") as archive:
        for file in sorted(where.rglob("*.*")):
            archive.write(file, f"all/{file.relative_to(where)}")
    return where


@pytest.fixture(scope="module")
def bucket(folder):
    with s3_bucket("arms") as (served, system):
        for file in sorted(folder.rglob("*.*")):
            system.put(str(file), f"arms/{file.relative_to(folder)}")
        yield served


def heads(fleet):
    return [(log.robot, any_path(log.url).name, log.date, log.mapping.joints) for log in fleet.logs]


def test_buckets_and_archives_are_read_like_folders(folder, bucket):
    here = read_fleet(folder)
    assert [head[:2] for head in heads(here)] == [
        (robot, f"{day}.{kind}") for robot, kind in (("a-1", "parquet"), ("a-2", "mcap")) for day in DAYS
    ]
    for source in ("s3://arms/", f"zip://all/::{folder.parent}/fleet.zip"):
        there = read_fleet(source)
        assert heads(there) == heads(here)
        assert there.robot_types["arm"].robot.joint_names == ("shoulder",)
        assert there.robot_types["arm"].identity == here.robot_types["arm"].identity
        for one, other in zip(here.logs, there.logs, strict=True):
            robot = there.type_of(other).robot
            near, far = read_log(one.url, robot, one.mapping), open_log(any_path(other.url), robot, other.mapping)
            np.testing.assert_array_equal(near.tau, far.tau)


def test_patterns_in_a_bucket(bucket, tmp_path):
    text = '[models.arm]\ndescription = "s3://arms/arm.urdf"\nlogs = "s3://arms/{robot}/{date}.*"\n'
    (tmp_path / "fleet.toml").write_text(text)
    fleet = read_fleet(tmp_path)
    assert fleet.robots == {"a-1": "arm", "a-2": "arm"}
    assert [datetime.fromtimestamp(log.date, UTC).date().isoformat() for log in fleet.logs] == 2 * list(DAYS)
    assert files_at("s3://arms/*") == [log.url for log in fleet.logs]
    assert files_at("s3://arms/a-[1]/*.parquet") == [log.url for log in fleet.logs[:2]]


def test_objects_are_identified_without_reading_them(bucket, folder):
    """The bucket's listing identifies them, without a request for a single log."""
    import s3fs

    listed = len(bucket.requests)
    urls = [log.url for log in read_fleet("s3://arms/").logs]
    assert len(bucket.requests) - listed <= 4  # two listings, the mapping and its size, for any number of robots
    begun = len(bucket.requests)
    before = [content_identity(url, file_state(url)) for url in urls]
    assert len(set(before)) == len(urls)
    assert len(bucket.requests) == begun
    system = s3fs.S3FileSystem()
    changed = system.cat_file(urls[1])
    system.pipe_file(urls[1], changed[:-1] + b"\0")
    after = [content_identity(log.url) for log in read_fleet("s3://arms/").logs]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True, True]
    system.pipe_file(urls[1], changed)
    assert [content_identity(log.url) for log in read_fleet("s3://arms/").logs] == before


def test_a_fleet_in_a_bucket_gives_the_same_result_as_on_disk(bucket, tmp_path):
    """The factors are identical, a second run requests no log, and missing and damaged logs are listed."""
    import s3fs

    write_fleet(tmp_path / "logs", robots=2, logs=2, samples=600)
    system = s3fs.S3FileSystem()
    system.mkdir("planar")
    for file in sorted((tmp_path / "logs").rglob("*.*")):
        system.put(str(file), f"planar/{file.relative_to(tmp_path / 'logs')}")
    given = {"workers": 0, "plain": True, "check": "none"}
    near = identify_fleet(tmp_path / "logs", store=tmp_path / "near", **given).factors
    far = identify_fleet("s3://planar/", store=tmp_path / "far", **given).factors
    assert {name: x.to_bytes() for name, x in near.robots.items()} == {n: x.to_bytes() for n, x in far.robots.items()}

    begun = len(bucket.requests)
    again = identify_fleet("s3://planar/", store=tmp_path / "far", **given).factors
    assert (again.tally.kept, again.tally.mapped) == (4, 0)
    assert not [path for _, path, _ in bucket.requests[begun:] if path.endswith(".parquet")]

    (tmp_path / "table.csv").write_text(
        "robot,model,log\na,s3://planar/planar.urdf,s3://planar/arm0/\na,s3://planar/planar.urdf,s3://planar/gone.csv\n"
        "a,s3://planar/planar.urdf,s3://planar/broken.parquet\n"
    )
    system.pipe_file("planar/broken.parquet", (tmp_path / "logs/arm1/2026-01-01.parquet").read_bytes()[:-50])
    some = identify_fleet(tmp_path / "table.csv", store=tmp_path / "far", **given).factors
    skipped = {log.url: log.skipped for log in some.logs if log.skipped}
    assert sorted(skipped) == ["s3://planar/broken.parquet", "s3://planar/gone.csv"]
    assert "cut short" in skipped["s3://planar/broken.parquet"]
    assert "no such file" in skipped["s3://planar/gone.csv"]
    assert some.robots["a"].samples == near.robots["arm0"].samples


def test_the_command_prints_one_error_line(folder, tmp_path, bucket, monkeypatch):
    """The exit code is 2, and one line names the problem."""
    from typer.testing import CliRunner

    from steelyard.cli import app

    monkeypatch.setitem(sys.modules, "gcsfs", None)
    written = {
        "nobody.toml": ("http://127.0.0.1:1/arm.urdf", folder / "a-1", ""),
        "mapping.toml": (folder / "arm.urdf", folder / "a-1", 'mapping = "none.yaml"'),
        "pattern.toml": (folder / "arm.urdf", folder / "a-1/*.csv", ""),
        "broken.toml": (folder / "mapping.toml", folder / "a-1", ""),
    }
    for name, (description, logs, more) in written.items():
        text = f'{more}\n[models.arm]\ndescription = "{description}"\n[robots.a]\nlogs = "{logs}"\n'
        (tmp_path / name).write_text(text)
    with http_server(folder) as served:
        for source, words in {
            "http://127.0.0.1:1/fleet.toml": "cannot be reached",
            f"{served.url}/secret.toml": "access denied",
            f"{served.url}/none.csv": "no such file",
            "s3://nobody/": "no such",
            "s3://arms/*.toml": "no such",
            "gs://bucket/fleet.toml": "gcsfs",
            "s4://bucket/fleet.toml": "s4",
            str(tmp_path / "none.toml"): "no such file",
            str(tmp_path / "nobody.toml"): "http://127.0.0.1:1/arm.urdf: cannot be reached",
            str(tmp_path / "mapping.toml"): "none.yaml: there is no such file",
            str(tmp_path / "pattern.toml"): "no log matches this pattern",
            str(tmp_path / "broken.toml"): "mapping.toml",
        }.items():
            done = CliRunner().invoke(app, ["fleet", source, "-o", str(tmp_path / "run")])
            assert done.exit_code == 2, source
            said = " ".join(done.output.split())
            assert words in said, said
            assert not (tmp_path / "run").exists()


def test_paths_in_a_table_behind_http_are_relative_to_it(folder, tmp_path):
    for name in ("arm.urdf", "mapping.toml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "run.mcap").write_bytes((folder / "a-2" / f"{DAYS[0]}.mcap").read_bytes())
    text = "robot,model,mapping,log,date\na-2,arm.urdf,mapping.toml,run.mcap,2026-03-01\n"
    (tmp_path / "fleet.csv").write_text(text)
    with http_server(tmp_path) as served:
        fleet = read_fleet(f"{served.url}/fleet.csv?key=secrecy")
        (log,) = fleet.logs
        assert (log.url, log.mapping.joints) == (f"{served.url}/run.mcap", ("shoulder",))
        assert "secrecy" not in fleet.source
        assert len(read_log(log.url, fleet.robot_types["arm"].robot, log.mapping)) == 200
        state = file_state(log.url)
        read = served.total
        assert content_identity(log.url, state) == content_identity(log.url)
        assert served.total == read
        refused(lambda: read_fleet(f"{served.url}/secret.toml"), "access denied", error=FleetError)
        refused(lambda: read_fleet(f"{served.url}/none.toml"), "no such file", error=FleetError)


def test_a_server_that_does_not_answer_is_named(folder, tmp_path):
    refused(lambda: read_fleet("http://127.0.0.1:1/fleet.toml"), "cannot be reached", error=UnreachableError)
    text = '[models.arm]\ndescription = "{0}"\n[robots.a]\nlogs = "{1}"\n'
    (tmp_path / "a.toml").write_text(text.format(folder / "arm.urdf", "http://127.0.0.1:1/*.csv"))
    refused(lambda: read_fleet(tmp_path / "a.toml"), "http://127.0.0.1:1/*.csv", error=SteelyardError)
    (tmp_path / "b.toml").write_text(text.format("http://127.0.0.1:1/arm.urdf", folder / "a-1"))
    fleet = read_fleet(tmp_path / "b.toml")
    refused(lambda: fleet.robot_types["arm"].robot, "http://127.0.0.1:1/arm.urdf", error=SteelyardError)
    (tmp_path / "c.toml").write_text(text.format(folder / "arm.urdf", "s4://bucket/*.csv"))
    refused(lambda: read_fleet(tmp_path / "c.toml"), "s4", "s3", error=FleetError)


def test_a_missing_log_is_no_error_of_the_table(folder, tmp_path):
    """It is listed when it is processed, and the run continues."""
    gone = ("http://127.0.0.1:1/run.parquet", "s3://nobody/run.parquet", str(tmp_path / "none.parquet"))
    rows = "".join(f"a,{folder}/arm.urdf,{url}\n" for url in gone)
    (tmp_path / "fleet.csv").write_text(f"robot,model,log\n{rows}")
    fleet = read_fleet(tmp_path / "fleet.csv")
    assert sorted(log.url for log in fleet.logs) == sorted(gone)
    refused(lambda: file_state(gone[2]), "none.parquet", error=LogError)


def test_months_of_one_real_arm(tmp_path):
    """Runs of a UR10e from December to February, dated by their names: a fleet of one robot."""
    data = real_logs("ur10e")
    (tmp_path / "fleet.toml").write_text(
        f"""
        [models.ur10e]
        description = "{data}/robot.urdf"

        [models.ur10e.mapping]
        torque_constants = [11.976, 11.976, 9.839, 10.763, 10.763, 10.763]

        [robots.one]
        logs = [
            "{data}/ident__{{date:%y_%m_%d}}?20*.parquet", "{data}/ident__{{date:%y_%m_%d}}?[34]*.parquet",
            "{data}/ident__{{date:%y_%m_%d}}_free.parquet",
            {{files = "{data}/ident__{{date:%y_%m_%d}}*Load.parquet", load = "2.805 kg"}},
        ]
        """
    )
    fleet = read_fleet(tmp_path)
    days = [datetime.fromtimestamp(log.date, UTC).date().isoformat() for log in fleet.logs]
    assert days == sorted(days)
    assert (days[0], days[-1]) == ("2019-12-23", "2020-02-19")
    assert sum(log.load is not None for log in fleet.logs) == 2
    robot = fleet.robot_types["ur10e"].robot
    for log in fleet.logs[:2]:
        assert open_log(any_path(log.url), robot, log.mapping).meta["torque_kind"] == "torque"
