"""What every estimator keeps to: known parameters come back, order and units do not matter, bad data are refused.

One suite for both kinds, those that take rows and those that take experiments (`subjects.py`).
"""

from __future__ import annotations

import numpy as np
import pytest
from estimation_cases import case
from subjects import OfRows, subject

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation import (
    EstimationError,
    Prior,
    Result,
    estimator_names,
    make_estimator,
    make_experiment_estimator,
    make_physical,
)
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues

ROWS = [n for n in estimator_names(needs="rows") if n not in ("adaline", "hopfield")]
EXPERIMENT_ESTIMATORS = [*estimator_names(family="loop"), "ml"]
every = pytest.mark.parametrize("name", [*ROWS, *EXPERIMENT_ESTIMATORS])


@every
@pytest.mark.parametrize("which", [0, 1])
def test_clean_data_give_back_the_known_parameters(name: str, which: int) -> None:
    s = subject(name)
    c = s.case(s.robots[which])
    found = s.estimator.fit(s.clean(s.robots[which]), c.base)
    assert np.abs(found.beta - c.beta).max() < s.accuracy * np.abs(c.beta).max()
    assert found.result is Result.CONVERGED


@every
def test_the_full_parameters_have_the_base_parameters(name: str) -> None:
    s = subject(name)
    c = s.case("rotradi")
    for prior in (None, Prior(1.1 * c.theta)):
        found = s.estimator.fit(s.noisy(), c.base, prior)
        assert np.allclose(c.base.matrix @ found.theta, found.beta, rtol=1e-9, atol=1e-12)


@every
def test_the_order_of_rows_and_blocks_does_not_matter(name: str) -> None:
    s = subject(name)
    first, other = (s.estimator.fit(data, s.case("rotradi").base) for data in s.two_orders())
    error = first.standard_errors
    assert np.all(np.abs(first.beta - other.beta) < 1e-4 * error)  # robust fits stop at 1e-6 standard errors
    assert np.allclose(other.standard_errors, error, rtol=1e-5)


@every
def test_units_of_torque_do_not_matter(name: str) -> None:
    s = subject(name)
    base = s.case("rotradi").base
    one, milli = (s.estimator.fit(s.noisy(scale=scale), base) for scale in (1.0, 1000.0))
    assert np.allclose(milli.beta, 1000.0 * one.beta, atol=1e-4 * 1000.0 * one.standard_errors.min())
    assert np.allclose(milli.standard_errors, 1000.0 * one.standard_errors, rtol=1e-5)
    factor = 1.0 if name == "cloe" else 1000.0  # its residuals are positions
    assert np.allclose(milli.spread, factor * one.spread, rtol=1e-5)


@every
def test_the_same_data_give_the_same_bytes(name: str) -> None:
    s = subject(name)
    one, two = (s.estimator.fit(s.noisy(), s.case("rotradi").base) for _ in range(2))
    assert one.beta.tobytes() == two.beta.tobytes()
    assert one.covariance.tobytes() == two.covariance.tobytes()
    assert one.theta.tobytes() == two.theta.tobytes()
    assert one.notes == two.notes


@every
def test_a_parameter_that_the_motion_hides_is_named(name: str) -> None:
    s = subject(name)
    data, words = s.hiding()
    with pytest.raises(EstimationError, match=words):
        s.estimator.fit(data, s.case("rotradi").base)


@every
def test_a_row_that_is_not_a_number_is_named(name: str) -> None:
    s = subject(name)
    data, words = s.not_a_number()
    with pytest.raises(EstimationError, match=words):
        s.estimator.fit(data, s.case("rotradi").base)


@every
def test_no_data_no_estimate(name: str) -> None:
    s = subject(name)
    with pytest.raises(SteelyardError, match="no row"):
        s.estimator.fit(s.nothing(), s.case("rotradi").base)


@every
def test_error_bars_are_there_and_positive(name: str) -> None:
    s = subject(name)
    base = s.case("rotradi").base
    found = s.estimator.fit(s.noisy(), base)
    assert np.all(found.standard_errors > 0.0)
    assert np.linalg.eigvalsh(found.covariance / np.outer(found.standard_errors, found.standard_errors))[0] > -1e-9
    assert len(found.details["degrees_of_freedom"]) == base.rank


@pytest.mark.parametrize("name", [n for n in ROWS if n != "physical"])
def test_every_free_fit_has_a_physical_one(name: str) -> None:
    found = make_physical(name).fit(OfRows(name).noisy(), case("rotradi").base)
    assert found.physical
    assert smallest_pseudo_eigenvalues(found.theta[:30]).min() > 0.0


@pytest.mark.parametrize("name", EXPERIMENT_ESTIMATORS)
def test_rows_are_not_taken_for_an_experiment(name: str) -> None:
    with pytest.raises(EstimationError, match="needs an Experiment"):
        make_experiment_estimator(name).fit(OfRows("wls").noisy(), case("rotradi").base)  # type: ignore[arg-type]


def test_unknown_names_and_options_are_met_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'huber'"):
        make_estimator("hubber")
    with pytest.raises(UnknownNameError, match="strength"):
        make_estimator("physical", strenght=1.0)
    with pytest.raises(UnknownNameError, match="Did you mean 'cloe'"):
        make_experiment_estimator("cleo")
    with pytest.raises(UnknownNameError):
        make_physical("lsq")
