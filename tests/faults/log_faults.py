"""Faults of logs: small functions from a log to a log. Column k of a signal is joint k's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from steelyard.robot.robot import Robot
from steelyard.signals.filters import LowPass
from steelyard.signals.log import Log

Array = np.ndarray
Change = Callable[[Log], Log]


def column(x: Array, joint: int | None, change: Callable[[Array], Array]) -> Array:
    """x with one joint's column changed, or all columns, one at a time (`joint` None)."""
    out = np.array(x)
    for k in range(x.shape[1]) if joint is None else (joint,):
        out[:, k] = change(out[:, k])
    return out


def of_torque(change: Callable[[Array], Array], joint: int | None = None) -> Change:
    return lambda log: replace(log, tau=column(log.tau, joint, change))


def of_position(change: Callable[[Array], Array], joint: int | None = None) -> Change:
    return lambda log: replace(log, q=column(log.q, joint, change))


def of_velocity(change: Callable[[Array], Array], joint: int | None = None) -> Change:
    return lambda log: log if log.dq is None else replace(log, dq=column(log.dq, joint, change))


def without_velocity(log: Log) -> Log:
    return replace(log, dq=None)


def both(*changes: Change) -> Change:
    def change(log: Log) -> Log:
        for one in changes:
            log = one(log)
        return log

    return change


def clock(factor: float) -> Change:
    """Time runs `factor` times as long as it did."""
    return lambda log: replace(log, t=log.t * factor)


def held(pattern: Callable[[int], Array]) -> Change:
    """Rows show again what an earlier one showed; `pattern` gives the earlier row's number for each."""

    def change(log: Log) -> Log:
        rows = pattern(len(log))
        return replace(log, **{n: x[rows] for n, x in log.signals.items() if x is not None})

    return change


