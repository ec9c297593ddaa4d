"""Outputs and error messages of `steelyard excite`."""

from __future__ import annotations

import csv
import html
import json
import re
from itertools import pairwise

import numpy as np
import pytest
import yaml
from report_pages import own_part, unpacked
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import app
from steelyard.excitation.interpolator import program_from_dict
from steelyard.excitation.trajectories import Trajectory

FILES = {
    "trajectory.csv", "trajectory.json", "joint_trajectory.yaml", "joint_trajectory.json", "program.txt",
    "program.json", "result.json", "report.html", "manifest.json", "play.md", "csv",
}  # fmt: skip
# Quick settings: the time budget ends after the first stage.
QUICK = ("--duration", "4", "--rate", "50", "--harmonics", "3", "--search-time", "0")


def run(*arguments):
    return CliRunner().invoke(app, ["excite", *arguments], env={"COLUMNS": "120", "NO_COLOR": "1"})


@pytest.fixture(scope="module")
def run_result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("excite") / "run"
    result = run("szabo3r", *QUICK, "--q", "2.5,1.2,2.5", "--dq", "3", "--ddq", "12", "-o", str(folder))
    assert result.exit_code == 0, result.output
    return folder, result.output


def test_the_run_folder_has_the_motion_in_every_format(run_result):
    folder, output = run_result
    assert {p.name for p in folder.iterdir()} == FILES
    plan = json.loads((folder / "trajectory.json").read_text())
    trajectory = Trajectory.from_dict(plan["trajectory"])
    rows = list(csv.reader((folder / "trajectory.csv").open()))
    table = np.array(rows[1:], dtype=float)
    assert rows[0] == ["t", *(f"{x}_q{k}" for x in ("q", "dq", "ddq") for k in (1, 2, 3))]
    assert table[:, 1:4] == pytest.approx(trajectory.sample(table[:, 0])[0], abs=1e-8)  # ten digits are written
    ros = json.loads((folder / "joint_trajectory.json").read_text())
    again = yaml.safe_load((folder / "joint_trajectory.yaml").read_text())
    assert again["joint_names"] == ros["joint_names"] == ["q1", "q2", "q3"]
    for one, other in zip(ros["points"], again["points"], strict=True):
        assert one["time_from_start"] == other["time_from_start"]
        assert other["positions"] == pytest.approx(one["positions"], abs=1e-8)
        assert all(isinstance(x, float | int) for x in other["accelerations"])  # YAML reads them as numbers
    program = program_from_dict(json.loads((folder / "program.json").read_text()))
    assert program.start == pytest.approx(trajectory.sample(0.0)[0])
    assert "JOINTS [" in (folder / "program.txt").read_text()
    assert "condition number" in output


def test_the_result_has_expected_errors(run_result):
    folder, _ = run_result
    result = json.loads((folder / "result.json").read_text())
    plan = json.loads((folder / "trajectory.json").read_text())
    robot = sy.load_robot("szabo3r")
    assert result["violation"] == 0.0
    assert result["base_parameters"]["count"] == sy.base_parameters(robot).rank == 15
    trajectory = Trajectory.from_dict(plan["trajectory"])
    W = sy.base_parameters(robot).regressor_columns(robot.torque_regressor(*trajectory.sample(trajectory.times(50.0))))
    dense = W.reshape(-1, 15)
    assert result["condition_number"] == pytest.approx(np.linalg.cond(dense), rel=1e-6)
    # All joints have the same expected noise here, 0.1 N m.
    expected = 0.1 * np.sqrt(np.diag(np.linalg.inv(dense.T @ dense)))
    errors = [row["expected_standard_error"] for row in result["base_parameters"]["list"]]
    assert errors == pytest.approx(expected, rel=1e-6)
    assert result["random_motion"]["condition_number"] > result["condition_number"]
    assert result["settings"]["limits"]["dq"] == "3"
    joints = result["plans"][0]["joints"]
    assert all(j["velocity"] <= 3.0 for j in joints)
    assert all(j["acceleration"] <= 12.0 for j in joints)


def test_page_terminal_and_result_warn_alike_about_unchecked_collisions(run_result):
    folder, output = run_result
    verdict = json.loads((folder / "result.json").read_text())["verdict"]
    assert verdict["grade"] == "warning"
    assert verdict["reasons"][0].startswith("Collisions were not checked")
    page = html.unescape((folder / "report.html").read_text())
    for text in (verdict["sentence"], *verdict["reasons"]):
        assert text in page
        assert text in " ".join(output.split())
    assert "keeps all limits" not in page


