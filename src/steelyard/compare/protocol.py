"""Settings of a Monte-Carlo comparison, after the protocol of BIRDy (Leboutet et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any

import numpy as np

from steelyard.compare.methods import select_methods
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground.short_repr import short_repr
from steelyard.simulation.controllers import CONTROLLERS

# The encoder of a prismatic joint sits on a pinion: metres per radian.
PINION = 0.1
# With fewer samples, the filter's transients leave too little of the motion.
_FEWEST_SAMPLES = 200


@dataclass(frozen=True)
class Noise:
    """White noise of the sensors.

    Attributes:
        name: Name of the noise level.
        position_deg: Standard deviation of positions [degrees; 0.1 m of a prismatic joint per radian].
        torque: Standard deviation of torques [N m, N].
    """

    name: str
    position_deg: float
    torque: float

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name:
            raise SteelyardError(
                f"The name of a noise level must not be empty or contain slashes, but is '{self.name}'."
            )
        for quantity, value in (("position", self.position_deg), ("torque", self.torque)):
            if not (np.isfinite(value) and value >= 0.0):
                raise SteelyardError(
                    f"Noise '{self.name}': its {quantity} level is {value:g}; it must not be negative."
                )


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
    """One experiment of the comparison. All estimators use its log and its initial estimate."""

    trajectory: int
    noise: str
    rate: float
    cutoff: str
    controller: str
    start: int

    @property
    def key(self) -> str:
        return f"{self.trajectory}/{self.noise}/{self.rate:g}/{self.cutoff}/{self.controller}/{self.start}"


# Names of fields in files, if they differ.
_FILE_NAMES = {"bandwidth_rad_s": "bandwidth", "start_relative_std": "start_spread"}


@short_repr
@dataclass(frozen=True, kw_only=True)
class Protocol:
    """All settings of a comparison except the robot; the defaults are BIRDy's, with fewer repetitions.

    Every combination of trajectory, controller, rate, noise and cut-off is simulated `starts` times, each time with
    other noise and another initial estimate. All random numbers follow from `seed`, in any order of computation.

    Attributes:
        estimators: Names of estimators and groups.
        trajectories: Number of random Fourier motions.
        noises: Noise levels.
        rates: Sampling rates of the logs [Hz].
        cutoffs: Cut-offs [Hz] of the zero-phase Butterworth filter of order 4; "auto": the rule of `identify`; "none":
            0.45 of the rate.
        controllers: Names of controllers.
        starts: Number of repetitions.
        start_relative_std: Relative standard deviation of the initial estimates about the true values.
        harmonics: Harmonics of the motions.
        duration: Duration of the motions [s].
        control_rate: Rate of the controller and of the Runge–Kutta integration [Hz].
        bandwidth_rad_s: Bandwidth that defines the gains of the controllers [rad/s].
        smoothing: Width of the smoothed dry friction at zero speed, in plant and fitted model [rad/s, m/s].
        evaluation_motions: Number of other motions for the evaluation.
        horizon: Length of the open-loop replays [s].
        limit: Limit of processor time for one fit [s].
        seed: Seed of all random numbers.
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
    evaluation_motions: int = 2
    horizon: float = 0.5
    limit: float = 120.0
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimators", tuple(m.name for m in select_methods(self.estimators)))
        self._check_counts()
        for name in ("duration", "control_rate", "bandwidth_rad_s", "smoothing", "horizon", "limit"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise SteelyardError(f"{name} is {value:g}; it must be positive.")
        if not 0.0 <= self.start_relative_std < 1.0:
            raise SteelyardError(
                f"start_relative_std is {self.start_relative_std:g}; it must be from 0 to below 1, e.g. 0.15."
            )
        for controller in self.controllers:
            if controller not in CONTROLLERS:
                raise UnknownNameError("controller", controller, CONTROLLERS)
        for rate in self.rates:
            self._check_rate(rate)
        for cutoff in self.cutoffs:
            cutoff_hz(cutoff, max(self.rates))
        names = [noise.name for noise in self.noises]
        if len(set(names)) != len(names):
            raise SteelyardError(f"Two noise levels have the same name: {', '.join(names)}; rename one.")

    def _check_counts(self) -> None:
        for name in ("trajectories", "starts", "harmonics", "evaluation_motions"):
            if getattr(self, name) < 1:
                raise SteelyardError(f"{name} is {getattr(self, name)}; at least one is needed.")
        for name in ("noises", "rates", "cutoffs", "controllers"):
            if not getattr(self, name):
                raise SteelyardError(f"{name} is empty; give at least one.")

    def _check_rate(self, rate: float) -> None:
        if not (np.isfinite(rate) and rate > 0.0):
            raise SteelyardError(f"The sampling rate is {rate:g} Hz; it must be positive.")
        ratio = self.control_rate / rate
        if abs(ratio - round(ratio)) > 1e-9 or ratio < 1.0:
            raise SteelyardError(
                f"The control rate ({self.control_rate:g} Hz) must be a multiple of the sampling rate ({rate:g} Hz)."
            )
        if self.duration * rate < _FEWEST_SAMPLES:
            raise SteelyardError(
                f"{self.duration:g} s at {rate:g} Hz are too few samples ({self.duration * rate:g}); at least "
                f"{_FEWEST_SAMPLES} are needed: use a longer motion or a higher rate."
            )

    def cells(self) -> Iterator[Cell]:
        """Yield every experiment; repetitions come last, so that an interrupted comparison is balanced."""
        noises = [noise.name for noise in self.noises]
        for start, trajectory, controller, rate, cutoff, noise in product(
            range(self.starts), range(self.trajectories), self.controllers, self.rates, self.cutoffs, noises
        ):
            yield Cell(trajectory, noise, rate, cutoff, controller, start)

    def noise(self, name: str) -> Noise:
        """Return the noise level called `name`."""
        return next(noise for noise in self.noises if noise.name == name)

    def to_json(self) -> dict[str, Any]:
        """Convert to plain values; tuples become lists."""
        document: dict[str, Any] = {_FILE_NAMES.get(f.name, f.name): getattr(self, f.name) for f in fields(self)}
        document["noises"] = [asdict(noise) for noise in self.noises]
        return {key: list(x) if isinstance(x, tuple) else x for key, x in document.items()}


def cutoff_hz(text: str, rate: float) -> float | None:
    """Convert the text of a cut-off to a frequency [Hz].

    Args:
        text: A number, "auto" or "none".
        rate: Sampling rate [Hz].

    Returns:
        The cut-off; None for the rule of `identify`.
    """
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


def parse_noise(text: str) -> Noise:
    """Parse a noise level: `text` is NAME or NAME=DEGREES:TORQUE."""
    name, equals, levels = text.partition("=")
    if not equals:
        if name not in NOISES:
            raise UnknownNameError("noise level", name, NOISES)
        return NOISES[name]
    try:
        position, torque = (float(x) for x in levels.split(":"))
    except ValueError:
        raise SteelyardError(
            f"The noise level '{text}' must have the form NAME=DEGREES:TORQUE, such as mine=0.001:0.05."
        ) from None
    return Noise(name, position, torque)
