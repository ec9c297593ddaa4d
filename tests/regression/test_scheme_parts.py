"""The parts of the schemes: filters, windows, standstill, names, and errors for wrong input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from papers.rotradi_experiment import arm, clock, identification_torque, play_torque
from regression.scheme_cases import case, robot_of, stacked
from scipy.signal import cont2discrete, lfilter, lsim
from scipy.special import gammainc
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.dynamics import Dynamics
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.parameters import Coulomb, terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.schemes import (
    SCHEMES,
    make_scheme,
    paper_motion,
    scheme_names,
    scheme_table,
    scheme_text,
)
from steelyard.regression.schemes import _blocks as blocks_module
from steelyard.regression.schemes.filtered_balance import _Cascade
from steelyard.regression.schemes.integral import _Window
from steelyard.regression.schemes.still import KnownFriction, Stillness

# ---------------------------------------------------------------- filters


@pytest.mark.parametrize("order", [1, 2, 4, 8])
def test_the_cascade_is_the_exact_filter_of_a_held_signal(order: int) -> None:
    """Against SciPy's continuous-time solution, sampled ten times as finely with the input held."""
    rng = np.random.default_rng(order)
    u, h, rate = rng.normal(size=60), 0.01, 9.11
    denominator = np.poly([-rate] * order)
    fine = np.arange(60 * 10 + 1) * h / 10
    held = np.append(np.repeat(u, 10), u[-1])
    out = lsim(([rate**order], denominator), held, fine, interp=False)[1][10::10]
    ours = _Cascade(rate, order, h).add(u[:, None])[:, 0]
    # SciPy's transfer function of order 8 in state-space form itself loses digits.
    assert_allclose(ours, out, atol=1e-13 if order < 8 else 1e-8)


def test_the_cascade_keeps_its_digits_at_low_cutoffs() -> None:
    """λh = 1e-6, order 4: after a constant input for long the gain is that of the step response."""
    count = 20_000
    ours = _Cascade(1e-3, 4, 1e-3).add(np.ones((count, 1)))[-1, 0]
    assert ours == pytest.approx(gammainc(4, 1e-6 * count), rel=1e-9)


def test_the_papers_filters_are_those_printed() -> None:
    """f1(z) = λ(1 − z⁻¹)/(1 − a z⁻¹), f2(z) = (1 − a)z⁻¹/(1 − a z⁻¹), and f2 is the zero-order hold of λ/(s + λ)."""
    c, rate = case("rotradi"), 9.11
    log = c.log(0.0025, 1.0)
    A, y = c.rows(f"filtered-dynamic:cutoff_hz={rate / (2.0 * np.pi)},torque=paper,still=0", log)
    a = np.exp(-0.0025 * rate)
    b2, a2, _ = cont2discrete(([rate], [1.0, rate]), 0.0025, "zoh")
    assert_allclose(b2.ravel(), [0.0, 1.0 - a], atol=1e-15)
    f2 = lfilter(b2.ravel(), a2, log.tau, axis=0)[1:]
    assert_allclose(np.sort(y), np.sort(f2.ravel()), rtol=1e-9, atol=1e-10)
    columns = list(c.base.independent)
    P, D = (f(log.q, log.dq)[:, 1][:, columns] for f in (c.dynamics.momentum_regressor, c.dynamics.remainder_regressor))
    expected = lfilter([rate, -rate], [1.0, -a], P - P[0], axis=0) + lfilter([0.0, 1.0 - a], [1.0, -a], D, axis=0)
    assert_allclose(A[len(log) - 1 : 2 * (len(log) - 1)], expected[1:], atol=1e-11)


# ---------------------------------------------------------------- windows


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.booleans(), st.lists(st.integers(1, 15), min_size=1, max_size=8))
def test_windows_do_not_depend_on_chunks(samples: int, every: int, growing: bool, cuts: list[int]) -> None:
    """In chunks, and by direct sums."""
    total = sum(cuts)
    x = np.random.default_rng(total).normal(size=(total, 2))
    window = _Window(samples, every, growing, 0.5)
    parts = np.split(x, np.cumsum(cuts)[:-1])
    out = np.vstack([window.add(part) for part in parts])
    ends = range(samples, total + 1, every)
    by_hand = [0.5 * x[0 if growing else e - samples : e].sum(axis=0) for e in ends]
    assert_allclose(out, np.reshape(by_hand, (-1, 2)), atol=1e-12)


