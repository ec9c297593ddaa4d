"""`TorqueSignal`: torques played open loop: sums of cosines and decaying steps, with phases that chance may choose."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import SimulationError, shortened
from steelyard.ground.arrays import Array
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.ground.schema import build
from steelyard.robot.robot import Robot

_Draw = Literal["run", "sample"]


@dataclass(frozen=True, kw_only=True)
class Wave:
    """amplitude · e^{−decay·t} · cos(rate·t + phase) · cos(other_rate·t) on one joint.

    Rates in rad/s, phases in rad. The phase is drawn evenly from the range `phase` where two numbers are given. A rate
    of zero leaves a decaying step; a sine is a cosine a quarter turn late.
    """

    joint: int
    amplitude: float
    rate: float = 0.0
    other_rate: float = 0.0
    phase: float | tuple[float, float] = 0.0
    decay: float = 0.0

    def __post_init__(self) -> None:
        numbers = (self.amplitude, self.rate, self.other_rate, self.decay, *np.atleast_1d(self.phase))
        if not np.all(np.isfinite(numbers)) or np.size(self.phase) > 2:
            raise SimulationError("A wave needs finite numbers; its phase is one, or the two ends of a range.")


@dataclass(frozen=True, kw_only=True)
class TorqueSignal:
    """A torque for every joint over time, clipped to ±`limits` (N m, N) where these are given.

    Phases with a range are drawn once ("run") or anew for every sample ("sample"), from `seed` alone.
    """

    joints: int
    waves: tuple[Wave, ...]
    limits: tuple[float, ...] | None = None
    draw: _Draw = "run"
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "waves", tuple(self.waves))
        for wave in self.waves:
            if not 0 <= wave.joint < self.joints:
                raise SimulationError(f"A wave acts on joint {wave.joint} (from 0); the robot has {self.joints}.")
        if self.draw not in ("run", "sample"):
            raise SimulationError(f'Phases are drawn per "run" or per "sample", not "{self.draw}".')
        if self.limits is not None:
            object.__setattr__(self, "limits", _limits(self.limits, self.joints))

    def table(self, t: ArrayLike) -> Array:
        """Torques at times `t` (s), `(samples, joints)`: what `simulate` holds from sample to sample."""
        times = np.asarray(t, dtype=float)
        rng = np.random.default_rng(self.seed)
        drawn = rng.uniform(size=(1 if self.draw == "run" else len(times), len(self.waves)))
        out = np.zeros((len(times), self.joints))
        for k, wave in enumerate(self.waves):
            low, high = np.broadcast_to(np.asarray(wave.phase, dtype=float), (2,))
            phase = low + (high - low) * drawn[:, k]
            swing = np.cos(wave.rate * times + phase) * np.cos(wave.other_rate * times)
            out[:, wave.joint] += wave.amplitude * np.exp(-wave.decay * times) * swing
        return out if self.limits is None else np.clip(out, -np.array(self.limits), np.array(self.limits))


def _limits(given: Sequence[float], joints: int) -> tuple[float, ...]:
    limits = tuple(float(x) for x in given)
    if len(limits) != joints or not all(x > 0.0 for x in limits):
        raise SimulationError(f"limits needs {joints} positive torques, one per joint; not {given}.")
    return limits


@dataclass(frozen=True, kw_only=True)
class _WrittenWave:
    """A wave as a document has it: its joint by name."""

    joint: str
    amplitude: float
    rate: float = 0.0
    other_rate: float = 0.0
    phase: float | tuple[float, float] = 0.0
    decay: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Written:
    """A document of waves."""

    duration: float
    waves: tuple[_WrittenWave, ...]
    limits: float | tuple[float, ...] | None = None
    draw: _Draw = "run"
    seed: int = 0


def read_torque_signal(
    path: str | os.PathLike[str], robot: Robot, seed: int | None = None
) -> tuple[TorqueSignal, float]:
    """A signal for the joints of `robot` and its duration (s), from the YAML, JSON or TOML file at `path`.

    Keys: `duration` (s); `waves`, a list of tables with `joint` (its name), `amplitude` (N m, N), and as in `Wave`
    `rate`, `other_rate` (rad/s), `phase` (rad; a number, or [low, high] for one that is drawn), `decay` (1/s); `limits`
    (N m, N: one number or one per joint); `draw` (run or sample); `seed`, for which `seed` stands in where it is given.
    """
    source = Path(path)
    whole = Field(read_document(source, SimulationError), str(source), error=SimulationError)
    written = build(_Written, whole)
    waves = []
    for entry, wave in zip(whole.inside(whole.value["waves"], "waves").items("entry"), written.waves, strict=True):
        if wave.joint not in robot.joint_names:
            entry.fail(f"there is no joint '{shortened(wave.joint, 60)}'; known: {', '.join(robot.joint_names)}.")
        if not wave.decay >= 0.0:
            entry.fail("decay must be zero or more, 1/s: a wave that grows has no bound.")
        try:
            waves.append(Wave(**vars(wave) | {"joint": robot.joint_index(wave.joint)}))
        except SimulationError as error:
            entry.fail(str(error))
    if not written.duration > 0.0:
        whole.fail("duration must be a positive number of seconds.")
    limits = (written.limits,) * robot.dof if isinstance(written.limits, float) else written.limits
    try:
        signal = TorqueSignal(
            joints=robot.dof, waves=tuple(waves), limits=limits, draw=written.draw,
            seed=written.seed if seed is None else seed,
        )  # fmt: skip
    except SimulationError as error:
        whole.fail(str(error))
    return signal, written.duration
