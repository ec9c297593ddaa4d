"""Identifiable combinations of parameters: numbers from the literature, Pinocchio, and properties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import papers.closed_forms as forms
import pytest
from numpy.testing import assert_allclose
from oracles import PinocchioOracle, public_robot_path, states
from random_robots import make_tree

from steelyard.dynamics import Dynamics
from steelyard.errors import ShapeError, StructureError, UnknownNameError
from steelyard.parameters import Coulomb, Custom, Offset, Rotor, Terms, nominal_terms, terms
from steelyard.parameters.term import Column
from steelyard.regression.base_parameters import SIXTEEN, BaseParameters, base_parameters, ten_from_sixteen
from steelyard.robot import Joint, Link, Robot, load_robot
from steelyard.robot.library import builtin_names
from steelyard.robot.spatial import rotation_about

METHODS = ("qr", "rref", "svd", "kernel")
PANDA_ARM = [f"panda_joint{k}" for k in range(1, 8)]
# Angles between row spaces are computed by orthogonalising well-conditioned matrices.
SAME_SPACE = 1e-10


def robot_of(name: str) -> Robot:
    if name == "panda":
        return load_robot(public_robot_path(name), joints=PANDA_ARM)
    return load_robot(name) if name in builtin_names() else load_robot(public_robot_path(name))


def largest_angle(a: np.ndarray, b: np.ndarray) -> float:
    """The sine of the largest angle between the row spaces of two matrices with the same number of rows."""
    assert a.shape == b.shape
    if not len(a):
        return 0.0
    (qa, _), (qb, _) = np.linalg.qr(a.T), np.linalg.qr(b.T)
    return float(np.linalg.norm(qb - qa @ (qa.T @ qb), 2))


def regrouping_error(base: BaseParameters, seed: int = 7) -> float:
    """The error of W θ = W[:, independent] (matrix θ) at new states, relative to W."""
    s = states(base.robot, 20, seed)
    W = Dynamics(base.robot, base.terms).torque_regressor(0.3 * s.q, s.dq, s.ddq)[:, np.array(base.robot.torque_used)]
    error = W - base.regressor_columns(W) @ base.matrix
    scale = np.maximum(np.abs(W).max(axis=(0, 1)), 1e-3 * np.abs(W).max())
    return float(np.max(np.abs(error) / scale))


# ---------------------------------------------------------------- how many


@pytest.mark.parametrize(
    ("name", "rank"),
    [("rotradi", 15), ("irp6", 15), ("szabo3r", 15), ("prrrp", 9), ("ns16", 36), ("arm7", 43), ("ur10", 36),
     ("panda", 43)],
)  # fmt: skip
def test_links_alone(name: str, rank: int) -> None:
    base = base_parameters(robot_of(name))
    assert base.rank == rank == len(base.names) == len(base.formulas) == len(base.units)
    assert base.matrix.shape == (rank, len(base.parameters))
    assert base.gap > 1e10
    assert base.condition < 100.0


def test_friction_and_rotors_add_the_parameters_of_the_papers() -> None:
    ns16 = load_robot("ns16")
    assert base_parameters(ns16, terms(ns16, "rotor")).rank == 40
    assert base_parameters(ns16, terms(ns16, "rotor", "coulomb", "viscous", "quadratic")).rank == 58
    szabo = load_robot("szabo3r")
    assert base_parameters(szabo, nominal_terms(szabo)[0]).rank == 24
    rotradi = load_robot("rotradi")
    assert base_parameters(rotradi, terms(rotradi, "viscous", "coulomb")).rank == 21


def test_straight_links_of_prrrp_leave_seven() -> None:
    """With only m, mx and Izz per link, one of the paper's eight numbers is redundant."""
    base = base_parameters(load_robot("prrrp"))
    straight = [k for k, p in enumerate(base.parameters) if p.name[:-1] in ("m", "mx", "Izz")]
    assert np.linalg.matrix_rank(base.matrix[:, straight], tol=1e-9) == 7


