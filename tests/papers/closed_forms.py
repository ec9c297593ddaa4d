"""The closed forms of the source papers, with their errata corrected, written from the papers' equations.

States are arrays `(samples, joints)`; every function returns one entry per sample.
"""

from __future__ import annotations

import re

import numpy as np

from steelyard.parameters import INERTIAL_NAMES
from steelyard.robot import Robot

G = 9.81
sin, cos = np.sin, np.cos


def combination(text: str, columns: list[str], lengths: dict[str, float]) -> np.ndarray:
    """The coefficients of a linear formula such as "Izz2 + l2**2*m3" over the named columns."""
    zero = dict.fromkeys(columns, 0.0)
    used = set(re.findall(r"[A-Za-z_]\w*", text)) & set(columns)
    out = np.zeros(len(columns))
    for name in used:
        out[columns.index(name)] = eval(text, {"__builtins__": {}}, {**zero, **lengths, name: 1.0})
    return out


def map_of(formulas: list[str], robot: Robot, terms: tuple[str, ...] = ()) -> np.ndarray:
    """One row per formula, one column per parameter: ten per link, then those of the terms."""
    columns = [f"{name}{k + 1}" for k in range(len(robot.links)) for name in INERTIAL_NAMES] + list(terms)
    return np.array([combination(f, columns, dict(robot.lengths)) for f in formulas])


def filled(samples: int, rows: int, columns: int, entries: dict[tuple[int, int], np.ndarray]) -> np.ndarray:
    """A matrix per sample from its non-zero entries, counted from 1 as in print."""
    out = np.zeros((samples, rows, columns))
    for (i, j), value in entries.items():
        out[:, i - 1, j - 1] = value
    return out


# ---------------------------------------------------------------- Rotradi: Chávez-Olivares et al. 2012

# (26) with θ12 corrected; inertias about the frames' origins, so that all is linear in the ten parameters.
ROTRADI = [
    "Izz1 + Iyy2 + D2**2*m2 + 2*D2*mz2 + Iyy3 + (D2 + D3)**2*m3 + 2*(D2 + D3)*mz3 + L2**2*m3",
    "Ixx2 - Iyy2 - L2**2*m3",
    "-Ixy2",
    "-Ixy3",
    "Ixx3 - Iyy3",
    "mx3",
    "my3",
    "(D2 + D3)*mx3 - Ixz3",
    "Iyz3 - (D2 + D3)*my3",
    "L2*(D2 + D3)*m3 + L2*mz3 + D2*mx2 - Ixz2",
    "Iyz2 - D2*my2",
    "Izz2 + Izz3 + L2**2*m3",
    "Izz3",
    "9.81*(mx2 + L2*m3)",
    "9.81*my2",
]
ROTRADI_FRICTION = ["Fv1", "Fc1", "Fv2", "Fc2", "Fv3", "Fc3"]


def rotradi_mass_matrix(q, t, L2):
    """(22); t[k] is θ_k, counted from 1."""
    _, q2, q3 = q.T
    q23 = q2 + q3
    m11 = t[1] + t[2] * cos(q2) ** 2 + t[3] * sin(2 * q2) + t[4] * sin(2 * q23) + t[5] * cos(q23) ** 2
    m11 = m11 + 2 * L2 * sin(q2) * (t[6] * sin(q23) + t[7] * cos(q23))
    m13 = t[8] * cos(q23) + t[9] * sin(q23)
    m12 = m13 + t[10] * cos(q2) + t[11] * sin(q2)
    elbow = L2 * (t[6] * cos(q3) - t[7] * sin(q3))
    m22, m23, m33 = t[12] + 2 * elbow, t[13] + elbow, t[13] + 0 * q2
    return np.stack([np.stack(row, -1) for row in ([m11, m12, m13], [m12, m22, m23], [m13, m23, m33])], -2)


