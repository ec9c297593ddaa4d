"""Sound logs: of a UR10e where they are at hand, and of simulated arms whose descriptions are not exact."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.parameters.terms import terms
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.read import read_log

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Case:
    """Inputs of an identification."""

    robot: Robot
    fit: tuple[Log, ...]
    judge: tuple[Log, ...]


@dataclass(frozen=True, eq=False)
class Base:
    """Sound logs: to fit to, to judge by, and one of a third motion that shows what a fault did."""

    name: str
    case: Case
    witness: Log
    loaded: Log
    foreign: Log


def real_base() -> Base | None:
    root = os.environ.get("STEELYARD_DATA")
    if not root or not (Path(root) / "ur10e").is_dir():
        return None
    folder = Path(root) / "ur10e"
    robot = load_robot(folder / "robot.urdf", snap=1e-4)
    mapping = str(Path(__file__).parents[2] / "benchmarks" / "maps" / "ur10e.toml")

    def read(name: str) -> Log:
        return read_log(folder / f"ident__{name}.parquet", robot, mapping)

    foreign = simulated_base().case.fit[0]
    return Base(
        "ur10e", Case(robot, (read("20_02_10-30sec_12harm"),), (read("20_02_12-50sec_12harm"),)),
        read("20_02_12-40sec_12harm"), read("20_01_13-load_2600"),
        replace(foreign, joints=robot.joint_names, meta={}),
    )  # fmt: skip


@dataclass(frozen=True)
class Harmonics:
    """A sum of sines about a middle posture that stays within limits of position and speed."""

    middle: Array
    sines: Array
    cosines: Array
    base: float

    def __call__(self, t: Array) -> tuple[Array, Array, Array]:
        w = 2.0 * np.pi * self.base * np.arange(1, len(self.sines) + 1)
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        return (
            self.middle + s @ self.sines + c @ self.cosines,
            (c * w) @ self.sines - (s * w) @ self.cosines,
            -(s * w**2) @ self.sines - (c * w**2) @ self.cosines,
        )


def harmonics(robot: Robot, seed: int, duration: float) -> Harmonics:
    rng = np.random.default_rng(seed)
    lower, upper = (np.array([np.clip(getattr(j, s), -2.5, 2.5) for j in robot.joints]) for s in ("lower", "upper"))
    room, speed = 0.45 * (upper - lower), np.array([min(j.velocity, 3.0) for j in robot.joints])
    sines, cosines = rng.normal(size=(2, 7, robot.dof)) / np.arange(1, 8)[:, None] ** 0.5
    made = Harmonics(0.5 * (lower + upper), sines, cosines, 1.0 / duration * 2.0)
    q, dq, _ = made(np.linspace(0.0, duration, 2000))
    size = np.minimum(room / np.abs(q - made.middle).max(axis=0), 0.8 * speed / np.abs(dq).max(axis=0))
    return replace(made, sines=sines * size, cosines=cosines * size)


def different(robot: Robot, seed: int, spread: float = 0.15) -> Robot:
    """The robot as it is: every link's mass and size a little other than described, bodies that can exist."""
    rng = np.random.default_rng(seed)
    links = []
    for link in robot.links:
        if link.inertia is None:
            links.append(link)
            continue
        mass, size = np.exp(spread * rng.normal(size=2))
        powers = np.array([0] + [1] * 3 + [2] * 6)
        links.append(replace(link, inertia=link.inertia * mass * size ** (0.5 * powers)))
    return replace(robot, links=tuple(links))


def simulated_log(
    robot: Robot, truth: Model, seed: int, duration: float = 25.0, rate: float = 100.0, noisy: float = 0.02,
    velocity: bool = True,
) -> Log:  # fmt: skip
    """The log of `truth` while it follows harmonics: fine encoders, noise of `noisy` standard deviations."""
    rng = np.random.default_rng(1000 + seed)
    t = np.arange(int(duration * rate)) / rate
    q, dq, ddq = harmonics(robot, seed, duration)(t)
    tau = truth.torque(q, dq, ddq)
    tau = tau + noisy * np.std(tau, axis=0) * rng.normal(size=tau.shape)
    step = 2e-5
    measured = dq + 2e-3 * rng.normal(size=dq.shape) if velocity else None
    return Log(robot.joint_names, t, np.round(q / step) * step, dq=measured, tau=tau)


def truth_of(robot: Robot, seed: int) -> Model:
    """A model of a robot like the described one, with other rotors and other friction."""
    rng = np.random.default_rng(2000 + seed)
    actual = different(robot, seed)
    t = np.linspace(0.0, 25.0, 500)
    rigid = np.std(
        actual.dynamics.inverse_dynamics(*harmonics(robot, seed, 25.0)(t), actual.inertial_parameters), axis=0
    )
    bound = terms(actual, "viscous", "coulomb")
    size = np.maximum(rigid, 0.1 * rigid.max())
    speed = np.array([min(j.velocity, 3.0) for j in robot.joints])
    values = np.concatenate([0.3 * size / speed, 0.25 * size]) * rng.uniform(0.5, 1.5, 2 * robot.dof)
    return Model(actual, bound, np.concatenate([actual.inertial_parameters, values]))


@cache
def simulated_base(seed: int = 0) -> Base:
    robot = replace(load_robot("ns16"), nominal_terms=())
    truth = truth_of(robot, seed)
    loaded = np.array(truth.theta)
    last = robot.inertial_count - 10
    loaded[last : last + 10] += 15.0 * np.array([1.0, 0.0, 0.05, 0.2, 0.045, 0.0, 0.042, 0.0, -0.01, 0.005])
    stranger = truth_of(different(robot, 77, 0.6), 5)
    return Base(
        "simulated six-axis arm",
        Case(robot, (simulated_log(robot, truth, 1),), (simulated_log(robot, truth, 2),)),
        simulated_log(robot, truth, 3),
        simulated_log(robot, Model(truth.robot, truth.terms, loaded), 4),
        simulated_log(robot, stranger, 5),
    )


def healthy(count: int) -> Iterator[tuple[str, Case]]:
    """Sound cases of many robots, seeds, rates and noises, with descriptions that are not exact."""
    names = ("ns16", "arm7", "irp6", "prrrp", "rotradi", "szabo3r")
    for seed in range(count):
        name = names[seed % len(names)]
        robot = replace(load_robot(name), nominal_terms=())
        truth = truth_of(robot, 100 + seed)
        rng = np.random.default_rng(seed)
        how = {"rate": float(rng.choice([100.0, 125.0, 250.0])), "noisy": float(rng.choice([0.005, 0.02, 0.05])),
               "velocity": bool(rng.random() < 0.5)}  # fmt: skip
        fit, judge = (simulated_log(robot, truth, 10 * seed + k, **how) for k in (1, 2))
        yield f"{name}, {how['rate']:g} Hz, noise {100 * how['noisy']:g} %, seed {seed}", Case(robot, (fit,), (judge,))
