"""`FleetDesign`: what robots of one model share, and in which ways each may differ from its kin.

Every number of a robot is that of its model plus effects of its own. Friction, offset and whatever else a term states
are one effect each; what the last link carries is ten (mass, moments, inertia of a load); the gain of a joint's torque
sensor or drive is one, which scales all that acts on that joint; and the links, which are said to be equal, have one
per base parameter, too, so that a wrong claim of equality shows. How large the effects of a kind are on a joint is a
variance, and that is estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters

# Kinds that no term states.
LINKS_KIND, LOAD_KIND, GAIN_KIND = "links", "load", "gain"
# What is expected of the differences between robots before any was seen, as a part of the joint's torque: an order of
# magnitude, which a handful of robots overrules.
_EXPECTED = {LINKS_KIND: 0.01, LOAD_KIND: 0.05, GAIN_KIND: 0.03}
_EXPECTED_OWN = 0.1


@dataclass(frozen=True)
class EffectGroup:
    """Effects that have one variance: a kind of parameter on one joint.

    Attributes:
        kind: "links", "load", "gain", or the kind of a term such as "viscous".
        joint: the joint's name; of links that of the joint before the link, of loads the link's.
        expected: its standard deviation before anything was seen, as a part of the torque.
        per_log: whether it may also differ from log to log of one robot, as friction does.
    """

    kind: str
    joint: str
    expected: float
    per_log: bool


@dataclass(frozen=True, eq=False)
class FleetDesign:
    """The unknowns of a fleet: base parameters of the model, and effects of each robot.

    Robots are written in p + E coordinates: the base parameters, then the gain of every equation (0 where the torque is
    the model's).

    Attributes:
        names: of the base parameters.
        units: of each.
        independent: their columns in the parameter vector, as factors have them.
        kinds: of each: "links" where all robots of a model share it, else the kind of its term.
        joints: of each, the joint it belongs to.
        equations: names of the joints whose torque is used.
        friction: whether each takes energy out of the robot, as friction does.
        load: what a load's parameters add to the base parameters, `(base parameters, load parameters)`.
        load_names: of a load's parameters.
        load_link: the name of the link that carries it.
        structure_std: of each base parameter, how far it hangs on the choice of the terms, which all robots share;
            empty where nobody knows.
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
        """The design of a robot's `base` parameters, whose rows have these `equations`; `structure_std` as above."""
        robot, links = base.robot, base.robot.inertial_count
        kinds = [LINKS_KIND] * links
        joints = [robot.joint_names[min(k // 10, robot.dof - 1)] for k in range(links)]
        kinds += base.terms.per_parameter(lambda term, _: LINKS_KIND if term.inertial else term.kind)
        joints += base.terms.per_parameter(lambda _, c: c.name or robot.joint_names[c.index])
        rubs = [False] * links + base.terms.per_parameter(lambda term, _: term.dissipative)
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
            tuple(rubs[k] for k in base.independent),
            base.matrix[:, own],
            tuple(base.parameters[k].name for k in own),
            robot.links[tips[-1]].name if tips else "",
            tuple(structure_std),
        )

    @cached_property
    def structure_variance(self) -> Array:
        """Of a robot's coordinates, what no number of logs and robots averages away: a matrix."""
        out = np.zeros((self.size, self.size))
        if self.structure_std:
            out[: self.rank, : self.rank] = np.diag(np.square(self.structure_std))
        return out

    @property
    def rank(self) -> int:
        """How many base parameters there are."""
        return len(self.names)

    @property
    def size(self) -> int:
        """How many coordinates a robot is written in."""
        return self.rank + len(self.equations)

    @cached_property
    def own(self) -> NDArray[np.bool_]:
        """Which base parameters are each robot's own."""
        return np.array([kind != LINKS_KIND for kind in self.kinds], dtype=bool)

    @cached_property
    def ways(self) -> Array:
        """The effects in the coordinates of a robot, not scaled, `(coordinates, effects)`."""
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
        """What each effect is by which a joint's torque changes by as much as it is (root mean square); 0 where no log
        shows the effect.

        Args:
            grams: [A y]ᵀ[A y] of many logs, by equation.
        """
        torque = np.maximum(grams[:, -1, -1], 1e-300)
        ways = self.ways[: self.rank]
        power = np.einsum("pk,epq,qk,e->k", ways, grams[:, :-1, :-1], ways, 1.0 / torque, optimize=True)
        power[self.rank : self.size] = torque > 1e-300  # a gain is a part of the torque already
        return np.where(power > 1e-20, 1.0 / np.sqrt(np.maximum(power, 1e-20)), 0.0)


def _dimension(name: str) -> str:
    """What a parameter of a link measures, by its name: m1, mx1, Ixx1."""
    return "inertia" if name[0] in "IJ" else "moment" if name[1:2] in ("x", "y", "z") else "mass"
