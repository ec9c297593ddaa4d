"""The filters' step against an independent integrator, and its derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steelyard.dynamics.model import Model
from steelyard.estimation.kalman._transition import Transition
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.library import builtin
from steelyard.simulation.plant import plant_of


def transition(name: str, **options):
    model = Model.nominal(builtin(name))
    base = base_parameters(model.robot, model.terms)
    plant = plant_of(model.robot, model.terms, 0.1)
    directions = plant.lumped(np.eye(len(base.parameters))[list(base.independent)])
    return plant, model, base.values(model.theta), Transition(plant, directions, 0.01, **options)


@pytest.mark.parametrize("name", ["prrrp", "ns16"])
def test_a_step_follows_the_dynamics_under_a_torque_that_changes_linearly(name: str) -> None:
    plant, model, beta, step = transition(name, substeps=20)
    n, rng = model.robot.dof, np.random.default_rng(0)
    x, start, end = rng.normal(size=2 * n), *(5.0 * rng.normal(size=(2, n)))

    def rate(t, x):
        torque = start + t / 0.01 * (end - start)
        return np.concatenate([x[n:], plant.smooth.forward_dynamics(x[:n], x[n:], torque, model.theta)])

    exact = solve_ivp(rate, (0.0, 0.01), x, rtol=1e-11, atol=1e-12).y[:, -1]
    assert np.allclose(step.step(x[None], beta[None], start, end)[0], exact, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("method", ["rk4", "euler"])
@pytest.mark.parametrize("name", ["prrrp", "ns16"])
def test_derivatives_are_those_of_the_computed_step(name: str, method: str) -> None:
    _, model, beta, step = transition(name, substeps=2, method=method)
    n, p, rng = model.robot.dof, len(beta), np.random.default_rng(1)
    x, start, end = rng.normal(size=2 * n), *rng.normal(size=(2, n))
    estimate = step.linearise(x, beta, start, end)
    z = np.concatenate([x, beta, np.zeros(n)])
    h = 1e-6 * np.maximum(1.0, np.abs(z))
    Z = np.vstack([z + np.diag(h), z - np.diag(h)])
    off = Z[:, 2 * n + p :]
    stepped = step.step(Z[:, : 2 * n], Z[:, 2 * n : 2 * n + p], start + off, end + off)
    J = ((stepped[: len(z)] - stepped[len(z) :]) / (2.0 * h[:, None])).T
    exact = np.hstack([estimate.by_state, estimate.by_parameters, estimate.by_torque])
    assert np.allclose(exact, J, atol=1e-7)  # rounding over 2e-6, and more: 1e-16/1e-6 per step, times cond(M) ~ 1e2
    assert np.array_equal(step.step(x[None], beta[None], start, end)[0], estimate.x)


def test_euler_is_euler() -> None:
    plant, model, beta, step = transition("prrrp", method="euler")
    n, rng = model.robot.dof, np.random.default_rng(2)
    x, torque = rng.normal(size=2 * n), rng.normal(size=n)
    a = plant.smooth.forward_dynamics(x[:n], x[n:], torque, model.theta)
    expected = x + 0.01 * np.concatenate([x[n:], a])
    assert np.allclose(step.step(x[None], beta[None], torque, torque)[0], expected, rtol=1e-12)