def rotradi_coriolis_matrix(q, dq, t, L2):
    """(23)."""
    _, q2, q3 = q.T
    v1, v2, v3 = dq.T
    q23, v23, p = q2 + q3, v2 + v3, 2 * q2 + q3
    turn4 = t[4] * cos(2 * q23) - t[5] / 2 * sin(2 * q23)
    turn3 = t[3] * cos(2 * q2) - t[2] / 2 * sin(2 * q2)
    far = L2 * (t[6] * sin(p) + t[7] * cos(p))
    near = L2 * (t[6] * sin(q3) + t[7] * cos(q3))
    wrist = v23 * (t[9] * cos(q23) - t[8] * sin(q23))
    c11 = turn3 * v2 + turn4 * v23 + far * (v2 + v3 / 2) - near * v3 / 2
    c12 = (turn3 + turn4 + far) * v1 + wrist + v2 * (t[11] * cos(q2) - t[10] * sin(q2))
    c13 = (turn4 + (far - near) / 2) * v1 + wrist
    c21 = -(turn3 + turn4 + far) * v1
    c31 = -(turn4 + (far - near) / 2) * v1
    rows = [[c11, c12, c13], [c21, -near * v3, -near * v23], [c31, near * v2, 0 * v1]]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def rotradi_gravity(q, t):
    """(24)."""
    _, q2, q3 = q.T
    elbow = G * (t[6] * sin(q2 + q3) + t[7] * cos(q2 + q3))
    return np.stack([0 * q2, elbow + t[14] * sin(q2) + t[15] * cos(q2), elbow], -1)


def rotradi_torque_regressor(q, dq, ddq, L2):
    """(33), 3 × 21."""
    _, q2, q3 = q.T
    v1, v2, v3 = dq.T
    a1, a2, a3 = ddq.T
    q23, v23, a23, p = q2 + q3, v2 + v3, a2 + a3, 2 * q2 + q3
    e = {
        (1, 1): a1,
        (1, 2): a1 * cos(q2) ** 2 - v1 * v2 * sin(2 * q2),
        (1, 3): a1 * sin(2 * q2) + 2 * v1 * v2 * cos(2 * q2),
        (1, 4): a1 * sin(2 * q23) + 2 * v1 * v23 * cos(2 * q23),
        (1, 5): a1 * cos(q23) ** 2 - v1 * v23 * sin(2 * q23),
        (1, 6): L2 * (2 * a1 * sin(q2) * sin(q23) + v1 * (2 * v2 + v3) * sin(p) - v1 * v3 * sin(q3)),
        (1, 7): L2 * (2 * a1 * sin(q2) * cos(q23) + v1 * (2 * v2 + v3) * cos(p) - v1 * v3 * cos(q3)),
        (1, 8): a23 * cos(q23) - v23**2 * sin(q23),
        (1, 9): a23 * sin(q23) + v23**2 * cos(q23),
        (1, 10): a2 * cos(q2) - v2**2 * sin(q2),
        (1, 11): a2 * sin(q2) + v2**2 * cos(q2),
        (2, 2): v1**2 * sin(2 * q2) / 2,
        (2, 3): -(v1**2) * cos(2 * q2),
        (2, 6): L2 * ((2 * a2 + a3) * cos(q3) - v1**2 * sin(p) - v3 * (v3 + 2 * v2) * sin(q3)) + G * sin(q23),
        (2, 7): L2 * (-(2 * a2 + a3) * sin(q3) - v1**2 * cos(p) - v3 * (v3 + 2 * v2) * cos(q3)) + G * cos(q23),
        (2, 10): a1 * cos(q2),
        (2, 11): a1 * sin(q2),
        (2, 12): a2,
        (2, 13): a3,
        (2, 14): sin(q2),
        (2, 15): cos(q2),
        (3, 6): L2 * (a2 * cos(q3) + v1**2 * (sin(q3) - sin(p)) / 2 + v2**2 * sin(q3)) + G * sin(q23),
        (3, 7): L2 * (-a2 * sin(q3) + v1**2 * (cos(q3) - cos(p)) / 2 + v2**2 * cos(q3)) + G * cos(q23),
        (3, 13): a23,
    }
    for row in (2, 3):
        e[row, 4] = -(v1**2) * cos(2 * q23)
        e[row, 5] = v1**2 * sin(2 * q23) / 2
        e[row, 8] = a1 * cos(q23)
        e[row, 9] = a1 * sin(q23)
    return filled(len(q), 3, 21, {**e, **_rotradi_friction(dq)})


def _rotradi_friction(dq):
    out = {}
    for joint in range(3):
        out[joint + 1, 16 + 2 * joint] = dq[:, joint]
        out[joint + 1, 17 + 2 * joint] = np.sign(dq[:, joint])
    return out


