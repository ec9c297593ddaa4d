"""Report and JSON of an identification: check, significance, intervals and scrolling tables."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.main import get_command

import steelyard as sy
from steelyard.cli.app import app
from steelyard.identification.identification import Identification
from steelyard.identification.identification_run import result_json
from steelyard.identification.identify import identify
from steelyard.identification.page import identification_report, print_identification
from steelyard.identification.parameters_page import described_base
from steelyard.identification.torque_parts import prediction_band, torque_parts
from steelyard.robot.library import builtin

TERMS = ("viscous", "coulomb:smooth=0.02", "offset", "spring")  # the arm has neither offset nor spring


def log_of(seed: int) -> sy.Log:
    """Rotradi with friction, 12 s at 250 Hz, noise of 0.5 N m."""
    robot = builtin("rotradi")
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 12.0, 0.004)
    w = 2.0 * np.pi / 12.0 * np.array([1.0, 2.0, 3.0, 5.0])[:, None]
    a = rng.normal(size=(4, 3)) * 0.6
    angle = t[:, None, None] * w + rng.uniform(0.0, 2.0 * np.pi, (4, 3))
    q, dq, ddq = ((a * w**k * f(angle)).sum(axis=1) for k, f in ((0, np.sin), (1, np.cos), (2, lambda x: -np.sin(x))))
    terms = sy.terms(robot, "viscous", sy.parameters.Coulomb(smooth=0.02))
    theta = np.concatenate([robot.inertial_parameters, np.tile([2.0], 3), np.tile([3.0], 3)])
    tau = sy.Model(robot, terms, theta).torque(q, dq, ddq) + rng.normal(0.0, 0.5, q.shape)
    return sy.Log(robot.joint_names, t, q, tau=tau)


@pytest.fixture(scope="module")
def found() -> Identification:
    return identify(builtin("rotradi"), log_of(1), [log_of(2)], terms=TERMS, significant=True)


def test_what_is_not_there_is_taken_away(found: Identification) -> None:
    """The six offsets and springs are zero in truth: each survives a test at 5 % in about one case of twenty."""
    assert found.reduced is not None
    gone = {s.name for s in found.reduced.details["removals"].steps}
    invented = {f"{s}{k}" for s in ("F0", "k") for k in (1, 2, 3)}
    assert len(gone & invented) >= 4
    assert not gone & {f"{s}{k}" for s in ("Fv", "Fc") for k in (1, 2, 3)}
    assert np.all(found.reduced.beta[[n in gone for n in found.base.names]] == 0.0)
    assert found.possible  # the delivered model is another one, and possible
    assert np.all(found.estimate.standard_errors > 0.0)
    before, after = (s[0].mean_nrmse_percent for s in (found.free_validation, found.reduced_validation))
    assert after < 1.1 * before


def test_a_free_fit_delivers_the_reduced_set() -> None:
    free = identify(builtin("rotradi"), log_of(1), terms=TERMS, significant=True, physical=False)
    assert free.estimate is free.reduced
    assert np.allclose(
        free.base.values(free.model.theta), free.reduced.beta, atol=1e-9 * np.abs(free.reduced.beta).max()
    )
    assert not np.any(free.free.beta == 0.0)


def test_json_and_terminal_tell_of_it(found: Identification) -> None:
    result = json.loads(json.dumps(result_json(found), allow_nan=False))
    told = result["significance"]
    assert told["delivered"] is False
    assert {"name", "t", "p"} == set(told["removed"][0])
    assert len(told["validation"]) == 1
    assert result["settings"]["significant"] is True
    (check,) = result["check"]
    assert check["grade"] in ("good", "usable")
    assert check["excitation"]["rank"] == found.base.rank
    out = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_identification(found, out)
    text = out.export_text()
    assert "base parameters are not significant" in text
    assert "has all parameters" in text
    assert "Check of log 1" in text


def test_the_page_has_its_sections(found: Identification) -> None:
    page = identification_report(found)
    titles = re.findall(r'<section id="[^"]+"><h2>(.*?)</h2>', page)
    assert titles == ["Torque and robot", "Reasons for the verdict", "How well it predicts", "The files",
                      "Remarks on the model", "What next",
                      "Parts of the torque", "Residuals",
                      "Data and excitation", "Assumptions", "Cut-off", "Friction", "Parameters",
                      "Significance", "The model", "Settings"]  # fmt: skip
    heads = re.findall(r'<figure class="plot"><h3>(.*?)</h3>', page)
    for over in ("time", "velocity", "position"):
        assert any(h.startswith(f"Residuals over {over}") for h in heads)
    assert "95 % interval" in page
    # Every table is in a box that scrolls.
    assert page.count("<table") == len(re.findall(r'<div class="scroll[ a-z]*" tabindex="0"><table', page))
    assert identification_report(found) == page


def test_what_next_can_be_typed(found: Identification) -> None:
    """Every command of the page is valid and has the names of the input files."""
    page = identification_report(found, [Path("my arm.urdf"), Path("data/log 1.csv"), Path("other.csv")])
    pieces = re.findall(r'<div class="command"><code>(.*?)</code>', page)
    assert len(pieces) >= 4
    program = get_command(app)
    for piece in pieces:
        name, *words = shlex.split(unescape(re.sub(r"<.*?>", "", piece)))
        assert name == "steelyard"
        command = program
        while hasattr(command, "get_command"):
            command, words = command.get_command(None, words[0]), words[1:]
        command.make_context(name, words)  # refuses unknown options and missing arguments
    assert any("'my arm.urdf'" in unescape(p) and "'data/log 1.csv'" in unescape(p) for p in pieces)


def test_the_band_holds_what_is_measured(found: Identification) -> None:
    """With noise of 0.5 N m, about 95 % of the samples of another log are inside. The parameter errors are one draw for
    the whole log: in three draws single joints had 87 to 98 %, and means over joints 92 to 96 %."""
    (score,) = found.validation
    band = prediction_band(found, score)
    assert band is not None
    inside = np.abs(score.measured - score.predicted) <= band
    assert 0.9 < inside.mean() < 0.98


def test_the_parts_of_a_torque_are_all_of_it(found: Identification) -> None:
    (score,) = found.validation
    parts, robot = torque_parts(found, score), found.robot
    whole = found.model.torque(score.q, score.dq, score.ddq)
    assert np.allclose(sum(parts.values()), whole, atol=1e-9 * np.abs(whole).max())
    inertia = np.einsum("tij,tj->ti", found.model.mass_matrix(score.q), score.ddq)
    assert np.allclose(parts["inertia"], inertia, atol=1e-9 * np.abs(inertia).max())
    # Friction dissipates energy at every instant; the arm has 2 N m s of viscous and 3 N m of dry friction in each
    # joint.
    assert np.all(parts["friction"] * score.dq >= 0.0)
    assert robot.dof == parts["gravity"].shape[1]


def test_unstated_parameters_of_a_description_are_nan(found: Identification) -> None:
    before = described_base(found)
    assert before is not None
    by_name = dict(zip(found.base.names, before, strict=True))
    assert np.isnan(by_name["F01"])  # The description states no offset.
    assert not np.isnan(by_name["Fv1"])  # It states friction.


def test_one_headline(found: Identification) -> None:
    """Verdict, terminal, report and result.json state the same error in motion."""
    headline = f"{found.torque_error.moving_percent:.1f} %"
    assert any(f"the torque error is {headline}" in reason for reason in found.verdict.reasons)
    out = Console(record=True, width=200)
    print_identification(found, out)
    text = out.export_text()
    mean = next(line for line in text.splitlines() if "mean of joints" in line).split()
    assert f"{float(mean[3]):.1f} %" == headline
    assert f"the mean error over joints is {headline} in motion" in identification_report(found)
    written = result_json(found)["torque_error"]
    assert f"{written['moving_nrmse_percent']:.1f} %" == headline
    assert written["unseen"] is True
