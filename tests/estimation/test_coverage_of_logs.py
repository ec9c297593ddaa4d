"""Error bars are valid for logs like those of drives: rounded positions, friction, white and correlated torque
noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from coverage_cases import LoggedCase, logged_case

from steelyard.estimation.linear.rounding_bias import rounding_noise
from steelyard.robot.library import builtin_names
from steelyard.signals.filters import LowPass, derivative
from steelyard.signals.rounding import acceleration_noise, position_steps


@dataclass(frozen=True)
class Coverage:
    """Shares within ±1.96 standard errors, without and with the effect of rounding in them; the bias of every
    parameter."""

    plain: float
    widened: float
    bias: np.ndarray  # in standard errors
    percent: np.ndarray  # of the value


def coverage(c: LoggedCase, bits: int, rho: float, runs: int, seed: int = 11) -> Coverage:
    plain, wide, bias = [], [], []
    for k in range(runs):
        # Equal noise with and without rounding, so that the difference is the effect of rounding.
        estimate = c.fit(c.log(np.random.default_rng([seed, k]), bits, rho))
        shift = np.array(estimate.details.get("rounding_shift", np.zeros(c.base.rank)))
        error, bars = np.abs(estimate.beta - c.beta), estimate.standard_errors
        narrow = np.sqrt(np.maximum(bars**2 - shift**2, 1e-300))
        plain.append(error < 1.96 * narrow)
        wide.append(error < 1.96 * bars)
        bias.append((estimate.beta - _exact(c, rho, seed, k), narrow))
    shift_mean, errors = (np.mean([pair[k] for pair in bias], axis=0) for k in (0, 1))
    known = np.abs(c.beta) > 5.0 * errors
    percent = 100.0 * np.abs(shift_mean[known] / c.beta[known])
    return Coverage(float(np.mean(plain)), float(np.mean(wide)), shift_mean / errors, percent)


@cache
def _exact(c: LoggedCase, rho: float, seed: int, k: int) -> np.ndarray:
    """Base parameters from exact positions."""
    return c.fit(c.log(np.random.default_rng([seed, k]), None, rho), widen=False).beta


# Errors of one run are correlated: 12 runs of 22 parameters leave a scatter of about 2.5 %.
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_coverage_in_short(rho: float) -> None:
    estimate = coverage(logged_case("irp6-screws"), 17, rho, 12)
    assert 0.87 < estimate.plain < 0.99
    assert np.max(np.abs(estimate.bias)) < 0.1  # the bias at 17 bits is negligible


def test_error_bars_cover_the_bias_of_a_coarse_encoder() -> None:
    """At 12 bits the bias of least squares is several standard errors; a second rounding measures it, and it is
    covered."""
    estimate = coverage(logged_case("rotradi"), 12, 0.0, 6)
    assert np.max(np.abs(estimate.bias)) > 2.0
    assert estimate.plain < 0.85
    assert 0.91 < estimate.widened < 0.995


# The first has prismatic and revolute joints; behind its spindle 17 bits are ticks of 76 nm.
@pytest.mark.parametrize(("name", "bits"), [("prrrp", 12), ("rotradi", 17), ("rotradi", 20)])
def test_the_steps_of_an_encoder_are_detected(name: str, bits: int) -> None:
    c = logged_case(name)
    log = c.log(np.random.default_rng(0), bits, 0.0)
    assert position_steps(log) == pytest.approx(c.steps(bits), rel=1e-6)
    assert not position_steps(c.log(np.random.default_rng(0), None, 0.0)).any()


def test_noise_of_accelerations_is_that_of_the_filter() -> None:
    """Compared with filtered white noise, whose standard deviation is accurate to about 1.5 %."""
    low_pass = LowPass(10.0, 0.002)
    noise = np.random.default_rng(0).normal(size=(200_000, 1))
    dq = low_pass(derivative(low_pass(noise), 0.002))
    measured = float(np.std(low_pass(low_pass(derivative(dq, 0.002)))))
    assert acceleration_noise(low_pass) == pytest.approx(measured, rel=0.06)
    c = logged_case("rotradi")
    log = c.log(np.random.default_rng(0), 12, 0.0)
    assert np.all(rounding_noise([log], 10.0)[1] > 0.005)


# Numbers of runs for a scatter of the pooled share below 1 %; parameters of one run are correlated.
RUNS = {"arm7": 20, "ns16": 24, "irp6-wrist": 30}


@pytest.mark.proof
@pytest.mark.parametrize("rho", [0.0, 0.9])
@pytest.mark.parametrize("bits", [20, 17, 14, 12])
@pytest.mark.parametrize("name", builtin_names())
def test_coverage(name: str, bits: int, rho: float) -> None:
    c = logged_case(name)
    estimate = coverage(c, bits, rho, RUNS.get(name, 60))
    bias = np.abs(estimate.bias)
    print(
        f"\n{name:11} {bits} bits ρ={rho}: {100 * estimate.plain:.1f} % covered, {100 * estimate.widened:.1f} % "
        f"widened; lean in standard errors: median {np.median(bias):.2f}, largest {bias.max():.2f} "
        f"({c.base.names[int(bias.argmax())]}); in percent: median {np.median(estimate.percent):.2g}, "
        f"largest {estimate.percent.max():.2g}"
    )
    assert 0.92 <= estimate.widened <= 0.99
    if bits >= 17:
        assert estimate.plain <= 0.98
        assert bias.max() < 0.1
