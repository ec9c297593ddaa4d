"""`MatchCoordinates`: the coordinates of a matched robot, with physically possible values, and their prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.estimation.possible.reference import default_bodies
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.matching.joint_drives import Drives
from steelyard.parameters.inertial import parameters_of_pseudo_inertia
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import pseudo_inertia

# The pseudo-inertia of a link is P = L₀ K Kᵀ L₀ᵀ: L₀ from the description, K a lower triangle with exp(x₁ … x₄) on its
# diagonal and x₅ … x₁₀ below. All coordinates are relative: x = 0 is the description, and every x is a possible body.

_BELOW = tuple((i, j) for i in range(4) for j in range(i))
# Estimable numbers of drives and joints, in the order of the sensitivities.
JOINT_BLOCKS = ("armature", "viscous", "dry", "bias", "delay", "kp", "kd", "limit")
POSITIVE = ("armature", "viscous", "dry", "delay")
# Blocks whose coordinate is the logarithm of a factor on the stated value.
GAIN_FACTORS = ("kp", "kd", "limit")
# Prior standard deviation of the logarithm of a factor: from 0.6 to 1.6 of the stated value.
_FACTOR_STD = 0.5
# Prior standard deviation of the zero of an encoder [rad, m]: some degrees, some millimetres.
_BIAS_STD = {"revolute": 0.05, "prismatic": 0.005}
# Prior standard deviation of a delay [s]: field buses and drives have some milliseconds.
_DELAY_STD = 0.02
# Flatter bodies have a singular pseudo-inertia; the code adds a share of a default body.
_FLATTEST = 1e-6
_DEFAULT_SHARE = 0.01


@short_repr
@dataclass(frozen=True, eq=False)
class MatchPoint:
    """Values of a matched robot.

    Attributes:
        links: Ten parameters per link.
        beta: Their base parameters.
        armature, viscous, dry: Rotor inertias, viscous and dry friction, one per joint [SI].
        bias: Measured minus true position [rad, m].
        drives: Gains, limits and delay.
    """

    links: Array
    beta: Array
    armature: Array
    viscous: Array
    dry: Array
    bias: Array
    drives: Drives


@short_repr
@dataclass(frozen=True, eq=False)
class MatchCoordinates:
    """The map from coordinates z to a `MatchPoint`, and the prior of z.

    Attributes:
        robot: Robot.
        base: Base parameters of its links alone.
        roots: L₀ of each link, shape (links, 4, 4).
        drives: Stated gains, limits and delay.
        fit: Estimated blocks, in the order of `JOINT_BLOCKS`.
        first: Prior means of the blocks, by name, one value per joint (delay: one).
        std: Prior standard deviations, in the same form.
        link_std: Prior standard deviation of the links' coordinates.
    """

    robot: Robot
    base: BaseParameters
    roots: Array
    drives: Drives
    fit: tuple[str, ...]
    first: dict[str, Array]
    std: dict[str, Array]
    link_std: float = 0.3

    @classmethod
    def of(
        cls, robot: Robot, base: BaseParameters, drives: Drives, fit: Sequence[str], scales: dict[str, Array]
    ) -> MatchCoordinates:
        """Create the coordinates.

        Args:
            robot: Robot.
            base: Base parameters of its links alone.
            drives: Stated gains, limits and delay.
            fit: Estimated blocks.
            scales: Prior standard deviations of armature, viscous and dry, one per joint.
        """
        n = robot.dof
        described = described_terms(robot)
        zero = np.zeros(n)
        first = {**described, "bias": zero, "kp": zero, "kd": zero, "limit": zero, "delay": np.array([drives.delay])}
        std = {name: np.full(n, _FACTOR_STD) for name in GAIN_FACTORS}
        std |= {name: np.maximum(scales[name], described[name]) for name in described}
        std["bias"] = np.array([_BIAS_STD[j.kind] for j in robot.joints])
        std["delay"] = np.array([_DELAY_STD])
        blocks = tuple(name for name in JOINT_BLOCKS if name in fit)
        return cls(robot, base, _roots(robot), drives, blocks, first, std)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        links = [f"{link.name}:{k}" for link in self.robot.links for k in range(10)]
        joints = self.robot.joint_names
        return (*links, *(x for b in self.fit for x in ([b] if b == "delay" else [f"{b}:{j}" for j in joints])))

    @property
    def blocks(self) -> dict[str, slice]:
        """Places of the blocks among the coordinates."""
        out, start = {"links": slice(0, self.robot.inertial_count)}, self.robot.inertial_count
        for name in self.fit:
            out[name] = slice(start, start + len(self.first[name]))
            start = out[name].stop
        return out

    @property
    def centre(self) -> Array:
        """Prior means."""
        return np.concatenate([np.zeros(self.robot.inertial_count), *(self.first[b] for b in self.fit)])

    @property
    def stds(self) -> Array:
        """Prior standard deviations."""
        links = np.full(self.robot.inertial_count, self.link_std)
        return np.concatenate([links, *(self.std[b] for b in self.fit)])

    @property
    def lower(self) -> Array:
        """Lower bounds."""
        out = np.full(len(self.centre), -np.inf)
        for name, place in self.blocks.items():
            if name in POSITIVE:
                out[place] = 0.0
        return out

    def point(self, z: Array) -> MatchPoint:
        """Return the values of the coordinates `z`."""
        blocks, n = self.blocks, self.robot.dof
        links = np.concatenate(
            [_body(L, x) for L, x in zip(self.roots, z[blocks["links"]].reshape(-1, 10), strict=True)]
        )

        def value(name: str) -> Array:
            return z[blocks[name]] if name in blocks else np.broadcast_to(self.first[name], (n,))

        own = self.drives
        delay = float(z[blocks["delay"]][0]) if "delay" in blocks else own.delay
        drives = replace(
            own, kp=own.kp * np.exp(value("kp")), kd=own.kd * np.exp(value("kd")),
            limit=own.limit * np.exp(value("limit")), delay=delay,
        )  # fmt: skip
        return MatchPoint(
            links, self.base.matrix @ links, value("armature"), value("viscous"), value("dry"), value("bias"), drives
        )

    def slope(self, z: Array, point: MatchPoint) -> Array:
        """Compute the derivative of (β, armature, viscous, dry, bias, delay, kp, kd, limit) with respect to z.

        Args:
            z: MatchCoordinates.
            point: Their values.
        """
        blocks, nb = self.blocks, self.base.rank
        columns = [_body_slope(L, x) for L, x in zip(self.roots, z[blocks["links"]].reshape(-1, 10), strict=True)]
        sizes = {"beta": nb, **{b: len(self.first[b]) for b in JOINT_BLOCKS}}
        out = np.zeros((sum(sizes.values()), len(z)))
        for k, own in enumerate(columns):
            out[:nb, 10 * k : 10 * k + 10] = self.base.matrix[:, 10 * k : 10 * k + 10] @ own
        row = nb
        for name in JOINT_BLOCKS:
            if name in blocks:
                diagonal = np.ones(sizes[name]) if name not in GAIN_FACTORS else getattr(point.drives, name)
                out[row : row + sizes[name], blocks[name]] = np.diag(np.where(np.isfinite(diagonal), diagonal, 0.0))
            row += sizes[name]
        return out

    def theta(self, z: Array) -> Array:
        """Return the full parameters of `z`: ten per link, then armature, viscous and dry friction."""
        p = self.point(z)
        return np.concatenate([p.links, p.armature, p.viscous, p.dry])


def described_terms(robot: Robot) -> dict[str, Array]:
    """Return armature, viscous and dry friction of the joints of `robot` as its description states them."""
    from steelyard.dynamics.model import Model
    from steelyard.export._simple_terms import simple_terms
    from steelyard.export.capability import CAPABILITIES

    stated = simple_terms(Model.nominal(robot), CAPABILITIES["mjcf"].numbers)
    return {"armature": stated.armature, "viscous": stated.damping, "dry": stated.friction}


def _roots(robot: Robot) -> Array:
    """L₀ of the links; massless and impossible links get a small default body."""
    own = robot.inertial_parameters.reshape(-1, 10)
    default = default_bodies(robot)
    masses = own[:, 0]
    if not np.any(masses > 0.0):
        raise SteelyardError(
            f"{robot.source or robot.name}: no link has a mass, which matching needs; give a description with inertias."
        )
    density = float(masses[masses > 0.0].sum() / default[masses > 0.0, 0].sum())
    out = []
    for body, spare in zip(own, default, strict=True):
        P = pseudo_inertia(body)
        if _flat(P):
            share = _DEFAULT_SHARE * max(body[0] / spare[0], density * 1e-1)
            body = body + share * spare if body[0] > 0.0 else share * spare
            P = pseudo_inertia(body)
        if _flat(P):
            P = pseudo_inertia(spare * max(float(body[0] / spare[0]), _DEFAULT_SHARE * density))
        out.append(np.linalg.cholesky(P))
    return np.array(out)


def _flat(P: Array) -> bool:
    d = np.sqrt(np.maximum(np.diag(P), 1e-300))
    return bool(np.any(np.diag(P) <= 0.0) or np.linalg.eigvalsh(P / np.outer(d, d))[0] < _FLATTEST)


def _triangle(x: Array) -> Array:
    K = np.diag(np.exp(x[:4]))
    for k, place in enumerate(_BELOW):
        K[place] = x[4 + k]
    return K


def _body(root: Array, x: Array) -> Array:
    L = root @ _triangle(x)
    return parameters_of_pseudo_inertia(L @ L.T)


def _body_slope(root: Array, x: Array) -> Array:
    K = _triangle(x)
    L = root @ K
    columns = []
    for k in range(10):
        D = np.zeros((4, 4))
        place = (k, k) if k < 4 else _BELOW[k - 4]
        D[place] = K[k, k] if k < 4 else 1.0
        half = root @ D @ L.T
        columns.append(parameters_of_pseudo_inertia(half + half.T))
    return np.column_stack(columns)


def link_slopes(coordinates: MatchCoordinates, z: Array) -> Array:
    """Compute the derivatives of the ten parameters of each link with respect to z.

    Args:
        coordinates: MatchCoordinates.
        z: Their values.
    """
    x = z[coordinates.blocks["links"]].reshape(-1, 10)
    out = np.zeros((x.size, len(z)))
    for k, (L, own) in enumerate(zip(coordinates.roots, x, strict=True)):
        out[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = _body_slope(L, own)
    return out