@pytest.mark.parametrize(
    "scheme", ["filtered-dynamic:order=2", "momentum", "energy", "filtered-power", "momentum:growing=yes"]
)
def test_rows_do_not_depend_on_chunks(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    c = case("rotradi")
    log = c.log(0.004, 4.0)
    whole = c.rows(scheme, log)
    monkeypatch.setattr(blocks_module, "_CHUNK", 37)
    cut = c.rows(scheme, log)
    for a, b in zip(whole, cut, strict=True):
        assert_allclose(np.sort(b, axis=0), np.sort(a, axis=0), atol=1e-11)


# ---------------------------------------------------------------- standing still


def test_static_friction_is_excluded() -> None:
    """The Rotradi with true stiction: static friction is not Coulomb friction, does no work, and is excluded."""
    a = arm()
    log = play_torque(a.truth, identification_torque(0), clock(1.5), friction="stick").log()
    motions = paper_motion(log)
    beta = a.base.values(a.truth.theta)

    def worst(scheme: str) -> float:
        A, y = stacked(make_scheme(scheme).data(a.dynamics, a.base, lambda: motions), a.base.independent)
        return float(np.percentile(np.abs(A @ beta - y), 99)) / float(np.std(y))

    for scheme in ("filtered-dynamic:cutoff_hz=3.18", "momentum:window=0.05"):
        assert worst(scheme + ",still=0") > 0.1
        assert worst(scheme) < 2e-3
    assert worst("energy:window=0.05") < 2e-3


def test_a_drive_at_standstill_affects_all_its_joints() -> None:
    """Motor 3 of the IRp-6 has friction on q̇2 + q̇3: if these cancel, the equations of joints 2 and 3 are invalid."""
    robot = robot_of("irp6")
    bound = terms(robot, Coulomb(on="drive"))
    still = Stillness.of(Dynamics(robot, bound), KnownFriction.of(robot, None), None, 0.0)
    dq = np.tile([0.5, 0.4, -0.4], (2, 1))
    assert still.moving(dq).tolist() == [[True, False, False]]
    assert still.moving(np.abs(dq)).tolist() == [[True, True, True]]


# ---------------------------------------------------------------- names and wrong input


@pytest.mark.parametrize(
    "text", [*SCHEMES, "filtered-dynamic:cutoff_hz=1.45,order=2", "energy:growing=yes", "momentum:samples=10"]
)
def test_a_scheme_can_be_written_and_read(text: str) -> None:
    made = make_scheme(text)
    assert make_scheme(scheme_text(made)) == made == make_scheme(made)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("filtered", "no scheme 'filtered'"),
        ("energy:windw=1", "no option of scheme 'energy' 'windw'. Did you mean 'window'"),
        ("energy:window", "name=value"),
        ("energy:window=long", "'long' is not a number"),
        ("energy:samples=1.5", "not a whole number"),
        ("energy:growing=perhaps", "must be yes or no"),
        ("energy:window=-1", "positive number of seconds"),
        ("momentum:samples=0", "whole number of sampling intervals"),
        ("momentum:samples=2,window=1", "not both"),
        ("filtered-dynamic:cutoff_hz=0", "positive number of Hz"),
        ("filtered-power:cutoff_hz=-3", "positive number of Hz"),
        ("filtered-power:order=0", "order"),
        ("filtered-power:work=exact", "held or trapezoid or averaged or paper"),
        ("energy:work=paper", "held or trapezoid or averaged, not 'paper'"),
        ("filtered-dynamic:order=2,torque=paper", "order 1"),
        ("filtered-dynamic:still=-1", "still"),
    ],
)
def test_wrong_settings_are_named(text: str, words: str) -> None:
    with pytest.raises(SteelyardError, match=words.replace("(", r"\(")):
        make_scheme(text)


def test_help_and_documentation_know_every_scheme() -> None:
    """Help and documentation agree with the registry."""
    assert scheme_table() in (Path(__file__).parents[2] / "docs/theory/schemes.md").read_text(encoding="utf-8")
    helped = CliRunner().invoke(app, ["identify", "--help-all"]).output
    assert "".join(scheme_names().split()) in "".join(helped.split())  # however lines are broken


def test_a_window_longer_than_the_log_is_refused() -> None:
    c = case("rotradi")
    with pytest.raises(SteelyardError, match=r"window of 5 s .* 2 s long"):
        c.rows("energy:window=5", c.log(0.01, 2.0))


def test_energy_needs_all_torques() -> None:
    robot = replace(robot_of("rotradi"), torque_used=(True, True, False))
    bound = terms(robot, "viscous")
    base = base_parameters(robot, bound)
    motions = paper_motion(case("rotradi").log(0.01, 1.0))
    for scheme in ("energy", "power", "filtered-power"):
        with pytest.raises(SteelyardError, match="torque of 'q3' is not used"):
            make_scheme(scheme).data(Dynamics(robot, bound), base, lambda: motions)
    assert len(make_scheme("momentum").data(Dynamics(robot, bound), base, lambda: motions).equations) == 2


def test_curves_must_fit_the_robot() -> None:
    c = case("rotradi")
    log = c.log(0.01, 1.0)
    with pytest.raises(UnknownNameError, match="joint 'elbow'"):
        c.rows("dynamic", log, known_friction={"elbow": np.tanh})
    with pytest.raises(SteelyardError, match="2 curves"):
        c.rows("energy", log, known_friction=[np.tanh, np.tanh])
    with pytest.raises(SteelyardError, match="shape"):
        c.rows("energy", log, known_friction=[lambda v: v[:3], None, None])
