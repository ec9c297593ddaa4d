"""`JointElasticity`: the elasticity of one joint, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steelyard.ground.short_repr import short_repr


@short_repr
@dataclass(frozen=True)
class Interval:
    """A number with its 95 % interval.

    Attributes:
        value: Estimate.
        half_width: Half the width of the interval.
    """

    value: float
    half_width: float

    @property
    def low(self) -> float:
        return self.value - self.half_width

    @property
    def high(self) -> float:
        return self.value + self.half_width

    def to_json(self) -> dict[str, float]:
        """Return value and half width."""
        return {"value": self.value, "half_width": self.half_width}


@short_repr
@dataclass(frozen=True)
class JointElasticity:
    """Elasticity of a joint.

    Attributes:
        joint: Name of the joint.
        unit: "rad" or "m".
        source: "two encoders", "known links" (spring against the torque of a known model), or "resonance".
        compliance: c = 1/K [rad/(N m) or m/N].
        unknown: Reason for an unknown stiffness; "" if it is known.
        damping: D [N m s/rad or N s/m]; None if it is not identifiable.
        rotor: Inertia of the rotor over its gear [kg m² or kg]; None if it is not identifiable.
        link: Inertia of the link, from a resonance [kg m² or kg]; None for two encoders.
        skew: Lag of the link encoder [s]; None with one encoder.
        hysteresis: Half width of the deflection's hysteresis, without the motor's friction [rad or m].
        friction: Coulomb and viscous friction of the motor [N m, N m s/rad].
        explained: Share of the variance of the deflection, skew included, that the fit explains.
        without_skew: The same for the deflection after the removal of the skew.
        held_out: The same as `explained` in validation logs, by log.
        offsets: Mean difference of the encoders, by log [rad or m].
        by_log: Compliance of each log alone.
        frequencies: Antiresonance and resonance [Hz], from a resonance.
    """

    joint: str
    unit: str
    source: str
    compliance: Interval
    unknown: str = ""
    damping: Interval | None = None
    rotor: Interval | None = None
    link: Interval | None = None
    skew: Interval | None = None
    hysteresis: Interval | None = None
    friction: tuple[float, float] = (0.0, 0.0)
    explained: float = float("nan")
    without_skew: float = float("nan")
    held_out: Mapping[str, float] = field(default_factory=dict)
    offsets: Mapping[str, float] = field(default_factory=dict)
    by_log: Mapping[str, Interval] = field(default_factory=dict)
    frequencies: tuple[Interval, Interval] | None = None

    @property
    def known(self) -> bool:
        return not self.unknown

    @property
    def stiffness(self) -> float:
        """K = 1/c [N m/rad or N/m]; NaN if it is not known."""
        return 1.0 / self.compliance.value if self.known else float("nan")

    @property
    def stiffness_interval(self) -> tuple[float, float]:
        """95 % interval of K, from the interval of c; the upper end is infinite if c may be zero."""
        low, high = self.compliance.low, self.compliance.high
        return (1.0 / high if high > 0.0 else float("nan"), 1.0 / low if low > 0.0 else float("inf"))

    @property
    def effort(self) -> str:
        """Unit of the torque or force."""
        return "N m" if self.unit == "rad" else "N"

    @property
    def stiffness_unit(self) -> str:
        return f"{self.effort}/{self.unit}"

    def to_json(self) -> dict[str, Any]:
        """Return all numbers as plain data."""
        low, high = self.stiffness_interval
        single = {
            n: None if getattr(self, n) is None else getattr(self, n).to_json()
            for n in ("damping", "rotor", "link", "skew", "hysteresis")
        }
        return {
            "joint": self.joint,
            "source": self.source,
            "known": self.known,
            "unknown_because": self.unknown,
            "stiffness": self.stiffness if self.known else None,
            "stiffness_interval": [low, high if np.isfinite(high) else None] if self.known else None,
            "stiffness_unit": self.stiffness_unit,
            "compliance": self.compliance.to_json(),
            **single,
            "coulomb": self.friction[0],
            "viscous": self.friction[1],
            "explained": self.explained,
            "explained_without_skew": self.without_skew,
            "held_out": dict(self.held_out),
            "offsets": dict(self.offsets),
            "compliance_by_log": {name: x.to_json() for name, x in self.by_log.items()},
            "frequencies_hz": None if self.frequencies is None else [x.to_json() for x in self.frequencies],
        }
