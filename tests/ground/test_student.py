"""Student's t in closed form is SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from steelyard.ground.student import quantile, two_sided


@pytest.mark.parametrize("freedom", [1, 2, 3, 8, 19, 20, 39])
def test_probabilities_and_quantiles(freedom: int) -> None:
    x = np.array([0.0, -0.5, 1.0, 2.0, 5.0, 8.0])
    np.testing.assert_allclose(two_sided(x, freedom), 2.0 * student.sf(np.abs(x), freedom), atol=1e-14)
    for level in (0.5, 0.95, 0.999):
        assert quantile(level, freedom) == pytest.approx(student.ppf(0.5 + 0.5 * level, freedom), rel=1e-9)
