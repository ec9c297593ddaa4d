"""Error bars hold for logs as drives write them: rounded positions, friction, white and correlated torque noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from coverage_cases import LoggedCase, logged_case

from steelyard.estimation.linear.rounding import rounding_noise
from steelyard.robot.library import builtin_names
from steelyard.signals.filters import LowPass, derivative
from steelyard.signals.rounding import acceleration_noise, position_steps


@dataclass(frozen=True)
class Coverage:
    """Shares within ±1.96 standard errors, without and with what rounding does in them; the lean of every parameter."""

    plain: float
    widened: float
    lean: np.ndarray  # in standard errors
    percent: np.ndarray  # of the value


def coverage(c: LoggedCase, bits: int, rho: float, runs: int, seed: int = 11) -> Coverage:
    plain, wide, lean = [], [], []
    for k in range(runs):
        # The same noise with and without rounding: what differs is rounding alone.
        found = c.fit(c.log(np.random.default_rng([seed, k]), bits, rho))
        shift = np.array(found.details.get("rounding_shift", np.zeros(c.base.rank)))
        error, bars = np.abs(found.beta - c.beta), found.standard_errors
        narrow = np.sqrt(np.maximum(bars**2 - shift**2, 1e-300))
        plain.append(error < 1.96 * narrow)
        wide.append(error < 1.96 * bars)
        lean.append((found.beta - _exact(c, rho, seed, k), narrow))
    moved, errors = (np.mean([pair[k] for pair in lean], axis=0) for k in (0, 1))
    known = np.abs(c.beta) > 5.0 * errors
    percent = 100.0 * np.abs(moved[known] / c.beta[known])
    return Coverage(float(np.mean(plain)), float(np.mean(wide)), moved / errors, percent)


@cache
def _exact(c: LoggedCase, rho: float, seed: int, k: int) -> np.ndarray:
    """The base parameters found from exact positions."""
    return c.fit(c.log(np.random.default_rng([seed, k]), None, rho), widen=False).beta


# Parameters of one run err together: 12 runs of 22 parameters leave about 2.5 % of scatter.
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_coverage_in_short(rho: float) -> None:
    found = coverage(logged_case("irp6-screws"), 17, rho, 12)
    assert 0.87 < found.plain < 0.99
    assert np.max(np.abs(found.lean)) < 0.1  # 17 bits leave no lean worth speaking of


def test_a_coarse_encoder_leans_and_the_error_bars_say_so() -> None:
    """At 12 bits least squares leans by several standard errors; measured by rounding once more, it is covered."""
    found = coverage(logged_case("rotradi"), 12, 0.0, 6)
    assert np.max(np.abs(found.lean)) > 2.0
    assert found.plain < 0.85
    assert 0.91 < found.widened < 0.995


# The first slides and turns; behind its spindle 17 bits are ticks of 76 nm, which no two samples are one apart.
@pytest.mark.parametrize(("name", "bits"), [("prrrp", 12), ("rotradi", 17), ("rotradi", 20)])
def test_the_steps_of_an_encoder_are_seen(name: str, bits: int) -> None:
    c = logged_case(name)
    log = c.log(np.random.default_rng(0), bits, 0.0)
    assert position_steps(log) == pytest.approx(c.steps(bits), rel=1e-6)
    assert not position_steps(c.log(np.random.default_rng(0), None, 0.0)).any()


def test_noise_of_accelerations_is_that_of_the_filter() -> None:
    """Against white noise sent through the same steps; its standard deviation is known to about 1.5 %."""
    low_pass = LowPass(10.0, 0.002)
    noise = np.random.default_rng(0).normal(size=(200_000, 1))
    dq = low_pass(derivative(low_pass(noise), 0.002))
    seen = float(np.std(low_pass(low_pass(derivative(dq, 0.002)))))
    assert acceleration_noise(low_pass) == pytest.approx(seen, rel=0.06)
    c = logged_case("rotradi")
    log = c.log(np.random.default_rng(0), 12, 0.0)
    assert np.all(rounding_noise([log], 10.0)[1] > 0.005)


# Runs that bring the scatter of the pooled share below 1 %: parameters of one run are not independent.
RUNS = {"arm7": 20, "ns16": 24, "irp6-wrist": 30}


@pytest.mark.proof
@pytest.mark.parametrize("rho", [0.0, 0.9])
@pytest.mark.parametrize("bits", [20, 17, 14, 12])
@pytest.mark.parametrize("name", builtin_names())
def test_coverage(name: str, bits: int, rho: float) -> None:
    c = logged_case(name)
    found = coverage(c, bits, rho, RUNS.get(name, 60))
    lean = np.abs(found.lean)
    print(
        f"\n{name:11} {bits} bits ρ={rho}: {100 * found.plain:.1f} % covered, {100 * found.widened:.1f} % widened; "
        f"lean in standard errors: median {np.median(lean):.2f}, largest {lean.max():.2f} "
        f"({c.base.names[int(lean.argmax())]}); in percent: median {np.median(found.percent):.2g}, "
        f"largest {found.percent.max():.2g}"
    )
    assert 0.92 <= found.widened <= 0.99
    if bits >= 17:
        assert found.plain <= 0.98
        assert lean.max() < 0.1
