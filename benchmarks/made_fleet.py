"""A simulated fleet: robots of two models, a log a week, with spreads and faults that are planted.

Links are the same for all robots of a model, some 10 % off the description; friction, offsets and gains are each
robot's own. Friction falls with warmth, which the table states, and days scatter. Torques are closed forms of NumPy
along motions whose rigid part the library computes once for all robots; noise is white and correlated. Files are
Parquet, single precision but for the time.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

MODELS = ("ns16", "arm7")
MOTIONS = 4
FIRST = datetime(2026, 1, 5, 8, tzinfo=UTC)
REFERENCE_C = 25.0
# Of friction: between robots, from day to day, and per °C.
BETWEEN, DAILY, WARMTH = 0.15, 0.015, -0.012
GAIN = 0.01
# Friction of a gear that fails, a week, from this part of the logs on.
GROWTH, FAILS_FROM = 0.06, 0.4
EXCHANGED_FROM = 0.55


@dataclass(frozen=True)
class FleetPlan:
    """What is simulated: so many robots, logs of each, seconds and Hz; and `poor` robots more with one log each.

    `failing` has the joint by robot, `exchanged` are pairs of robots, `swapped` has the two joints by robot whose
    torques the recorder has mixed up.
    """

    robots: int = 200
    logs: int = 20
    seconds: float = 30.0
    rate: float = 1000.0
    seed: int = 0
    failing: dict[int, int] = field(default_factory=dict)
    exchanged: tuple[tuple[int, int], ...] = ()
    swapped: dict[int, tuple[int, int]] = field(default_factory=dict)
    poor: int = 0

    @staticmethod
    def planted(robots: int, logs: int, seconds: float, rate: float, seed: int = 0) -> FleetPlan:
        """Three failing gears, two exchanged arms, one wrong mapping; a twentieth more robots with one poor log."""
        rng = np.random.default_rng(seed)
        odd, even = (rng.permutation(np.arange(k, robots, 2)).tolist() for k in (1, 0))
        failing = {even[0]: 1, even[1]: 3, odd[0]: 2}
        pairs = ((even[2], even[3]),)  # of one model
        return FleetPlan(robots, logs, seconds, rate, seed, failing, pairs, {odd[1]: (3, 4)}, robots // 20)

    def model(self, robot: int) -> str:
        return MODELS[robot % 2]

    @property
    def numbers(self) -> range:
        """Of all robots; those behind have one log, of a motion half as fast."""
        return range(self.robots + self.poor)

    def logs_of(self, robot: int) -> range:
        return range(self.logs if robot < self.robots else 1)

    @property
    def samples(self) -> int:
        return (self.robots * self.logs + self.poor) * round(self.seconds * self.rate)

    @property
    def faulty(self) -> set[int]:
        """Robots that are not what the table says, or change."""
        return {*self.failing, *self.swapped, *(r for pair in self.exchanged for r in pair)}


def robot_id(robot: int) -> str:
    return f"arm-{robot:04d}"


@dataclass(frozen=True)
class Own:
    """What is a robot's own, by joint."""

    viscous: np.ndarray
    coulomb: np.ndarray
    offset: np.ndarray
    gain: np.ndarray


@cache
def true_links(model: str) -> np.ndarray:
    """The parameters of the links, the same for all robots: each body's mass and sizes 10 % off, and possible."""
    from steelyard.robot import load_robot

    robot, rng = load_robot(model), np.random.default_rng(len(model))
    out = robot.inertial_parameters.copy().reshape(-1, 10)
    for body in out:
        mass, size = rng.uniform(0.9, 1.1, 2)
        body *= mass * np.array([1.0, *[size] * 3, *[size**2] * 6])
    return out.ravel()


@cache
def motion(model: str, number: int, small: bool, seconds: float, rate: float) -> tuple[np.ndarray, ...]:
    """Time, positions, velocities and the torque of links alone, of one of the model's motions."""
    from steelyard.dynamics.model import Model
    from steelyard.parameters import terms
    from steelyard.robot import load_robot

    robot = load_robot(model)
    rng = np.random.default_rng([number, robot.dof])
    t = np.arange(round(seconds * rate)) / rate
    omega = 2.0 * np.pi * np.arange(1, 6) / 10.0
    signals = np.zeros((3, len(t), robot.dof))
    for j, joint in enumerate(robot.joints):
        a, phase = rng.normal(size=5) / omega, rng.uniform(0.0, 2.0 * np.pi, 5)
        angle = omega * t[:, None] + phase
        shapes = [np.sin(angle) @ a, np.cos(angle) @ (a * omega), -np.sin(angle) @ (a * omega**2)]
        room = min(0.5 * (joint.upper - joint.lower), 1.5)
        most = min(room / np.abs(shapes[0]).max(), 0.8 * joint.velocity / np.abs(shapes[1]).max())
        middle = 0.5 * (joint.lower + joint.upper) if np.isfinite(joint.lower) else 0.0
        for k, shape in enumerate(shapes):
            signals[k, :, j] = (0.5 if small else 1.0) * most * shape + (middle if k == 0 else 0.0)
    torque = Model(robot, terms(robot), true_links(model)).torque(*signals)
    return t, signals[0], signals[1], torque


