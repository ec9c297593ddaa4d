"""`TorqueSignal`: open-loop torques: sums of cosines and decaying steps, with optional random phases."""

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
from steelyard.ground.short_repr import short_repr
from steelyard.robot.robot import Robot

_Draw = Literal["run", "sample"]


@dataclass(frozen=True, kw_only=True)
class Wave:
    """amplitude · e^{−decay·t} · cos(rate·t + phase) · cos(other_rate·t) on one joint.

    Rates are in rad/s, phases in rad. A range of two phases means a uniformly random phase. A rate of zero gives a
    decaying step; a sine is a cosine with a phase of −π/2.
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
            raise SimulationError("A wave needs finite numbers; its phase is one number or a range of two.")


@short_repr
@dataclass(frozen=True, kw_only=True)
class TorqueSignal:
    """A torque for every joint over time, clipped to ±`limits` [N m, N] if stated.

    Random phases are drawn once ("run") or for every sample ("sample"), from `seed` alone.
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
        """Compute torques `(samples, joints)` at times `t` [s]; `simulate` keeps each until the next sample."""
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


def _limits(values: Sequence[float], joints: int) -> tuple[float, ...]:
    limits = tuple(float(x) for x in values)
    if len(limits) != joints or not all(x > 0.0 for x in limits):
        raise SimulationError(f"limits needs {joints} positive torques, one per joint; not {values}.")
    return limits


@dataclass(frozen=True, kw_only=True)
class _WaveEntry:
    """A wave as it is written in a file, with the name of its joint."""

    joint: str
    amplitude: float
    rate: float = 0.0
    other_rate: float = 0.0
    phase: float | tuple[float, float] = 0.0
    decay: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _SignalDocument:
    """A document of waves."""

    duration: float
    waves: tuple[_WaveEntry, ...]
    limits: float | tuple[float, ...] | None = None
    draw: _Draw = "run"
    seed: int = 0


def read_torque_signal(
    path: str | os.PathLike[str], robot: Robot, seed: int | None = None
) -> tuple[TorqueSignal, float]:
    """Read a signal and its duration [s] from a YAML, JSON or TOML file.

    Keys: `duration` [s]; `waves`, a list of tables with `joint` (its name), `amplitude` [N m, N], and as in `Wave`
    `rate`, `other_rate` [rad/s], `phase` [rad] (a number, or [low, high] for a random one), `decay` [1/s]; `limits`
    [N m, N] (one number or one per joint); `draw` (run or sample); `seed`.

    Args:
        path: Path of the file.
        robot: Robot with the joints.
        seed: Seed instead of the file's.
    """
    source = Path(path)
    whole = Field(read_document(source, SimulationError), str(source), error=SimulationError)
    document = build(_SignalDocument, whole)
    waves = []
    for entry, wave in zip(whole.inside(whole.value["waves"], "waves").items("entry"), document.waves, strict=True):
        if wave.joint not in robot.joint_names:
            entry.fail(f"unknown joint '{shortened(wave.joint, 60)}'; use one of: {', '.join(robot.joint_names)}.")
        if not wave.decay >= 0.0:
            entry.fail("decay must be zero or more, 1/s: a growing wave is unbounded.")
        try:
            waves.append(Wave(**vars(wave) | {"joint": robot.joint_index(wave.joint)}))
        except SimulationError as error:
            entry.fail(str(error))
    if not document.duration > 0.0:
        whole.fail("duration must be a positive number of seconds.")
    limits = (document.limits,) * robot.dof if isinstance(document.limits, float) else document.limits
    try:
        signal = TorqueSignal(
            joints=robot.dof, waves=tuple(waves), limits=limits, draw=document.draw,
            seed=document.seed if seed is None else seed,
        )  # fmt: skip
    except SimulationError as error:
        whole.fail(str(error))
    return signal, document.duration