def test_the_report_is_self_contained_and_animated(run_result):
    page = (run_result[0] / "report.html").read_text()
    assert not re.search(r'(src|href)="https?://', own_part(page))
    (scene,) = (json.loads(unpacked(x)) for x in re.findall(r'class="scene-data">(.*?)</script>', page))
    assert len(json.dumps(scene)) < 100_000  # a small file
    (motion,) = scene["motions"]
    # The animation shows the written motion, and the figures over time share its clock.
    rows = np.loadtxt(run_result[0] / "trajectory.csv", delimiter=",", skiprows=1)
    assert np.allclose(motion["q"][0], rows[0, 1:4], atol=1e-3)
    assert page.count("data-clock=") == 2
    assert f'data-clock="&quot;{motion["log"]}&quot;"' in page
    for word in ("Joints and torques", "Path", "Standard errors to expect", "Best so far", "random motion"):
        assert word in page


def test_the_same_seed_gives_the_same_bytes_and_valid_json(run_result, tmp_path):
    options = (*QUICK, "--q", "2.5,1.2,2.5", "--dq", "3", "--ddq", "12")
    result = run("szabo3r", *options, "-o", str(tmp_path / "again"), "--json")
    stored = json.loads((run_result[0] / "result.json").read_text())
    assert stored["command"].startswith("steelyard excite szabo3r --q 2.5,1.2,2.5")  # without the output folder
    assert json.loads(result.stdout) == stored
    for name in FILES - {"csv", "manifest.json"} | {"csv/2-at-50-percent.csv"}:
        assert (tmp_path / "again" / name).read_bytes() == (run_result[0] / name).read_bytes(), name


@pytest.mark.parametrize(
    "options",
    [
        ("--optimiser", "ga", "--population", "6", "--generations", "2"),
        ("--optimiser", "ga", "--via-points", "2", "--population", "4", "--generations", "1", "--criterion", "d"),
        ("--criterion", "a", "--scaling", "unit", "--terms", "default", "--floor", "0.3", "--jerk", "200"),
        ("--moving", "q2,q3", "--equations", "q2,q3", "--posture", "0.1,0.2,0.3", "--tau", "none,", "--power", "none"),
        ("--family", "bspline", "--box=-0.4,0.4,-0.4,0.4,0.2,1.4", "--weights", "1,2,3"),
        ("--motions", "2", "--bandwidth", "2"),
    ],
    ids=["ga", "via-points", "terms and floor", "some joints", "bspline in a box", "two motions"],
)
def test_options(options, tmp_path):
    options = tuple("none" if x == "none," else x for x in options)
    result = run("szabo3r", *QUICK, *options, "-o", str(tmp_path / "run"), "--json")
    assert result.exit_code == 0, result.output + result.stderr
    document = json.loads(result.stdout)
    assert document["violation"] == 0.0
    names = {p.name for p in (tmp_path / "run").iterdir()}
    assert names >= FILES - {"program.txt", "program.json"}
    if "--motions" in options:
        assert "trajectory-2.csv" in names
    if "--posture" in options:
        first = document["plans"][0]["joints"][0]
        assert first["lowest"] == pytest.approx(0.1)
        assert first["highest"] == pytest.approx(0.1)


def test_a_search_resumes_from_its_checkpoint(tmp_path):
    options = ("szabo3r", *QUICK[:-2], "--optimiser", "ga", "--population", "6", "--checkpoint", str(tmp_path / "c"))
    assert run(*options, "--generations", "3", "--search-time", "0", "-o", str(tmp_path / "a")).exit_code == 0
    done = run(*options, "--generations", "3", "-o", str(tmp_path / "b"), "--json")
    whole = run(*options[:-2], "--generations", "3", "-o", str(tmp_path / "d"), "--json")
    assert json.loads(done.stdout)["criterion"] == json.loads(whole.stdout)["criterion"]


