"""Effects that displace a robot's joints: geometry, encoders, gears, gravity. One class each, all in `EFFECTS`.

An effect adds parameters. A parameter displaces one joint in one direction, in proportion to a feature of the posture:
1 for geometry, the gravity torque for compliance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.calibration.chain import ALONG, DIRECTIONS, SHIFT_U, SHIFT_V, TILT_U, TILT_V, Chain
from steelyard.ground.arrays import Array, RowSelection
from steelyard.ground.registry import Registry
from steelyard.ground.short_repr import short_repr

_LETTERS = "xyz"


@short_repr
@dataclass(frozen=True, eq=False)
class Postures:
    """Joint states that determine the effects.

    Attributes:
        q: Joint positions [rad, m], shape (poses, joints).
        approach: Sign of the last movement of every joint, 0 if unknown, shape (poses, joints).
        moments: Moment of gravity about every joint of the chain, in its frame [N m], shape (poses, links, 3).
    """

    q: Array
    approach: Array
    moments: Array

    def __len__(self) -> int:
        return len(self.q)

    def rows(self, rows: RowSelection) -> Postures:
        """Select poses by index or mask (`rows`)."""
        return Postures(self.q[rows], self.approach[rows], self.moments[rows])


def postures_of(chain: Chain, q: Array, approach: Array | None = None) -> Postures:
    """Compute the joint states that determine the effects.

    Args:
        chain: Chain to the tool.
        q: Joint positions [rad, m], shape (poses, joints).
        approach: Sign of the last movement of every joint; None: unknown.
    """
    return Postures(q, np.zeros_like(q) if approach is None else approach, chain.gravity_moments(q))


@dataclass(frozen=True)
class Deviation:
    """A parameter: a displacement of one joint.

    Attributes:
        name: Name, such as "joint_2.offset".
        effect: Name of its effect.
        group: Parameters of one group have the same prior variance.
        link: Index of the joint in the chain.
        direction: Direction of the displacement, as in `Chain.tips`.
        unit: Unit of the parameter.
    """

    name: str
    effect: str
    group: str
    link: int
    direction: int
    unit: str


class Effect(ABC):
    """A cause of displacements. Subclasses register themselves with `EFFECTS.register("name")`."""

    name: ClassVar[str]
    about: ClassVar[str]

    @abstractmethod
    def deviations(self, chain: Chain) -> Iterator[Deviation]:
        """List the parameters of the effect on a `chain`."""

    @abstractmethod
    def features(self, chain: Chain, postures: Postures) -> Array:
        """Compute the feature of every parameter.

        Args:
            chain: Chain to the tool.
            postures: Postures.

        Returns:
            Features, shape (poses, parameters).
        """


EFFECTS: Registry[Effect] = Registry("effect", ("steelyard.calibration.joint_effects",))


def _deviation(
    effect: Effect, chain: Chain, link: int, direction: int, what: str, unit: str, group: str = ""
) -> Deviation:
    return Deviation(f"{chain.links[link].joint}.{what}", effect.name, group or effect.name, link, direction, unit)


class _Constant(Effect):
    def features(self, chain: Chain, postures: Postures) -> Array:
        return np.ones((len(postures), sum(1 for _ in self.deviations(chain))))


class _Offsets(_Constant):
    name, about = "offsets", "constant errors of the joint positions"

    def deviations(self, chain: Chain) -> Iterator[Deviation]:
        for k, link in enumerate(chain.links):
            yield _deviation(self, chain, k, ALONG, "offset", "rad" if link.kind == "revolute" else "m")


class _Axes(_Constant):
    name, about = (
        "axes",
        "places and directions of the joint axes: four numbers of a revolute, two of a prismatic joint",
    )

    def deviations(self, chain: Chain) -> Iterator[Deviation]:
        for k, link in enumerate(chain.links):
            named = _across_names(chain, k)
            if link.kind == "revolute":
                for direction, letter in zip((SHIFT_U, SHIFT_V), named, strict=True):
                    yield _deviation(self, chain, k, direction, f"shift_{letter}", "m", "axis places")
            for direction, letter in zip((TILT_U, TILT_V), named, strict=True):
                yield _deviation(self, chain, k, direction, f"tilt_{letter}", "rad", "axis directions")


def _across_names(chain: Chain, link: int) -> list[str]:
    """Letters of the axes of the joint frame, or u and v if the vectors across the axis are others."""
    out = []
    for vector, letter in zip(chain.across[link], "uv", strict=True):
        near = int(np.argmax(np.abs(vector)))
        out.append(_LETTERS[near] if abs(vector[near]) > 1.0 - 1e-9 else letter)
    return out


class _Scales(Effect):
    name, about = "scales", "errors of the gear ratios or of the scales of the encoders"

    def deviations(self, chain: Chain) -> Iterator[Deviation]:
        for k in range(len(chain.links)):
            yield _deviation(self, chain, k, ALONG, "scale", "1")

    def features(self, chain: Chain, postures: Postures) -> Array:
        return np.column_stack([link.ratio * postures.q[:, link.coordinate] for link in chain.links])


class _Harmonics(Effect):
    """The first harmonic is an encoder disc or gear out of centre, the second one that is elliptic."""

    name, about = "harmonics", "periodic errors of encoders and gears, once and twice per turn"

    def deviations(self, chain: Chain) -> Iterator[Deviation]:
        for k, link in enumerate(chain.links):
            if link.kind == "revolute":
                for order in (1, 2):
                    for what in ("cos", "sin"):
                        yield _deviation(self, chain, k, ALONG, f"{what}{order}", "rad", f"harmonic {order}")

    def features(self, chain: Chain, postures: Postures) -> Array:
        angles = [postures.q[:, link.coordinate] for link in chain.links if link.kind == "revolute"]
        columns = [f(order * a) for a in angles for order in (1, 2) for f in (np.cos, np.sin)]
        return np.column_stack(columns) if columns else np.zeros((len(postures), 0))


class _Compliance(Effect):
    name, about = "compliance", "deflection of the joints under the torque of gravity"

    def deviations(self, chain: Chain) -> Iterator[Deviation]:
        for k, link in enumerate(chain.links):
            if link.kind == "revolute":
                yield _deviation(self, chain, k, ALONG, "compliance", "rad/(N m)")

    def features(self, chain: Chain, postures: Postures) -> Array:
        columns = [postures.moments[:, k] @ link.axis for k, link in enumerate(chain.links) if link.kind == "revolute"]
        return np.column_stack(columns) if columns else np.zeros((len(postures), 0))


class _Bearings(Effect):
    name, about = "bearings", "tilt of the bearings under the moments of gravity across the axes"

    def deviations(self, chain: Chain) -> Iterator[Deviation]:
        for k, link in enumerate(chain.links):
            if link.kind == "revolute":
                for direction, letter in zip((TILT_U, TILT_V), _across_names(chain, k), strict=True):
                    yield _deviation(self, chain, k, direction, f"bearing_{letter}", "rad/(N m)")

    def features(self, chain: Chain, postures: Postures) -> Array:
        columns = [
            postures.moments[:, k] @ vector
            for k, link in enumerate(chain.links) if link.kind == "revolute"
            for vector in chain.across[k]
        ]  # fmt: skip
        return np.column_stack(columns) if columns else np.zeros((len(postures), 0))


class _Backlash(Effect):
    name, about = "backlash", "half of the lost motion of the gears, by the direction in which the pose was approached"

    def deviations(self, chain: Chain) -> Iterator[Deviation]:
        for k, link in enumerate(chain.links):
            yield _deviation(self, chain, k, ALONG, "backlash", "rad" if link.kind == "revolute" else "m")

    def features(self, chain: Chain, postures: Postures) -> Array:
        return np.column_stack([np.sign(link.ratio) * postures.approach[:, link.coordinate] for link in chain.links])


for _effect in (_Offsets(), _Axes(), _Scales(), _Compliance(), _Bearings(), _Backlash(), _Harmonics()):
    EFFECTS.register(_effect.name)(_effect)


@short_repr
@dataclass(frozen=True, eq=False)
class Deviations:
    """The parameters of several effects on a chain.

    Attributes:
        chain: Chain to the tool.
        effects: Names of the effects.
        parameters: Parameters of all effects.
    """

    chain: Chain
    effects: tuple[str, ...]
    parameters: tuple[Deviation, ...]

    @classmethod
    def of(cls, chain: Chain, effects: Sequence[str]) -> Deviations:
        """Collect the parameters of effects.

        Args:
            chain: Chain to the tool.
            effects: Names of the effects.
        """
        return cls(chain, tuple(effects), tuple(p for name in effects for p in EFFECTS[name].deviations(chain)))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    def features(self, postures: Postures) -> Array:
        """Compute the feature of every parameter in some `postures`, shape (poses, parameters)."""
        parts = [EFFECTS[name].features(self.chain, postures) for name in self.effects]
        return np.hstack(parts) if parts else np.zeros((len(postures), 0))

    @property
    def places(self) -> Array:
        """Column of each parameter's displacement in `Tips.twists`."""
        return np.array([p.link * DIRECTIONS + p.direction for p in self.parameters], dtype=np.intp)

    def corrections(self, values: Array, features: Array) -> Array:
        """Sum the displacements of every joint, shape (poses, links, 5).

        Args:
            values: Values of the parameters.
            features: Features of the poses, shape (poses, parameters).
        """
        out = np.zeros((len(features), len(self.chain.links) * DIRECTIONS))
        for value, column, place in zip(values, features.T, self.places, strict=True):
            out[:, place] += value * column
        return out.reshape(len(features), len(self.chain.links), DIRECTIONS)
