"""`FleetDesign`: parameters that robots of one type share, and effects of each robot.

Every parameter of a robot is that of the mean robot plus effects. Friction, offset and other joint terms have one
effect each. The load of the last link has ten (mass, moments, inertia). The gain of a joint's torque sensor or drive
has one, which scales the whole torque of that joint. The links are assumed equal, but also have one effect per base
parameter, so that the data can contradict. The size of the effects of a kind on a joint is an estimated variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters

# Kinds that are not kinds of joint terms.
LINKS_KIND, LOAD_KIND, GAIN_KIND = "links", "load", "gain"
# Prior standard deviations between robots, as a part of the joint's torque; an order of magnitude is enough.
_EXPECTED = {LINKS_KIND: 0.01, LOAD_KIND: 0.05, GAIN_KIND: 0.03}
_EXPECTED_OWN = 0.1


@dataclass(frozen=True)
class EffectGroup:
    """Effects with a common variance: a kind of parameter on one joint.

    Attributes:
        kind: "links", "load", "gain", or the kind of a term such as "viscous".
        joint: Name of the joint; for links of the joint before the link, for loads of the link.
        expected: Prior standard deviation as a part of the torque.
        per_log: Whether it may also differ between logs of one robot, as friction does.
    """

    kind: str
    joint: str
    expected: float
    per_log: bool


@dataclass(frozen=True, eq=False)
class FleetDesign:
    """The unknowns of robots of one type: base parameters and effects of each robot.

    A robot has p + E coordinates: the base parameters, then the gain of every equation (0 for the modelled torque).

    Attributes:
        names: Names of the base parameters.
        units: Unit of each base parameter.
        independent: Columns of the base parameters in the parameter vector of factors.
        kinds: "links" for base parameters that all robots share, else the kind of the term.
        joints: Joint of each base parameter.
        equations: Names of the joints whose torque is used.
        friction: Whether each base parameter dissipates energy.
        load: Effect of a load on the base parameters, shape (base parameters, load parameters).
        load_names: Names of the load parameters.
        load_link: Name of the link that carries the load.
        structure_std: Standard deviation of each base parameter due to the choice of the terms, which all robots share;
            empty if unknown.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    independent: tuple[int, ...]
    kinds: tuple[str, ...]
    joints: tuple[str, ...]
    equations: tuple[str, ...]
    friction: tuple[bool, ...]
    load: Array = field(default_factory=lambda: np.zeros((0, 0)))
    load_names: tuple[str, ...] = ()
    load_link: str = ""
    structure_std: tuple[float, ...] = ()

    @classmethod
    def of(cls, base: BaseParameters, equations: Sequence[str], structure_std: Sequence[float] = ()) -> FleetDesign:
        """Make the design of a robot type.

        Args:
            base: Base parameters.
            equations: Names of the joints whose torque is used.
            structure_std: Standard deviation of each base parameter due to the choice of the terms.
        """
        robot, links = base.robot, base.robot.inertial_count
        kinds = [LINKS_KIND] * links
        joints = [robot.joint_names[min(k // 10, robot.dof - 1)] for k in range(links)]
        kinds += base.terms.per_parameter(lambda term, _: LINKS_KIND if term.inertial else term.kind)
        joints += base.terms.per_parameter(lambda _, c: c.name or robot.joint_names[c.index])
        friction = [False] * links + base.terms.per_parameter(lambda term, _: term.dissipative)
        parents = {link.parent for link in robot.links}
        tips = [n for n in range(len(robot.links)) if n not in parents]
        own = [k for k in range(10 * tips[-1], 10 * tips[-1] + 10) if np.any(base.matrix[:, k])] if tips else []
        return cls(
            base.names,
            base.units,
            tuple(base.independent),
            tuple(kinds[k] for k in base.independent),
            tuple(joints[k] for k in base.independent),
            tuple(equations),
            tuple(friction[k] for k in base.independent),
            base.matrix[:, own],
            tuple(base.parameters[k].name for k in own),
            robot.links[tips[-1]].name if tips else "",
            tuple(structure_std),
        )

    @cached_property
    def structure_variance(self) -> Array:
        """Covariance of a robot's coordinates due to the choice of the terms; more data do not reduce it."""
        out = np.zeros((self.size, self.size))
        if self.structure_std:
            out[: self.rank, : self.rank] = np.diag(np.square(self.structure_std))
        return out

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.names)

    @property
    def size(self) -> int:
        """Number of coordinates of a robot."""
        return self.rank + len(self.equations)

    @cached_property
    def own(self) -> NDArray[np.bool_]:
        """Base parameters that each robot has for itself."""
        return np.array([kind != LINKS_KIND for kind in self.kinds], dtype=bool)

    @cached_property
    def effects_matrix(self) -> Array:
        """Unscaled effects in the coordinates of a robot, shape (coordinates, effects)."""
        out = np.zeros((self.size, self.size + self.load.shape[1]))
        out[: self.size, : self.size] = np.eye(self.size)
        out[: self.load.shape[0], self.size :] = self.load
        return out

    @cached_property
    def groups(self) -> tuple[EffectGroup, ...]:
        """All groups, in the order of their first effect."""
        return tuple(dict.fromkeys(self._of_effects))

    @cached_property
    def group_of(self) -> NDArray[np.int64]:
        """The group of every effect."""
        place = {group: g for g, group in enumerate(self.groups)}
        return np.array([place[group] for group in self._of_effects], dtype=np.int64)

    @cached_property
    def _of_effects(self) -> tuple[EffectGroup, ...]:
        named = [*zip(self.kinds, self.joints, strict=True), *((GAIN_KIND, name) for name in self.equations)]
        named += [(f"{LOAD_KIND} {_dimension(name)}", self.load_link) for name in self.load_names]
        return tuple(
            EffectGroup(
                kind, joint, _EXPECTED.get(kind.split()[0], _EXPECTED_OWN), not kind.startswith((LINKS_KIND, LOAD_KIND))
            )
            for kind, joint in named
        )

    def scales(self, grams: Array) -> Array:
        """Compute the size of each effect that changes the joint torque by its root mean square; 0 if not identifiable.

        Args:
            grams: [A y]ᵀ[A y] of many logs, by equation.
        """
        torque = np.maximum(grams[:, -1, -1], 1e-300)
        effects = self.effects_matrix[: self.rank]
        power = np.einsum("pk,epq,qk,e->k", effects, grams[:, :-1, :-1], effects, 1.0 / torque, optimize=True)
        power[self.rank : self.size] = torque > 1e-300  # a gain is a part of the torque already
        return np.where(power > 1e-20, 1.0 / np.sqrt(np.maximum(power, 1e-20)), 0.0)


def _dimension(name: str) -> str:
    """Return the quantity of a link parameter by its name: m1, mx1, Ixx1."""
    return "inertia" if name[0] in "IJ" else "moment" if name[1:2] in ("x", "y", "z") else "mass"
