"""A matched leg: its numbers, its intervals, its rollouts, and its files in MuJoCo."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import mujoco
import numpy as np
import pytest
from matching.conftest import QUANTUM, Case

from steelyard.matching import Match, match_robot
from steelyard.matching.log_windows import Windows
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.robot import Robot, load_robot


def test_rollouts_of_left_out_motion_reach_the_noise(matched: Match) -> None:
    score = matched.scores["hold-out"]
    floor = np.hypot(QUANTUM / np.sqrt(12.0), 1e-5)
    assert matched.fit.converged
    assert matched.drives.delayed == "torque"  # chosen, as it is in the plant
    assert np.all(score.windows_rms < 2.0 * floor)  # the start of each window is measured, with noise of its own
    assert np.all(score.run_rms < 2.0 * floor)
    assert np.all(score.windows_rms < 0.1 * matched.scores["description"].windows_rms)


def test_intervals_contain_the_true_numbers(matched: Match, case: Case) -> None:
    """Of 95 % intervals of some 30 numbers, many of them correlated, 85 % must hold, and not by their width."""
    plant, names = case.plant, matched.robot.joint_names
    inside = []
    for n in matched.joint_numbers:
        true = plant.delay if n.name == "delay" else getattr(plant, n.name)[names.index(n.on)]
        inside.append(abs(n.value - true) <= n.half_width)
    beta = matched.fit.coordinates.base.matrix @ plant.links
    inside += [abs(n.value - b) <= n.half_width for n, b in zip(matched.base_numbers, beta, strict=True)]
    assert np.mean(inside) >= 0.85
    dry = [n for n in matched.joint_numbers if n.name == "dry"]
    assert all(n.half_width < 0.1 * n.value for n in dry)  # friction of a moving joint is well known
    delay = next(n for n in matched.joint_numbers if n.name == "delay")
    assert abs(delay.value - plant.delay) < 2e-4


def test_numbers_that_the_logs_do_not_show_stay_at_the_description(matched: Match) -> None:
    """The first joint turns about a horizontal axis, which its own base parameters about other axes never show."""
    stays = [n for n in (*matched.base_numbers, *matched.joint_numbers) if not n.from_logs]
    assert stays
    spread = np.sqrt(np.diag(matched.posterior.covariance))
    assert np.all(
        spread <= 1.05 * np.maximum(matched.fit.coordinates.stds, spread.min()) * max(matched.posterior.inflation, 1.0)
    )
    for n in stays:
        assert abs(n.value - n.before) < 4.0 * n.standard_error + 1e-12


def test_draws_are_possible_robots(matched: Match) -> None:
    for model in matched.drawn_models():
        assert np.all(smallest_pseudo_eigenvalues(model.theta[:30]) > 0.0)
        assert np.all(model.theta[30:] >= 0.0)
    assert np.std([m.theta for m in matched.drawn_models()], axis=0)[30:].min() >= 0.0


def replay(path: Path, matched: Match, step: float) -> np.ndarray:
    """Positions as encoders show them, in MuJoCo, of the written file under the logged goals."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = step
    data = mujoco.MjData(model)
    s = max(matched.test, key=len)
    bias = matched.point.bias
    data.qpos[:] = s.motion.q[0] - bias
    data.qvel[:] = s.motion.dq[0]
    for k in range(model.nactuator):  # the goal stood at its first value before the log
        past = np.full((int(model.actuator_history[k, 0]), 1), s.goal[0, k])
        mujoco.mj_initCtrlHistory(model, data, k, None, past)
    hold = round(s.period / step)
    out = np.empty_like(s.q)
    for k in range(len(s) * hold):
        if k % hold == 0:
            out[k // hold] = data.qpos + bias
        data.ctrl[:] = s.goal[k // hold]
        mujoco.mj_step(model, data)
    return out


def test_the_written_mjcf_moves_in_mujoco_like_the_match(matched: Match, tmp_path: Path) -> None:
    """MuJoCo delays goals only; the file has a fit of its own, whose error is stated."""
    folder = matched.save(tmp_path / "run")
    path = next(folder.glob("*.xml"))
    s = max(matched.test, key=len)
    played = replay(path, matched, 2.5e-4)
    error = np.sqrt(np.mean((played - s.q) ** 2, axis=0))
    stated = matched.score_in_mujoco
    floor = np.hypot(QUANTUM / np.sqrt(12.0), 1e-5)
    assert np.all(error < 2.0 * floor)
    np.testing.assert_allclose(error, stated.run_rms, atol=0.5 * floor)
    model = mujoco.MjModel.from_xml_path(str(path))
    np.testing.assert_allclose(model.dof_frictionloss, matched.for_mujoco.point.dry, rtol=1e-12)
    np.testing.assert_allclose(model.actuator_forcerange[:, 1], matched.drives.limit)
    np.testing.assert_allclose(model.actuator_gainprm[:, 0], matched.drives.kp)
    np.testing.assert_allclose(np.ravel(model.actuator_delay), matched.for_mujoco.point.drives.delay, rtol=1e-12)


def test_an_original_mjcf_keeps_names_and_gets_drives(matched: Match, case: Case, leg: Robot, tmp_path: Path) -> None:
    source = tmp_path / "leg.xml"
    plain = tmp_path / "plain"
    matched.save(plain)
    text = next(plain.glob("*.xml")).read_text("utf-8")
    head, rest = text.split("<actuator>", 1)
    tail = rest.split("</actuator>", 1)[1]
    motors = '<motor name="a" joint="abduction"/><motor name="k" joint="knee"/>'
    own = f'<actuator>{motors}<position name="h" joint="hip_pitch" kp="5"/></actuator>'
    source.write_text(
        head + own + tail.replace("</mujoco>", '<sensor><actuatorfrc actuator="k"/></sensor></mujoco>'), "utf-8"
    )
    from steelyard.signals import part_of

    short = part_of(case.log, [(0, 1500)])
    assert short is not None
    again = match_robot(
        source,
        short,
        kp=case.plant.kp,
        kd=case.plant.kd,
        limit=case.plant.limit,
        window=1.0,
        fit=("dry",),
        delayed="goal",
        draws=1,
    )
    again.save(tmp_path / "edited")
    model = mujoco.MjModel.from_xml_path(str(next((tmp_path / "edited").glob("*.xml"))))
    assert [model.actuator(k).name for k in range(3)] == ["a", "k", "h"]
    assert model.actuator("k").trnid[0] == model.joint("knee").id
    assert model.nsensor == 1


def test_the_run_folder_is_complete(matched: Match, tmp_path: Path) -> None:
    folder = matched.save(tmp_path / "run")
    stored = json.loads((folder / "result.json").read_text("utf-8"))
    assert stored["verdict"]["kind"] == "good"
    assert {n["name"] for n in stored["joint_numbers"]} == {"armature", "viscous", "dry", "bias", "delay"}
    rows = list(csv.DictReader((folder / "draws.csv").open(encoding="utf-8")))
    assert len(rows) == 20
    assert float(rows[0]["delay"]) == pytest.approx(0.004, abs=1e-3)
    table = list(csv.DictReader((folder / "parameters.csv").open(encoding="utf-8")))
    assert all(float(r["low"]) <= float(r["value"]) <= float(r["high"]) for r in table)
    again = load_robot(next(folder.glob("*.urdf")))
    np.testing.assert_allclose(again.inertial_parameters, matched.point.links, rtol=1e-6, atol=1e-9)
    page = (folder / "report.html").read_text("utf-8")
    assert "Residual over frequency" in page


def test_a_missed_resonance_is_shown(leg: Robot, case: Case, matched: Match) -> None:
    """A second-order lag of the positions at 6 Hz stands for a flexible mount that the model lacks."""
    from dataclasses import replace

    from scipy.signal import TransferFunction, lsim

    assert not matched.missed
    w = 2 * np.pi * 6.0
    t = case.log.t
    q = case.log.q.copy()
    _, x, _ = lsim(TransferFunction([w * w], [1.0, 0.2 * w, w * w]), q[:, 2] - q[0, 2], t)
    q[:, 2] = q[0, 2] + x
    own = case.plant
    wrong = match_robot(
        leg, replace(case.log, q=q), kp=own.kp, kd=own.kd, limit=own.limit, delayed="torque", draws=1
    )  # fmt: skip
    knee = next(s for s in wrong.spectra if s.joint == "knee")
    assert knee.missed_hz is not None
    assert 2.0 < knee.missed_hz < 12.0
    assert wrong.scores["hold-out"].windows_rms[2] > 5.0 * matched.scores["hold-out"].windows_rms[2]


def test_windows_have_one_length_and_cover_the_log(matched: Match) -> None:
    windows = Windows.of(matched.train, 1.0, 2)
    assert windows.samples * len(windows) > 0.9 * sum(len(s) for s in matched.train)
    assert {q.shape for q in windows.q} == {(windows.samples, 3)}