def own_of(plan: FleetPlan, robot: int) -> Own:
    """What robot number `robot` has of its own."""
    model = plan.model(robot)
    _, _, dq, torque = motion(model, 0, False, plan.seconds, plan.rate)
    carried, speed = np.std(torque, axis=0), np.std(dq, axis=0)
    usual = np.random.default_rng([1, torque.shape[1]])  # the population's mean
    dry, wet = usual.uniform(0.1, 0.25, (2, torque.shape[1])) * np.maximum(carried, 0.05 * carried.max())
    rng = np.random.default_rng([plan.seed, 2, robot])
    factor = np.exp(BETWEEN * rng.normal(size=(2, len(dry))))
    return Own(
        wet / speed * factor[0], dry * factor[1], 0.1 * dry * rng.normal(size=len(dry)),
        1.0 + GAIN * rng.normal(size=len(dry)),
    )  # fmt: skip


def temperature(plan: FleetPlan, robot: int, log: int) -> float:
    """°C of the day, as the table states it."""
    return REFERENCE_C + 5.0 * float(np.random.default_rng([plan.seed, 3, robot, log]).normal())


def write_one(plan: FleetPlan, folder: Path, robot: int) -> None:
    """All logs of one robot."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    model = plan.model(robot)
    for log in plan.logs_of(robot):
        late = log / plan.logs
        arm = next((b if robot == a else a for a, b in plan.exchanged if robot in (a, b)), robot)
        own = own_of(plan, arm if late >= EXCHANGED_FROM else robot)
        rng = np.random.default_rng([plan.seed, 4, robot, log])
        t, q, dq, torque = motion(model, log % MOTIONS, robot >= plan.robots, plan.seconds, plan.rate)
        n = q.shape[1]
        factor = 1.0 + WARMTH * (temperature(plan, robot, log) - REFERENCE_C) + DAILY * rng.normal(size=n)
        if robot in plan.failing and late >= FAILS_FROM:
            factor[plan.failing[robot]] *= 1.0 + GROWTH * (log - FAILS_FROM * plan.logs + 1)
        friction = factor * (own.viscous * dq + own.coulomb * np.sign(dq)) + own.offset
        clean = own.gain * (torque + friction)
        size = 0.01 * np.maximum(np.std(clean, axis=0), 0.02 * np.std(clean, axis=0).max())
        slow = lfilter([1.0], [1.0, -0.98], rng.normal(size=q.shape), axis=0) * np.sqrt(1.0 - 0.98**2)
        tau = clean + size * (rng.normal(size=q.shape) + slow)
        if robot in plan.swapped:
            a, b = plan.swapped[robot]
            tau[:, [a, b]] = tau[:, [b, a]]
        columns: dict[str, np.ndarray] = {"t": t}
        for name, signal in (
            ("q", q + 1e-6 * rng.normal(size=q.shape)), ("dq", dq + 1e-4 * rng.normal(size=q.shape)), ("tau", tau)
        ):  # fmt: skip
            columns |= {f"{name}{j + 1}": signal[:, j].astype(np.float32) for j in range(n)}
        place = folder / robot_id(robot) / f"{(FIRST + timedelta(weeks=log)).date()}.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), place, use_dictionary=False, compression="none")


def write_fleet(plan: FleetPlan, folder: Path, cores: int, robots: range | None = None) -> Path:
    """The logs of all robots (or some of them), and the table; gives the table's path."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(cores) as pool:
        list(pool.map(partial(write_one, plan, folder), robots or plan.numbers))
    return write_table(plan, folder, robots)


def write_table(plan: FleetPlan, folder: Path, robots: range | None = None, name: str = "fleet") -> Path:
    """A table of all logs of the robots, or of some of them."""
    table = folder / f"{name}.csv"
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["robot", "model", "description", "log", "date", "temperature"])
        rows.writerows(_rows(plan, robots or plan.numbers))
    return table


def _rows(plan: FleetPlan, robots: range) -> Iterator[list[str]]:
    for robot in robots:
        for log in plan.logs_of(robot):
            date = FIRST + timedelta(weeks=log)
            path = f"{robot_id(robot)}/{date.date()}.parquet"
            model, warmth = plan.model(robot), f"{temperature(plan, robot, log):.2f}"
            yield [robot_id(robot), model, model, path, date.isoformat(), warmth]
