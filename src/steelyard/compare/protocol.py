"""`Protocol`: what is varied in a Monte-Carlo comparison, after the one of BIRDy (Leboutet et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any

import numpy as np

from steelyard.compare.methods import chosen_methods
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground.renamed import renamed
from steelyard.simulation.controllers import CONTROLLERS

# A sliding joint's encoder sits on a pinion: this many metres a radian.
PINION = 0.1
# Fewer samples than this leave nothing between the filter's borders that could be called a motion.
_FEWEST_SAMPLES = 200


@dataclass(frozen=True)
class Noise:
    """White noise of the sensors: positions in degrees (0.1 m of a sliding joint to the radian), torques in N m (N)."""

    name: str
    position_deg: float
    torque: float

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name:
            raise SteelyardError(f"A noise level needs a name without slashes, not '{self.name}'.")
        for what, value in (("position", self.position_deg), ("torque", self.torque)):
            if not (np.isfinite(value) and value >= 0.0):
                raise SteelyardError(f"Noise '{self.name}': its {what} level is {value:g}; it must not be negative.")


NOISES = {
    noise.name: noise
    for noise in (
        Noise("low", 1e-4, 0.05),
        Noise("standard", 1e-3, 0.05),
        Noise("high-torque", 1e-3, 0.1),
        Noise("high-position", 1e-2, 0.05),
        Noise("high-both", 1e-2, 0.1),
    )
}


@dataclass(frozen=True)
class Cell:
    """One experiment of the comparison: all estimators get the same log of it, and the same initial estimate."""

    trajectory: int
    noise: str
    rate: float
    cutoff: str
    controller: str
    start: int

    @property
    def key(self) -> str:
        return f"{self.trajectory}/{self.noise}/{self.rate:g}/{self.cutoff}/{self.controller}/{self.start}"


# What files call fields that have another name now.
_WRITTEN = {"bandwidth_rad_s": "bandwidth", "start_relative_std": "start_spread"}


@renamed(bandwidth="bandwidth_rad_s", start_spread="start_relative_std")
@dataclass(frozen=True, kw_only=True)
class Protocol:
    """All that decides a comparison besides the robot; the defaults are BIRDy's, with fewer repetitions.

    Every one of `trajectories` random Fourier motions of `harmonics` over `duration` s is played under every one of
    `controllers` (gains for `bandwidth_rad_s`; `control_rate` Hz, Runge–Kutta 4), logged at every one of `rates` (Hz)
    with every one of `noises`, and made ready with every one of `cutoffs`: Hz of the zero-phase Butterworth of order 4,
    "auto" (the rule of `identify`) or "none" (0.45 of the rate). `starts` is how often that is repeated, each time with
    other noise and another initial estimate: the true ones with a relative standard deviation of `start_relative_std`.
    Everything follows from `seed`, in whatever order it is done.

    `smoothing` (rad/s, m/s): over which dry friction turns round, in the plant and in the model that is fitted.
    `judged_on` other motions judge the results, replayed for `horizon` s at a time. A fit that takes longer than
    `limit` s of processor time is given up.
    """

    estimators: tuple[str, ...] = ("all",)
    trajectories: int = 2
    noises: tuple[Noise, ...] = tuple(NOISES.values())
    rates: tuple[float, ...] = (1000.0,)
    cutoffs: tuple[str, ...] = ("50",)
    controllers: tuple[str, ...] = ("pd",)
    starts: int = 5
    start_relative_std: float = 0.15
    harmonics: int = 20
    duration: float = 10.0
    control_rate: float = 5000.0
    bandwidth_rad_s: float = 60.0
    smoothing: float = 0.05
    judged_on: int = 2
    horizon: float = 0.5
    limit: float = 120.0
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimators", tuple(m.name for m in chosen_methods(self.estimators)))
        self._check_counts()
        for name in ("duration", "control_rate", "bandwidth_rad_s", "smoothing", "horizon", "limit"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise SteelyardError(f"{name} is {value:g}; it must be positive.")
        if not 0.0 <= self.start_relative_std < 1.0:
            raise SteelyardError(f"start_relative_std is {self.start_relative_std:g}; give a share below 1, e.g. 0.15.")
        for controller in self.controllers:
            if controller not in CONTROLLERS:
                raise UnknownNameError("controller", controller, CONTROLLERS)
        for rate in self.rates:
            self._check_rate(rate)
        for cutoff in self.cutoffs:
            cutoff_hz(cutoff, max(self.rates))
        names = [noise.name for noise in self.noises]
        if len(set(names)) != len(names):
            raise SteelyardError(f"Two noise levels share a name: {', '.join(names)}.")

    def _check_counts(self) -> None:
        for name in ("trajectories", "starts", "harmonics", "judged_on"):
            if getattr(self, name) < 1:
                raise SteelyardError(f"{name} is {getattr(self, name)}; at least one is needed.")
        for name in ("noises", "rates", "cutoffs", "controllers"):
            if not getattr(self, name):
                raise SteelyardError(f"There are no {name} to compare with; give at least one.")

    def _check_rate(self, rate: float) -> None:
        if not (np.isfinite(rate) and rate > 0.0):
            raise SteelyardError(f"A rate of {rate:g} Hz samples nothing; it must be positive.")
        ratio = self.control_rate / rate
        if abs(ratio - round(ratio)) > 1e-9 or ratio < 1.0:
            raise SteelyardError(
                f"The control rate of {self.control_rate:g} Hz is no multiple of the sampling rate of {rate:g} Hz."
            )
        if self.duration * rate < _FEWEST_SAMPLES:
            raise SteelyardError(
                f"{self.duration:g} s at {rate:g} Hz are too few samples ({self.duration * rate:g}); at least "
                f"{_FEWEST_SAMPLES} are needed: a longer motion or a higher rate."
            )

    def cells(self) -> Iterator[Cell]:
        """Every experiment; repetitions come last, so that a comparison that is broken off is balanced."""
        noises = [noise.name for noise in self.noises]
        for start, trajectory, controller, rate, cutoff, noise in product(
            range(self.starts), range(self.trajectories), self.controllers, self.rates, self.cutoffs, noises
        ):
            yield Cell(trajectory, noise, rate, cutoff, controller, start)

    def noise(self, name: str) -> Noise:
        """The level of noise called `name`."""
        return next(noise for noise in self.noises if noise.name == name)

    def to_json(self) -> dict[str, Any]:
        """As plain values; tuples are lists."""
        made: dict[str, Any] = {_WRITTEN.get(f.name, f.name): getattr(self, f.name) for f in fields(self)}
        made["noises"] = [asdict(noise) for noise in self.noises]
        return {key: list(x) if isinstance(x, tuple) else x for key, x in made.items()}


def cutoff_hz(text: str, rate: float) -> float | None:
    """Hz of a cut-off named `text` at `rate` Hz; None for the rule of `identify`."""
    if text == "auto":
        return None
    if text == "none":
        return 0.45 * rate
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (np.isfinite(value) and value > 0.0):
        raise SteelyardError(f"The cut-off '{text}' is neither a frequency in Hz nor 'auto' or 'none'.")
    return value


def noise_from(text: str) -> Noise:
    """A level by name, or of one's own: `text` is NAME or NAME=DEGREES:TORQUE."""
    name, equals, levels = text.partition("=")
    if not equals:
        if name not in NOISES:
            raise UnknownNameError("noise level", name, NOISES)
        return NOISES[name]
    try:
        position, torque = (float(x) for x in levels.split(":"))
    except ValueError:
        raise SteelyardError(f"The noise '{text}' is not NAME=DEGREES:TORQUE, such as mine=0.001:0.05.") from None
    return Noise(name, position, torque)
