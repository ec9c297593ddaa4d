"""Faults of a continuous size: what is wrong with a log or with a description, from harmless to gross."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from log_faults import both, clock, later, of_position, of_torque, of_velocity  # type: ignore[import-not-found]
from scipy.ndimage import gaussian_filter1d

from steelyard.robot.robot import Robot
from steelyard.robot.spatial import rotation_about
from steelyard.signals.log import Log

Array = np.ndarray
Change = Callable[[Log], Log]


@dataclass(frozen=True, eq=False)
class Base:
    """A robot with a log to fit to, one to judge by, and a sound one that shows what a fault did."""

    name: str
    robot: Robot
    fit: Log
    judge: Log
    witness: Log


@dataclass(frozen=True)
class Family:
    """A fault of a size: which suspect is its right name, the sizes, and what it does to a log or to a robot."""

    name: str
    kinds: tuple[str, ...]
    joint: int | None
    smallest: float
    largest: float
    log: Callable[[float], Change] | None = None
    robot: Callable[[Robot, float], Robot] | None = None
    number: Callable[[float], float] | None = None

    def sizes(self, count: int) -> Array:
        return np.geomspace(self.smallest, self.largest, count)


def families(base: Base) -> Iterator[Family]:
    """All faults; joints 2 and 3 carry weight, 5 is of the wrist."""
    wrist = min(4, base.robot.dof - 1)

    def same(x: float) -> float:
        return x

    for j in (1, 2, wrist):
        yield Family("zero", ("zero",), j, 0.005, 0.5, lambda x, j=j: of_position(lambda q: q + x, j), number=same)
    for j in (1, wrist):
        yield Family("torque scale", ("torque scale",), j, 0.01, 0.8,
                     lambda x, j=j: of_torque(lambda tau: (1.0 + x) * tau, j), number=same)  # fmt: skip
        yield Family("gear ratio", ("gear ratio",), j, 0.003, 0.3, lambda x, j=j: geared(x, j), number=same)
        yield Family("friction drift", ("change of the friction",), j, 0.01, 0.5, lambda x, j=j: warming(x, j))
        yield Family("torque drift", ("change of the torque offset",), j, 0.01, 0.8, lambda x, j=j: drifting(x, j))
    yield Family("clock", ("clock scale",), None, 0.005, 0.4,
                 lambda x: both(clock(1.0 + x), of_velocity(lambda v: v / (1.0 + x))), number=same)  # fmt: skip
    yield Family("delay", ("delay",), None, 0.001, 0.06, later, number=same)
    yield Family("smoothing", ("smoothing of the torques", "smoothing of the torque"), None, 0.01, 0.3, smoothed)
    yield Family("torque coupling", ("torque coupling",), wrist, 0.02, 1.0, lambda x: leaking(x, wrist))
    for j in (1, wrist):
        yield Family("slip of a zero", ("change of the zero",), j, 0.01, 0.5, lambda x, j=j: slipping(x, j))
    yield Family("load in the second half", ("change of the payload",), None, 0.05, 5.0,
                 lambda x: loaded(base.robot, x))  # fmt: skip
    yield Family("tilt of gravity", ("tilt of gravity about x", "tilt of gravity about y"), None, 0.003, 0.4,
                 robot=lambda r, x: r.with_gravity(rotation_about(np.eye(3)[0], x) @ r.gravity))  # fmt: skip
    places = ("shift along its axis", "first shift across", "second shift across")
    yield Family("link length", places, 2, 0.002, 0.2, robot=lambda r, x: longer(r, 2, x))
    tilts = ("first tilt of the axis", "second tilt of the axis")
    yield Family("axis tilt", tilts, 2, 0.003, 0.4, robot=lambda r, x: tilted(r, 2, x))


def progress(log: Log) -> Array:
    return np.linspace(-0.5, 0.5, len(log))


def warming(size: float, joint: int) -> Change:
    """Friction of a joint that falls during the log, by `size` standard deviations of its torque."""

    def change(log: Log) -> Log:
        speed = np.gradient(log.q[:, joint], log.t)
        rubs = np.tanh(gaussian_filter1d(speed, 3) / 0.05)
        return of_torque(lambda tau: tau - size * np.std(tau) * progress(log) * rubs, joint)(log)

    return change


def drifting(size: float, joint: int) -> Change:
    return lambda log: of_torque(lambda tau: tau + size * np.std(tau) * progress(log), joint)(log)


def slipping(size: float, joint: int) -> Change:
    """The zero of a joint slips at 43 % of the log, which is no border of the blocks of the ledger."""
    return of_position(lambda q: q + size * (np.arange(len(q)) > 0.43 * len(q)), joint)


def geared(size: float, joint: int) -> Change:
    return both(of_position(lambda q: (1.0 + size) * q, joint), of_velocity(lambda v: (1.0 + size) * v, joint))


def smoothed(seconds: float) -> Change:
    """All torques through an even filter with this standard deviation."""
    return lambda log: replace(log, tau=gaussian_filter1d(log.tau, seconds / np.median(np.diff(log.t)), axis=0))


def leaking(size: float, joint: int) -> Change:
    def change(log: Log) -> Log:
        tau = np.array(log.tau)
        tau[:, joint] += size * tau[:, joint - 1]
        return replace(log, tau=tau)

    return change


def loaded(robot: Robot, mass: float) -> Change:
    """A mass at the last link's frame from the middle of the log on."""

    def change(log: Log) -> Log:
        period = float(np.median(np.diff(log.t)))
        q = gaussian_filter1d(log.q, 0.03 / period, axis=0)
        dq = np.gradient(q, period, axis=0)
        theta = np.zeros(robot.inertial_count)
        theta[-10:-6] = mass * np.array([1.0, 0.0, 0.0, 0.05])
        more = robot.dynamics.inverse_dynamics(q, dq, np.gradient(dq, period, axis=0), theta)
        return replace(log, tau=log.tau + more * (progress(log) > 0.0)[:, None])

    return change


def longer(robot: Robot, link: int, size: float) -> Robot:
    old = robot.links[link]
    way = old.translation / max(float(np.linalg.norm(old.translation)), 1e-9)
    way = way if np.any(way) else np.array([1.0, 0.0, 0.0])
    return _with_link(robot, link, replace(old, translation=old.translation + size * way))


def tilted(robot: Robot, link: int, size: float) -> Robot:
    old = robot.links[link]
    side = np.eye(3)[int(np.argmin(np.abs(old.axis)))]
    return _with_link(robot, link, replace(old, rotation=old.rotation @ rotation_about(side, size)))


def _with_link(robot: Robot, link: int, new: Any) -> Robot:
    return replace(robot, links=(*robot.links[:link], new, *robot.links[link + 1 :]))