def rotradi_filtered_regressors(q, dq, L2):
    """(34), corrected: A under f1 (momentum) and B under f2 (remainder), both 3 × 21; friction belongs to B."""
    _, q2, q3 = q.T
    v1, v2, v3 = dq.T
    q23, v23, p = q2 + q3, v2 + v3, 2 * q2 + q3
    A = {
        (1, 1): v1,
        (1, 2): v1 * cos(q2) ** 2,
        (1, 3): v1 * sin(2 * q2),
        (1, 4): v1 * sin(2 * q23),
        (1, 5): v1 * cos(q23) ** 2,
        (1, 6): 2 * L2 * v1 * sin(q23) * sin(q2),
        (1, 7): 2 * L2 * v1 * cos(q23) * sin(q2),
        (1, 8): v23 * cos(q23),
        (1, 9): v23 * sin(q23),
        (1, 10): v2 * cos(q2),
        (1, 11): v2 * sin(q2),
        (2, 6): L2 * (2 * v2 + v3) * cos(q3),
        (2, 7): -L2 * (2 * v2 + v3) * sin(q3),
        (2, 8): v1 * cos(q23),
        (2, 9): v1 * sin(q23),
        (2, 10): v1 * cos(q2),
        (2, 11): v1 * sin(q2),
        (2, 12): v2,
        (2, 13): v3,
        (3, 6): L2 * v2 * cos(q3),
        (3, 7): -L2 * v2 * sin(q3),
        (3, 8): v1 * cos(q23),
        (3, 9): v1 * sin(q23),
        (3, 13): v23,
    }
    B = {
        (2, 2): v1**2 * sin(2 * q2) / 2,
        (2, 3): -(v1**2) * cos(2 * q2),
        (2, 6): -L2 * v1**2 * sin(p) + G * sin(q23),
        (2, 7): -L2 * v1**2 * cos(p) + G * cos(q23),
        (2, 10): v1 * v2 * sin(q2),
        (2, 11): -v1 * v2 * cos(q2),
        (2, 14): sin(q2),
        (2, 15): cos(q2),
        (3, 6): L2 * (v1**2 * (sin(q3) - sin(p)) / 2 + v2 * v23 * sin(q3)) + G * sin(q23),
        (3, 7): L2 * (v1**2 * (cos(q3) - cos(p)) / 2 + v2 * v23 * cos(q3)) + G * cos(q23),
    }
    for row in (2, 3):
        B[row, 4] = -(v1**2) * cos(2 * q23)
        B[row, 5] = v1**2 * sin(2 * q23) / 2
        B[row, 8] = v1 * v23 * sin(q23)
        B[row, 9] = -v1 * v23 * cos(q23)
    return filled(len(q), 3, 21, A), filled(len(q), 3, 21, {**B, **_rotradi_friction(dq)})


def rotradi_energy(q, dq, L2):
    """(35), the 15 energies, zero at rest at q = 0."""
    _, q2, q3 = q.T
    v1, v2, v3 = dq.T
    q23, v23 = q2 + q3, v2 + v3
    return np.stack(
        [
            v1**2 / 2,
            v1**2 * cos(q2) ** 2 / 2,
            v1**2 * sin(2 * q2) / 2,
            v1**2 * sin(2 * q23) / 2,
            v1**2 * cos(q23) ** 2 / 2,
            L2 * (v1**2 * sin(q2) * sin(q23) + v2 * v23 * cos(q3)) + G * (1 - cos(q23)),
            L2 * (v1**2 * sin(q2) * cos(q23) - v2 * v23 * sin(q3)) + G * sin(q23),
            v1 * v23 * cos(q23),
            v1 * v23 * sin(q23),
            v1 * v2 * cos(q2),
            v1 * v2 * sin(q2),
            v2**2 / 2,
            (v2 + v3 / 2) * v3,
            1 - cos(q2),
            sin(q2),
        ],
        -1,
    )


def rotradi_power(q, dq, ddq, L2):
    """(36), 21 columns."""
    _, q2, q3 = q.T
    v1, v2, v3 = dq.T
    a1, a2, a3 = ddq.T
    q23, v23, p = q2 + q3, v2 + v3, 2 * q2 + q3
    elbow = a1 * v1 + 2 * a2 * v2 + a2 * v3 + a3 * v2
    bend = v1**2 * v3 / 2 + v2**2 * v3 + v3**2 * v2
    cross = a1 * v23 + (a2 + a3) * v1
    columns = [
        v1 * a1,
        a1 * v1 * cos(q2) ** 2 - v1**2 * v2 * cos(q2) * sin(q2),
        a1 * v1 * sin(2 * q2) + v1**2 * v2 * cos(2 * q2),
        a1 * v1 * sin(2 * q23) + v1**2 * v23 * cos(2 * q23),
        a1 * v1 * cos(q23) ** 2 - v1**2 * v23 * cos(q23) * sin(q23),
        L2 * (elbow * cos(q3) - a1 * v1 * cos(p) + v1**2 * (v2 + v3 / 2) * sin(p) - bend * sin(q3))
        + G * v23 * sin(q23),
        L2 * (a1 * v1 * sin(p) + v1**2 * (v2 + v3 / 2) * cos(p) - elbow * sin(q3) - bend * cos(q3))
        + G * v23 * cos(q23),
        cross * cos(q23) - v1 * v23**2 * sin(q23),
        cross * sin(q23) + v1 * v23**2 * cos(q23),
        (a1 * v2 + a2 * v1) * cos(q2) - v2**2 * v1 * sin(q2),
        (a1 * v2 + a2 * v1) * sin(q2) + v2**2 * v1 * cos(q2),
        a2 * v2,
        a3 * (v3 + v2) + a2 * v3,
        v2 * sin(q2),
        v2 * cos(q2),
    ]
    for v in (v1, v2, v3):
        columns += [v**2, np.abs(v)]
    return np.stack(columns, -1)


