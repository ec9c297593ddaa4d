"""Outputs of a payload compared with Pinocchio: tool data, other frames, and the robot that carries it."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
import yaml
from oracles import pinocchio_of
from test_identify_payload import BODY, ROBOT

from steelyard.dynamics.model import Model
from steelyard.parameters.terms import terms
from steelyard.payload import Payload

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle (pip install 'steelyard[oracle]')")

LOAD = Payload(ROBOT.link_names[-1], BODY, np.diag((0.01 * np.maximum(np.abs(BODY), 0.01)) ** 2))


def test_tool_data_is_about_the_centre_of_gravity() -> None:
    known = pin.Inertia.FromDynamicParameters(BODY)
    data = LOAD.tool_data()
    assert data["mass_kg"] == known.mass
    np.testing.assert_allclose([data[f"cog_{x}_mm"] for x in "xyz"], 1000.0 * known.lever)
    for name, (i, j) in {
        "Ixx": (0, 0),
        "Iyy": (1, 1),
        "Izz": (2, 2),
        "Ixy": (0, 1),
        "Ixz": (0, 2),
        "Iyz": (1, 2),
    }.items():
        np.testing.assert_allclose(data[f"{name}_kg_m2"], known.inertia[i, j], atol=1e-12)
    (row,) = csv.DictReader(io.StringIO(LOAD.to_csv()))
    assert float(row["mass_kg"]) == yaml.safe_load(LOAD.to_yaml())["mass_kg"] == known.mass


def test_gravity_torque_includes_the_payload() -> None:
    """The gravity torque equals that of Pinocchio's model with the body appended to the last joint."""
    carrying = LOAD.attach_to(ROBOT)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (5, ROBOT.dof))
    ours = Model(carrying, terms(carrying), carrying.inertial_parameters).gravity_torque(q)
    oracle = pinocchio_of(ROBOT)
    oracle.appendBodyToJoint(ROBOT.dof, pin.Inertia.FromDynamicParameters(BODY), pin.SE3.Identity())
    data = oracle.createData()
    theirs = np.array([pin.computeGeneralizedGravity(oracle, data, x) for x in q])
    np.testing.assert_allclose(ours, theirs, atol=1e-10 * np.abs(theirs).max())


def test_error_bars_of_derived_figures_agree_with_random_draws() -> None:
    draws = np.random.default_rng(1).multivariate_normal(BODY, LOAD.covariance, 20_000)
    centres = draws[:, 1:4] / draws[:, :1]
    np.testing.assert_allclose(LOAD.center_of_gravity_error, centres.std(axis=0), rtol=0.05)
