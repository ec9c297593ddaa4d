"""`identify` takes every estimator there is, those of other packages too, and says in a sentence what one lacks."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.estimation import ESTIMATORS, Estimate, Estimator, WeightedLeastSquares, estimator_names
from steelyard.estimation import registry as estimators
from steelyard.ground import registry as plugins
from steelyard.ground.registry import PluginWarning, Registry
from steelyard.identification.identify import identify
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot import load_robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.simulation import PD, Sensors, simulate
from steelyard.simulation.dry_friction import smooth_terms

PENDULUM = Path(__file__).parents[1] / "compare" / "pendulum.yaml"
ROBOT = load_robot(PENDULUM)
TRUTH = Model(ROBOT, smooth_terms(Model.nominal(ROBOT).terms, 0.05), Model.nominal(ROBOT).theta)
CONTROLLER = PD.for_model(TRUTH, bandwidth_rad_s=40.0)
NAMES = [name for name in estimator_names() if name != "physical"]
# All filters come the same way; ekf, ukf, srukf and pf always, the others' fits are those of tests/estimation.
SAME_WAY = {"srekf", "ckf", "srckf", "cdkf", "srcdkf"}


class Swing:
    """Three sines."""

    def sample(self, t: Any) -> Any:
        w = np.array([2.0, 5.0, 7.0])
        angle = np.asarray(t)[:, None] * w
        parts = 0.4 * np.sin(angle), 0.4 * w * np.cos(angle), -0.4 * w**2 * np.sin(angle)
        return tuple(x.sum(axis=1, keepdims=True) for x in parts)


@cache
def log() -> Log:
    sensors = Sensors(position_noise=1e-5, torque_noise=0.02, seed=1)
    made = simulate(TRUTH, CONTROLLER, duration=2.0, step=2e-3, dq0=[5.6], reference=Swing(), sensors=sensors).log()
    return replace(made, dq=None)


@pytest.fixture
def controller(tmp_path: Path) -> Path:
    """A controller file of the pendulum, with the file of its reference."""
    t = log().t
    q, dq, ddq = Swing().sample(t)
    Log(ROBOT.joint_names, t, q, dq, ddq).save(tmp_path / "wanted.csv")
    path = tmp_path / "controller.yaml"
    path.write_text(
        f"kind: pd\nkp: [{float(CONTROLLER.kp[0])!r}]\nkd: {float(CONTROLLER.kd[0])!r}\nrate: 500\n"
        "reference: {file: wanted.csv}\n"
    )
    return path


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.proof] * (n in SAME_WAY)) for n in NAMES])
def test_every_estimator_finds_the_pendulum_from_its_log(name: str, controller: Path) -> None:
    known = ESTIMATORS[name]
    found = identify(
        ROBOT, log(), estimator=name, terms=TRUTH.terms, physical=known.has_physical_form,
        preparation=Preparation(cutoff_hz=40.0), controller=controller if known.of.needs_controller else None,
    )  # fmt: skip
    beta = base_parameters(ROBOT, TRUTH.terms).values(TRUTH.theta)
    # Noise of 0.02 N m on torques of some 5 N m, and a low-pass over the friction's jump: a few percent of the largest.
    assert np.abs(found.estimate.beta - beta).max() < 0.05 * np.abs(beta).max()
    assert found.estimate.physical == known.has_physical_form
    assert found.settings.controller == ("controller.yaml" if known.of.needs_controller else "")


def test_what_an_estimator_lacks_is_said_in_a_sentence(controller: Path) -> None:
    def refused(words: str, **options: Any) -> None:
        with pytest.raises(SteelyardError, match=words):
            identify(ROBOT, log(), terms=TRUTH.terms, **options)

    refused("'didim' simulates the closed loop: give --controller FILE", estimator="didim")
    refused("'adaline' has no physically possible form; add --free", estimator="adaline")
    refused("give the option --physical together with one", estimator="physical")
    refused("'wls' does not use a controller", estimator="wls", controller=controller)
    refused("'ml' uses the motion and not the rows", estimator="ml", scheme="energy")
    refused("'ml' does not support --significant", estimator="ml", significant=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("kind: pd", "kind: pdd"), "controller.yaml: kind: 'pdd' is unknown; write one of pd"),
        (("kd:", "kdd:"), "unknown key 'kdd'; did you mean 'kd'"),
        (("rate: 500", "rate: -1"), "rate: -1 must be positive"),
        (("rate: 500", "lag: 0.001"), "pd does not have lag"),
        (("kp: [", "kp: [1.0, "), "kp: has 2 numbers, not 1"),
        (("kp: [", "kp: [-"), "must not be negative"),
        (("wanted.csv", "nowhere.csv"), "nowhere.csv"),
        (("reference:", "# reference:"), "'reference' is missing"),
    ],
)
def test_a_controller_that_is_written_wrongly_is_put_right(
    change: tuple[str, str], words: str, controller: Path
) -> None:
    controller.write_text(controller.read_text().replace(*change))
    with pytest.raises(SteelyardError) as caught:
        identify(ROBOT, log(), terms=TRUTH.terms, estimator="didim", controller=controller)
    assert words in str(caught.value)


def test_a_reference_on_another_clock_is_refused(controller: Path) -> None:
    later = replace(log(), t=log().t + 100.0)
    with pytest.raises(SteelyardError, match=r"wanted\.csv: the reference covers t = 0 to 2 s"):
        identify(ROBOT, later, terms=TRUTH.terms, estimator="didim", controller=controller)


def test_the_command_takes_a_controller(controller: Path, tmp_path: Path) -> None:
    log().save(tmp_path / "log.csv")
    words = ["identify", str(PENDULUM), str(tmp_path / "log.csv"), "--estimator", "cloe", "--terms", "viscous,coulomb"]
    out = CliRunner().invoke(app, [*words, "--controller", str(controller), "--json"])
    assert out.exit_code == 0, out.output
    assert '"controller": "controller.yaml"' in out.output


@dataclass(frozen=True)
class Halved(Estimator[Any]):
    """From elsewhere: half of what weighted least squares finds."""

    about = "half a robot"
    physical_form = "none"

    def fit(self, data: Any, /, base: Any, prior: Any = None) -> Estimate:
        found = WeightedLeastSquares().fit(data, base, prior)
        return replace(found, beta=0.5 * found.beta, theta=0.5 * found.theta)


def test_an_estimator_of_another_package_is_used_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package announces two under "steelyard.estimators"; the one that cannot be loaded stops nothing."""
    module = ModuleType("elsewhere")
    module.Halved = Halved  # type: ignore[attr-defined]
    module.Nothing = 3  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "elsewhere", module)
    group = "steelyard.estimators"
    points = [EntryPoint(n, f"elsewhere:{h}", group) for n, h in (("mine", "Halved"), ("broken", "Nothing"))]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    fresh: Registry[Any] = Registry("estimator", (), group, estimators._from_entry_point)
    for name in ESTIMATORS:
        fresh.register(name)(ESTIMATORS[name])
    monkeypatch.setattr(estimators, "ESTIMATORS", fresh)
    with pytest.warns(
        PluginWarning, match="The estimator 'broken' is left out, it cannot be loaded .*must be a subclass"
    ):
        mine = identify(ROBOT, log(), estimator="mine", terms=TRUTH.terms, physical=False)
    plain = identify(ROBOT, log(), estimator="wls", terms=TRUTH.terms, physical=False)
    assert np.allclose(mine.estimate.beta, 0.5 * plain.estimate.beta, rtol=1e-12)
    with pytest.raises(SteelyardError, match="'mine' has no physically possible form"):
        identify(ROBOT, log(), estimator="mine", terms=TRUTH.terms)


