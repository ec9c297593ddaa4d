"""Results do not depend on the number of samples and threads, nor on interpretation or compilation."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import relative, states

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.native.emit import LANES
from steelyard.errors import ShapeError, UnknownNameError
from steelyard.parameters import nominal_terms
from steelyard.robot.library import builtin


@pytest.fixture(scope="module")
def arm() -> Dynamics:
    robot = builtin("arm7")
    return Dynamics(robot, nominal_terms(robot)[0])


@pytest.mark.parametrize("samples", [1, 2, LANES - 1, LANES, LANES + 1, 3 * LANES + 5])
def test_compiled_code_handles_any_number_of_samples(arm: Dynamics, samples: int) -> None:
    s = states(arm.robot, samples)
    fresh = Dynamics(arm.robot, arm.terms)
    interpreted = fresh.torque_regressor(s.q, s.dq, s.ddq)
    evaluator = arm.evaluator("torque_regressor")
    _ = evaluator.kernel
    compiled = evaluator({"q": s.q, "dq": s.dq, "ddq": s.ddq}, threads=1)
    assert relative(compiled, interpreted) < 1e-14  # fused multiply-adds round differently
    assert compiled.shape == (samples, 7, len(arm.parameters))


def test_threads_change_nothing(arm: Dynamics) -> None:
    s = states(arm.robot, 20_011)
    _ = arm.evaluator("torque_regressor").kernel
    one = arm.torque_regressor(s.q, s.dq, s.ddq, threads=1)
    many = arm.torque_regressor(s.q, s.dq, s.ddq, threads=3)
    assert np.array_equal(one, many)


def test_a_single_state_and_a_batch_have_the_same_rows(arm: Dynamics) -> None:
    s = states(arm.robot, 4)
    batch = arm.torque_regressor(s.q, s.dq, s.ddq)
    assert arm.torque_regressor(s.q[2], s.dq[2], s.ddq[2]).shape == batch.shape[1:]
    nested = arm.torque_regressor(s.q.reshape(2, 2, 7), s.dq.reshape(2, 2, 7), s.ddq.reshape(2, 2, 7))
    assert np.allclose(nested.reshape(batch.shape), batch, rtol=1e-14, atol=1e-14)


def test_one_parameter_vector_serves_all_samples_or_each_has_its_own(arm: Dynamics) -> None:
    s = states(arm.robot, 5)
    theta = np.random.default_rng(0).normal(size=(5, len(arm.parameters)))
    each = arm.inverse_dynamics(s.q, s.dq, s.ddq, theta)
    for k in range(5):
        assert np.allclose(each[k], arm.inverse_dynamics(s.q, s.dq, s.ddq, theta[k])[k], rtol=1e-13, atol=1e-12)


def test_small_jobs_do_not_wait_for_a_compiler(arm: Dynamics) -> None:
    fresh = Dynamics(arm.robot, arm.terms)
    s = states(arm.robot, 100)
    fresh.torque_regressor(s.q, s.dq, s.ddq)
    assert not fresh.evaluator("torque_regressor").compiled
    many = states(arm.robot, 50_000)
    fresh.torque_regressor(many.q, many.dq, many.ddq)
    assert fresh.evaluator("torque_regressor").compiled


@pytest.mark.parametrize(
    "name",
    ["torque_regressor", "momentum_regressor", "remainder_regressor", "inverse_dynamics", "forward_dynamics",
     "mass_matrix", "kinetic_energy_regressor", "potential_energy_regressor"],
)  # fmt: skip
def test_forward_and_reverse_derivatives_agree_and_match_differences(arm: Dynamics, name: str) -> None:
    s = states(arm.robot, 3)
    rng = np.random.default_rng(2)
    theta = np.concatenate([arm.robot.inertial_parameters, nominal_terms(arm.robot)[1]])
    function = arm.function(name)
    given = {"q": s.q, "dq": s.dq, "ddq": s.ddq, "tau": s.ddq, "theta": np.broadcast_to(theta, (3, len(theta)))}
    inputs = {x: np.array(given[x]) for x in function.inputs}
    moves = {x: rng.normal(size=v.shape) * (0.01 if x == "theta" else 1.0) for x, v in inputs.items()}
    cotangent = rng.normal(size=(3, *function.shape))
    tangent = arm.tangent(name, moves, **inputs)
    adjoint = arm.adjoint(name, cotangent, **inputs)
    left = np.sum(cotangent * tangent)
    right = sum(np.sum(adjoint[x] * moves[x]) for x in inputs)
    assert abs(left - right) < 1e-11 * np.sum(np.abs(cotangent * tangent))

    def value(step: float) -> np.ndarray:
        return arm.evaluator(name)({x: v + step * moves[x] for x, v in inputs.items()})

    # Five-point differences: error step⁴ f⁽⁵⁾ plus rounding / step, about 1e-10 of the largest value.
    h = 1e-3
    numeric = (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)
    assert relative(tangent, numeric) < 1e-7


def test_the_derivative_of_torque_by_parameters_is_the_regressor(arm: Dynamics) -> None:
    s = states(arm.robot, 2)
    theta = np.zeros(len(arm.parameters))
    jacobian = arm.jacobian("inverse_dynamics", "theta", q=s.q, dq=s.dq, ddq=s.ddq, theta=theta)
    assert relative(jacobian, arm.torque_regressor(s.q, s.dq, s.ddq)) < 1e-13


def test_wrong_shapes_are_named(arm: Dynamics) -> None:
    with pytest.raises(ShapeError, match=r"dq has shape \(5, 6\).*expects \(samples, 7\)"):
        arm.torque_regressor(np.zeros((5, 7)), np.zeros((5, 6)), np.zeros((5, 7)))
    with pytest.raises(ShapeError, match="same number of samples"):
        arm.torque_regressor(np.zeros((5, 7)), np.zeros((4, 7)), np.zeros((5, 7)))
    with pytest.raises(UnknownNameError, match="Did you mean 'mass_matrix'"):
        arm.function("mas_matrix")


def test_lanes_are_the_entries_of_the_dense_result(arm: Dynamics) -> None:
    s = states(arm.robot, 10_001)
    evaluator = arm.evaluator("torque_regressor")
    _ = evaluator.kernel
    inputs = {"q": s.q, "dq": s.dq, "ddq": s.ddq}
    dense = evaluator(inputs).reshape(10_001, -1)
    lanes = evaluator.machine.lanes(inputs, threads=2)
    assert np.array_equal(
        lanes[:, :, :LANES].swapaxes(1, 2).reshape(-1, lanes.shape[1])[:10_001], dense[:, evaluator.function.places]
    )
    with pytest.raises(ShapeError, match="out has shape"):
        evaluator.machine.lanes(inputs, out=np.zeros((3, 3, 3)))


@pytest.mark.parametrize("name", ["inverse_dynamics", "mass_matrix", "torque_regressor", "momentum_regressor"])
def test_full_and_sparse_results_are_written_alike(arm: Dynamics, name: str) -> None:
    """Results with few zeros use another way to write memory; unaligned arrays use the general one."""
    s = states(arm.robot, 5003)  # large enough to be written past the caches
    theta = np.linspace(0.1, 1.0, len(arm.parameters))
    evaluator = arm.evaluator(name)
    _ = evaluator.kernel
    every = {"q": s.q, "dq": s.dq, "ddq": s.ddq, "theta": theta}
    inputs = {x: every[x] for x in evaluator.function.inputs}
    straight = evaluator(inputs)
    off_line = np.zeros(straight.size + 1)[1:].reshape(straight.shape)
    assert np.array_equal(evaluator(inputs, out=off_line), straight)
