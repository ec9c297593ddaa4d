"""Conformance suite of all registered estimators: known parameters are recovered, order and units do not matter, bad
data are refused, and the attributes of the class are true.

It covers estimators of rows and of experiments (`subjects.py`). Weaker guarantees are attributes of the class, and
the suite tests these instead.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subjects import OfRows, fitted, subject

from steelyard.dynamics.evaluate import compiled_at_once
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation import (
    ESTIMATORS,
    EstimationError,
    Prior,
    Result,
    estimator_help,
    estimator_names,
    make_estimator,
    make_experiment_estimator,
    make_physical,
)
from steelyard.estimation.registry import estimator_table, fit_by_name
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues

NAMES = estimator_names()
every = pytest.mark.parametrize("name", NAMES)
# Eight filters are combinations: a step by derivatives or by points of three rules, a covariance as matrix or as root.
# Two represent all here; test_kalman.py compares all eight with the truth, and roots with matrices.
_SAME_PARTS = {"srekf", "srukf", "ckf", "srckf", "cdkf", "srcdkf"}


@pytest.fixture(autouse=True)
def same_rounding() -> Iterator[None]:
    """Make rounding independent of earlier tests: a process interprets its first samples, which rounds differently,
    and a particle filter draws other particles after a change of the last digit.
    """
    with compiled_at_once():
        yield


def or_proof(name: str, *more: int) -> Any:
    return pytest.param(name, *more, marks=[pytest.mark.proof] if name in _SAME_PARTS else [])


every_part = pytest.mark.parametrize("name", [or_proof(n) for n in NAMES])


def case_of(name: str, which: int):
    s = subject(name)
    return s, s.case(s.robots[which])


@pytest.mark.parametrize(("name", "which"), [or_proof(n, k) for n in NAMES for k in range(len(subject(n).robots))])
def test_clean_data_give_back_the_known_parameters(name: str, which: int) -> None:
    s, c = case_of(name, which)
    estimate = s.estimator.fit(s.clean(s.robots[which]), c.base)
    assert np.abs(estimate.beta - c.beta).max() < s.accuracy * np.abs(c.beta).max()
    # Without noise, filters detect integration errors and smoothed friction, which are not white.
    assert estimate.result is Result.CONVERGED or (estimate.result, s.estimator.family) == (
        Result.OVERCONFIDENT,
        "filter",
    )


@every_part
def test_the_full_parameters_have_the_base_parameters(name: str) -> None:
    s = subject(name)
    c = s.home
    for estimate in (fitted(name), s.estimator.fit(s.noisy(), c.base, Prior(1.1 * c.theta))):
        assert np.allclose(c.base.matrix @ estimate.theta, estimate.beta, rtol=1e-9, atol=1e-12)


# Two logs per estimator; of the filters only ekf.
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.proof) if n in ("ukf", "pf") else or_proof(n) for n in NAMES]
)
def test_the_order_of_rows_matters_only_as_the_class_states(name: str) -> None:
    s = subject(name)
    first, other = (s.estimator.fit(data, s.home.base) for data in s.two_orders())
    error = first.standard_errors
    change = np.abs(first.beta - other.beta) / error
    if ESTIMATORS[name].of.order_matters:
        assert change.max() > 1e-3
        return
    assert np.all(change < 1e-4)  # robust fits stop at 1e-6 standard errors
    assert np.allclose(other.standard_errors, error, rtol=1e-5)


@every_part
def test_units_of_torque_do_not_matter(name: str) -> None:
    s = subject(name)
    unit = 1024.0  # exact in floating point, since a particle filter depends on the last digit
    one, other = fitted(name), s.estimator.fit(s.noisy(scale=unit), s.home.base)
    assert np.allclose(other.beta, unit * one.beta, atol=1e-4 * unit * one.standard_errors.min())
    assert np.allclose(other.standard_errors, unit * one.standard_errors, rtol=1e-5)
    factor = 1.0 if name == "cloe" else unit  # its residuals are positions
    assert np.allclose(other.residual_std, factor * one.residual_std, rtol=1e-5)


@every_part
def test_the_same_data_give_the_same_bytes(name: str) -> None:
    one, two = fitted(name), fitted.__wrapped__(name)
    assert one.beta.tobytes() == two.beta.tobytes()
    assert one.covariance.tobytes() == two.covariance.tobytes()
    assert one.theta.tobytes() == two.theta.tobytes()
    assert one.notes == two.notes


@every
def test_an_unidentifiable_parameter_is_named(name: str) -> None:
    s = subject(name)
    data, words = s.hiding()
    with pytest.raises(EstimationError, match=words):
        s.estimator.fit(data, s.home.base)


@every
def test_a_row_that_is_not_a_number_is_named(name: str) -> None:
    s = subject(name)
    data, words = s.not_a_number()
    with pytest.raises(EstimationError, match=words):
        s.estimator.fit(data, s.home.base)


@every
def test_empty_data_are_refused(name: str) -> None:
    s = subject(name)
    with pytest.raises(SteelyardError, match=r"[Nn]o rows? "):
        s.estimator.fit(s.nothing(), s.home.base)


@every
def test_error_bars_match_the_distance_from_the_truth(name: str) -> None:
    s, estimate = subject(name), fitted(name)
    c, bars = s.home, estimate.standard_errors
    assert np.all(bars > 0.0)
    assert np.linalg.eigvalsh(estimate.covariance / np.outer(bars, bars))[0] > -1e-9
    assert len(estimate.details["degrees_of_freedom"]) == c.base.rank
    if ESTIMATORS[name].of.honest_errors:
        low, high = s.honest
        assert low < np.sqrt(np.mean(((estimate.beta - c.beta) / bars) ** 2)) < high


@every_part
def test_the_physically_possible_form_matches_the_class(name: str) -> None:
    s, entry = subject(name), ESTIMATORS[name]
    c = s.home
    itself = entry.of.physical_form == "itself"
    if not entry.has_physical_form and not itself:
        with pytest.raises(SteelyardError, match=f"'{name}' has no physically possible form; add --free"):
            fit_by_name(name, s.noisy(), c.base, physical=True)
        return
    estimate = fitted(name) if itself else fit_by_name(name, s.noisy(), c.base, physical=True)
    assert estimate.physical
    assert smallest_pseudo_eigenvalues(estimate.theta[: 10 * len(c.robot.links)]).min() > 0.0
    # It must still be an estimate of the same robot.
    assert np.sqrt(np.mean(((estimate.beta - c.beta) / estimate.standard_errors) ** 2)) < s.honest[1]


@pytest.mark.parametrize("name", [n for n in estimator_names(needs="rows") if n != "physical"])
def test_every_fit_of_rows_has_a_constrained_form(name: str) -> None:
    estimate = make_physical(name).fit(OfRows(name).noisy(), OfRows(name).home.base)
    assert estimate.physical


@pytest.mark.parametrize("name", estimator_names(needs="experiment"))
def test_rows_instead_of_an_experiment_are_refused(name: str) -> None:
    rows = OfRows("wls")
    with pytest.raises(EstimationError, match="Experiment"):
        make_experiment_estimator(name, **({"most": 99} if name == "pf" else {})).fit(rows.noisy(), rows.home.base)


@every
def test_every_estimator_describes_itself(name: str) -> None:
    entry = ESTIMATORS[name]
    assert entry.about
    assert not entry.about.endswith(".")
    assert entry.of.family != "other"
    if entry.of.needs_controller:
        assert entry.of.needs == "experiment"
    if entry.of.physical_form == "rounds":
        assert "physical" in entry.options


def test_unknown_names_and_options_get_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'huber'"):
        make_estimator("hubber")
    with pytest.raises(UnknownNameError, match="strength"):
        make_estimator("physical", strenght=1.0)
    with pytest.raises(UnknownNameError, match="Did you mean 'cloe'"):
        make_experiment_estimator("cleo")
    with pytest.raises(UnknownNameError):
        make_physical("lsq")


def test_the_table_in_the_docs_is_that_of_the_registry() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to-choose.md").read_text(encoding="utf-8")
    printed = page.split("<!-- estimators -->\n")[1].split("<!-- /estimators -->")[0]
    assert printed == estimator_table(), "print steelyard.estimation.registry.estimator_table() between the marks"


def test_the_help_names_every_estimator() -> None:
    words = re.findall(r"[\w-]+", estimator_help())
    assert {n for n in NAMES if n != "physical"} <= set(words)


def test_an_estimator_is_imported_without_the_others() -> None:
    """The default must not import filters, networks and simulations."""
    code = (
        "import sys; import steelyard.estimation.linear.least_squares; from steelyard.estimation import make_physical; "
        "make_physical('wls'); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    others = ("kalman", "neural", "simulated", "recursion", "linear.robust", "linear.total_least_squares")
    assert not [m for m in loaded if m.startswith(tuple(f"steelyard.estimation.{x}" for x in others))]
    assert "cvxpy" not in loaded


def test_a_missing_solver_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    s = OfRows("wls")
    with pytest.raises(EstimationError, match=r"needs the package cvxpy: .*pip install -e '\.\[clarabel\]'"):
        make_estimator("physical", solver="clarabel").fit(s.noisy(), s.home.base)
