"""The built-in robots reproduce their papers: printed energies, inertia matrices and base parameters."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from steelyard.errors import UnknownNameError
from steelyard.ground.arithmetic import evaluate_expression
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.library import builtin, builtin_names
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import inertia_matrix, pseudo_inertia, skew
from steelyard.robot.transmission import BallScrew

NAMES = ("arm7", "irp6", "irp6-screws", "irp6-wrist", "ns16", "prrrp", "rotradi", "szabo3r")
G = 9.81


# ---------------------------------------------------------------- physics from poses alone, by differences


def poses(robot: Robot, q: np.ndarray) -> np.ndarray:
    """The 4×4 poses of all links' own frames."""
    rotations, origins = link_poses(robot, q)
    out = np.tile(np.eye(4), (len(robot.links), 1, 1))
    for i, link in enumerate(robot.links):
        out[i, :3, :3] = rotations[i] @ link.frame_rotation
        out[i, :3, 3] = origins[i] + rotations[i] @ link.frame_translation
    return out


def pose_derivatives(robot: Robot, q: np.ndarray) -> np.ndarray:
    step = 1e-5 * np.eye(robot.dof)  # error of a central difference: about 1e-10
    return np.array([(poses(robot, q + h) - poses(robot, q - h)) / 2e-5 for h in step])


def mass_matrix(robot: Robot, q: np.ndarray) -> np.ndarray:
    """M_ij = Σ tr(∂T/∂q_i J ∂T/∂q_jᵀ), with the links' pseudo-inertias J."""
    derivatives = pose_derivatives(robot, q)
    bodies = np.array([pseudo_inertia(link.inertia) for link in robot.links])
    return np.einsum("ikab,kbc,jkac->ij", derivatives, bodies, derivatives)


def gravity_torque(robot: Robot, q: np.ndarray) -> np.ndarray:
    """The gradient of the potential energy −Σ gᵀ (T J)'s last column."""
    moments = np.array([pseudo_inertia(link.inertia)[:, 3] for link in robot.links])
    return -np.einsum("a,ikab,kb->i", np.append(robot.gravity, 0.0), pose_derivatives(robot, q), moments)


def links(robot: Robot) -> list[SimpleNamespace]:
    """Mass, centre of mass and tensors (I: about the origin, C: about the centre of mass) of each link."""
    out = []
    for link in robot.links:
        assert link.inertia is not None
        m, tensor = link.inertia[0], inertia_matrix(link.inertia)
        com = link.inertia[1:4] / m
        out.append(SimpleNamespace(m=m, mc=link.inertia[1:4], c=com, I=tensor, C=tensor + m * skew(com) @ skew(com)))
    return out


def term(robot: Robot, kind: str) -> list[float]:
    return list(next(t for t in robot.nominal_terms if t.kind == kind).values[0])


# ---------------------------------------------------------------- all of them


