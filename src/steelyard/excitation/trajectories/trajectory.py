"""`Trajectory`: a motion of all joints, defined by a family and coefficients of each."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError
from steelyard.excitation.trajectories.family import Family, TrajectoryError, family_from, family_to
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.field import Field
from steelyard.ground.untrusted_files import parse_json

_FORMAT = "steelyard-trajectory-1"
_MOST_JOINTS = 256


def motion_rows(joint_names: Sequence[str], t: Array, q: Array, dq: Array, ddq: Array) -> list[list[Any]]:
    """Return a sampled motion as rows of a table, with a header.

    Args:
        joint_names: Names of the joints.
        t: Times [s].
        q: Positions [rad, m], shape (samples, joints).
        dq: Velocities.
        ddq: Accelerations.
    """
    head = ["t", *(f"{x}_{name}" for x in ("q", "dq", "ddq") for name in joint_names)]
    return [head, *np.column_stack([t, q, dq, ddq]).tolist()]


class SmoothMotion(ABC):
    """A motion of all joints over time with its derivatives and their bounds."""

    @abstractmethod
    def derivative(self, t: ArrayLike, order: int) -> Array:
        """Return a derivative, shape (samples, joints), or (joints,) for a single time.

        Args:
            t: Times [s].
            order: Order of the derivative, 0 to 3.
        """

    @abstractmethod
    def extents(self, order: int) -> tuple[Array, Array]:
        """Return bounds of the derivative of this `order` over all times, (joints,) each; never too narrow."""

    def sample(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return q, q̇, q̈ at times `t` [s], each of shape (samples, joints)."""
        return self.derivative(t, 0), self.derivative(t, 1), self.derivative(t, 2)

    def jerk(self, t: ArrayLike) -> Array:
        """Return the jerk at times `t` [s]."""
        return self.derivative(t, 3)

    def peak_bounds(self, order: int) -> Array:
        """Return a bound of every joint's |derivative| of this `order` (0 to 3) at all times."""
        low, high = self.extents(order)
        return np.maximum(np.abs(low), np.abs(high))


@dataclass(frozen=True, eq=False)
class Trajectory(SmoothMotion):
    """Positions, velocities and accelerations of all joints at any time; linear in the coefficients.

    Attributes:
        families: Family of each joint; all have the same duration.
        coefficients: Coefficients of the first joint, then of the second, and so on, shape (total,).
    """

    families: tuple[Family, ...]
    coefficients: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "families", tuple(self.families))
        object.__setattr__(self, "coefficients", frozen(self.coefficients))
        if not self.families:
            raise TrajectoryError("A trajectory needs one family per joint; give at least one.")
        lengths = [family.duration for family in self.families]
        if max(lengths) - min(lengths) > 1e-9 * max(lengths):
            raise TrajectoryError(
                f"The joints' motions take between {min(lengths):g} and {max(lengths):g} s; give equal durations."
            )
        if self.coefficients.shape != (self.size,):
            raise ShapeError(
                f"The coefficients have shape {self.coefficients.shape}; these families need ({self.size},) in total."
            )

    @staticmethod
    def standing(families: Sequence[Family], positions: ArrayLike) -> Trajectory:
        """Return the calmest motion of these families: every joint as close to standstill as possible.

        Args:
            families: Family of each joint.
            positions: Positions [rad, m].
        """
        still = np.broadcast_to(np.asarray(positions, dtype=float), (len(families),))
        parts = [family.hold(float(q)) for family, q in zip(families, still, strict=True)]
        return Trajectory(tuple(families), np.concatenate(parts))

    @property
    def joints(self) -> int:
        return len(self.families)

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.families[0].duration

    @property
    def periodic(self) -> bool:
        return all(family.periodic for family in self.families)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Slices of each joint's coefficients in `coefficients`."""
        ends = np.cumsum([0] + [family.size for family in self.families])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @property
    def size(self) -> int:
        """Number of all coefficients."""
        return sum(family.size for family in self.families)

    def times(self, rate: float) -> Array:
        """Return the sample times from 0 at `rate` [Hz], without the end of a repeating motion, which is its start."""
        if not rate > 0.0:
            raise TrajectoryError(f"The rate is {rate} Hz; it must be positive.")
        samples = round(self.duration * rate) + (0 if self.periodic else 1)
        return np.arange(samples) / rate

    def bases(self, t: ArrayLike, derivative: int) -> tuple[tuple[Array, Array], ...]:
        """Return (B, c) of every joint; joints of one family share the arrays.

        Args:
            t: Times [s].
            derivative: Order of the derivative, 0 to 3.
        """
        instants = np.atleast_1d(np.asarray(t, dtype=float))
        bases = {family: family.basis(instants, derivative) for family in dict.fromkeys(self.families)}
        return tuple(bases[family] for family in self.families)

    def derivative(self, t: ArrayLike, order: int) -> Array:
        parts = zip(self.bases(t, order), self.slices, strict=True)
        values = np.column_stack([B @ self.coefficients[part] + c for (B, c), part in parts])
        return values[0] if np.ndim(t) == 0 else values

    def with_coefficients(self, x: ArrayLike) -> Trajectory:
        """Return another motion of the same families, with coefficients `x`."""
        return Trajectory(self.families, np.asarray(x, dtype=float))

    def extents(self, order: int) -> tuple[Array, Array]:
        parts = zip(self.families, self.slices, strict=True)
        both = np.array([family.extent(self.coefficients[part], order) for family, part in parts])
        return both[:, 0], both[:, 1]

    def to_dict(self) -> dict[str, Any]:
        joints = [
            {**family_to(family), "coefficients": self.coefficients[part].tolist()}
            for family, part in zip(self.families, self.slices, strict=True)
        ]
        return {"format": _FORMAT, "joints": joints}

    @staticmethod
    def from_dict(document: dict[str, Any]) -> Trajectory:
        """Read a `document` that `to_dict` made."""
        return Trajectory.from_field(Field(document, "trajectory", error=TrajectoryError, exact=True))

    @staticmethod
    def from_field(document: Field) -> Trajectory:
        """Read a `document` of a file, as `to_dict` made it."""
        table = document.table((), ("format", "joints"), others=True)
        kind = table["format"].value if "format" in table else None
        if kind != _FORMAT:
            document.fail(f"it is no trajectory: format is {kind!r}, not {_FORMAT!r}.")
        joints = table["joints"].items("joint", _MOST_JOINTS) if "joints" in table else []
        parts = [joint.table(("coefficients",), others=True)["coefficients"].array(None) for joint in joints]
        return Trajectory(tuple(family_from(joint) for joint in joints), np.concatenate([*parts, np.zeros(0)]))

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> Trajectory:
        """Read the `text` that `to_json` made."""
        return Trajectory.from_dict(parse_json(text, "trajectory", TrajectoryError))