@pytest.mark.parametrize("name", ["ur10", "panda", "kinova", "allegro", "anymal", "baxter", "talos"])
def test_the_rank_is_that_of_pinocchios_regressor(name: str) -> None:
    """Includes a humanoid of 32 joints with 320 columns."""
    robot = load_robot(public_robot_path(name))
    base = base_parameters(robot)
    s = states(robot, 60)
    W = PinocchioOracle(robot).over("regressor", s.q, 2.0 * s.dq, 4.0 * s.ddq).reshape(-1, robot.inertial_count)
    norms = np.linalg.norm(W, axis=0)
    singular = np.linalg.svd(W[:, norms > 1e-9] / norms[norms > 1e-9], compute_uv=False)
    assert base.rank == int(np.sum(singular > 1e-7 * singular[0]))
    error = W - base.regressor_columns(W) @ base.matrix
    assert np.max(np.abs(error)) < 1e-10 * np.max(np.abs(W))


# ---------------------------------------------------------------- which


def test_szabo_has_exactly_the_combinations_of_table_2() -> None:
    robot = load_robot("szabo3r")
    base = base_parameters(robot, nominal_terms(robot)[0], method="rref", order=forms.SZABO_ORDER)
    friction = base.terms.names
    printed = dict(zip(forms.SZABO, forms.map_of(list(forms.SZABO.values()), robot, friction), strict=True))
    assert set(base.names) == {*forms.SZABO, *friction}
    for name, row in zip(base.names, base.matrix, strict=True):
        expected = printed[name] if name in printed else np.eye(39)[30 + friction.index(name)]
        assert_allclose(row, expected, atol=1e-12)  # recognised coefficients are exact to rounding


def test_szabo_parameters_that_are_identifiable_alone() -> None:
    robot = load_robot("szabo3r")
    base = base_parameters(robot, nominal_terms(robot)[0])
    of = dict(zip((p.name for p in base.parameters), base.classes, strict=True))
    alone = {name for name, kind in of.items() if kind == "alone"}
    assert alone == {"Ixy2", "Ixy3", "Iyz2", "Iyz3", "my2", "my3", *base.terms.names}
    assert {name for name, kind in of.items() if kind == "none" and name.endswith("1")} == {
        f"{name}1" for name in forms.SZABO_ORDER if name != "Iyy"
    }


def test_classes_do_not_depend_on_the_order_of_columns() -> None:
    """A parameter is alone iff its row of the null space is zero, whatever the leading columns."""
    robot = load_robot("ns16")
    natural, other = base_parameters(robot), base_parameters(robot, order=forms.SZABO_ORDER[::-1])
    assert natural.classes == other.classes
    _, _, v = np.linalg.svd(natural.matrix)
    unseen = v[natural.rank :]
    assert [c == "alone" for c in natural.classes] == list(np.abs(unseen).max(axis=0) < 1e-12)


def test_ns16_has_the_null_space_of_table_2() -> None:
    """Coefficients regenerated from the geometry; as printed they are cut after three decimals."""
    robot = load_robot("ns16")
    bound = terms(robot, "rotor")
    base = base_parameters(robot, bound)
    printed = forms.map_of(forms.NS16, robot, bound.names)
    _, _, v = np.linalg.svd(printed)
    assert np.abs(base.matrix @ v[40:].T).max() < 1e-12
    assert largest_angle(printed, base.matrix) < 1e-12
    friction = terms(robot, "rotor", "coulomb", "viscous", "quadratic")
    with_friction = base_parameters(robot, friction)
    assert_allclose(with_friction.matrix[:40, :66], base.matrix, atol=1e-13)
    assert with_friction.classes[66:] == ("alone",) * 18


def test_rotradi_has_the_space_of_its_fifteen_parameters() -> None:
    robot = load_robot("rotradi")
    assert largest_angle(forms.map_of(forms.ROTRADI, robot), base_parameters(robot).matrix) < 1e-12


# ---------------------------------------------------------------- four methods, one answer


