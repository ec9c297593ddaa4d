"""Results of a fleet run: tables for other programs, a model of every robot, pages."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.estimation.estimate import Prior
from steelyard.estimation.possible.physical import nearest_possible
from steelyard.export import as_model
from steelyard.fleet.columns import TABLES
from steelyard.fleet.fleet import FleetOutcome, identify_fleet
from steelyard.fleet.odd_logs import OddLog
from steelyard.fleet.outliers import Outlier
from steelyard.fleet.results import fleet_tables
from steelyard.fleet.robot_page import read_run_robot
from steelyard.fleet.robot_types import FittedRobotType, file_names, fit_robot_type
from steelyard.fleet.sections import map_section, outliers_section, unused_section
from steelyard.ground.reasons import missing
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from tests.fleet.planar_fleet import made_log, truth, write_fleet
from tests.report_pages import figures, own_part, undashed

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "fleet.md"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FleetOutcome:
    """Three robots with a viscous friction of the shoulder of 0.6, 0.7 and 0.8 N m s, and a damaged log."""
    folder = tmp_path_factory.mktemp("fleet") / "logs"
    write_fleet(folder, logs=3, samples=1000)
    (folder / "arm1" / "2026-01-09.parquet").write_bytes(b"PAR1 and no more")
    return identify_fleet(folder, workers=0, plain=True, check="none")


@pytest.fixture(scope="module")
def run(found: FleetOutcome, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return found.save(tmp_path_factory.mktemp("run") / "tonight")


@pytest.fixture(scope="module")
def model(found: FleetOutcome) -> FittedRobotType:
    return found.robot_types["planar"]


def test_tables_agree_with_the_guide(run: Path) -> None:
    text = GUIDE.read_text("utf-8")
    for name, table in TABLES.items():
        about, fields = table.row, table.in_files
        read = pq.read_table(run / f"{name}.parquet")
        assert read.column_names == [f.name for f in fields] == pl.read_parquet(run / f"{name}.parquet").columns
        assert f"**`{name}.parquet`**: {about}." in text
        listed = text.split(f"**`{name}.parquet`**")[1].split("**`")[0]
        assert [line for line in re.findall(r"^\| `.*$", listed, re.MULTILINE)][: len(fields)] == [
            f"| `{f.name}` | {f.type} | {f.about} |" for f in fields
        ]


def test_the_examples_of_the_guide_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The examples for Polars and pandas run as printed; that for DuckDB runs with another SQL reader."""
    text = GUIDE.read_text("utf-8").split("## Reading the results")[1]
    blocks = [b for b in re.findall(r"```text\n(import .*?)```", text, re.DOTALL)]
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block.replace("RUN/", f"{run.as_posix()}/"), str(GUIDE), "exec"), {})
    said = capsys.readouterr().out
    assert "arm2" in said
    assert "viscous" in said
    (query,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    joints = pl.read_parquet(run / "joints.parquet")
    top = pl.SQLContext(joints=joints).execute(
        query.replace("'RUN/joints.parquet'", "joints").rstrip(" ;\n"), eager=True
    )
    assert top["joint"][0] == "shoulder"


def test_parameters_of_a_robot_are_found_in_the_table(run: Path) -> None:
    """The viscous friction of each robot's shoulder is the true one within its interval, read with Polars."""
    own = pl.read_parquet(run / "parameters.parquet").filter(
        (pl.col("kind") == "viscous") & (pl.col("joint") == "shoulder")
    )
    for row in own.iter_rows(named=True):
        made = 0.6 + 0.1 * int(row["robot"][3:])
        assert abs(row["estimate"] - made) < 4.0 * row["error"], row
        # Only the pooled error bar includes the structural error of the links: a few percent of it.
        assert row["error"] < 1.1 * row["own_error"], "pooling does not make it worse"
        assert row["unit"] == "N m s/rad"
    mean = own["mean"].unique().to_list()
    assert len(mean) == 1
    assert abs(mean[0] - 0.7) < 0.1


def test_a_log_that_could_not_be_used_is_listed_with_its_reason(run: Path) -> None:
    logs = pl.read_parquet(run / "logs.parquet")
    assert len(logs) == 10
    torn = logs.filter(~pl.col("used"))
    assert torn["robot"].to_list() == ["arm1"]
    assert "2026-01-09.parquet" in torn["reason"][0]
    dates = logs.filter(pl.col("used"))["date"].dt.date().unique().sort().to_list()
    assert [str(d) for d in dates] == ["2026-01-01", "2026-01-02", "2026-01-03"]


def test_scores_are_those_of_the_rows(found: FleetOutcome, model: FittedRobotType) -> None:
    """Residuals computed from triangles equal those of the rows."""
    scores = pl.from_arrow(found.tables["scores"])
    study = found.factors.studies["planar"].study
    log = next(log for log in model.logs if log.robot == "arm2" and log.factor is not None)
    x = model.pooled.by_name["arm2"].x
    rows = study.for_validation([made_log(200, truth(0.8), 1000)]).rows
    theta = np.zeros(rows.parameters)
    theta[list(model.base.independent)] = x[: model.base.rank]
    left = [np.concatenate(rows.residuals((1.0 + x[model.base.rank + e]) * theta)[e]) for e in range(2)]
    told = scores.filter(pl.col("log") == log.url).sort("joint", descending=True)  # type: ignore[union-attr]
    assert told["joint"].to_list() == ["shoulder", "elbow"]
    np.testing.assert_allclose(told["residual"], [np.sqrt(np.mean(u**2)) for u in left], rtol=1e-6)
    assert (told["residual_own"] <= 1.01 * told["residual"]).all()
    assert told["residual_mean"][0] > 1.05 * told["residual"][0], "the mean robot has another friction"


def test_every_robot_has_a_physically_possible_model(run: Path, model: FittedRobotType) -> None:
    files = dict(pl.read_parquet(run / "robots.parquet").select("robot", "file").iter_rows())
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.uniform(-1.0, 1.0, (3, 50, 2))
    for robot, viscous in (("arm0", 0.6), ("arm2", 0.8)):
        read = as_model(run / files[robot])
        count = read.robot.inertial_count
        assert smallest_pseudo_eigenvalues(read.theta[:count]).min() > 0.0
        beta = model.base.values(model.estimates[robot].theta)
        assert np.all(np.abs(beta - model.pooled.by_name[robot].beta) < 0.5 * model.pooled.by_name[robot].errors)
        real = truth(viscous).torque(q, dq, ddq)
        assert np.sqrt(np.mean((read.torque(q, dq, ddq) - real) ** 2)) < 0.02 * real.std()
    assert (run / "models" / "planar.urdf").is_file()


def test_starting_at_the_mean_robot_does_not_change_the_result(model: FittedRobotType) -> None:
    assert model.mean is not None
    prior = Prior(model.mean.theta)
    for robot in model.pooled.robots:
        free = robot.estimate(model.base, prior, possible=False)
        apart = model.estimates[robot.robot].beta - nearest_possible(free, prior).beta
        assert np.max(np.abs(apart) / robot.errors) < 1e-3


def test_file_names_are_unique() -> None:
    assert file_names(["a b", "a_b", "A_B", "é"]) == ["a_b", "a_b-2", "A_B-3", "é"]


def test_a_robot_type_without_a_usable_log_is_named(model: FittedRobotType) -> None:
    from steelyard.errors import SteelyardError
    from steelyard.fleet.log_factors import skipped_log

    with pytest.raises(SteelyardError, match="'planar': none of its 2 logs could be used"):
        fit_robot_type("planar", model.base, [skipped_log("Torn.").with_table_values("arm0")] * 2)


# ---------------------------------------------------------------- pages


def test_the_page_shows_the_fleet(run: Path) -> None:
    page = (run / "report.html").read_text("utf-8")
    assert not undashed(page)
    assert list(missing(json.loads((run / "result.json").read_text("utf-8")))) == []
    for title in (
        "Map of the fleet",
        "Differences between robots",
        "Scores",
        "Logs that were not used",
        "Run statistics",
    ):
        assert f">{title}</h2>" in page
    maps = [f for f in figures(page) if f["data"][0]["type"] == "heatmap"]
    assert [m["data"][0]["colorbar"]["title"]["text"] for m in maps] == [
        "friction relative to the type [%]", "residual over the median [1]", "torque gain [%]",
    ]  # fmt: skip
    z = maps[0]["data"][0]["z"]
    assert z[0][0] < -3.0 < 3.0 < z[0][2], "the shoulder friction of arm0 is below the mean, that of arm2 above"
    assert "2026-01-09.parquet" in own_part(page)


def test_a_page_of_hundreds_of_robots_stays_small(model: FittedRobotType) -> None:
    """200 robots with seven joints, and 4000 logs that were not used."""
    import pyarrow as pa

    cells = {"unit": "N m", "friction": 1.23456789, "friction_error": 0.0123456, "friction_mean": 1.1,
             "gain": 0.0123456, "gain_error": 0.00123456, "residual": 0.123456, "residual_ratio": 1.23456}  # fmt: skip
    rows = [
        {"model": "arm", "robot": f"arm-{r:03d}", "joint": f"joint{j}", **cells} for r in range(200) for j in range(7)
    ]
    made = map_section({"joints": pa.Table.from_pylist(rows)})
    assert made is not None
    assert len(made.body) < 100_000
    assert map_section({"joints": pa.Table.from_pylist(rows[:7])}) is None, "a single robot has no map"
    logs = [
        {"model": "arm", "robot": f"arm-{k % 200:03d}", "used": False, "reason": f"{k}.csv: is torn."}
        for k in range(4000)
    ]
    listed = unused_section({"logs": pa.Table.from_pylist(logs)})
    assert listed is not None
    assert len(listed.body) < 10_000
    assert "40 of 4,000" in listed.body
    robots = {robot.robot: "planar" for robot in model.pooled.robots}
    assert fleet_tables(robots, (), (), {})["robots"].num_rows == 3


def test_outliers_are_ranked_with_their_evidence(found: FleetOutcome, model: FittedRobotType) -> None:
    odd = OddLog("arm0", "https://host/a.csv?key=secret", "sign", ("elbow",), 0.9, 1e-12, "The log is turned.")
    told = (
        Outlier("mapping", "arm0", ("elbow",), (odd.url,), None, "", 1e-12, odd.sentence),
        Outlier("gear", "arm2", ("shoulder",), (), 1.7e9, "", 1e-4, "The friction of 'shoulder' grows."),
    )
    planted = replace(model, judged=replace(model.judged, outliers=told, odd=(odd,)))
    logs = [replace(log, url=odd.url) if k == 0 else log for k, log in enumerate(planted.logs)]
    tables = fleet_tables(found.factors.fleet.robots, logs, [planted], {})
    rows = tables["outliers"].to_pylist()
    assert [(r["rank"], r["robot"], r["joints"], r["score"]) for r in rows] == [
        (1, "arm0", "elbow", 12.0), (2, "arm2", "shoulder", 4.0),
    ]  # fmt: skip
    assert "secret" not in str(rows)
    (unused,) = [r for r in tables["logs"].to_pylist() if not r["used"] and r["robot"] == "arm0"]
    assert unused["reason"] == odd.sentence
    body = outliers_section(tables, 0.05).body
    assert body.index("The log is turned.") < body.index("grows")


def test_a_robot_has_its_own_page_on_request(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["fleet", str(run), "--robot", "arm1", "-o", str(tmp_path / "arm1")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "arm1" / "report.html").read_text("utf-8")
    assert "3 of 4 logs used" in page
    assert "--robot arm1</code>" in page, "how to repeat it"
    assert list(missing(json.loads((tmp_path / "arm1" / "result.json").read_text("utf-8")))) == []
    assert "2026-01-09.parquet" in page, "its log that was not used"
    assert not undashed(page)
    titles = set(re.findall(r"<h2>(.*?)</h2>", page))
    assert {"Joints", "Parameters", "Over time", "Logs"} <= titles
    bars = [t for f in figures(page) for t in f["data"] if t.get("name") == "pooled, 95 % interval"]
    assert bars
    assert all(x >= 0.0 for t in bars for x in t["error_x"]["array"])


@pytest.mark.parametrize(
    ("robot", "folder", "says"), [("arm9", "", "no robot 'arm9'"), ("arm1", "models", "has no logs.parquet")]
)
def test_a_missing_robot_or_run_gives_one_error_line(run: Path, robot: str, folder: str, says: str) -> None:
    done = CliRunner().invoke(app, ["fleet", str(run / folder), "--robot", robot])
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())


def test_a_robot_as_json(run: Path) -> None:
    document = read_run_robot(run, "arm0").to_json()
    assert {row["robot"] for row in document["parameters"]} == {"arm0"}
    assert len(document["logs"]) == 3