def test_given_logs_become_prior_information(tmp_path):
    plan = sy.excite(sy.load_robot("szabo3r"), duration=4.0, harmonics=3, search=sy.excitation.SearchSettings(
        starts=1, survivors=(), sharpness=(4.0,), repeats=1, iterations=5))  # fmt: skip
    from steelyard.rehearsal import rehearse

    rehearse(sy.load_robot("szabo3r"), plan.trajectory, truth="nominal", seeds=1).logs[0].save(tmp_path / "log.npz")
    result = run(
        "szabo3r", *QUICK, "--given", str(tmp_path / "log.npz"), "--terms", "default", "--criterion", "d", "--json"
    )
    assert result.exit_code == 0, result.output + result.stderr
    assert "prior information added" in json.loads(result.stdout)["criterion"]["of"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--q", "0.5:0.5,-1:1,-1:1"), "cannot move"),
        (("--q", ","), "--q is ','; give one number"),
        (("--dq", "0"), "cannot move"),
        (("--dq", "1,2"), "give one number, or 3"),
        (("--posture", "9,0,0"), "outside its limits"),
        (("--box", "3,4,3,4,3,4"), "region cannot be kept"),
        (("--box", "1,0,0,1,0,1"), "is empty"),
        (("--box", "0,1"), "--box is '0,1'; give 6 finite numbers"),
        (("--floor", "5"), "region cannot be kept"),
        (("--duration", "0.1"), "too few samples"),
        (("--harmonics", "1"), "2 harmonics or more"),
        (("--tau", "0.01", "--q", "0:1,0.5:1,0:0.1"), "torque limits cannot be kept"),
        (("--bandwidth", "0.1"), "above the bandwidth"),
        (("--optimiser", "simplex"), "no optimiser 'simplex'"),
        (("--via-points", "3"), "Via-points have no gradient"),
        (("--family", "chirp"), "no family 'chirp'"),
        (("--criterion", "b"), "no criterion 'b'"),
        (("--frame", "hand", "--box", "0,1,0,1,0,1"), "no link 'hand'"),
        (("--collision",), "has no collision geometry"),
        (("--equations", "q7"), "no joint 'q7'"),
        (("--given", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_bad_input_gives_a_message_exit_2_and_no_files(options, sentence, tmp_path):
    result = run("szabo3r", *QUICK, *options, "-o", str(tmp_path / "run"))
    text = " ".join((result.output + result.stderr).split())
    assert result.exit_code == 2, text
    assert sentence in text
    assert "Traceback" not in text
    assert not list(tmp_path.iterdir())


def test_an_existing_run_is_not_replaced_unasked(run_result):
    result = run("szabo3r", *QUICK, "-o", str(run_result[0]))
    assert result.exit_code == 2
    assert "--overwrite" in result.output + result.stderr


def test_static_postures(tmp_path):
    folder = tmp_path / "poses"
    result = run("szabo3r", "--poses", "6", "--q", "1,1,1", "--floor", "-2", "-o", str(folder))
    assert result.exit_code == 0, result.output
    rows = list(csv.reader((folder / "poses.csv").open()))
    table = np.array(rows[1:], dtype=float)
    assert rows[0] == ["q1", "q2", "q3"]
    assert table.shape == (6, 3)
    assert np.all(np.abs(table) <= 1.0 + 1e-9)
    few = run("szabo3r", "--poses", "1")
    assert few.exit_code == 2
    assert "too few" in " ".join(few.stderr.split())


def test_integrals_and_a_family_for_each_joint(tmp_path):
    plain, other = tmp_path / "momentum", tmp_path / "mixed"
    assert run("szabo3r", *QUICK, "--scheme", "momentum", "--window", "0.5", "-o", str(plain)).exit_code == 0
    assert json.loads((plain / "result.json").read_text())["settings"]["scheme"] == "momentum"
    result = run("szabo3r", *QUICK, "--family", "q1=quintic,q3=bspline", "-o", str(other))
    assert result.exit_code == 0, result.output
    joints = json.loads((other / "trajectory.json").read_text())["trajectory"]["joints"]
    kinds = [joint["family"] for joint in joints]
    assert kinds == ["splined-quintic", "fourier", "bspline"]
    for wrong, words in (("q9=quintic", "no joint 'q9'"), ("q1=wave", "no family 'wave'"), ("q1=", "JOINT=FAMILY")):
        bad = run("szabo3r", *QUICK, "--family", wrong)
        assert bad.exit_code == 2
        assert words in " ".join(bad.stderr.split())


@pytest.mark.parametrize("scheme", ["energy", "momentum"])
def test_a_random_motion_is_compared_with_the_rows_of_the_same_scheme(scheme: str) -> None:
    """Its condition number is that of the windowed balances, computed independently from the regressors."""
    from steelyard.excitation.motion_design import design_motions
    from steelyard.excitation.search import SearchSettings
    from steelyard.excitation.search_problem import comparison_motion
    from steelyard.excitation.trajectories import Fourier
    from steelyard.regression.base_parameters import base_parameters
    from steelyard.robot.library import builtin

    robot, rate, window = builtin("szabo3r"), 50.0, 0.2
    design = design_motions(
        robot, scheme=scheme, window=window, rate=rate, duration=4.0, harmonics=2, limits={"q": 1.0, "dq": 1.0},
        search=SearchSettings(1, (1,), (4.0, 8.0), 1, 2),
    )  # fmt: skip
    plan, base = design.plan, base_parameters(robot)
    motion = comparison_motion((Fourier(5, 4.0),) * 3, plan.limits, plan.seed)
    q, dq, _ = motion.sample(motion.times(rate))
    columns = [base.independent[base.names.index(n)] for n in plan.columns]
    dynamics = base.structure.dynamics
    if scheme == "energy":
        stored = dynamics.kinetic_energy_regressor(q, dq) + dynamics.potential_energy_regressor(q)
        stored, lost = stored[:, None], dynamics.dissipation_regressor(q, dq)[:, None]
    else:
        stored, lost = dynamics.momentum_regressor(q, dq), dynamics.remainder_regressor(q, dq)
    edges = np.arange(0, len(q), round(window * rate))
    rows = []
    for a, b in pairwise(edges.tolist()):
        middle = 0.5 * (lost[a:b] + lost[a + 1 : b + 1])
        rows.append((stored[b] - stored[a] + middle.sum(axis=0) / rate)[:, columns])
    assert design.random_motion[0] == pytest.approx(np.linalg.cond(np.concatenate(rows)), rel=1e-6)