def every(count: int) -> Callable[[int], Array]:
    return lambda n: (np.arange(n) // count) * count


def some(share: float, seed: int = 0) -> Callable[[int], Array]:
    def rows(n: int) -> Array:
        stale = np.random.default_rng(seed).random(n) < share
        stale[0] = False
        return np.maximum.accumulate(np.where(stale, 0, np.arange(n)))

    return rows


def written_twice(count: int) -> Change:
    """Every row is written `count` times, and the stamps are made from the row's number."""

    def change(log: Log) -> Log:
        rows = np.repeat(np.arange(len(log)), count)
        period = float(np.median(np.diff(log.t)))
        signals = {n: x[rows] for n, x in log.signals.items() if x is not None}
        return replace(log, t=period * np.arange(len(rows)), segments=(), **signals)

    return change


def exchanged(order: Sequence[int], signals: Sequence[str] = ("q", "dq", "tau")) -> Change:
    def change(log: Log) -> Log:
        got = {n: getattr(log, n) for n in signals}
        return replace(log, **{n: x[:, list(order)] for n, x in got.items() if x is not None})

    return change


def drop_outs(share: float, length: int, seed: int = 1) -> Callable[[Array], Array]:
    """Bursts of `length` samples at zero, so that `share` of all are."""

    def change(x: Array) -> Array:
        rng = np.random.default_rng(seed)
        out = np.array(x)
        for start in rng.integers(0, max(len(x) - length, 1), max(1, int(share * len(x) / length))):
            out[start : start + length] = 0.0
        return out

    return change


def cut_off(share: float, noise: float = 0.0) -> Callable[[Array], Array]:
    """Saturated at this share of the largest value either way; `noise` (of the standard deviation) comes after."""

    def change(x: Array) -> Array:
        middle, room = 0.5 * (x.max() + x.min()), 0.5 * share * np.ptp(x)
        rest = noise * np.std(x) * np.random.default_rng(2).normal(size=len(x))
        return np.clip(x, middle - room, middle + room) + rest

    return change


def later(seconds: float, joint: int | None = None) -> Change:
    """The torque is delayed; a negative delay makes it early."""
    return lambda log: of_torque(lambda x: np.interp(log.t - seconds, log.t, x), joint)(log)


def slow_torque(seconds: float) -> Change:
    """The torque through a lag of first order."""

    def change(log: Log) -> Log:
        out, h = np.array(log.tau), np.diff(log.t)
        for k in range(1, len(out)):
            out[k] = out[k - 1] + (log.tau[k] - out[k - 1]) * min(1.0, h[k - 1] / seconds)
        return replace(log, tau=out)

    return change


def echo(of: str, joint: int | None) -> Change:
    """In place of the torque stands a multiple of the position or velocity, with a little noise."""

    def change(log: Log) -> Log:
        source = log.q if of == "q" else np.gradient(log.q, log.t, axis=0)
        tau, rng = np.array(log.tau), np.random.default_rng(3)
        for k in range(tau.shape[1]) if joint is None else (joint,):
            x = source[:, k] - source[:, k].mean()
            tau[:, k] = x / max(np.std(x), 1e-12) * np.std(log.tau[:, k])
            tau[:, k] += 0.01 * np.std(tau[:, k]) * rng.normal(size=len(tau))
        return replace(log, tau=tau)

    return change


def _states(log: Log) -> tuple[Array, Array, Array]:
    period = float(np.median(np.diff(log.t)))
    q = LowPass(min(8.0, 0.3 / period), period)(log.q)
    dq = np.gradient(q, log.t, axis=0)
    return q, dq, np.gradient(dq, log.t, axis=0)


def command(robot: Robot) -> Change:
    """In place of the torque stands the controller's feed-forward by the description: no friction in it."""
    return lambda log: replace(log, tau=robot.dynamics.inverse_dynamics(*_states(log), robot.inertial_parameters))


def compensated(robot: Robot) -> Change:
    """The torque without the weight that the controller compensates."""

    def change(log: Log) -> Log:
        still = np.zeros_like(log.q)
        return replace(
            log, tau=log.tau - robot.dynamics.inverse_dynamics(log.q, still, still, robot.inertial_parameters)
        )

    return change


def jump(size: float, joint: int) -> Change:
    """The zero of a joint slips by `size` half-way."""
    return of_position(lambda x: x + size * (np.arange(len(x)) > len(x) // 2), joint)


def drift(size: float, joint: int | None = None) -> Change:
    return of_torque(lambda x: x + size * np.std(x) * np.linspace(-1.0, 1.0, len(x)), joint)


def noise(size: float, joint: int | None = None) -> Change:
    rng = np.random.default_rng(4)
    return of_torque(lambda x: x + size * np.std(x) * rng.normal(size=len(x)), joint)


def rounded(step: float, joint: int | None = None) -> Change:
    """Torques in steps, in standard deviations."""
    return of_torque(lambda x: np.round(x / (step * np.std(x))) * step * np.std(x), joint)


def spring(stiffness: float, joint: int) -> Change:
    """A counterbalance that the description does not know: `stiffness` standard deviations per rad."""
    return lambda log: of_torque(
        lambda x: x - stiffness * np.std(x) * np.sin(2.0 * (log.q[:, joint] - log.q[0, joint])), joint
    )(log)


def coupled(positions: bool) -> Change:
    """The last two joints are a coupled wrist without its decoupling: motor 6 turns with joints 5 and 6."""

    def change(log: Log) -> Log:
        tau, q = np.array(log.tau), np.array(log.q)
        tau[:, -2] -= tau[:, -1]
        if not positions:
            return replace(log, tau=tau)
        q[:, -1] += q[:, -2]
        dq = None if log.dq is None else np.column_stack([log.dq[:, :-1], log.dq[:, -1] + log.dq[:, -2]])
        return replace(log, tau=tau, q=q, dq=dq)

    return change


def backwards(log: Log) -> Log:
    """Played backwards: friction gives energy."""
    dq = None if log.dq is None else -log.dq[::-1]
    return replace(log, t=log.t[-1] - log.t[::-1], q=log.q[::-1], dq=dq, tau=log.tau[::-1], segments=())


def thinned(step: int) -> Change:
    def change(log: Log) -> Log:
        signals = {n: x[::step] for n, x in log.signals.items() if x is not None}
        return replace(log, t=log.t[::step], segments=(), **signals)

    return change


def shaken(log: Log) -> Log:
    """A near-copy: noise of a hundredth on the torques, the clock started elsewhere."""
    return replace(noise(0.01)(log), t=log.t + 3.7)


def log_changes(robot: Robot) -> Iterator[tuple[str, Change]]:
    """Every fault of a log with its name. Joints 2 and 3 carry weight, 5 is of the wrist."""
    n = robot.dof
    main, elbow, wrist = 1, 2, min(4, n - 1)
    for factor in (0.5, 2.0, 10.0, 1000.0, 0.001):
        yield f"clock × {factor:g}, velocity as it was", clock(factor)
        yield f"clock × {factor:g}, velocity made from it", both(clock(factor), of_velocity(lambda x, f=factor: x / f))
        yield f"clock × {factor:g}, no velocity", both(clock(factor), without_velocity)
    yield "every row held twice", held(every(2))
    yield "every row held three times", held(every(3))
    yield "23 % of the rows repeat the one before", held(some(0.23))
    yield "every row written twice, stamps by number", written_twice(2)
    yield "every row written three times, stamps by number", written_twice(3)
    for k in (main, elbow, wrist):
        yield f"zero of joint {k + 1} off by 90°", of_position(lambda x: x + np.pi / 2, k)
        yield f"zero of joint {k + 1} off by 0.3 rad", of_position(lambda x: x + 0.3, k)
        yield f"torque of joint {k + 1} × 0.5", of_torque(lambda x: 0.5 * x, k)
        yield f"torque of joint {k + 1} × 2", of_torque(lambda x: 2.0 * x, k)
        yield f"torque of joint {k + 1} × −1", of_torque(np.negative, k)
        yield f"position of joint {k + 1} × −1", of_position(np.negative, k)
        yield (
            f"position and velocity of joint {k + 1} × −1",
            both(of_position(np.negative, k), of_velocity(np.negative, k)),
        )
        yield f"velocity of joint {k + 1} × −1", of_velocity(np.negative, k)
        yield f"torque of joint {k + 1}: 5 % drop-outs", of_torque(drop_outs(0.05, 1), k)
        yield f"torque of joint {k + 1} cut off at 60 %", of_torque(cut_off(0.6), k)
        yield f"torque of joint {k + 1} cut off at 60 %, noise after", of_torque(cut_off(0.6, 0.02), k)
        yield f"torque of joint {k + 1} is an echo of its position", echo("q", k)
        yield f"torque of joint {k + 1} is an echo of its velocity", echo("dq", k)
        yield f"torque of joint {k + 1} 50 ms late", later(0.05, k)
    yield "all zeros off by 0.3 rad", of_position(lambda x: x + 0.3)
    for factor in (0.5, 2.0, -1.0, 1000.0, 0.001, 0.1):
        yield f"all torques × {factor:g}", of_torque(lambda x, f=factor: f * x)
    yield "all positions × −1", both(of_position(np.negative), of_velocity(np.negative))
    swap = list(range(n))
    for a, b in ((0, 1), (1, 2), (n - 3, n - 2), (n - 2, n - 1)):
        order = list(swap)
        order[a], order[b] = b, a
        yield f"joints {a + 1} and {b + 1} exchanged", exchanged(order)
        yield f"torques of joints {a + 1} and {b + 1} exchanged", exchanged(order, ("tau",))
    yield "all columns one joint further", exchanged([*swap[1:], 0])
    yield "all torques one joint further", exchanged([*swap[1:], 0], ("tau",))
    yield "all torques: 5 % drop-outs", of_torque(drop_outs(0.05, 1))
    yield "all torques: bursts of zeros, 5 %", of_torque(drop_outs(0.05, 20))
    yield "all positions: 2 % drop-outs", of_position(drop_outs(0.02, 1))
    yield f"position of joint {main + 1}: bursts of zeros, 3 %", of_position(drop_outs(0.03, 15), main)
    yield "all torques cut off at 70 %", of_torque(cut_off(0.7))
    yield "all torques cut off at 70 %, noise after", of_torque(cut_off(0.7, 0.02))
    yield "all torques are echoes of the positions", echo("q", None)
    yield "all torques are echoes of the velocities", echo("dq", None)
    yield "the commanded feed-forward in place of the torques", command(robot)
    yield "torques without the weight (compensated by the controller)", compensated(robot)
    for ms in (20, 50, 100, -50):
        yield f"all torques {ms} ms late", later(1e-3 * ms)
    yield "all torques through a lag of 50 ms", slow_torque(0.05)
    yield "positions in degrees", of_position(np.rad2deg)
    yield "positions and velocities in degrees", both(of_position(np.rad2deg), of_velocity(np.rad2deg))
    yield f"position of joint {elbow + 1} in degrees", of_position(np.rad2deg, elbow)
    yield "velocities in degrees", of_velocity(np.rad2deg)
    yield f"torque of joint {wrist + 1} in steps of a standard deviation", rounded(1.0, wrist)
    yield "all torques in steps of half a standard deviation", rounded(0.5)
    yield "counterbalance at joint 2", spring(1.0, main)
    yield "coupled wrist, torques", coupled(False)
    yield "coupled wrist, torques and positions", coupled(True)
    yield "played backwards", backwards
    yield f"zero of joint {main + 1} slips by 0.3 rad half-way", jump(0.3, main)
    yield f"zero of joint {wrist + 1} slips by 0.3 rad half-way", jump(0.3, wrist)
    yield "torques drift by two standard deviations", drift(1.0)
    yield f"torque of joint {elbow + 1} drifts by four standard deviations", drift(2.0, elbow)
    yield "noise as large as the torques", noise(1.0)
