"""The stage Data: logs are added, mapped, drawn and removed; pages show what the commands read."""

from __future__ import annotations

import html as html_lib
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from conftest_studio import Client, Served, all_files

import steelyard as sy
from steelyard.project import Project
from steelyard.studio.roles import listed_logs, role_of_name, set_role
from steelyard.studio.studio_folder import StudioError, StudioFolder

ARM = sy.load_robot("rotradi")
WAVES = np.array([1.3, 2.1, 3.7])


def motion(rows: int = 3000) -> dict[str, np.ndarray]:
    t = 0.002 * np.arange(rows)
    q = 0.8 * np.sin(t[:, None] * WAVES + [0.1, 0.7, 1.9])
    dq = 0.8 * WAVES * np.cos(t[:, None] * WAVES + [0.1, 0.7, 1.9])
    return {"t": t, "q": q, "dq": dq, "tau": sy.Model.nominal(ARM).torque(q, dq, -(WAVES**2) * q)}


def write_log(path: Path, names: str = "t q{} dq{} tau{}", **changed: Any) -> Path:
    """Write a log as CSV; `changed` replaces signals."""
    table = {**motion(), **changed}
    columns = {}
    for name, x in zip(names.split(), table.values(), strict=True):
        columns |= {name.format(k + 1): x[:, k] for k in range(3)} if x.ndim == 2 else {name: x}
    np.savetxt(path, np.column_stack(list(columns.values())), "%.9g", ",", header=",".join(columns), comments="")
    return path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Client]]:
    pytest.importorskip("uvicorn", reason="the studio's packages are not installed")
    folder = tmp_path_factory.mktemp("studio") / "arm"
    folder.mkdir()
    studio = Served(folder)
    studio.start()
    yield studio, Client(studio)
    studio.end()


@pytest.fixture
def client(served: tuple[Served, Client]) -> Client:
    """A client of a studio whose folder has only a project file with a robot."""
    studio, client = served
    for path in studio.folder.rglob("*"):
        if path.is_file() and ".steelyard" not in path.parts:
            path.unlink()
    (studio.folder / "steelyard.toml").write_text('# mine\nrobot = "rotradi"\n')
    return client


def drop(client: Client, path: Path, name: str = "") -> tuple[int, str]:
    """Upload a file and add it to the project."""
    status, body, _ = client.ask("PUT", f"/upload/logs/{quote(name or path.name)}", path.read_bytes())
    assert status == 200, body
    return client.do("data/add", file=json.loads(body)["path"])


def project(client: Client) -> Project:
    return Project.load(client.studio.folder / "steelyard.toml")


def get(client: Client, what: str, **query: str) -> tuple[int, str]:
    status, body, _ = client.ask("GET", f"/data/data/{what}?{urlencode(query)}")
    return status, body.decode()


def menus(html: str) -> dict[str, str]:
    """Return the fields of the mapping form."""
    form = re.search(r'<form[^>]*data-action="data/edit".*?</form>', html, re.S)
    assert form is not None, html
    found = dict(re.findall(r'<input[^>]*name="([^"]+)" value="([^"]*)"', form[0]))
    for name, options in re.findall(r'<select name="([^"]+)">(.*?)</select>', form[0], re.S):
        chosen = re.search(r'value="([^"]*)" selected', options)
        found[name] = chosen[1] if chosen else ""
    return found


def row_of(fields: dict[str, str], column: str) -> str:
    return next(name for name, value in fields.items() if name.startswith("column.") and value == column)[7:]


