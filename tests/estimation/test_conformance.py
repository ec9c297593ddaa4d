"""What every estimator keeps to: known parameters come back, order and units do not matter, bad data are refused."""

from __future__ import annotations

import numpy as np
import pytest
from estimation_cases import case, in_blocks, nothing, without_columns

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation import ESTIMATORS, EstimationError, Prior, Result, make_estimator, make_physical
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues

# A ridge without a prior is drawn to zero on purpose; this one hardly.
OPTIONS = {"ridge": {"strength": 1e-12}}
every = pytest.mark.parametrize("name", ESTIMATORS)


def made(name: str):
    return make_estimator(name, **OPTIONS.get(name, {}))


def noisy(seed: int = 1, **options):
    c = case("rotradi")
    return c.data(c.noise(np.random.default_rng(seed)), **options)


@every
@pytest.mark.parametrize("robot", ["rotradi", "szabo3r"])
def test_clean_data_give_back_the_known_parameters(name: str, robot: str) -> None:
    c = case(robot)
    found = made(name).fit(c.data(), c.base)
    # Rounding times cond(A) ~ 1e3; the ridge's pull; the log-det term where residuals are nothing but rounding.
    assert np.abs(found.beta - c.beta).max() < 1e-6 * np.abs(c.beta).max()
    assert found.result is Result.CONVERGED


@every
def test_the_full_parameters_have_the_base_parameters(name: str) -> None:
    c = case("rotradi")
    for prior in (None, Prior(1.1 * c.theta)):
        found = made(name).fit(noisy(), c.base, prior)
        assert np.allclose(c.base.matrix @ found.theta, found.beta, rtol=1e-9, atol=1e-12)


@every
def test_the_order_of_rows_and_blocks_does_not_matter(name: str) -> None:
    c = case("rotradi")
    data = noisy()
    first = made(name).fit(in_blocks(data, 5, None), c.base)
    other = made(name).fit(in_blocks(data, 5, np.random.default_rng(0)), c.base)
    error = first.standard_errors
    assert np.all(np.abs(first.beta - other.beta) < 1e-4 * error)  # robust fits stop at 1e-6 standard errors
    assert np.allclose(other.standard_errors, error, rtol=1e-5)


@every
def test_units_of_torque_do_not_matter(name: str) -> None:
    c = case("rotradi")
    one = made(name).fit(noisy(), c.base)
    milli = made(name).fit(noisy(scale=1000.0), c.base)
    assert np.allclose(milli.beta, 1000.0 * one.beta, atol=1e-4 * 1000.0 * one.standard_errors.min())
    assert np.allclose(milli.standard_errors, 1000.0 * one.standard_errors, rtol=1e-5)
    assert np.allclose(milli.spread, 1000.0 * one.spread, rtol=1e-5)


@every
def test_the_same_data_give_the_same_bytes(name: str) -> None:
    c = case("rotradi")
    one, two = (made(name).fit(noisy(), c.base) for _ in range(2))
    assert one.beta.tobytes() == two.beta.tobytes()
    assert one.covariance.tobytes() == two.covariance.tobytes()
    assert one.theta.tobytes() == two.theta.tobytes()
    assert one.notes == two.notes


@every
def test_a_parameter_that_the_motion_hides_is_named(name: str) -> None:
    c = case("rotradi")
    with pytest.raises(EstimationError, match=c.base.names[4]):
        made(name).fit(without_columns(noisy(), 4), c.base)


@every
def test_a_row_that_is_not_a_number_is_named(name: str) -> None:
    c = case("rotradi")
    noise = c.noise(np.random.default_rng(1))
    noise[17, 1] = np.nan
    with pytest.raises(EstimationError, match=f"Row 18 of equation '{c.robot.joint_names[1]}'"):
        made(name).fit(c.data(noise), c.base)


@every
def test_no_data_no_estimate(name: str) -> None:
    c = case("rotradi")
    with pytest.raises(SteelyardError, match="no row"):
        made(name).fit(nothing(noisy()), c.base)


@every
def test_error_bars_are_there_and_positive(name: str) -> None:
    c = case("rotradi")
    found = made(name).fit(noisy(), c.base)
    assert np.all(found.standard_errors > 0.0)
    assert np.linalg.eigvalsh(found.covariance / np.outer(found.standard_errors, found.standard_errors))[0] > -1e-9
    assert len(found.details["degrees_of_freedom"]) == c.base.rank


@pytest.mark.parametrize("name", [n for n in ESTIMATORS if n != "physical"])
def test_every_free_fit_has_a_physical_one(name: str) -> None:
    c = case("rotradi")
    found = make_physical(name).fit(noisy(), c.base)
    assert found.physical
    assert smallest_pseudo_eigenvalues(found.theta[:30]).min() > 0.0


def test_unknown_names_and_options_are_met_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'huber'"):
        make_estimator("hubber")
    with pytest.raises(UnknownNameError, match="strength"):
        make_estimator("physical", strenght=1.0)
    with pytest.raises(UnknownNameError):
        make_physical("lsq")
