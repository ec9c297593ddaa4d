"""A rehearsal passes where the planted parameters can be found, and fails, with the reason, where they cannot."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import app
from steelyard.excitation import SearchSettings
from steelyard.excitation.trajectories import Fourier, Trajectory
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.parameters.terms import identification_terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.rehearsal import rehearse
from steelyard.rehearsal._judge import Judge, judge_trials
from steelyard.rehearsal.plants import true_model

QUICK = SearchSettings(starts=2, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=15)


@pytest.fixture(scope="module")
def plan():
    return sy.excite(sy.load_robot("szabo3r"), duration=6.0, search=QUICK)


def lazy_motion(robot) -> Trajectory:
    """Two degrees about the middle: nothing but gravity at one posture and some friction shows."""
    families = (Fourier(3, 6.0),) * robot.dof
    calm = Trajectory.standing(families, np.full(robot.dof, 0.3))
    return calm.with_coefficients(calm.coefficients + 0.02 * np.random.default_rng(0).normal(size=calm.size))


def test_a_designed_motion_passes_on_nominal_and_perturbed_robots(plan):
    robot = sy.load_robot("szabo3r")
    for truth, seed in (("nominal", 0), ("perturbed", 1), ("perturbed", 2)):
        found = rehearse(robot, plan.trajectory, truth=truth, seed=seed, seeds=1, limits=plan.limits)
        assert found.passed, found.sentence
        assert len(found.judgements) == 4
        # No excuse for what lies outside: fewer than 19 of 25 intervals hold the truth once in a thousand.
        off = np.array([abs(row["found"] - row["true"]) / row["standard_error"] for row in found.rows])
        assert len(off) == 25
        assert f"{np.sum(off <= 1.96)} of 25 base parameters are within" in found.judgements[1].text
        assert "at least 19 required" in found.judgements[1].text
        assert found.judgements[1].passed
        # Nor are error bars too wide: a χ² of 25 is below this once in a thousand cases.
        assert np.sqrt(np.mean(off**2)) > 0.58
        true = found.identification.base.values(found.truth.theta)
        assert [row["true"] for row in found.rows] == pytest.approx(true)


def test_a_lazy_motion_fails_and_says_why():
    """Its error bars may well hold the truth, being huge; what it found predicts nothing."""
    robot = sy.load_robot("szabo3r")
    found = rehearse(robot, lazy_motion(robot), truth="perturbed", seed=1, seeds=1)
    assert not found.passed
    assert "predicts another motion" in found.sentence


def test_a_motion_beyond_its_limits_fails(plan):
    robot = sy.load_robot("szabo3r")
    narrow = sy.excitation.constraints.limits.limits_from(robot, {"q": 0.5, "dq": 0.5})
    found = rehearse(robot, plan.trajectory, truth="nominal", seeds=1, limits=narrow)
    assert not found.judgements[0].passed
    assert "stays within its limits" in found.sentence


def test_wrong_error_bars_are_noticed(plan):
    """A robot with friction that the fit does not know: the parameters are off by more than their error bars."""
    robot = sy.load_robot("szabo3r")
    terms = identification_terms(robot, ["rotor", "viscous", "coulomb"])
    found = rehearse(robot, plan.trajectory, terms=["rotor", "viscous", "coulomb"], truth="nominal", seeds=1)

    judge = Judge(robot, base_parameters(robot, terms), [plan.trajectory], plan.trajectory, plan.limits, found.noise)

    def looked_at(truth: sy.Model, noise: np.ndarray):
        z, significant = replace(judge, noise=noise).parameter_errors(found.identification.free, truth)
        return judge_trials(
            [replace(found.trials[0], z_scores=z, significant=significant)], found.identification.base.names
        )[1:3]

    wrong = found.truth.theta.copy()
    wrong[30:] *= 1.5  # half as much friction again, which the log never saw
    bars, seen = looked_at(replace(found.truth, theta=wrong), found.noise)
    assert len(terms) == 9
    assert not bars.passed
    assert not seen.passed
    # Errors that no torque shows are counted apart: they excuse nobody's error bars.
    bars, seen = looked_at(replace(found.truth, theta=wrong), 1e6 * found.noise)
    assert not bars.passed
    assert seen.passed
    told = replace(found, judgements=(found.judgements[0], bars, seen, found.judgements[3]))
    assert told.passed
    assert told.sentence.endswith("Not satisfied: the error bars are calibrated.")


def test_several_robots_are_planted_and_all_count(plan):
    """Each is one that a rehearsal of its seed alone plants; one of them that is not found fails all."""
    robot = sy.load_robot("szabo3r")
    told = []
    found = rehearse(robot, plan.trajectory, seed=3, seeds=3, limits=plan.limits, progress=told.append)
    rows = [p.results for p in told if p.results.get("of") == "rehearsal"]
    assert [{k: v for k, v in row.items() if k not in ("of", "robot", "robots")} for row in rows] == [
        trial.to_json() for trial in found.trials
    ]
    assert [(row["robot"], row["robots"]) for row in rows] == [(1, 3), (2, 3), (3, 3)]
    alone = rehearse(robot, plan.trajectory, seed=4, seeds=1, limits=plan.limits)
    z = np.array([row["z_scores"] for row in found.rows])
    assert [trial.seed for trial in found.trials] == [3, 4, 5]
    assert z.shape == (25, 3)
    assert z[:, 0] == pytest.approx([(r["found"] - r["true"]) / r["standard_error"] for r in found.rows])
    # Error bars of a robot alone also have what changes from block to block, which makes them wider by up to a third.
    assert z[:, 1] == pytest.approx([r["z_scores"][0] for r in alone.rows], rel=0.35)
    assert f"{np.sum(np.abs(z) <= 1.96)} of 75 base parameters of 3 robots are within" in found.judgements[1].text
    assert found.passed, found.sentence
    bad = replace(found.trials[1], error_share=2.0, error_text="On a motion …")
    all_of_them = judge_trials([found.trials[0], bad, found.trials[2]], found.identification.base.names)
    assert [j.passed for j in all_of_them] == [True, True, True, False]
    assert all_of_them[3].text.startswith("Of 3 robots the worst: on a motion …")
    for shares, keeps in (((0.9, 1.6, 1.0), True), ((1.2, 1.6, 1.0), False)):
        pulling = [replace(t, torque_share=x, torque_joint="q2") for t, x in zip(found.trials, shares, strict=True)]
        limits = judge_trials(pulling, found.identification.base.names)[0]
        assert limits.passed is keeps
        assert (
            "The torque of joint 'q2' reached 160.0 % of its limit on the robot with the largest torques" in limits.text
        )
    document = found.to_json()
    assert [trial["seed"] for trial in document["trials"]] == [3, 4, 5]
    assert [len(row["z_scores"]) for row in document["base_parameters"]["list"]] == [3] * 25


@pytest.mark.parametrize("name", ["szabo3r", "ns16", "prrrp", "arm7"])
def test_planted_robots_are_possible_and_differ(name):
    robot = sy.load_robot(name)
    terms = identification_terms(robot)
    nominal, one, same, other = (
        true_model(robot, terms, kind, 0.2, seed).theta
        for kind, seed in (("nominal", 0), ("perturbed", 1), ("perturbed", 1), ("perturbed", 2))
    )
    links = robot.inertial_count
    assert np.all(smallest_pseudo_eigenvalues(one[:links]) > 0.0)
    assert np.all(one[links:] >= terms.lower - 1e-12)
    assert np.array_equal(one, same)
    assert not np.allclose(one, other)
    assert np.median(np.abs(one[:links:10] / np.maximum(nominal[:links:10], 1e-9) - 1.0)) < 1.0


def test_the_command_writes_its_verdict_and_leaves_by_it(plan, tmp_path):
    runner = CliRunner()
    made = runner.invoke(
        app,
        [
            "excite",
            "szabo3r",
            "--duration",
            "6",
            "--search-time",
            "0",
            "--no-collision",
            "-o",
            str(tmp_path / "motion"),
        ],
    )
    assert made.exit_code == 0, made.output
    run = ["rehearse", "szabo3r", str(tmp_path / "motion"), "--seed", "1", "--seeds", "2"]
    good = runner.invoke(app, [*run, "-o", str(tmp_path / "good"), "--json"])
    assert good.exit_code == 0, good.output
    document = json.loads(good.output)
    assert document["passed"] is True
    assert document == json.loads((tmp_path / "good" / "result.json").read_text())
    assert {p.name for p in (tmp_path / "good").iterdir()} == {"result.json", "report.html", "log.npz", "manifest.json"}
    again = runner.invoke(app, [*run, "--json"])
    assert json.loads(again.output) == document
    # Noise as large as the torques themselves: nothing comes back.
    bad = runner.invoke(app, [*run, "--noise", "50"])
    assert bad.exit_code == 1
    assert "Failed" in bad.output
    other = runner.invoke(app, ["rehearse", "ns16", str(tmp_path / "motion")])
    assert other.exit_code == 2
    assert "was designed for joints q1, q2, q3" in " ".join((other.output + other.stderr).split())
    none = runner.invoke(app, ["rehearse", "ns16", str(tmp_path)])
    assert none.exit_code == 2