@pytest.mark.parametrize(
    ("name", "source"),
    [("ekf", "least squares of the same log"), ("ekf:start=prior", "from the prior, which is independent")],
)
def test_a_filter_says_what_it_started_from(name: str, source: str) -> None:
    found = identify(ROBOT, log(), estimator=name, terms=TRUTH.terms, preparation=Preparation(cutoff_hz=40.0))
    assert any(source in note for note in found.estimate.notes)
    assert found.settings.estimator == name


def test_settings_behind_a_name_reach_the_estimator() -> None:
    assert estimators.spelled_estimator("adaline:networks=per-row,epochs=7").make() == ESTIMATORS["adaline"].make(
        networks="per-row", epochs=7
    )
    assert estimators.spelled_estimator("ukf:start=prior:inflation=3").make().tuning.inflation == 3.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ekf:strat=prior", "There is no option of estimator 'ekf' 'strat'. Did you mean 'start'"),
        ("ekf:start", "write options as name=value, e.g. ekf:start=prior"),
        ("ekf:start=log", 'start is "auto", "prior" or "least-squares", not "log"'),
        ("ekf:passes=two", "'two' is not a whole number"),
        ("ekff:start=prior", "Did you mean 'ekf'"),
        ("clie:physical=yes", "no option of estimator 'clie' 'physical'"),
    ],
)
def test_settings_that_are_none_are_met_with_a_sentence(text: str, words: str) -> None:
    with pytest.raises(SteelyardError, match=words):
        estimators.spelled_estimator(text).make()
