"""`Rollouts`: simulates all runs of a drive together, from their first samples, with exact sensitivities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.actuators.command_log import CommandLog
from steelyard.actuators.drive_structure import (
    FIRST_POSITION,
    FIRST_VELOCITY,
    OF_RUN,
    SAMPLED,
    DriveStructure,
    scan_of,
)
from steelyard.ground.arrays import Array

# Steps of the simulation [s]: for the comparison of structures (friction explicit in the velocity), and for results
# (friction at the velocity of the step's middle). `tests/actuators` compares the latter with MuJoCo at 0.1 ms.
QUICK_STEP, FINE_STEP = 2e-3, 5e-4
# Largest delay of a goal [s].
MOST_DELAY = 0.25


@dataclass(frozen=True)
class _Stretch:
    """A part of a run without gaps: one lane of the simulation."""

    run: int
    time: Array
    position: Array
    velocity: float
    speed: tuple[float, float]  # estimate of the first velocity, and its standard deviation
    edges: Array  # time of each change of the goal, and the goal from there on
    goal: Array
    sampled: Array  # (steps, 3): enabled, supply, feedforward


class Rollouts:
    """Runs of a drive on one fine grid, ready to be simulated.

    Args:
        logs: Runs.
        supply: Voltage [V] of each run at its samples; None: 1 for all.
        step: Step of the simulation [s].
        stride: Number of samples between two compared positions.
    """

    def __init__(
        self,
        logs: Sequence[CommandLog],
        supply: Sequence[Array] | None = None,
        step: float = FINE_STEP,
        stride: int = 1,
    ) -> None:
        # A step has at most one change of the goal.
        step = min(step, *(log.period for log in logs))
        self.logs, self.step = tuple(logs), step
        self._supply, self._stride = supply, stride
        self._stretches: list[_Stretch] = []
        for k, log in enumerate(self.logs):
            volts = np.ones(len(log)) if supply is None else supply[k]
            self._stretches += [_stretch(k, log, volts, part, step) for part in log.segments()]
        self._steps = max(len(s.sampled) for s in self._stretches)
        n, lanes = self._steps, len(self._stretches)
        self._samples = np.zeros((n, len(SAMPLED), lanes))
        for lane, s in enumerate(self._stretches):
            m = len(s.sampled)
            self._samples[:m, 4:, lane], self._samples[m:, 4:, lane] = s.sampled, s.sampled[-1]
        # Compared positions: rows of the grid, shares of the next rows, and lanes.
        at = [(x.time[::stride] - x.time[0]) / step for x in self._stretches]
        rows = [np.minimum(a.astype(int), n - 1) for a in at]
        self._rows = np.concatenate(rows)
        self._shares = np.concatenate([a - r for a, r in zip(at, rows, strict=True)])[:, None]
        self._lanes = np.repeat(np.arange(lanes), [len(r) for r in rows])
        self.measured = np.concatenate([s.position[::stride] for s in self._stretches])
        self.run = np.concatenate([np.full(len(s.position[::stride]), s.run) for s in self._stretches])
        self.stretch = np.concatenate([np.full(len(s.position[::stride]), k) for k, s in enumerate(self._stretches)])
        self.volts = float(np.median(np.concatenate([s.sampled[:, 1] for s in self._stretches])))
        self.resolution = float(np.median([_encoder_step(log.position) for log in self.logs]))
        self.noise = np.array([_noise(x.position) for x in self._stretches])
        # First velocities minus those of a simulation without estimated starts, and their standard deviations.
        self.speeds = np.array([[x.speed[0] - x.velocity, x.speed[1]] for x in self._stretches]).reshape(-1, 2)
        self._goals_at = math.nan

    def _delay(self, delay: float) -> None:
        """Write the delayed goals: those at the begin and end of a step, and the share of the step with the latter."""
        if delay == self._goals_at:
            return
        for lane, s in enumerate(self._stretches):
            at = (s.edges + (delay - s.edges[0])) / self.step
            index = at.astype(int)
            last = np.clip(index, -1, self._steps - 1)
            counts = np.diff(np.concatenate([[-1], last[1:], [self._steps - 1]]))
            first = np.repeat(s.goal, counts)
            self._samples[:, 0, lane] = self._samples[:, 1, lane] = first
            self._samples[:, 2:4, lane] = 0.0
            inside = index[1:] < self._steps
            rows = index[1:][inside]
            self._samples[rows, 1, lane] = s.goal[1:][inside]
            self._samples[rows, 2, lane] = 1.0 - (at[1:][inside] - rows)
            self._samples[rows, 3, lane] = -1.0 / self.step
        self._goals_at = delay

    def simulate(
        self, structure: DriveStructure, values: Mapping[str, float], wrt: tuple[str, ...] = (),
        starts: Array | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Return positions at the compared samples, and their sensitivities `(samples, len(wrt))`.

        Args:
            structure: Structure of the drive.
            values: Its parameters.
            wrt: Parameters of the sensitivities, `FIRST_POSITION` and `FIRST_VELOCITY` included.
            starts: First position minus the measured one [rad], and first velocity minus its estimate [rad/s], for
                each stretch, `(2, stretches)`; default: 0.
        """
        grid = self._run(structure, values, wrt, starts)
        path = grid[self._rows, :, self._lanes]
        path += (grid[self._rows + 1, :, self._lanes] - path) * self._shares
        return path[:, 0], path[:, 2 :: 2 if structure.late else 1]

    def with_step(self, step: float) -> Rollouts:
        """Return the same runs on a grid with another step.

        Args:
            step: Step of the simulation [s].
        """
        return Rollouts(self.logs, self._supply, step, self._stride)

    def _run(self, s: DriveStructure, values: Mapping[str, float], wrt: tuple[str, ...], starts: Array | None) -> Array:
        self._delay(values.get("delay", 0.0))
        lanes, n = len(self._stretches), s.states
        state = np.zeros((n * (1 + len(wrt)), lanes))
        state[0] = [x.position[0] for x in self._stretches]
        state[1] = [x.velocity for x in self._stretches]
        if starts is not None:
            state[:2] += starts
        for k, name in enumerate((FIRST_POSITION, FIRST_VELOCITY)):
            if name in wrt:
                state[n * (1 + wrt.index(name)) + k] = 1.0
        if "goal_time" in s.effects:
            state[2] = [x.goal[0] if x.sampled[0, 0] else x.position[0] for x in self._stretches]
        if "backlash" in s.effects:
            self._rest_in_play(state, n, values, wrt)
        # The feedback reaches back by whole steps, and a share of the next one.
        lag = max(math.floor(values["feedback_delay"] / self.step - 0.5), 0) if s.late else 0
        fixed = np.empty((len(s.names) + len(OF_RUN), lanes))
        for k, name in enumerate(s.names):
            fixed[k] = values[name]
        for lane, x in enumerate(self._stretches):
            log = self.logs[x.run]
            gains = [1.0 if math.isnan(g) else g for g in (log.kp, log.kd)]
            load = log.load
            fixed[len(s.names) :, lane] = [self.step, load.inertia, load.gravity, load.rest_angle, *gains, lag]
        columns = state.reshape(1 + len(wrt), n, lanes)
        before = np.concatenate([columns[0, :2], columns[1:, : 2 if s.late else 1].reshape(-1, lanes)])
        return scan_of(s, wrt, self.step < QUICK_STEP)(self._samples, state, fixed, before, lag)

    def _rest_in_play(self, state: Array, n: int, values: Mapping[str, float], wrt: tuple[str, ...]) -> None:
        """At the first sample the load rests on the gears, and moves with them."""
        half = np.empty(state.shape[1])
        for lane, x in enumerate(self._stretches):
            load = self.logs[x.run].load
            half[lane] = -0.5 * np.sign(load.torque(state[0, lane] + values.get("offset", 0.0)))
        state[n - 2], state[n - 1] = half * values["backlash"], state[1]
        if "backlash" in wrt:
            state[n * (1 + wrt.index("backlash")) + n - 2] = half
        if FIRST_VELOCITY in wrt:
            state[n * (1 + wrt.index(FIRST_VELOCITY)) + n - 1] = 1.0