# ---------------------------------------------------------------- IRp-6: Kozłowski & Dutkiewicz 1996

# X1..X7 of section 5.1 (X3 with its index corrected), then friction; the terms act on the drives.
IRP6 = [
    "Izz1 + Ia_motor1 + Ixx2 + Iyy3",
    "Iyy2 - Ixx2 + l2**2*m3 - Iyy3 + Ixx3",
    "Izz2 + Ia_motor2 + Izz3 + Ia_motor3 + l2**2*m3",
    "Izz3 + Ia_motor3",
    "Iyy3 - Ixx3",
    "mx3",
    "mx2 + l2*m3",
    *("Fc_motor1", "Fc_motor2", "Fc_motor3", "Fv_motor1", "Fv_motor2", "Fv_motor3"),
]


def irp6_energy(q, dq, l2):
    """d1..d7 (d4 corrected): the energies of X1..X7."""
    _, q2, q3 = q.T
    v1, v2, v3 = dq.T
    return np.stack(
        [
            v1**2 / 2,
            v1**2 * sin(q2) ** 2 / 2,
            v2**2 / 2,
            v3**2 / 2 + v2 * v3,
            -(sin(q3) ** 2 * cos(2 * q2) + sin(2 * q2) * sin(2 * q3) / 2) * v1**2 / 2,
            l2 * sin(q3) * (v2 + v3) * v2 - l2 * sin(q2) * cos(q2 + q3) * v1**2 + G * sin(q2 + q3),
            G * cos(q2),
        ],
        -1,
    )


def irp6_dissipation(dq):
    """The powers whose integrals are d8..d13: motor 3 feels q̇2 + q̇3."""
    v1, v2, v3 = dq.T
    drives = [v1, v2, v2 + v3]
    return np.stack([np.abs(v) for v in drives] + [v**2 for v in drives], -1)


# ---------------------------------------------------------------- PRRRP: Urrea & Pascal 2017


def prrrp_parameters(m, lc, inertia, lengths):
    """Table 3 (λ5 with I4zz): eight numbers from masses, centres of mass from the joints, Izz about them."""
    l2, l3, l4 = (lengths[k] for k in ("l2", "l3", "l4"))
    tip = m[4] * lc[4] + m[5] * l4
    return np.array(
        [
            m[1] + m[2] + m[3] + m[4],
            m[2] * lc[2] ** 2 + (m[3] + m[4] + m[5]) * l2**2 + inertia[2],
            m[3] * lc[3] ** 2 + (m[4] + m[5]) * l3**2 + inertia[3],
            l2 * (m[3] * lc[3] + (m[4] + m[5]) * l3),
            m[4] * lc[4] ** 2 + m[5] * l4**2 + inertia[4],
            l2 * tip,
            l3 * tip,
            m[5],
        ]
    )


def prrrp_regressor(q, dq, ddq):
    """Annex B with (B.9) corrected, 5 × 8."""
    _, _, q3, q4, _ = q.T
    _, v2, v3, v4, _ = dq.T
    d1, a2, a3, a4, d5 = ddq.T
    q34, v23, v234, a234 = q3 + q4, v2 + v3, v2 + v3 + v4, a2 + a3 + a4
    wrist = (2 * a2 + 2 * a3 + a4) * cos(q4) - (2 * v23 * v4 + v4**2) * sin(q4)
    e = {
        (1, 1): d1 + G,
        (1, 8): d1 - d5 + G,
        (5, 8): d5 - d1 - G,
        (2, 2): a2,
        (2, 3): a2 + a3,
        (2, 4): (2 * a2 + a3) * cos(q3) - (2 * v2 * v3 + v3**2) * sin(q3),
        (2, 5): a234,
        (2, 6): (2 * a2 + a3 + a4) * cos(q34) - (v234**2 - v2**2) * sin(q34),
        (2, 7): wrist,
        (3, 3): a2 + a3,
        (3, 4): a2 * cos(q3) + v2**2 * sin(q3),
        (3, 5): a234,
        (3, 6): a2 * cos(q34) + v2**2 * sin(q34),
        (3, 7): wrist,
        (4, 5): a234,
        (4, 6): a2 * cos(q34) + v2**2 * sin(q34),
        (4, 7): (a2 + a3) * cos(q4) + v23**2 * sin(q4),
    }
    return filled(len(q), 5, 8, e)


