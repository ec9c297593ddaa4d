"""The convex program of the physically consistent fit, and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import UnknownNameError
from steelyard.estimation.estimate import EstimationError, Prior
from steelyard.estimation.linear._free import known_to_be_zero
from steelyard.estimation.possible.reference import reference_bodies
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.spatial import pseudo_inertia


@dataclass(frozen=True, eq=False)
class Program:
    """min ½‖G x − g‖² + Σ_i w_i (tr X_i − log det X_i) + Σ_k v_k (s_k − log s_k) + ½‖F x − f‖²

    over x, with X_i(x) − margin·1 ⪰ 0 (4 × 4, linear in x) and C x + c ≥ 0. s = D x + d > 0 are scalars with the same
    entropic prior as the matrices. `cones[i]` (16 × x) gives X_i. `start` is strictly inside. The rows of G are in
    standard deviations of the noise.
    """

    G: Array
    g: Array
    cones: Array
    cone_weights: Array
    margin: float
    D: Array
    d: Array
    scalar_weights: Array
    C: Array
    c: Array
    F: Array
    f: Array
    start: Array

    @cached_property
    def frame(self) -> tuple[Array, Array]:
        """(B, N) with x = B (g + z) + N n: z = G x − g in standard deviations, n in the null space of the data."""
        Q, upper = np.linalg.qr(self.G.T, mode="complete")
        rank = len(self.G)
        B = np.linalg.solve(upper[:rank], Q[:, :rank].T).T
        return B, Q[:, rank:]

    @property
    def transform(self) -> tuple[Array, Array]:
        """(V, v0) with x = v0 + V·(z, n)."""
        B, N = self.frame
        return np.hstack([B, N]), B @ self.g

    def coordinates(self, x: Array) -> Array:
        """Return (z, n) of x."""
        return np.concatenate([self.G @ x - self.g, self.frame[1].T @ x])

    def matrices(self, x: Array) -> Array:
        """Return X_i(x), shape (links, 4, 4)."""
        return np.asarray((self.cones @ x).reshape(-1, 4, 4))

    def without_priors(self, start: Array) -> Program:
        """Return the constraints without priors, starting at `start`."""
        none = np.zeros((0, self.G.shape[1]))
        return replace(
            self, cone_weights=np.zeros(len(self.cones)), C=np.vstack([self.C, self.D]),
            c=np.concatenate([self.c, self.d]), D=none, d=np.zeros(0), scalar_weights=np.zeros(0), F=none,
            f=np.zeros(0), start=start,
        )  # fmt: skip


Bounds = tuple[float, float]

# Pairs (row, column) of a symmetric 4 × 4 matrix: the coordinates of a link.
_PAIRS = [(a, b) for a in range(4) for b in range(a, 4)]
# Assumed share of the torque of a term of unknown size.
_TERM_SHARE = 0.1
# Cost of a rotor that is not described, relative to a change of links with the same effect: it takes less than a
# thousandth of a gantry's mass. Data that determine a rotor to a few percent outweigh this cost a hundred times.
_UNSTATED_COST = 200.0


@dataclass(frozen=True, eq=False)
class Formulation:
    """The physically consistent fit as a program over x.

    Attributes:
        base: Base parameters.
        program: The program.
        lift, offset: θ = `offset` + `lift` @ x.
        lines, scalars: Names of the rows of C and D in the program, which may be at their boundary.
        notes: Notes for the user.
    """

    base: BaseParameters
    program: Program
    lift: Array
    offset: Array
    lines: tuple[str, ...]
    scalars: tuple[str, ...]
    notes: tuple[str, ...]

    def theta(self, x: Array) -> Array:
        return np.asarray(self.offset + self.lift @ x)


def formulate(
    base: BaseParameters,
    R: Array,
    beta: Array,
    prior: Prior | None,
    strength: float,
    margin: float,
    total_mass: Bounds | None,
    masses: Mapping[str, Bounds],
) -> Formulation:
    """Formulate the physically consistent fit.

    Args:
        base: Base parameters.
        R: Triangle in standard deviations of the noise.
        beta: Base parameters of the free fit.
        prior: Prior knowledge.
        strength: Weight of the divergence.
        margin: Distance of the links from the boundary.
        total_mass: Bounds of the total mass [kg].
        masses: Bounds of single links by name [kg].
    """
    reference = reference_bodies(base, prior, R, R @ beta)
    links, count = len(base.robot.links), len(base.parameters)
    terms = [k for k in range(10 * links, count) if base.classes[k] != "none"]
    width = 10 * links + len(terms)
    lift, offset = np.zeros((count, width)), np.zeros(count)
    cones = np.zeros((links, 16, width))
    start = np.zeros(width)
    for i, body in enumerate(reference.bodies):
        own = slice(10 * i, 10 * i + 10)
        lift[own, own], cones[i, :, own] = _link_map(body)
        start[own] = [1.0 if a == b else 0.0 for a, b in _PAIRS]
    known = np.zeros(count) if prior is None else np.where(prior.mask, prior.theta, 0.0)
    # Terms without effect keep their prior, or the allowed value nearest to zero.
    for k in range(10 * links, count):
        if k not in terms:
            offset[k] = np.clip(known[k], base.parameters[k].lower, base.parameters[k].upper)
    rows = _Terms(base, R, beta, known, strength)
    rows.unstated = _link_shares(base, reference.bodies, known_to_be_zero(base, prior))
    for j, k in enumerate(terms):
        column = 10 * links + j
        lift[k, column] = rows.size(k)
        start[column] = rows.add(k, column, width)
    mass_rows = lift[[10 * i for i in range(links)]]
    names, C, c, start = _mass_bounds(base, mass_rows, start, total_mass, masses)
    G = R @ base.matrix @ lift
    program = Program(
        G=G, g=R @ (beta - base.matrix @ offset), cones=cones, cone_weights=np.full(links, strength), margin=margin,
        D=_stack(rows.D, width), d=np.array(rows.d), scalar_weights=np.full(len(rows.D), strength),
        C=np.vstack([_stack(rows.C, width), _stack(C, width)]), c=np.array([*rows.c, *c]),
        F=_stack(rows.F, width), f=np.array(rows.f), start=start,
    )  # fmt: skip
    return Formulation(base, program, lift, offset, (*rows.lines, *names), tuple(rows.scalars), reference.notes)


def _link_map(body: Array) -> tuple[Array, Array]:
    """Matrices (ten parameters from x, the 16 entries of X from x) with P = K X Kᵀ, where K Kᵀ is the reference's P."""
    K = np.linalg.cholesky(pseudo_inertia(body))
    parameters, entries = np.zeros((10, 10)), np.zeros((16, 10))
    for j, (a, b) in enumerate(_PAIRS):
        X = np.zeros((4, 4))
        X[a, b] = X[b, a] = 1.0 if a == b else np.sqrt(0.5)
        P = K @ X @ K.T
        tensor = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
        parameters[:, j] = [
            P[3, 3], P[0, 3], P[1, 3], P[2, 3],
            tensor[0, 0], tensor[0, 1], tensor[1, 1], tensor[0, 2], tensor[1, 2], tensor[2, 2],
        ]  # fmt: skip
        entries[:, j] = X.ravel()
    return parameters, entries


