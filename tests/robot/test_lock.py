"""A locked joint merges two bodies: reduced models agree with Pinocchio's, and energy is conserved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import RobotError, UnknownNameError
from steelyard.robot import (
    BallScrew,
    ConstantRatio,
    Joint,
    Link,
    NominalTerm,
    Robot,
    Transmission,
    link_poses,
    read_urdf,
)
from steelyard.robot.lock import lock_joints
from steelyard.robot.spatial import move_parameters, rotation_from_rpy

# A handful of products of rotations in another order: tens of roundings on numbers of at most about 10.
ROUNDING = 1e-13


def random_robot(seed: int = 0, count: int = 5) -> Robot:
    """A branching tree with all kinds of joints, a follower, and one separate link frame."""
    rng = np.random.default_rng(seed)
    links = []
    for k in range(count):
        axis = rng.normal(size=3)
        links.append(
            Link(
                name=f"l{k}",
                joint=f"j{k}",
                kind="prismatic" if k == 2 else "revolute",
                parent=k - 1 if k < 4 else 1,
                rotation=rotation_from_rpy(*rng.normal(size=3)),
                translation=rng.normal(size=3),
                axis=axis / np.linalg.norm(axis),
                coordinate=min(k, 3),
                ratio=1.0 if k < 4 else -0.5,
                offset=0.0 if k < 4 else 0.3,
                inertia=rng.normal(size=10),
                frame_rotation=rotation_from_rpy(*rng.normal(size=3)) if k == 1 else np.eye(3),
                frame_translation=rng.normal(size=3) if k == 1 else np.zeros(3),
            )
        )
    joints = tuple(Joint(f"j{k}", links[k].kind) for k in range(min(count, 4)))
    return Robot("random", joints, tuple(links))


def total(robot: Robot, q: np.ndarray, members: set[int]) -> np.ndarray:
    """The ten parameters of several links together, seen from the base."""
    rotations, origins = link_poses(robot, q)
    out = np.zeros(10)
    for k in members:
        link = robot.links[k]
        assert link.inertia is not None
        rotation = rotations[k] @ link.frame_rotation
        out += move_parameters(link.inertia, rotation, origins[k] + rotations[k] @ link.frame_translation)
    return out


@given(st.integers(0, 50), st.floats(-3, 3), st.floats(-3, 3))
@settings(max_examples=25, deadline=None)
def test_locking_conserves_mass(seed: int, first: float, second: float) -> None:
    robot = random_robot(seed)
    small = lock_joints(robot, ["j3", "j0"], {"j1": first, "j2": second})
    assert small.joint_names == ("j3", "j0")
    assert small.link_names == ("l0", "l3", "l4")
    q = np.random.default_rng(seed).uniform(-3, 3, 2)
    full = np.array([q[1], first, second, q[0]])
    np.testing.assert_allclose(
        total(small, q, {0, 1, 2}), total(robot, full, {0, 1, 2, 3, 4}), rtol=0, atol=1e-11
    )  # arms of up to about 10 m, squared, in the inertias
    for ours, theirs in zip(link_poses(small, q), link_poses(robot, full), strict=True):
        np.testing.assert_allclose(ours, theirs[[0, 3, 4]], atol=ROUNDING)


def test_links_welded_to_the_base_vanish() -> None:
    robot = random_robot()
    small = lock_joints(robot, ["j3"], {"j0": 1.0})
    assert small.link_names == ("l3", "l4")  # l4 follows j3, and hangs on l1 which no longer moves
    assert [link.parent for link in small.links] == [-1, -1]
    assert np.array_equal(small.links[0].inertia, robot.links[3].inertia)  # type: ignore[arg-type]


def test_followers_of_a_locked_joint_lock_with_it() -> None:
    robot = random_robot()
    small = lock_joints(robot, ["j0", "j1"], {"j3": 0.8})
    assert small.link_names == ("l0", "l1")
    q = np.array([0.3, -0.4])
    full = np.array([0.3, -0.4, 0.0, 0.8])
    # l4 is attached to l1 at −0.5·0.8 + 0.3; both frames of l1 differ, so the merge must respect its own.
    np.testing.assert_allclose(total(small, q, {1}), total(robot, full, {1, 2, 3, 4}), atol=1e-11)
    assert np.array_equal(small.links[1].frame_rotation, robot.links[1].frame_rotation)


def test_an_unknown_part_makes_the_whole_unknown() -> None:
    robot = random_robot()
    links = [replace(k, inertia=None) if k.name == "l2" else k for k in robot.links]
    robot = replace(robot, links=tuple(links))
    assert lock_joints(robot, ["j0", "j1", "j3"]).links[1].inertia is None
    assert lock_joints(robot, ["j3"]).has_inertia  # l2 became part of the base


@pytest.mark.parametrize("name", ["panda_description/urdf/panda.urdf", "talos_data/robots/talos_reduced.urdf"])
def test_reduced_models_agree_with_pinocchio(name: str) -> None:
    pin = pytest.importorskip("pinocchio")
    folders = [parent / "share" / "example-robot-data" / "robots" / name for parent in Path(pin.__file__).parents]
    path = next((folder for folder in folders if folder.exists()), None)
    if path is None:
        pytest.skip("example-robot-data is not installed")
    robot, model = read_urdf(path), pin.buildModelFromUrdf(str(path))
    rng = np.random.default_rng(0)
    locked = {joint: float(rng.uniform(-1, 1)) for joint in robot.joint_names[1::2]}
    posture = pin.neutral(model)
    # Pinocchio has independent followers, so they are positioned explicitly.
    for link in robot.links:
        leader = robot.joints[link.coordinate].name
        posture[model.joints[model.getJointId(link.joint)].idx_q] = link.ratio * locked.get(leader, 0.0) + link.offset
    ids = [model.getJointId(k.joint) for k in robot.links if robot.joints[k.coordinate].name in locked]
    reduced = pin.buildReducedModel(model, ids, posture)
    small = lock_joints(robot, [n for n in robot.joint_names if n not in locked], locked)
    assert [link.joint for link in small.links] == list(reduced.names)[1:]
    for k, link in enumerate(small.links, start=1):
        theirs = reduced.inertias[k].toDynamicParameters()
        np.testing.assert_allclose(link.inertia, theirs, rtol=0, atol=1e-12 * max(1.0, abs(theirs).max()))
        np.testing.assert_allclose(link.rotation, reduced.jointPlacements[k].rotation, atol=ROUNDING)
        np.testing.assert_allclose(link.translation, reduced.jointPlacements[k].translation, atol=ROUNDING)


def driven(robot: Robot) -> Robot:
    matrix = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    screw = BallScrew(pitch=0.005, x1_squared=0.2, x2_squared=0.3, phase=0.4)
    ratios = (ConstantRatio(2.0), ConstantRatio(3.0), screw, ConstantRatio(5.0))
    terms = (
        NominalTerm("viscous", ((1.0, 2.0, 3.0, 4.0),)),
        NominalTerm("rotor", ((10.0, 20.0, 30.0, 40.0),), on="motor"),
    )
    coupling = Transmission(np.array(matrix), ("a", "b", "c", "d"), ratios)
    return replace(
        robot, transmission=coupling, nominal_terms=terms, torque_used=(True, False, True, False), lengths={"d": 0.4}
    )


def test_drives_terms_and_torque_used_follow_the_remaining_joints() -> None:
    robot = driven(random_robot())
    small = lock_joints(robot, ["j2", "j0"], {"j1": 0.25})
    assert small.transmission is not None
    assert robot.transmission is not None
    assert small.transmission.motors == ("a", "c")
    assert small.transmission.matrix.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert small.torque_used == (True, True)
    assert small.lengths == {"d": 0.4}
    assert small.nominal_terms[0].values == ((3.0, 1.0),)
    assert small.nominal_terms[1].values == ((10.0, 30.0),)
    q = np.array([0.6, -0.2])
    # The screw of motor c feels the locked joint's position.
    expected = robot.transmission.slopes(np.array([-0.2, 0.25, 0.6, 0.0]))[[0, 2]]
    np.testing.assert_allclose(small.transmission.slopes(q), expected, rtol=1e-12)  # the same formula, once shifted


def test_keeping_everything_changes_nothing() -> None:
    robot = driven(random_robot())
    same = lock_joints(robot, robot.joint_names)
    assert same.fingerprint == robot.fingerprint
    assert np.array_equal(same.inertial_parameters, robot.inertial_parameters)


def test_mistakes_are_named() -> None:
    robot = random_robot()
    with pytest.raises(UnknownNameError, match="no joint 'j9'"):
        lock_joints(robot, ["j9"])
    with pytest.raises(UnknownNameError, match="no joint 'x'"):
        lock_joints(robot, ["j0"], {"x": 0.0})
    with pytest.raises(RobotError, match="'j0' is named twice"):
        lock_joints(robot, ["j0", "j0"])
    with pytest.raises(RobotError, match="no joint is left"):
        lock_joints(robot, [])
    with pytest.raises(RobotError, match="'j0' is both moving and locked"):
        lock_joints(robot, ["j0"], {"j0": 1.0})
    with pytest.raises(RobotError, match="'j1' is locked at nan"):
        lock_joints(robot, ["j0"], {"j1": float("nan")})
