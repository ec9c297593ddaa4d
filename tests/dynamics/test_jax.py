"""Traced functions run, differentiate and batch on JAX."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import relative, states

from steelyard.dynamics import Model
from steelyard.dynamics._jax_backend import jax_function, jitted
from steelyard.robot.library import builtin

jax = pytest.importorskip("jax", reason="JAX is an extra (pip install 'steelyard[jax]')")
jax.config.update("jax_enable_x64", True)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.nominal(builtin("irp6-screws"))


@pytest.mark.parametrize("name", ["torque_regressor", "forward_dynamics", "mass_matrix"])
def test_jax_computes_what_numpy_computes(model: Model, name: str) -> None:
    s = states(model.robot, 6)
    q = 0.3 * s.q  # the ball screws close their triangle only near the reference posture
    given = {"q": q, "dq": s.dq, "ddq": s.ddq, "tau": s.ddq, "theta": model.theta}
    function = model.dynamics.function(name)
    inputs = [given[x] for x in function.inputs]
    ours = model.dynamics.evaluator(name)(dict(zip(function.inputs, inputs, strict=True)))
    assert relative(jitted(function, *inputs)(*inputs), ours) < 1e-12  # XLA rounds in another order


def test_jax_differentiates_through_the_dynamics(model: Model) -> None:
    s = states(model.robot, 1)
    f = jax_function(model.dynamics.function("inverse_dynamics"))
    q, dq, ddq = 0.3 * s.q[0], s.dq[0], s.ddq[0]
    theirs = jax.jacfwd(f)(q, dq, ddq, model.theta)
    ours = model.dynamics.jacobian("inverse_dynamics", "q", q=q, dq=dq, ddq=ddq, theta=model.theta)
    assert relative(theirs, ours) < 1e-12
    mapped = jax.vmap(f, in_axes=(0, 0, 0, None))(
        np.stack([q, 2 * q]), np.stack([dq, dq]), np.stack([ddq, ddq]), model.theta
    )
    assert relative(mapped[0], model.torque(q, dq, ddq)) < 1e-12