def test_a_clear_log_is_mapped_at_once(client: Client, tmp_path: Path) -> None:
    status, html = drop(client, write_log(tmp_path / "run.csv"))
    assert status == 200
    assert "logs/run.csv" in html
    made = project(client)
    assert made.mapping == "columns.toml"
    assert [made.logs.identify, made.logs.validate] == [("logs/run.csv",), ()]
    (log,) = made.read_logs("identify")
    np.testing.assert_allclose(log.tau, motion()["tau"], atol=1e-6)
    assert (client.studio.folder / "steelyard.toml").read_text().startswith("# mine\n")
    drop(client, write_log(tmp_path / "other.csv"))
    assert project(client).logs.validate == ("logs/other.csv",), "the second log validates the first"
    assert "3 000 samples · 500 Hz" in get(client, "facts", log="logs/run.csv")[1]
    assert (
        "steelyard map logs/run.csv rotradi -o columns.toml"
        in client.ask("GET", "/body/data?log=logs/run.csv")[1].decode()
    )


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("broken.csv", b"t,q1,q2\n0,1\n1,2,3,4\n", "cannot be read as a table"),
        ("broken.parquet", b"PAR1 and nothing else", "is not a readable Parquet file"),
        ("empty.csv", b"", "is empty"),
        ("head.csv", b"t,q1,q2,q3\n", "has column names but no rows"),
        ("novel.pages", b"It was a dark night.", "is not a readable log"),
    ],
)
def test_an_unreadable_file_is_reported_and_removed(
    client: Client, tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    before = all_files(client.studio.folder)
    (tmp_path / name).write_bytes(content)
    status, html = drop(client, tmp_path / name)
    assert status == 200
    assert words in html
    assert name in html
    assert all_files(client.studio.folder) == before
    assert project(client).log_paths() == []


def test_only_new_files_are_added(client: Client, tmp_path: Path) -> None:
    """Other files must be refused, because unreadable files are deleted."""
    drop(client, write_log(tmp_path / "run.csv"))
    for file in ("steelyard.toml", "logs/run.csv", "logs/../steelyard.toml", "/etc/passwd", "logs/none.csv"):
        status, _ = client.do("data/add", file=file)
        assert status == 422, file
    assert {"steelyard.toml", "logs/run.csv"} <= all_files(client.studio.folder)
    assert get(client, "facts", log="../../etc/passwd")[0] == 422


def test_missing_numbers_are_asked(client: Client, tmp_path: Path) -> None:
    """A log with currents needs torque constants."""
    constants = np.array([12.0, 9.0, 5.0])
    log = write_log(tmp_path / "amps.csv", "t q{} dq{} current{}", tau=motion()["tau"] / constants)
    drop(client, log)
    assert project(client).mapping == "", "an incomplete mapping is not written"
    html = get(client, "meaning", log="logs/amps.csv")[1]
    assert "torque_constants" in html
    assert "by the word" in html, "reasons are shown"
    status, html = client.do("data/use", log="logs/amps.csv", **{"number.torque_constants": "12, 9, 5"})
    assert status == 200, html
    (read,) = project(client).read_logs()
    np.testing.assert_allclose(read.tau, motion()["tau"], atol=1e-5)
    status, html = client.do("data/use", log="logs/amps.csv", **{"number.torque_constants": "many"})
    assert status == 422
    assert "not a list of numbers" in html


def test_the_menus_set_the_mapping(client: Client, tmp_path: Path) -> None:
    """Unknown column names, degrees, two exchanged columns and a reversed sign are read as the menus say."""
    true = motion()
    changed = np.column_stack([true["tau"][:, 0], -true["tau"][:, 1], true["tau"][:, 2]])
    path = write_log(tmp_path / "odd.csv", "t a{} b{} c{}", q=np.degrees(true["q"][:, [1, 0, 2]]), tau=changed)
    drop(client, path)
    fields = menus(get(client, "meaning", log="logs/odd.csv")[1])
    joints = ARM.joint_names
    for k, joint in enumerate(joints):
        for column, signal, unit, of in (("a", "position", "deg", joints[[1, 0, 2][k]]), ("c", "torque", "", joint)):
            n = row_of(fields, f"{column}{k + 1}")
            fields |= {f"signal.{n}": signal, f"joint.{n}": of, f"unit.{n}": unit, f"sign.{n}": "1"}
    fields |= {f"sign.{row_of(fields, 'c2')}": "-1", f"signal.{row_of(fields, 't')}": "time"}
    status, html = client.do("data/edit", **fields)
    assert status == 200, html
    (read,) = project(client).read_logs()
    np.testing.assert_allclose(read.q, true["q"], atol=1e-6)
    np.testing.assert_allclose(read.tau, true["tau"], atol=1e-6)
    again = menus(get(client, "meaning", log="logs/odd.csv")[1])
    assert again[f"sign.{row_of(again, 'c2')}"] == "-1"
    assert again[f"unit.{row_of(again, 'a3')}"] == "deg"
    # The studio overwrites its own mapping file.
    status, html = client.do("data/edit", **{**again, f"sign.{row_of(again, 'c2')}": "1"})
    assert status == 200, html
    assert project(client).mapping == "columns.toml"
    (read,) = project(client).read_logs()
    np.testing.assert_allclose(read.tau, changed, atol=1e-6)
    twice = {**again, f"joint.{row_of(again, 'c2')}": joints[0]}
    status, html = client.do("data/edit", **twice)
    assert status == 422
    assert f"c1 and c2 are both the torque of {joints[0]}" in html


def test_a_mapping_of_the_user_is_never_overwritten(client: Client, tmp_path: Path) -> None:
    theirs = 'torque = "tau{}"\nposition = "q{}"\n[units]\nposition = "deg"\n'
    (client.studio.folder / "columns.toml").write_text(theirs)
    (client.studio.folder / "steelyard.toml").write_text('robot = "rotradi"\nmapping = "columns.toml"\n')
    drop(client, write_log(tmp_path / "run.csv", q=np.degrees(motion()["q"])))
    fields = menus(get(client, "meaning", log="logs/run.csv")[1])
    assert fields[f"unit.{row_of(fields, 'q2')}"] == "deg", "patterns are expanded, with their units"
    status, html = client.do("data/edit", **fields)
    assert status == 200, html
    assert (client.studio.folder / "columns.toml").read_text() == theirs
    assert project(client).mapping == "columns-2.toml"
    (read,) = project(client).read_logs()
    np.testing.assert_allclose(read.q, motion()["q"], atol=1e-6)
    client.do("data/unmap")
    assert project(client).mapping == ""
    assert (client.studio.folder / "columns-2.toml").exists()


def test_roles_are_saved_in_the_project_file(tmp_path: Path) -> None:
    folder = StudioFolder(tmp_path)
    (tmp_path / "logs").mkdir()
    for name in "abcd":
        (tmp_path / "logs" / f"{name}.csv").write_text("t,q1\n0,0\n")
    (tmp_path / "steelyard.toml").write_text(
        'robot = "rotradi"  # the arm\n[logs]\nidentify = "logs/[abc].csv"\n[logs.payload]\nbox = ["logs/d.csv"]\n'
    )
    assert {text: log.roles for text, log in listed_logs(folder).items()} == {
        "logs/a.csv": ("identify",), "logs/b.csv": ("identify",), "logs/c.csv": ("identify",),
        "logs/d.csv": ("payload",),
    }  # fmt: skip
    set_role(folder, "logs/b.csv", "validate")
    set_role(folder, "logs/d.csv", "bare")
    made = folder.project()
    assert made.logs.identify == ("logs/a.csv", "logs/c.csv"), "a pattern is expanded when a file leaves it"
    assert (made.logs.validate, made.logs.bare, made.logs.payload) == (("logs/b.csv",), ("logs/d.csv",), ())
    set_role(folder, "logs/a.csv", "")
    assert listed_logs(folder)["logs/a.csv"].roles == ()
    assert "# the arm" in (tmp_path / "steelyard.toml").read_text()
    names = ("ident__20sec", "val-p10", "Friction_3", "run", "validation", "my load", "bare arm")
    assert [role_of_name(name) for name in names] == ["identify", "validate", "friction", "", "validate", "", "bare"]
    with pytest.raises(StudioError, match="'boss' is not a role"):
        set_role(folder, "logs/a.csv", "boss")


def pyramids(client: Client) -> list[Path]:
    """List the saved plots."""
    return list(StudioFolder(client.studio.folder).state_path("pyramids", "x").parent.iterdir())


def test_a_removed_log_is_in_the_trash(client: Client, tmp_path: Path) -> None:
    content = write_log(tmp_path / "run.csv").read_bytes()
    drop(client, tmp_path / "run.csv")
    get(client, "plot", log="logs/run.csv")
    assert pyramids(client)
    html = client.ask("GET", "/body/data")[1].decode()
    assert 'data-ask="Remove logs/run.csv' in html, "there is a confirmation"
    status, _ = client.do("data/remove", log="logs/run.csv")
    assert status == 200
    assert not (client.studio.folder / "logs/run.csv").exists()
    assert project(client).log_paths() == []
    trashed = [p for p in (client.studio.folder / ".steelyard/trash").rglob("run.csv") if p.read_bytes() == content]
    assert trashed
    assert not pyramids(client)


def test_a_plot_shows_the_log_as_the_commands_read_it(client: Client, tmp_path: Path) -> None:
    drop(client, write_log(tmp_path / "run.csv", q=np.degrees(motion()["q"])))
    assert client.do("data/use", log="logs/run.csv")[0] == 200  # confirms the guess of degrees
    about = client.json("/data/data/plot?log=logs/run.csv")
    assert about["samples"] == 3000
    assert [(c["signal"], c["joint"], c["unit"]) for c in about["columns"][:1]] == [("q", ARM.joint_names[0], "rad")]
    t, q = motion()["t"], motion()["q"]
    at = client.json("/data/data/plot?log=logs/run.csv&at=2.0011")
    assert at["t"] == pytest.approx(2.002)
    np.testing.assert_allclose(at["values"][:3], q[1001], rtol=1e-5)  # float32, and nine digits in the file
    status, data, _ = client.ask("GET", "/data/data/plot?log=logs/run.csv&t0=1&t1=3&pixels=100")
    assert status == 200
    length = int.from_bytes(data[:4], "little")
    head = json.loads(data[4 : 4 + length])
    first, last = np.frombuffer(data, "<f4", 2 * head["count"], offset=4 + length).reshape(2, -1) + head["origin"]
    assert first[0] <= 1.0
    assert last[-1] >= 3.0
    low = np.frombuffer(data, "<f4", head["count"], offset=4 + length + 8 * head["count"])
    assert low.min() == pytest.approx(q[(t > first[0] - 0.001) & (t < last[-1] + 0.001), 0].min())
    for wrong in ("t0=a&t1=3&pixels=100", "t0=1&t1=3&pixels=9999999", "t0=3&t1=1&pixels=10", "at=now"):
        assert get(client, "plot", log="logs/run.csv", **dict(p.split("=") for p in wrong.split("&")))[0] == 422
    before = set(pyramids(client))
    source = html_lib.unescape(re.findall('data-plot="([^"]+)"', client.ask("GET", "/body/data")[1].decode())[0])
    assert client.ask("GET", f"{source}&at=1")[0] == 200
    client.do("data/unmap")
    assert client.ask("GET", f"{source}&at=1")[0] == 422, "an outdated page gets an error, not other numbers"
    assert client.json("/data/data/plot?log=logs/run.csv")["columns"][0]["high"] == pytest.approx(
        np.degrees(0.8), rel=1e-3
    )
    assert not before & set(pyramids(client)), "a new mapping needs a new plot"


def long_log(path: Path, rows: int, joints: int = 3, chunk: int = 250_000) -> None:
    """Write an uncompressed float64 Parquet file piece by piece."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = [f"{s}{k + 1}" for s in ("q", "dq", "tau") for k in range(joints)]
    x = np.random.default_rng(0).normal(size=(chunk, len(names)))
    with pq.ParquetWriter(path, pa.schema([("t", "f8"), *((n, "f8") for n in names)]), compression="none",
                          use_dictionary=False) as file:  # fmt: skip
        for start in range(0, rows, chunk):
            n = min(chunk, rows - start)
            columns = {"t": 0.001 * (start + np.arange(n)), **{m: x[:n, k] for k, m in enumerate(names)}}
            file.write_table(pa.table(columns))


def plotted(client: Client, log: str, seconds: float) -> dict[str, Any]:
    """Wait for a plot and return its header."""
    end = time.monotonic() + seconds
    while "wait" in (about := client.json(f"/data/data/plot?{urlencode({'log': log})}")):
        assert time.monotonic() < end, about
        time.sleep(0.2)
    return about


def test_the_plot_of_a_long_log_is_a_job(client: Client, tmp_path: Path) -> None:
    long_log(tmp_path / "long.parquet", 260_000)
    drop(client, tmp_path / "long.parquet")
    first = client.json("/data/data/plot?log=logs/long.parquet")
    assert "is being prepared" in first["wait"]
    assert "Plot of long.parquet" in client.ask("GET", "/jobs")[1].decode()
    assert plotted(client, "logs/long.parquet", 60.0)["samples"] == 260_000


def resident(pid: int) -> float:
    """Return the memory of a process [MB]."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
