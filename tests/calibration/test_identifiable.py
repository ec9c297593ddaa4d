"""What a kind of measurement cannot separate is the null space of derivatives that Pinocchio's kinematics give."""

from __future__ import annotations

import numpy as np
import pytest
from pin_arms import BASE, SPOTS, Floats, TrueArm, pin, urdf

from steelyard.calibration import MEASUREMENTS, Chain, identifiable
from steelyard.calibration.joint_effects import Deviations
from steelyard.calibration.measurement import Setup

EFFECTS = ("offsets", "axes")
PLACES = np.array([[0.4, 0.1, 0.3], [-0.2, 0.5, 0.1]])
NORMALS = np.array([[0.0, 0.0, 1.0], [0.6, 0.8, 0.0]])
CASES = ("points 1", "points 2", "points 3", "pose", "plane", "sphere", "contact", "distances")
# Differences over 2e-5 of kinematics to sixteen digits are right to about 1e-9 of a column.
STEP, RANK = 1e-5, 3e-7


def setup_and_readings(case: str, count: int) -> tuple[Setup, dict[str, Floats]]:
    if case.startswith("points"):
        spots = SPOTS[: int(case[-1])]
        base = Setup.plain(spots)
        setup = Setup(BASE.rotation[None], BASE.translation[None], spots, np.eye(3), base.surfaces)
        return setup, {"points": np.zeros((count, len(spots), 3))}
    if case == "pose":
        setup = Setup(BASE.rotation[None], BASE.translation[None], SPOTS[:1], pin.exp3(SPOTS[1]), np.zeros((0, 0)))
        return setup, {"position": np.zeros((count, 3)), "rotation": np.zeros((count, 3, 3))}
    if case == "distances":
        return Setup.plain(SPOTS[:1], PLACES), {"distances": np.zeros((count, 2))}
    surfaces = np.column_stack([NORMALS, np.einsum("ij,ij->i", NORMALS, PLACES)]) if case == "plane" else PLACES
    readings = {"surface": np.arange(count) % 2.0, "radius": np.full(count, 0.05)}
    return Setup.plain(SPOTS[:1], surfaces), readings


def reading(case: str, x: Floats, tip: pin.SE3, k: int) -> Floats:
    """What the sensor reads; `x` changes the numbers of its own: 6 of the base, 3 or 6 of the tool, surfaces."""
    if case == "pose":
        place = BASE * pin.SE3(pin.exp3(x[3:6]), x[:3]) * tip
        tool = pin.SE3(pin.exp3(SPOTS[1]) @ pin.exp3(x[9:12]), SPOTS[0] + x[6:9])
        seen = place * tool
        return np.concatenate([seen.translation, seen.rotation.ravel()])
    if case.startswith("points"):
        place = BASE * pin.SE3(pin.exp3(x[3:6]), x[:3]) * tip
        return np.concatenate([place.act(s + d) for s, d in zip(SPOTS, x[6:].reshape(-1, 3), strict=False)])
    p = tip.act(SPOTS[0] + x[:3])
    if case == "plane":
        # A plane by a point and a normal: six numbers, of which three change it.
        own = x[3:].reshape(2, 6)[k % 2]
        n = NORMALS[k % 2] + own[:3]
        return np.array([n @ (p - PLACES[k % 2] - own[3:]) / np.linalg.norm(n)])
    centres = PLACES + x[3:].reshape(2, 3)
    if case == "contact":
        return p - centres[k % 2]
    if case == "sphere":
        return np.array([np.linalg.norm(p - centres[k % 2])])
    return np.linalg.norm(p - centres, axis=1)


def derivatives(case: str, text: str, names: tuple[str, ...], q: Floats, own: int) -> Floats:
    """Central differences of all readings by the sensor's own numbers, then by the deviations."""
    columns = []
    for k in range(own):
        ends = []
        for sign in (1.0, -1.0):
            x = np.zeros(own)
            x[k] = sign * STEP
            ends.append(_all(case, TrueArm(text, {}), q, x))
        columns.append(ends[0] - ends[1])
    for name in names:
        ends = [_all(case, TrueArm(text, {name: sign * STEP}), q, np.zeros(own)) for sign in (1.0, -1.0)]
        columns.append(ends[0] - ends[1])
    return np.column_stack(columns) / (2.0 * STEP)


def _all(case: str, arm: TrueArm, q: Floats, x: Floats) -> Floats:
    return np.concatenate([reading(case, x, arm.tip(row), k) for k, row in enumerate(q)])


def compare(case: str, seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    text = urdf(seed, joints=int(rng.integers(2, 7)), prismatic=0.2)
    robot = TrueArm(text, {}).robot
    chain = Chain(robot, robot.frame())
    names = Deviations.of(chain, EFFECTS).names
    q = rng.uniform(-2.0, 2.0, (70 if case in ("plane", "sphere") else 40, robot.dof))
    setup, readings = setup_and_readings(case, len(q))
    measurement = MEASUREMENTS[case.split()[0]](readings, np.zeros(len(q), dtype=np.intp))
    found = identifiable(chain, EFFECTS, measurement, setup)
    own = {"plane": 15}.get(case, len(found.names) - len(names))
    J = derivatives(case, text, names, q, own)
    s = np.linalg.svd(J / np.maximum(np.linalg.norm(J, axis=0), 1e-9), compute_uv=False)
    assert found.rank == int(np.sum(s > RANK * s[0]))
    # The sensor's numbers have other coordinates there; what remains of the deviations is the same in both.
    mine = _deviations_alone(J, own)
    theirs = found.null_space[:, len(found.names) - len(names) :]
    assert np.abs(mine @ theirs.T).max(initial=0.0) < 1e-6


def _deviations_alone(J: Floats, own: int) -> Floats:
    """Derivatives by the deviations without their part that the sensor's numbers can imitate."""
    u, s, _ = np.linalg.svd(J[:, :own], full_matrices=False)
    u = u[:, s > RANK * s[0]]
    return J[:, own:] - u @ (u.T @ J[:, own:])


@pytest.mark.parametrize("case", CASES)
def test_the_null_space_is_that_of_pinocchios_kinematics(case: str) -> None:
    for seed in range(2):
        compare(case, seed)


@pytest.mark.proof
@pytest.mark.parametrize("case", CASES)
def test_the_null_space_is_that_of_pinocchios_kinematics_on_200_arms(case: str) -> None:
    for seed in range(200):
        compare(case, seed)
