"""The traced graph agrees with NumPy, contains only required operations, and differentiates exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import dense, trace
from steelyard.dynamics.graph import Graph, count_operations, evaluate_graph, forward, reverse
from steelyard.ground import scalars as sc


def everything(x, y):
    """A formula with every operation of the scalar language."""
    smooth = sc.sin(x) * sc.cos(y) + sc.tanh(x * y) - sc.atan(3.0 * y) / (2.0 + x * x)
    rough = sc.absolute(x) * sc.sign(y) + sc.minimum(x, y) - 2.0 * sc.maximum(x - 0.5, y)
    return [smooth, rough, sc.sqrt(1.0 + y * y) * sc.exp(-0.3 * x), -x * (-y) - 1.5, (x - y) ** 3]


def traced_everything():
    return trace("everything", {"z": 2}, lambda z: {(k,): v for k, v in enumerate(everything(*z))}, (5,))


points = st.lists(st.tuples(st.floats(-4, 4), st.floats(-4, 4)), min_size=1, max_size=40)


@settings(max_examples=50, deadline=None)
@given(points)
def test_interpreted_and_compiled_code_agree_with_numpy(z) -> None:
    z = np.array(z)
    expected = np.stack([np.broadcast_to(v, len(z)) for v in everything(z[:, 0], z[:, 1])], axis=-1)
    evaluator = Evaluator(traced_everything())
    # The same NumPy operations, except for the cube, which NumPy computes by logarithms.
    assert np.allclose(evaluator({"z": z}), expected, rtol=1e-15, atol=1e-15)
    _ = evaluator.kernel  # from now on compiled
    # Our sine and cosine are good to 1 ulp, and multiply-adds are fused: a few units in the last place.
    assert np.allclose(evaluator({"z": z}), expected, rtol=4e-15, atol=4e-15)


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e5, 1e5))
def test_compiled_sine_and_cosine_are_good_to_the_last_place(angle: float) -> None:
    f = _circle()
    s, c = f({"x": np.array([angle])})
    # 1 ulp of values near one; arguments up to 1e5 rad are more turns than any joint makes.
    assert abs(s - np.sin(angle)) <= 2.3e-16
    assert abs(c - np.cos(angle)) <= 2.3e-16


_CIRCLE: list[Evaluator] = []


def _circle() -> Evaluator:
    if not _CIRCLE:
        f = trace("circle", {"x": 1}, lambda x: {(0,): sc.sin(x[0]), (1,): sc.cos(x[0])}, (2,))
        _CIRCLE.append(Evaluator(f))
        _ = _CIRCLE[0].kernel
    return _CIRCLE[0]


def test_nan_is_propagated() -> None:
    evaluator = Evaluator(traced_everything())
    _ = evaluator.kernel
    assert np.isnan(evaluator({"z": [np.nan, 1.0]})).all()


def test_zeros_and_ones_vanish_while_tracing() -> None:
    g = Graph()
    (x,) = g.inputs("x", 1)
    assert 0.0 * x == 0.0
    assert (1.0 * x).index == x.index
    assert (x + 0.0).index == x.index
    assert x - x == 0.0
    minus = -x
    assert (-minus).index == x.index
    both = [x * 3.0 + sc.sin(-x), sc.sin(x) + 3.0 * x]
    assert count_operations(g, both) == {"in": 1, "const": 1, "mul": 1, "sin": 1, "add": 1, "sub": 1}


@settings(max_examples=50, deadline=None)
@given(st.floats(-3, 3), st.floats(-3, 3))
def test_derivatives_are_exact_where_they_exist(x: float, y: float) -> None:
    """Smooth formulas against the complex step, without truncation and cancellation (Squire & Trapp 1998)."""
    smooth = (
        lambda a, b: sc.sin(a) * sc.cos(b) + sc.tanh(a * b) - sc.atan(3.0 * b) / (2.0 + a * a),
        lambda a, b: sc.sqrt(1.0 + b * b) * sc.exp(-0.3 * a),
    )
    g = Graph()
    z = g.inputs("z", 2)
    outputs = [f(*z) for f in smooth]
    seeds = g.inputs("seed", 2)
    adjoint = reverse(g, outputs, seeds)
    tangent = forward(g, outputs, {("z", 0): seeds[0], ("z", 1): seeds[1]})
    for k in range(2):
        unit = [1.0 if i == k else 0.0 for i in range(2)]
        rows = evaluate_graph(g, [adjoint["z", 0], adjoint["z", 1]], {"z": [x, y], "seed": unit})
        columns = evaluate_graph(g, tangent, {"z": [x, y], "seed": unit})
        step = 1e-30
        by_x = [np.imag(f(x + 1j * step, y + 0j)) / step for f in smooth]
        by_y = [np.imag(f(x + 0j, y + 1j * step)) / step for f in smooth]
        assert np.allclose(rows, [by_x[k], by_y[k]], rtol=1e-12, atol=1e-12)
        assert np.allclose(columns, (by_x, by_y)[k], rtol=1e-12, atol=1e-12)


def test_minimum_and_maximum_pass_the_derivative_of_the_chosen_side() -> None:
    f = trace("m", {"z": 2}, lambda z: {(0,): sc.minimum(*z), (1,): sc.maximum(*z), (2,): sc.absolute(z[0])}, (3,))
    jacobian = Evaluator(f.tangent())
    out = jacobian({"z": [[-1.0, 2.0], [3.0, 2.0]], "tangent_z": [[1.0, 10.0], [1.0, 10.0]]})
    assert out.tolist() == [[1.0, 10.0, -1.0], [10.0, 1.0, 1.0]]


def test_untraceable_operations_raise_an_error() -> None:
    g = Graph()
    (x,) = g.inputs("x", 1)
    with pytest.raises(TypeError, match=r"np\.log cannot be traced"):
        np.log(x)
    with pytest.raises(TypeError, match="whole, non-negative powers"):
        x**0.5


def test_constant_results_are_kept() -> None:
    g = Graph()
    f = Evaluator(dense("c", g, {"x": 1}, [2.5, 0.0, g.input("x", 0)]))
    assert f({"x": [[7.0]]}).tolist() == [[2.5, 0.0, 7.0]]
    _ = f.kernel
    assert f({"x": [[7.0]]}).tolist() == [[2.5, 0.0, 7.0]]