@pytest.mark.parametrize("name", builtin_names())
def test_methods_agree_on_built_in_robots(name: str) -> None:
    robot = load_robot(name)
    for bound in (None, nominal_terms(robot)[0] if robot.nominal_terms else terms(robot, "viscous", "offset")):
        first, *others = (base_parameters(robot, bound, method) for method in METHODS)
        assert regrouping_error(first) < 1e-10
        for other in others:
            assert other.independent == first.independent
            assert other.classes == first.classes
            assert other.formulas == first.formulas
            assert_allclose(other.matrix, first.matrix, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_methods_agree_on_random_trees(seed: int) -> None:
    robot = make_tree(seed, 2 + seed % 5, mimic=seed % 3 == 0, own_frames=seed % 4 == 1)
    bound = terms(robot, "viscous", "rotor") if seed % 2 else None
    first, *others = (base_parameters(robot, bound, method) for method in METHODS)
    assert regrouping_error(first) < 1e-9  # skew axes: no coefficient is snapped, errors are those of the elimination
    for other in others:
        assert other.rank == first.rank
        assert largest_angle(first.matrix, other.matrix) < SAME_SPACE


def test_the_answer_is_the_same_every_time() -> None:
    robot = load_robot("irp6-screws")
    one, two = (base_parameters(robot, nominal_terms(robot)[0]) for _ in range(2))
    assert np.array_equal(one.matrix, two.matrix)
    assert one.formulas == two.formulas


# ---------------------------------------------------------------- columns that must be sought together


def test_a_rotor_is_grouped_with_the_link_it_turns_with() -> None:
    """Links alone would mislead: two of six rotors of a UR10 are identifiable only together with links."""
    robot = load_robot(public_robot_path("ur10"))
    base = base_parameters(robot, terms(robot, "rotor"))
    assert base.rank == 36 + 4
    assert [base.classes[60 + k] for k in range(6)] == ["combined"] * 2 + ["alone"] * 4


def test_motor_side_columns_a_thousand_times_larger_change_nothing() -> None:
    """Ball screws with ratios of 170: rotors on the shafts have columns of 3e4; posture-dependent ones are alone."""
    robot = load_robot("irp6-screws")
    base = base_parameters(robot, terms(robot, Rotor(on="motor")))
    assert base.rank == 15 + 2
    assert [base.classes[30 + k] for k in range(3)] == ["combined", "alone", "alone"]


def test_friction_that_differs_only_at_low_speed_is_identifiable() -> None:
    robot = load_robot("rotradi")
    column = Column("Ft", "N m", "N")
    smooth = Custom(name="smooth", parameters=(column,), torque=lambda u, du: (np.tanh(50.0 * du),))
    base = base_parameters(robot, terms(robot, Coulomb(), smooth))
    assert base.rank == 15 + 6


def test_a_weight_on_a_slide_is_an_offset() -> None:
    """Gravity along a lone prismatic joint is a constant force: m·q̈ and m·g + F0 remain."""
    base = base_parameters(slide(), terms(slide(), "offset"))
    assert base.rank == 2
    assert base.formulas == ("m1", "F01")
    level = replace(slide(), gravity=np.array([9.81, 0.0, 0.0]))
    assert base_parameters(level, terms(level, "offset")).rank == 2


def slide() -> Robot:
    link = Link("block", "slide", "prismatic", -1, np.eye(3), np.zeros(3), np.array([0.0, 0.0, 1.0]), 0)
    return Robot("slide", (Joint("slide", "prismatic"),), (link,))


def test_offsets_of_gravity_compensators_join_first_moments() -> None:
    robot = load_robot("rotradi")
    base = base_parameters(robot, terms(robot, "counterbalance"))
    # On joint 2, a balancer looks like the weight of link 2; joint 3 turns against a moving link 2 and does not.
    assert base.rank == 15 + 4
    assert "mx2 + L2·m3 + Bs2/g" in base.formulas


# ---------------------------------------------------------------- rows, order, refusals


def test_rows_of_unused_torques_are_ignored() -> None:
    robot = load_robot("arm7")
    wrist = base_parameters(robot.with_torque_used(["joint6", "joint7"]))
    assert wrist.rank < 43
    assert all(c == "none" for c in wrist.classes[:50])  # links 1 to 5 are carried, but not felt there
    only_first = base_parameters(robot.with_torque_used(["joint1"]))
    assert regrouping_error(only_first) < 1e-10


def test_order_decides_the_leading_parameter() -> None:
    robot = load_robot("ns16")
    natural = base_parameters(robot)
    assert natural.independent == tuple(sorted(natural.independent))
    named = base_parameters(robot, order=["m6", "Iyy6"])
    assert named.names[:2] == ("m6", "Iyy6")
    backwards = base_parameters(robot, order=lambda p: -int(p.name[-1]))
    assert backwards.names[0][-1] == "6"
    for other in (named, backwards):
        assert largest_angle(natural.matrix, other.matrix) < SAME_SPACE
        assert_allclose(other.matrix[:, list(other.independent)], np.eye(36), atol=0)
        assert regrouping_error(other) < 1e-10
    with pytest.raises(UnknownNameError, match="Did you mean 'Izz6'"):
        base_parameters(robot, order=["Izz66"])
    with pytest.raises(StructureError, match="twice"):
        base_parameters(robot, order=["m6", "m6"])
    with pytest.raises(UnknownNameError, match="Did you mean 'qr'"):
        base_parameters(robot, method="qrr")  # type: ignore[arg-type]


def askew(angle: float) -> Robot:
    """A double pendulum whose second axis is off by an angle, about an axis across."""
    tilt = rotation_about([1.0, 0.0, 0.0], angle)
    z, joints = np.array([0.0, 0.0, 1.0]), (Joint("a", "revolute"), Joint("b", "revolute"))
    links = (
        Link("one", "a", "revolute", -1, np.eye(3), np.zeros(3), z, 0),
        Link("two", "b", "revolute", 0, tilt, np.array([0.5, 0.0, 0.0]), z, 1),
    )
    return Robot("askew", joints, links, gravity=np.array([0.0, -9.81, 0.0]))


def test_nearly_parallel_axes_are_refused_and_can_be_snapped() -> None:
    assert base_parameters(askew(0.0)).rank == 6
    assert base_parameters(askew(0.3)).rank > 6
    with pytest.raises(StructureError, match=r"joints 'b' are aligned except for .*snap=1e-4"):
        base_parameters(askew(3e-6))
    mended = load_robot(askew(3e-6), snap=1e-4)
    assert base_parameters(mended).rank == 6
    for method in METHODS:
        assert base_parameters(askew(3e-6), method=method, tolerance=1e-3).rank == 6
    with pytest.raises(StructureError, match="between 0 and 1"):
        base_parameters(askew(0.0), tolerance=0.0)


def test_bodies_with_equal_base_parameters_move_alike() -> None:
    """Different bodies with the same base parameters move alike."""
    robot = load_robot("arm7")
    base = base_parameters(robot)
    theta = robot.inertial_parameters
    _, _, v = np.linalg.svd(base.matrix)
    other = theta + np.random.default_rng(3).normal(size=70 - base.rank) @ v[base.rank :]
    assert_allclose(base.values(other), base.values(theta), atol=1e-12)
    s = states(robot, 10)
    torque, same = (robot.dynamics.inverse_dynamics(s.q, s.dq, s.ddq, x) for x in (theta, other))
    assert_allclose(same, torque, atol=1e-11)
    assert base.values(np.stack([theta, other])).shape == (2, 43)
    for bad in (theta[:-1], theta[None, :, None]):
        with pytest.raises(ShapeError, match="70"):
            base.values(bad)
        with pytest.raises(ShapeError, match="70"):
            base.regressor_columns(bad)


def test_sixteen_parameters_give_the_same_values() -> None:
    """Written about the centres of mass, a base parameter has the same value."""
    robot = load_robot("irp6-wrist")
    base = base_parameters(robot, method="kernel")
    rng = np.random.default_rng(0)
    blocks = []
    for _ in robot.links:
        m, c, J = rng.uniform(1, 5), rng.normal(size=3), rng.normal(size=6)
        moments = [c[0] ** 2, c[1] ** 2, c[2] ** 2, c[0] * c[1], c[1] * c[2], c[2] * c[0]]
        blocks.append([m, *(m * c), *(m * np.array(moments)), *J])
    wide = np.ravel(blocks)
    assert len(base.expanded.names) == len(SIXTEEN) * len(robot.links)
    assert_allclose(base.expanded.matrix @ wide, base.values(ten_from_sixteen(5, 0) @ wide), atol=1e-11)
    assert "Jzz5 + mxx5 + myy5" in base.expanded.formulas
    assert "Jzz3 + mxx3 + myy3 + l3²·(m4 + m5)" in base.expanded.formulas


def test_a_robot_without_visible_parameters_has_none() -> None:
    """A slide across gravity whose torque is not trusted."""
    base = base_parameters(replace(slide(), torque_used=(False,)))
    assert base.rank == 0
    assert set(base.classes) == {"none"}
    assert isinstance(base.terms, Terms)


def test_an_offset_on_a_revolute_joint_is_identifiable_alone() -> None:
    robot = load_robot("szabo3r")
    assert base_parameters(robot, terms(robot, Offset(where=("q2",)))).classes[-1] == "alone"
