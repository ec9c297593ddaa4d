"""Error bars with stated terms and of loads hold where friction is sharper than modelled; plants by Pinocchio."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard.dynamics.model import Model
from steelyard.export import model_to_urdf
from steelyard.identification.identify import identify
from steelyard.parameters import Coulomb, Viscous, terms
from steelyard.payload.identify import identify_payload
from steelyard.robot.library import builtin
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log

pin = pytest.importorskip("pinocchio")

ROBOT = builtin("szabo3r")
DRY, VISCOUS, NOISE = 5.0, 0.5, 0.002
# Dry friction rounded over 0.1 rad/s, where the plant has a jump.
SMOOTH = (Viscous(), Coulomb(smooth=0.1))
# Mass, first moment and inertia of the load about the frame of the last link.
LOAD = np.array([1.5, 0.15, 0.03, 0.06, 0.03, -0.003, 0.04, -0.006, -0.0012, 0.035])


def plant(robot: Robot, folder: Path) -> Any:
    """`robot` without friction as Pinocchio reads it from a URDF."""
    bare = terms(robot)
    path = folder / f"{robot.name}.urdf"
    model_to_urdf(Model(robot, bare, robot.inertial_parameters), path)
    return pin.buildModelFromUrdf(str(path))


def log_of(model: Any, seed: int, seconds: float = 20.0, rate: float = 200.0) -> Log:
    """A motion of random sines, its torque by Pinocchio with dry friction by the sign of the velocity, and noise."""
    rng = np.random.default_rng(seed)
    rates = 2.0 * np.pi * np.array([0.13, 0.29, 0.47, 0.61])[:, None]
    size, phase = rng.uniform(0.1, 0.4, (4, 3)), rng.uniform(0.0, 6.0, (4, 3))
    t = np.arange(int(seconds * rate)) / rate
    angle = t[:, None, None] * rates + phase
    q, dq, ddq = ((size * x).sum(1) for x in (np.sin(angle), rates * np.cos(angle), -(rates**2) * np.sin(angle)))
    data = model.createData()
    tau = np.array([pin.rnea(model, data, *state) for state in zip(q, dq, ddq, strict=True)])
    tau += VISCOUS * dq + DRY * np.sign(dq)
    tau += NOISE * np.std(tau, axis=0) * rng.normal(size=tau.shape)
    return Log(ROBOT.joint_names, t, q, dq=dq, tau=tau)


def inside(runs: int, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Errors over standard errors of rigid base parameters with stated terms: by noise alone, and as delivered."""
    model, noise, whole = plant(ROBOT, folder), [], []
    for seed in range(runs):
        found = identify(ROBOT, log_of(model, seed), terms=SMOOTH, check=False)
        truth = np.zeros(len(found.base.parameters))
        truth[: ROBOT.inertial_count] = ROBOT.inertial_parameters
        rigid = [not n.startswith("F") for n in found.base.names]
        away = np.abs(found.free.beta - found.base.values(truth))[rigid]
        noise.append(away / np.array(found.free.details["noise_error"])[rigid])
        whole.append(away / found.free.standard_errors[rigid])
    return np.concatenate(noise), np.concatenate(whole)


def loaded(folder: Path) -> Any:
    """The plant with the load on its last link."""
    theta = ROBOT.inertial_parameters.copy()
    theta[-10:] += LOAD
    return plant(replace(ROBOT.with_inertial_parameters(theta.reshape(-1, 10)), name="loaded"), folder)


def load_errors(runs: int, folder: Path) -> np.ndarray:
    """Errors over standard errors of what the motion shows of the load, by `weigh` with the free fit."""
    bare, carrying, out = plant(ROBOT, folder), loaded(folder), []
    for seed in range(runs):
        logs = log_of(carrying, 2 * seed + 1), log_of(bare, 2 * seed)
        load = identify_payload(ROBOT, logs[0], logs[1], terms=SMOOTH, physical=False).load
        shown = np.array(load.identifiable, dtype=bool)
        errors = np.sqrt(np.diag(load.covariance))
        out.append((np.abs(load.parameters - LOAD) / np.where(errors > 0.0, errors, np.inf))[shown])
    return np.concatenate(out)


@pytest.mark.proof
def test_stated_terms_hold_for_sharper_friction(tmp_path: Path) -> None:
    noise, whole = inside(40, tmp_path)
    before, after = (100.0 * np.mean(x < 1.96) for x in (noise, whole))
    print(f"stated terms, rigid base parameters inside 95 %: {before:.1f} % by noise alone, {after:.1f} % as delivered")
    assert 92.0 <= after <= 99.0


@pytest.mark.proof
def test_loads_hold_for_sharper_friction(tmp_path: Path) -> None:
    errors = load_errors(40, tmp_path)
    share = 100.0 * np.mean(errors < 1.96)
    print(f"payload, parameters inside 95 %: {share:.1f} %")
    assert 92.0 <= share <= 99.0