def prrrp_coriolis(q, dq, P, R, l2, l3):
    """(A.12) corrected, (A.13), (A.14); P = m3 lc3 + (m4 + m5) l3, R = m4 lc4 + m5 l4."""
    _, _, q3, q4, _ = q.T
    _, v2, v3, v4, _ = dq.T
    s3, s4, s34 = sin(q3), sin(q4), sin(q3 + q4)
    turn = v3**2 + 2 * v2 * v3
    h2 = -l2 * s3 * turn * P - l2 * s34 * turn * R
    h2 -= (l2 * s34 + l3 * s4) * (v4**2 + 2 * v2 * v4 + 2 * v3 * v4) * R
    h3 = P * l2 * s3 * v2**2 + (l2 * s34 * v2**2 - (2 * (v2 + v3) + v4) * l3 * s4 * v4) * R
    h4 = R * ((l3 * s4 + l2 * s34) * v2**2 + l3 * s4 * turn)
    return np.stack([0 * h2, h2, h3, h4, 0 * h2], -1)


# ---------------------------------------------------------------- Szabó & Szádeczky-Kardoss 2021

SZABO_ORDER = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz", "m", "mx", "my", "mz")

# Table 2, by the parameter that leads. The halves and twos are the lengths 0.5 m and their inverses.
SZABO = {
    "Ixx2": "Ixx2 - Iyy2 - mx2/2",
    "Ixx3": "Ixx3 - Iyy3 - mx3/2",
    "Ixy2": "Ixy2",
    "Ixy3": "Ixy3",
    "Iyy1": "Iyy1 + Iyy2 + Iyy3 + mx2/2 + mx3/2",
    "Ixz2": "Ixz2 - mz2/2 - mz3/2",
    "Ixz3": "Ixz3 - mz3/2",
    "Iyz2": "Iyz2",
    "Iyz3": "Iyz3",
    "Izz2": "Izz2 + mx2/2",
    "Izz3": "Izz3 + mx3/2",
    "m2": "m2 + 2*mx2 - 2*mx3",
    "m3": "m3 + 2*mx3",
    "my2": "my2",
    "my3": "my3",
}

# ---------------------------------------------------------------- NS16: Pedrocchi et al. 2013

# Table II, rows 1..40, with the exact coefficients of its truncated decimals.
NS16 = [
    *("my2", "Ixy2", "Iyz2", "Ixy3", "Iyz3", "Ia3", "mx4", "Ixy4", "Ixz4", "Ia4", "mx5", "Ixy5", "Ixz5", "Iyz5"),
    *("Ia5", "mx6", "my6", "Ixy6", "Ixz6", "Iyz6", "Izz6", "Ia6"),
    "Iyy1 + Ia1 + a1**2*m2 + Iyy2 + (a1**2 + a2**2)*m3 + Izz3 + (a1**2 + a2**2 + a3**2)*(m4 + m5 + m6)",
    "mx2 + a2*(m3 + m4 + m5 + m6)",
    "Ixx2 - Iyy2 - a2**2*(m3 + m4 + m5 + m6)",
    "Ixz2 + a2*my3",
    "Izz2 + Ia2 + a2**2*(m3 + m4 + m5 + m6)",
    "mx3 + a3*(m4 + m5 + m6)",
    "mz3 + my4 + d4*(m5 + m6)",
    "Ixx3 - Izz3 - a3**2*m4 + Izz4 + (d4**2 - a3**2)*(m5 + m6)",
    "Ixz3 - a3*my4 - a3*d4*(m5 + m6)",
    "Iyy3 + a3**2*m4 + Izz4 + (a3**2 + d4**2)*(m5 + m6)",
    "mz4 - my5",
    "Ixx4 - Izz4 + Izz5",
    "Iyy4 + Izz5",
    "Iyz4 + d4*my5",
    "mz5 + mz6",
    "Ixx5 - Izz5 + Iyy6",
    "Iyy5 + Iyy6",
    "Ixx6 - Iyy6",
]
