"""Factors of logs give the same fits, error bars and scores as `identify` with all rows."""

from __future__ import annotations

import hashlib
import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.estimation import LogSums
from steelyard.fleet._stacks import LogStack
from steelyard.fleet.log_factors import FactorsError, LogFactors, log_factors, merge_factors, skipped_log
from steelyard.study import Study
from tests.fleet.planar_fleet import made_log, planar

TERMS = "viscous,coulomb,offset"


@cache
def study(*seeds: int) -> Study:
    return Study.of(planar(), [made_log(seed) for seed in seeds], TERMS)


@cache
def factors(seed: int) -> LogFactors:
    one = study(seed)
    model, left = one.quick_fit()
    return log_factors(one, one.base.values(model.theta), left)


def test_the_fit_of_merged_factors_equals_that_of_all_rows() -> None:
    every = study(1, 2, 3)
    merged = merge_factors([factors(1), factors(2), factors(3)])
    assert merged.factor is not None
    columns, weights = every.base.independent, [1.0, 3.0]
    own = every.rows.factor().solve(weights, columns)
    # The logs' own cut-offs differ by some percent, so the results agree within a part of their errors.
    np.testing.assert_allclose(merged.factor.solve(weights, columns), own, rtol=0.02, atol=0.02)
    assert merged.logs == 3
    assert merged.samples == 4500


def test_error_bars_equal_those_of_log_comparison() -> None:
    """Meat and scatter equal the weighted sums that `identify` makes for several logs."""
    one, mine = study(1), factors(1)
    columns = one.base.independent
    model, left = one.quick_fit()
    sums = LogSums((one.rows,), one.base, one.base.values(model.theta), left)
    w2 = sums.weights**2
    stack = LogStack.of([mine], columns)
    np.testing.assert_allclose(stack.meats[0] * w2[:, None, None] ** 2, sums.noise[0], rtol=1e-9, atol=1e-9)
    scatter = np.diagonal(sums.scatter[0], axis1=1, axis2=2)
    np.testing.assert_allclose(stack.squares[0] * w2[:, None] ** 2, scatter, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(stack.grams[0], sums.grams[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(mine.residual_std, 1.0 / sums.weights, rtol=1e-3)


def test_residual_power_by_band_adds_up_to_the_residuals() -> None:
    mine = factors(2)
    counts, power = study(2).rows.reduction().spectra.residual_power(np.zeros(study(2).rows.parameters))
    squares = [float(r[:, -1] @ r[:, -1]) for r in mine.factor.triangles]  # type: ignore[union-attr]
    np.testing.assert_allclose(power.sum(axis=1), squares, rtol=1e-9)
    np.testing.assert_allclose(counts.sum(axis=1), mine.rows)
    np.testing.assert_allclose((mine.power * counts).sum(axis=1), mine.residual_squares, rtol=1e-6)


def test_serialisation_is_exact() -> None:
    mine = factors(1)
    back = LogFactors.from_bytes(mine.to_bytes())
    assert back.to_bytes() == mine.to_bytes()
    for a, b in zip(mine.factor.triangles, back.factor.triangles, strict=True):  # type: ignore[union-attr]
        assert np.array_equal(a, b)
    assert all(np.array_equal(a, b) for a, b in zip(mine.scores, back.scores, strict=True))
    assert (back.samples, back.duration_s, back.findings) == (mine.samples, mine.duration_s, mine.findings)
    assert len(mine.to_bytes()) < 20_000, "two joints"
    none = LogFactors.from_bytes(skipped_log("The file is torn.").to_bytes())
    assert none.factor is None
    assert none.skipped == "The file is torn."


@given(st.integers(0, 10**9), st.integers(0, 255))
def test_damaged_bytes_are_detected(place: int, value: int) -> None:
    good = skipped_log("nothing").to_bytes() + b""
    torn = bytearray(good)
    if torn[place % len(good)] == value:
        return
    torn[place % len(good)] = value
    for bad in (bytes(torn), good[: place % len(good)]):
        with pytest.raises(FactorsError):
            LogFactors.from_bytes(bad)


@pytest.mark.parametrize("count", [2, 9, 20])
def test_merging_weights_all_logs_equally(count: int) -> None:
    parts = [factors(1 + k % 3).with_table_values("a") for k in range(count)]
    merged, columns = merge_factors(parts), study(1).base.independent
    whole, logs = LogStack.of([merged], columns), LogStack.of(parts, columns)
    np.testing.assert_allclose(whole.grams[0], logs.grams.sum(axis=0), rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(whole.squares[0], logs.squares.sum(axis=0), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(whole.meats[0], logs.meats.sum(axis=0), rtol=1e-12)
    assert merged.logs == count
    assert merged.robot == "a"


def test_a_wrong_content_with_a_valid_checksum_is_refused() -> None:
    """The hash is valid, but the shapes do not fit the numbers, as after a change without a new version."""
    head, _, body = factors(1).to_bytes().partition(b"\n")[2].partition(b"\n")
    text, _, numbers = body.partition(b"\n")
    about = json.loads(text)
    about["equations"][0]["columns"] = list(range(10**6))
    for changed in (json.dumps(about), json.dumps({}), json.dumps({**about, "equations": 3}), "[]"):
        made = changed.encode() + b"\n" + numbers
        stated = {**json.loads(head), "sha256": hashlib.sha256(made).hexdigest()}
        with pytest.raises(FactorsError):
            LogFactors.from_bytes(b"steelyard log factors\n" + json.dumps(stated).encode() + b"\n" + made)