class _Terms:
    """Rows of the program for terms: bounds, and priors for those that are identifiable only in sums."""

    def __init__(self, base: BaseParameters, R: Array, beta: Array, known: Array, strength: float) -> None:
        self.base, self.known, self.strength = base, known, strength
        # Terms that the prior states as zero, with the corresponding size of the links.
        self.unstated: dict[int, float] = {}
        torque = float(np.linalg.norm(R @ beta)) or 1.0
        lengths = np.linalg.norm(R @ base.matrix, axis=0)
        self.typical = _TERM_SHARE * torque / np.where(lengths > 0.0, lengths, np.inf)
        self.C: list[Array] = []
        self.c: list[float] = []
        self.D: list[Array] = []
        self.d: list[float] = []
        self.F: list[Array] = []
        self.f: list[float] = []
        self.lines: list[str] = []
        self.scalars: list[str] = []

    def size(self, k: int) -> float:
        """Unit of the term's coordinate."""
        return float(abs(self.known[k]) or self.typical[k])

    def add(self, k: int, column: int, width: int) -> float:
        """Add the rows of parameter k and return its start."""
        parameter, size = self.base.parameters[k], self.size(k)
        unit = np.zeros(width)
        unit[column] = 1.0
        lower, upper = parameter.lower / size, parameter.upper / size
        combined = self.base.classes[k] == "combined" and self.strength > 0.0
        if combined and k in self.unstated:
            scale = max(self.unstated[k] / size, 1e-6)
            self.F.append(np.sqrt(_UNSTATED_COST * self.strength) / scale * unit)
            self.f.append(0.0)
            combined = False
        if combined and np.isfinite(lower):
            self.D.append(unit)
            self.d.append(-lower)
            self.scalars.append(parameter.name)
        elif np.isfinite(lower):
            self._bound(parameter.name, unit, -lower)
        if combined and not np.isfinite(lower):
            self.F.append(np.sqrt(self.strength) * unit)
            self.f.append(np.sqrt(self.strength) * self.known[k] / size)
        if np.isfinite(upper):
            self._bound(parameter.name, -unit, upper)
        return _inside_bounds(self.known[k] / size, lower, upper)

    def _bound(self, name: str, row: Array, constant: float) -> None:
        self.C.append(row)
        self.c.append(constant)
        self.lines.append(name)