def test_the_library_is_complete() -> None:
    assert builtin_names() == NAMES
    assert builtin("irp6") is builtin("irp6")
    with pytest.raises(UnknownNameError, match="Did you mean 'rotradi'"):
        builtin("rotrady")
    for name in ("../library/irp6", "irp6.yaml", ""):
        with pytest.raises(UnknownNameError):
            builtin(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_link_is_physically_possible(name: str) -> None:
    robot = builtin(name)
    assert robot.name == name
    assert robot.source == f"{name}.yaml"
    for link in robot.links:
        assert np.linalg.eigvalsh(pseudo_inertia(link.inertia))[0] > 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_right_angles_are_exact(name: str) -> None:
    for link in builtin(name).links:
        assert set(np.unique(np.abs(link.rotation))) <= {0.0, 1.0}
        assert set(np.unique(np.abs(link.frame_rotation))) <= {0.0, 1.0}


@pytest.mark.parametrize("name", NAMES)
def test_rotors_and_friction_dissipate(name: str) -> None:
    for nominal in builtin(name).nominal_terms:
        if nominal.kind in ("rotor", "viscous", "coulomb"):
            assert min(nominal.values[0]) > 0.0


# ---------------------------------------------------------------- rotradi

ROTRADI = (
    *(4.83893, -2.575647, 0.022786, 0.01999, -0.079956, 0.203493, 0.070908, 0.040081, 0.005554),
    *(1.251914, 0.115437, 2.946502, 0.108238, 55.62876, -0.272838),
)


def rotradi_theta(robot: Robot) -> list[float]:
    """Chávez-Olivares et al. 2012, (26), with the lost '+' of θ12; inertias about the centres of mass."""
    L2, D2, D3 = (robot.lengths[k] for k in ("L2", "D2", "D3"))
    one, two, three = links(robot)
    (x1, y1, _), (x2, y2, z2), (x3, y3, z3) = one.c, two.c, three.c
    m1, m2, m3, A, B, C = one.m, two.m, three.m, one.C, two.C, three.C
    D = D2 + D3 + z3
    return [
        A[2, 2]
        + m1 * (x1**2 + y1**2)
        + m2 * ((D2 + z2) ** 2 + x2**2)
        + B[1, 1]
        + m3 * (D**2 + x3**2 + L2**2)
        + C[1, 1],
        B[0, 0] - B[1, 1] + m2 * (y2**2 - x2**2) - m3 * L2**2,
        m2 * x2 * y2 - B[0, 1],
        m3 * x3 * y3 - C[0, 1],
        C[0, 0] - C[1, 1] + m3 * (y3**2 - x3**2),
        m3 * x3,
        m3 * y3,
        m3 * x3 * D - C[0, 2],
        C[1, 2] - m3 * y3 * D,
        m3 * L2 * D + m2 * x2 * (D2 + z2) - B[0, 2],
        B[1, 2] - m2 * y2 * (D2 + z2),
        B[2, 2] + m2 * (x2**2 + y2**2) + C[2, 2] + m3 * (x3**2 + y3**2 + L2**2),
        C[2, 2] + m3 * (x3**2 + y3**2),
        G * (m2 * x2 + m3 * L2),
        G * m2 * y2,
    ]


def test_rotradi_has_the_documented_base_parameters() -> None:
    # The centres of mass have six decimals, which the mass of link 2 and g turn into 0.5e-6 · 12.7 · 9.81.
    assert_allclose(rotradi_theta(builtin("rotradi")), ROTRADI, atol=7e-5)
    assert [joint.effort for joint in builtin("rotradi").joints] == [50.0, 150.0, 15.0]
    assert term(builtin("rotradi"), "viscous") == [6.641267, 0.914984, 0.406734]
    assert term(builtin("rotradi"), "coulomb") == [8.18572, 6.292514, 0.793576]


def test_rotradi_moves_as_printed() -> None:
    """(22) inertia matrix and (24) gravity."""
    robot = builtin("rotradi")
    t, L2 = [0.0, *rotradi_theta(robot)], robot.lengths["L2"]
    _, q2, q3 = q = np.array([0.3, -0.7, 1.9])
    s, c = np.sin, np.cos
    m11 = t[1] + t[2] * c(q2) ** 2 + t[3] * s(2 * q2) + t[4] * s(2 * q2 + 2 * q3) + t[5] * c(q2 + q3) ** 2
    m11 += 2 * L2 * s(q2) * (t[6] * s(q2 + q3) + t[7] * c(q2 + q3))
    m13 = t[8] * c(q2 + q3) + t[9] * s(q2 + q3)
    m12 = m13 + t[10] * c(q2) + t[11] * s(q2)
    m22 = t[12] + 2 * L2 * (t[6] * c(q3) - t[7] * s(q3))
    m23 = t[13] + L2 * (t[6] * c(q3) - t[7] * s(q3))
    assert_allclose(mass_matrix(robot, q), [[m11, m12, m13], [m12, m22, m23], [m13, m23, t[13]]], atol=1e-7)
    elbow = G * (t[6] * s(q2 + q3) + t[7] * c(q2 + q3))
    assert_allclose(gravity_torque(robot, q), [0.0, elbow + t[14] * s(q2) + t[15] * c(q2), elbow], atol=1e-7)


# ---------------------------------------------------------------- irp6

IRP6 = (3.340927, 2.407152, 8.582848, 3.082848, 0.816, 0.4, 8.125, 12.0, 28.75, 15.0, 20.0, 26.0, 18.0)


def irp6_inertial(robot: Robot, rotor: list[float]) -> list[float]:
    """X1..X7 of Kozłowski & Dutkiewicz 1996, section 5.1 (X3 with its index corrected)."""
    one, two, three = links(robot)
    l2 = robot.lengths["l2"]
    A, B, C, carried = one.I, two.I, three.I, three.m * l2**2
    return [
        A[2, 2] + rotor[0] + B[0, 0] + C[1, 1],
        B[1, 1] - B[0, 0] + carried - C[1, 1] + C[0, 0],
        B[2, 2] + rotor[1] + C[2, 2] + rotor[2] + carried,
        C[2, 2] + rotor[2],
        C[1, 1] - C[0, 0],
        three.mc[0],
        two.mc[0] + l2 * three.m,
    ]


def test_irp6_has_the_documented_parameters() -> None:
    robot = builtin("irp6")
    inertial = irp6_inertial(robot, term(robot, "rotor"))
    assert_allclose([*inertial, *term(robot, "coulomb"), *term(robot, "viscous")], IRP6, atol=1e-6)
    printed = links(robot)[1].I[2, 2] + term(robot, "rotor")[1] + links(robot)[2].m * robot.lengths["l2"] ** 2
    assert printed == pytest.approx(5.5, abs=1e-12)


def test_irp6_moves_as_printed() -> None:
    """The energy functions d1..d7 (d4 corrected), rotors included through the drives' coordinates."""
    robot = builtin("irp6")
    X, l2 = irp6_inertial(robot, term(robot, "rotor")), robot.lengths["l2"]
    assert robot.transmission is not None
    drive, rotor = robot.transmission.matrix, np.diag(term(robot, "rotor"))
    _, q2, q3 = q = np.array([0.5, -0.4, 0.6])
    s, c = np.sin, np.cos
    for v in np.random.default_rng(0).normal(size=(4, 3)):
        v1, v2, v3 = v
        d = [
            0.5 * v1**2,
            0.5 * v1**2 * s(q2) ** 2,
            0.5 * v2**2,
            0.5 * v3**2 + v2 * v3,
            -0.5 * (s(q3) ** 2 * c(2 * q2) + 0.5 * s(2 * q2) * s(2 * q3)) * v1**2,
            l2 * s(q3) * (v2 + v3) * v2 - l2 * s(q2) * c(q2 + q3) * v1**2,
        ]
        kinetic = 0.5 * v @ (mass_matrix(robot, q) + drive.T @ rotor @ drive) @ v
        assert kinetic == pytest.approx(np.dot(X[:6], d), abs=1e-7)
    forearm = X[5] * G * c(q2 + q3)
    assert_allclose(gravity_torque(robot, q), [0.0, forearm - X[6] * G * s(q2), forearm], atol=1e-7)


def test_irp6_drives() -> None:
    for name in ("irp6", "irp6-screws"):
        transmission = builtin(name).transmission
        assert transmission is not None
        assert_allclose(transmission.drive([1.0, 2.0, 5.0]), [1.0, -2.0, 7.0])
    wrist = builtin("irp6-wrist").transmission
    assert wrist is not None
    assert_allclose(wrist.drive([1.0, 2.0, 5.0, 3.0, 4.0]), [1.0, -2.0, 7.0, 10.0, 4.0 + 10.0 * 5.0 / 3.0])


def screws() -> tuple[BallScrew, BallScrew]:
    transmission = builtin("irp6-screws").transmission
    assert transmission is not None
    _, two, three = transmission.ratios
    assert isinstance(two, BallScrew)
    assert isinstance(three, BallScrew)
    return two, three


def test_ball_screws_differentiate() -> None:
    u, h = np.linspace(-0.7, 0.7, 15), 1e-5
    for screw in screws():
        assert_allclose(screw.slope(u), (screw.value(u + h) - screw.value(u - h)) / (2 * h), rtol=1e-8)
        assert_allclose(screw.curvature(u), (screw.slope(u + h) - screw.slope(u - h)) / (2 * h), atol=1e-5)


def test_ball_screws_have_the_published_lengths() -> None:
    """The screw lengths of the public IRp-6 software, in its own angles (mm)."""
    u = np.linspace(-0.7, 0.7, 15)
    two, three = screws()
    arm = u - np.pi / 2
    assert_allclose(
        two.value(u) * 5.0 / (2 * np.pi),
        np.sqrt(77895.25 + 60902.55 * np.cos(arm) - 29346.68 * np.sin(-arm)),
        rtol=1e-12,
    )
    forearm = -u
    assert_allclose(
        three.value(u) * -5.0 / (2 * np.pi),
        np.sqrt(77895.25 - 44100 * np.cos(forearm) - 51240 * np.sin(-forearm)),
        rtol=1e-12,
    )


@pytest.mark.parametrize(("degrees", "least", "most"), [(0, 173.7, 173.7), (10, 167.5, 175.9), (30, 147.0, 176.0)])
def test_ratio_of_motor_2(degrees: float, least: float, most: float) -> None:
    slope = screws()[0].slope(np.deg2rad(np.linspace(-degrees, degrees, 121)))
    assert slope.min() == pytest.approx(least, abs=0.5 if degrees == 30 else 0.05)
    assert slope.max() == pytest.approx(most, abs=0.5 if degrees == 30 else 0.05)


def test_ratio_of_motor_3() -> None:
    slope = screws()[1].slope(np.deg2rad(np.linspace(-30, 30, 121)))
    assert slope.min() == pytest.approx(118.0, abs=0.5)
    assert slope.max() == pytest.approx(176.0, abs=0.5)


# ---------------------------------------------------------------- szabo3r


def test_szabo_has_the_exact_values_of_table_2() -> None:
    one, two, three = links(builtin("szabo3r"))
    exact = [
        (two.I[0, 0] - two.I[1, 1] - two.mc[0] / 2, 0.059),
        (three.I[0, 0] - three.I[1, 1] - three.mc[0] / 2, 0.059),
        (one.I[1, 1] + two.I[1, 1] + three.I[1, 1] + two.mc[0] / 2 + three.mc[0] / 2, -0.117),
        (two.I[2, 2] + two.mc[0] / 2, -0.059),
        (three.I[2, 2] + three.mc[0] / 2, -0.059),
        (two.m + 2 * two.mc[0] - 2 * three.mc[0], 1.414),
        (three.m + 2 * three.mc[0], 0.707),
    ]
    for value, printed in exact:
        assert value == pytest.approx(printed, abs=5.1e-4)  # three decimals
    assert three.m == pytest.approx(1.413717, abs=1e-6)
    assert_allclose([one.C[0, 0], one.C[1, 1]], [0.00655258, 0.000381704], rtol=1e-5)
    friction = builtin("szabo3r").nominal_terms[0]
    assert friction.values == ((2.0, 1.0, 2.0), (-0.3, -0.2, -0.3), (0.5, 0.277, 0.03))
    assert dict(friction.options) == {"Kv": 500.0, "delta": 5.0}


def test_szabo_holds_itself_up() -> None:
    """Two cylinders held out: at q2 = −90° the arm is horizontal, and the torque is m g times the lever."""
    m = np.pi * 0.03**2 * 0.5 * 1000.0
    torque = gravity_torque(builtin("szabo3r"), np.array([0.4, -np.pi / 2, 0.0]))
    assert_allclose(torque, [0.0, m * G * (0.25 + 0.75), m * G * 0.25], atol=1e-7)


# ---------------------------------------------------------------- prrrp

PRRRP = (4.297, 0.108632, 0.067712, 0.066061, 0.026792, 0.025141, 0.025141, 0.5114)


def test_prrrp_has_and_moves_by_the_documented_parameters() -> None:
    robot = builtin("prrrp")
    one, two, three, four, five = links(robot)
    l2, l3, l4 = (robot.lengths[k] for k in ("l2", "l3", "l4"))
    lc2, lc3, lc4 = l2 + two.c[0], l3 + three.c[0], l4 + four.c[0]
    tip = four.m * lc4 + five.m * l4
    a = [
        one.m + two.m + three.m + four.m,
        two.m * lc2**2 + (three.m + four.m + five.m) * l2**2 + two.C[2, 2],
        three.m * lc3**2 + (four.m + five.m) * l3**2 + three.C[2, 2],
        l2 * (three.m * lc3 + (four.m + five.m) * l3),
        four.m * lc4**2 + five.m * l4**2 + four.C[2, 2] + five.C[2, 2],
        l2 * tip,
        l3 * tip,
        five.m,
    ]
    assert_allclose(a, PRRRP, atol=1e-6)

    # The linear form of the paper at rest, column by column.
    q = np.array([0.1, 0.4, -0.9, 1.3, 0.05])
    c3, c4, c34 = np.cos(q[2]), np.cos(q[3]), np.cos(q[2] + q[3])
    m44 = a[4]
    m34 = m44 + a[6] * c4
    m33 = a[2] + m34 + a[6] * c4
    m24 = m34 + a[5] * c34
    m23 = m33 + a[3] * c3 + a[5] * c34
    m22 = a[1] + m23 + a[3] * c3 + a[5] * c34
    expected = np.zeros((5, 5))
    expected[1:4, 1:4] = [[m22, m23, m24], [m23, m33, m34], [m24, m34, m44]]
    expected[np.ix_([0, 4], [0, 4])] = [[a[0] + a[7], -a[7]], [-a[7], a[7]]]
    assert_allclose(mass_matrix(robot, q), expected, atol=1e-8)
    assert_allclose(gravity_torque(robot, q), [(a[0] + a[7]) * G, 0.0, 0.0, 0.0, -a[7] * G], atol=1e-7)


# ---------------------------------------------------------------- ns16

# Pedrocchi et al. 2013, Table II, rows 1..40, with the coefficients that the truncated decimals stand for, and their
# values for the documented links.
NS16 = {
    "mc2y": -0.33401,
    "I2xy": 0.06134,
    "I2yz": -0.05749,
    "I3xy": -0.46191,
    "I3yz": -0.2433,
    "I3m": 13.122,
    "mc4x": -7.0e-05,
    "I4xy": 5.0e-05,
    "I4xz": -0.0,
    "I4m": 1.5987,
    "mc5x": 5.0e-05,
    "I5xy": 0.0,
    "I5xz": -1.0e-05,
    "I5yz": -0.00025,
    "I5m": 1.8723,
    "mc6x": -0.00119,
    "mc6y": -1.0e-05,
    "I6xy": -0.0,
    "I6xz": 0.00015,
    "I6yz": 0.0,
    "I6zz": 0.00078,
    "I6m": 0.75,
    "I1yy + I1m + a1**2*m2 + I2yy + (a1**2 + a2**2)*m3 + I3zz + (a1**2 + a2**2 + a3**2)*(m4 + m5 + m6)": 76.80723,
    "mc2x + a2*(m3 + m4 + m5 + m6)": 61.93154,
    "I2xx - I2yy - a2**2*(m3 + m4 + m5 + m6)": -41.74588,
    "I2xz + a2*mc3y": 2.34889,
    "I2zz + I2m + a2**2*(m3 + m4 + m5 + m6)": 67.27049,
    "mc3x + a3*(m4 + m5 + m6)": 11.67137,
    "mc3z + mc4y + d4*(m5 + m6)": 15.31593,
    "I3xx - I3zz - a3**2*m4 + I4zz + (d4**2 - a3**2)*(m5 + m6)": 4.0567,
    "I3xz - a3*mc4y - a3*d4*(m5 + m6)": -2.44077,
    "I3yy + a3**2*m4 + I4zz + (a3**2 + d4**2)*(m5 + m6)": 9.10047,
    "mc4z - mc5y": -0.1733,
    "I4xx - I4zz + I5zz": 0.05642,
    "I4yy + I5zz": 0.08367,
    "I4yz + d4*mc5y": 0.07722,
    "mc5z + mc6z": 0.2025,
    "I5xx - I5zz + I6yy": 0.01885,
    "I5yy + I6yy": 0.02113,
    "I6xx - I6yy": 5.0e-05,
}


def ns16_names(robot: Robot) -> dict[str, float]:
    names = dict(robot.lengths)
    for i, (link, rotor) in enumerate(zip(links(robot), term(robot, "rotor"), strict=True), start=1):
        names |= {f"m{i}": link.m, f"I{i}m": rotor}
        names |= {f"mc{i}{axis}": link.mc[k] for k, axis in enumerate("xyz")}
        names |= {f"I{i}{a}{b}": link.I["xyz".index(a), "xyz".index(b)] for a in "xyz" for b in "xyz"}
    return names


def test_ns16_has_the_documented_base_parameters() -> None:
    robot = builtin("ns16")
    assert robot.lengths == {"a1": 0.3, "a2": 0.7, "a3": 0.185, "d4": 0.624}
    values = [evaluate_expression(formula, ns16_names(robot))[0] for formula in NS16]
    assert_allclose(values, list(NS16.values()), atol=1.2e-5)  # five decimals of six-decimal links
    assert_allclose([joint.effort for joint in robot.joints], [546.0, 954.0, 486.0, 51.1, 55.3, 35.0])
    assert_allclose(term(robot, "rotor"), [16.562, 25.281, 13.122, 1.5987, 1.8723, 0.75])
    assert [t.kind for t in robot.nominal_terms] == ["rotor", "coulomb", "viscous", "quadratic"]


def test_ns16_moves_by_those_parameters_only() -> None:
    """A change of the links that leaves Table II's 36 inertial rows alone changes neither inertia nor gravity.

    This is what fixes the link frames of the paper: with any others it fails.
    """
    robot = builtin("ns16")
    order = ["m", "x", "y", "z", "xx", "xy", "yy", "xz", "yz", "zz"]
    columns = [f"m{i}" if k == "m" else f"mc{i}{k}" if len(k) == 1 else f"I{i}{k}" for i in range(1, 7) for k in order]
    zero = {**dict.fromkeys(columns, 0.0), **robot.lengths, **{f"I{i}m": 0.0 for i in range(1, 7)}}
    rows = np.array([[evaluate_expression(f, {**zero, name: 1.0})[0] for name in columns] for f in NS16])
    _, singular, axes = np.linalg.svd(rows)
    unseen = axes[int(np.sum(singular > 1e-9)) :]
    assert len(unseen) == 60 - 36

    rng = np.random.default_rng(1)
    changed = robot.with_inertial_parameters(robot.inertial_parameters + rng.normal(size=len(unseen)) @ unseen)
    rotor = np.diag(term(robot, "rotor"))
    for q in rng.uniform(-2.0, 2.0, size=(4, 6)):
        assert_allclose(mass_matrix(changed, q) + rotor, mass_matrix(robot, q) + rotor, atol=2e-6)
        assert_allclose(gravity_torque(changed, q), gravity_torque(robot, q), atol=2e-5)


def test_ns16_carries_itself() -> None:
    """Worst static torques of the documented links: 797 and 192 N m on joints 2 and 3, inside the nominal ones."""
    robot = builtin("ns16")
    worst = np.max([np.abs(gravity_torque(robot, q)) for q in np.random.default_rng(0).uniform(-3, 3, (100, 6))], 0)
    assert 500.0 < worst[1] < 797.5
    assert 100.0 < worst[2] < 192.5
    assert np.all(worst <= [joint.effort for joint in robot.joints])


# ---------------------------------------------------------------- arm7


def test_arm7_is_an_arm_of_today() -> None:
    robot = builtin("arm7")
    assert sum(link.m for link in links(robot)) == pytest.approx(18.0)
    # Shoulder, elbow and wrist: axes 1–3, 3–5 and 5–7 meet.
    _, origins = link_poses(robot, np.random.default_rng(0).uniform(-2.0, 2.0, 7))
    assert_allclose(origins[0], origins[1], atol=1e-15)
    assert_allclose(origins[2], origins[3], atol=1e-15)
    assert_allclose(origins[4], origins[5], atol=1e-15)
    _, stretched = link_poses(robot, np.zeros(7))
    assert_allclose(stretched[-1], [0.0, 0.0, 0.33 + 0.42 + 0.38 + 0.12], atol=1e-15)
    assert all(np.isfinite([j.lower, j.upper, j.velocity, j.effort]).all() for j in robot.joints)


def test_arm7_carries_its_payload() -> None:
    """5 kg, 6 cm beyond the flange, anywhere within its limits, with a tenth of the torque to spare for friction."""
    robot = builtin("arm7")
    flange = robot.links[-1]
    assert flange.inertia is not None
    load = np.array([5.0, 0.0, 0.0, 5.0 * 0.06, 0.03, 0.0, 0.03, 0.0, 0.0, 0.01])
    loaded = robot.with_inertial_parameters(np.append(robot.inertial_parameters[:-10], flange.inertia + load))
    lower, upper, effort = np.array([(j.lower, j.upper, j.effort) for j in robot.joints]).T
    postures = [*np.random.default_rng(0).uniform(lower, upper, (100, 7)), np.array([0, np.pi / 2, 0, 0, 0, 0, 0])]
    worst = np.max([np.abs(gravity_torque(loaded, q)) for q in postures], 0)
    assert np.all(worst < 0.9 * effort)
    assert worst[1] > 0.5 * effort[1]
