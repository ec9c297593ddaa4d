"""Priors from descriptions, also with massless links and missing inertias."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from steelyard.estimation.possible.reference import nominal_prior
from steelyard.parameters.terms import identification_terms

BODY = '<inertial><mass value="{m}"/><inertia ixx="{i}" iyy="{i}" izz="{i}"/></inertial>'
JOINT = (
    '<joint name="j{k}" type="revolute"><parent link="l{p}"/><child link="l{k}"/><axis xyz="{axis}"/>'
    '<origin xyz="{x} 0 0"/><limit lower="-3" upper="3" velocity="3" effort="50"/></joint>'
)


def robot(tmp_path: Path, middle: str, length: float = 0.0) -> sy.Robot:
    """A robot with three joints, with variable second link and distance to the third joint."""
    text = (
        '<robot name="stacked"><link name="l0"/>'
        f'<link name="l1">{BODY.format(m=5, i=0.1)}</link><link name="l2">{middle}</link>'
        f'<link name="l3">{BODY.format(m=3, i=0.05)}</link>'
        + JOINT.format(k=1, p=0, axis="0 0 1", x=0)
        + JOINT.format(k=2, p=1, axis="0 1 0", x=0.4)
        + JOINT.format(k=3, p=2, axis="1 0 0", x=length)
        + "</robot>"
    )
    path = tmp_path / "stacked.urdf"
    path.write_text(text, "utf-8")
    return sy.load_robot(path)


def identified(estimate: sy.Robot) -> sy.Identification:
    """A physically possible fit to a robot whose second link is massless, whatever the description says."""
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 10.0, 0.005)[:, None]
    w = 2.0 * np.pi * rng.uniform(0.1, 0.6, (3, 3))
    q, dq, ddq = (sum(f(w[k] * t + k) * w[k] ** d for k in range(3)) for d, f in
                  ((0, np.sin), (1, np.cos), (2, lambda x: -np.sin(x))))  # fmt: skip
    theta = np.concatenate([b if b is not None else np.zeros(10) for b in (link.inertia for link in estimate.links)])
    theta[10:20] = 0.0
    tau = estimate.dynamics.inverse_dynamics(q, dq, ddq, theta) + rng.normal(0.0, 0.05, q.shape)
    log = sy.Log(estimate.joint_names, t[:, 0], q, tau=tau)
    made = sy.identify(estimate, log, terms=("viscous", "coulomb"))
    assert made.possible
    return made


@pytest.mark.parametrize("middle", ["", BODY.format(m=0, i=0)], ids=["nothing in it", "stated to weigh nothing"])
def test_a_frame_between_joints_stays_light(tmp_path: Path, middle: str) -> None:
    estimate = robot(tmp_path, middle)
    prior = nominal_prior(estimate, identification_terms(estimate))
    assert prior is not None
    assert all(prior.mask[10:20])
    assert identified(estimate).model.theta[10] < 0.05


def test_a_link_without_inertia_is_unknown(tmp_path: Path) -> None:
    estimate = robot(tmp_path, "", length=0.3)
    assert estimate.links[1].inertia is None
    prior = nominal_prior(estimate, identification_terms(estimate))
    assert prior is not None
    assert not any(prior.mask[10:20])
    assert identified(estimate).model.theta[10] > 0.1  # a default body with the density of the others


def test_an_impossible_body_is_named(tmp_path: Path) -> None:
    """Izz > Ixx + Iyy is impossible."""
    bad = '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="1"/></inertial>'
    made = identified(robot(tmp_path, bad))
    assert any("'l2' is no possible body" in note for note in made.estimate.notes)