def _stretch(run: int, log: CommandLog, volts: Array, part: slice, step: float) -> _Stretch:
    time = log.time[part]
    goal = log.goal[part].copy()
    bad = ~np.isfinite(goal)  # the drive is off there; the goal has no influence, but must be finite
    goal[bad] = log.position[part][bad]
    steps = math.ceil((time[-1] - time[0]) / step - 1e-9)
    middle = time[0] + (np.arange(steps) + 0.5) * step
    rows = np.clip(np.searchsorted(time, middle, side="right") - 1, 0, len(time) - 1)
    forward = np.zeros(len(time)) if log.feedforward is None else log.feedforward[part]
    on = _held_means(time - time[0], log.enabled[part].astype(float), steps, step)
    sampled = np.stack([on, np.interp(middle, time, volts[part]), forward[rows]], 1)
    speed, deviation = first_speed(log, part)
    still = abs(speed) <= 3.0 * deviation
    return _Stretch(run, time, log.position[part], 0.0 if still else speed, (speed, deviation), time, goal, sampled)


def _held_means(time: Array, values: Array, steps: int, step: float) -> Array:
    """The mean over each step of values that are constant from sample to sample, and after the last one."""
    grid = np.arange(steps + 1) * step
    total = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(time))])
    integral = np.interp(grid, time, total) + values[-1] * np.maximum(grid - time[-1], 0.0)
    return np.asarray(np.diff(integral) / step)


def first_speed(log: CommandLog, part: slice) -> tuple[float, float]:
    """Return the velocity at the first sample [rad/s] by a parabola through the first samples, and its deviation.

    Args:
        log: Run.
        part: A part of it without gaps.
    """
    time, position = log.time[part][:8], log.position[part][:8]
    columns = np.vander(time - time[0], 3, increasing=True)
    solution, *_ = np.linalg.lstsq(columns, position, rcond=None)
    residual = position - columns @ solution
    covariance = np.linalg.inv(columns.T @ columns)
    # Positions are rounded to the encoder's steps, even where the parabola passes through all of them.
    variance = max(float(residual @ residual) / max(len(time) - 3, 1), _encoder_step(log.position) ** 2 / 12.0)
    return float(solution[1]), math.sqrt(variance * float(covariance[1, 1]))


def _encoder_step(position: Array) -> float:
    """The step of the encoder [rad]: the smallest change above rounding errors."""
    changes = np.abs(np.diff(position))
    changes = changes[changes > 1e-9]
    return float(np.min(changes)) if len(changes) else 0.0


def _noise(position: Array) -> float:
    """The noise of a measured position [rad], from its third differences, which a smooth motion hardly changes."""
    if len(position) < 8:
        return 0.0
    third = np.diff(position, 3)
    return float(np.sqrt(np.mean(third**2) / 20.0))