def _link_shares(base: BaseParameters, bodies: Array, zero: NDArray[np.bool_]) -> dict[int, float]:
    """For every `zero` term: the smallest of the reference bodies' base parameters that contain it."""
    theta = np.zeros(len(base.parameters))
    theta[: bodies.size] = bodies.ravel()
    beta, out = np.abs(base.matrix @ theta), {}
    for k in np.flatnonzero(zero & np.any(base.matrix != 0.0, axis=0)):
        rows = base.matrix[:, k] != 0.0
        out[int(k)] = float(np.min(beta[rows] / np.abs(base.matrix[rows, k])))
    return out


def _inside_bounds(value: float, lower: float, upper: float) -> float:
    """The value, or the nearest one well inside the bounds."""
    if np.isfinite(lower) and np.isfinite(upper):
        room = 0.1 * (upper - lower)
        return float(np.clip(value, lower + room, upper - room))
    if np.isfinite(lower):
        return float(max(value, lower + 1.0))
    if np.isfinite(upper):
        return float(min(value, upper - 1.0))
    return float(value)


def _mass_bounds(
    base: BaseParameters, rows: Array, start: Array, total: Bounds | None, single: Mapping[str, Bounds]
) -> tuple[list[str], list[Array], list[float], Array]:
    """Rows of the bounds on masses, and a start that satisfies them by scaled reference bodies."""
    names: list[str] = []
    C: list[Array] = []
    c: list[float] = []
    known = base.robot.link_names
    limits = np.tile([0.0, np.inf], (len(known), 1))
    for name, bounds in single.items():
        if name not in known:
            raise UnknownNameError("link", name, known)
        limits[known.index(name)] = bounds
    constraints = [(f"Mass of link '{n}'", rows[known.index(n)], b) for n, b in single.items()]
    if total is not None:
        constraints.append(("Total mass", rows.sum(axis=0), total))
    for label, row, (low, high) in constraints:
        if not 0.0 <= low < high:
            raise EstimationError(f"{label}: bounds {low} … {high} kg are not an interval of masses.")
        size = float(row @ start)
        for sign, bound in ((1.0, low), (-1.0, high)):
            if np.isfinite(bound) and bound > 0.0:
                names.append(label)
                C.append(sign * row / size)
                c.append(-sign * bound / size)
    if not constraints:
        return names, C, c, start
    nominal = rows @ start
    scaled = _inside_masses(nominal, limits, total)
    out = start.copy()
    for i, factor in enumerate(scaled / nominal):
        out[10 * i : 10 * i + 10] *= factor
    return names, C, c, out


def _inside_masses(nominal: Array, limits: Array, total: Bounds | None) -> Array:
    """Masses strictly inside their bounds, with a sum inside its bounds."""
    low, high = limits[:, 0], limits[:, 1]
    room = np.where(np.isfinite(high), 0.05 * (high - low), 0.05 * np.maximum(low, nominal))

    def at(factor: float) -> Array:
        inside = np.minimum(np.maximum(factor * nominal, low + np.minimum(room, factor * nominal + 1e-12)), high - room)
        return np.asarray(np.where(np.isfinite(high) | (low > 0.0), inside, factor * nominal))

    if total is None or total[0] < at(1.0).sum() < total[1]:
        return at(1.0)
    target = 0.5 * (total[0] + total[1]) if np.isfinite(total[1]) else 1.1 * total[0]
    a, b = 1e-9, 1e9
    for _ in range(200):
        middle = np.sqrt(a * b)
        a, b = (middle, b) if at(middle).sum() < target else (a, middle)
    return at(float(np.sqrt(a * b)))


def _stack(rows: list[Array], width: int) -> Array:
    return np.array(rows) if rows else np.zeros((0, width))
