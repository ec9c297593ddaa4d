"""Faults planted into sound logs, what they do to a model, and what the verdict says of it.

A fault is a small function from a log to a log (or from a whole case to another). It is *harmful* if the model that is
found from it has a base parameter more than three of its stated standard errors away from where the sound logs put it,
and predicts the torque of a sound log of another motion by more than a tenth worse. No harmful fault may end in "The
model can be trusted".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from steelyard.assessment.score import score
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import rotation_about
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import read_log

MOVED, WORSE = 3.0, 1.1
Array = np.ndarray
Change = Callable[[Log], Log]


@dataclass(frozen=True, eq=False)
class Case:
    """What an identification is given."""

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


@dataclass(frozen=True, eq=False)
class Planted:
    """A case with one fault in it. `known` says that it must not be called good, however little it moved."""

    name: str
    where: str
    case: Case
    known: bool = False


# What spoils a log. Column k of a signal is joint k's.


def column(x: Array, joint: int | None, change: Callable[[Array], Array]) -> Array:
    """x with one joint's column changed, or all of them, each by itself (`joint` None)."""
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
    """The torque comes so much later (before, below 0)."""
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
    from steelyard.signals.filters import LowPass

    period = float(np.median(np.diff(log.t)))
    q = LowPass(min(8.0, 0.3 / period), period)(log.q)
    dq = np.gradient(q, log.t, axis=0)
    return q, dq, np.gradient(dq, log.t, axis=0)


def command(robot: Robot) -> Change:
    """In place of the torque stands the controller's feed-forward by the description: no friction in it."""
    return lambda log: replace(log, tau=robot.dynamics.inverse_dynamics(*_states(log), robot.inertial_parameters))


def compensated(robot: Robot) -> Change:
    """The torque without the weight that the controller holds by itself."""

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
    """Torques in steps of so many standard deviations."""
    return of_torque(lambda x: np.round(x / (step * np.std(x))) * step * np.std(x), joint)


def spring(stiffness: float, joint: int) -> Change:
    """A counterbalance that the description does not know: `stiffness` standard deviations per rad."""
    return lambda log: of_torque(
        lambda x: x - stiffness * np.std(x) * np.sin(2.0 * (log.q[:, joint] - log.q[0, joint])), joint
    )(log)


def coupled(positions: bool) -> Change:
    """The last two joints are a coupled wrist that nobody undid: motor 6 turns with joints 5 and 6."""

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


def planted(base: Base) -> Iterator[Planted]:
    """All faults: each log fault in the fit's log, in the judging one and in both; then those of whole cases."""
    sound = base.case
    for name, change in log_changes(sound.robot):
        fit, judge = tuple(map(change, sound.fit)), tuple(map(change, sound.judge))
        yield Planted(name, "fit", Case(sound.robot, fit, sound.judge))
        yield Planted(name, "both", Case(sound.robot, fit, judge))
        yield Planted(name, "validation", Case(sound.robot, sound.fit, judge))
    yield from _of_cases(base)


def _of_cases(base: Base) -> Iterator[Planted]:
    sound, down = base.case, np.asarray(base.case.robot.gravity)

    def mounted(gravity: Array) -> Case:
        return Case(sound.robot.with_gravity(tuple(gravity)), sound.fit, sound.judge)

    for angle in (10, 15, 25, 90):
        for k, axis in enumerate("xy"):
            yield Planted(f"gravity tilted by {angle}° about {axis}", "robot",
                          mounted(rotation_about(np.eye(3)[k], np.deg2rad(angle)) @ down))  # fmt: skip
    yield Planted("gravity forgotten", "robot", mounted(0.0 * down))
    yield Planted("gravity upside down", "robot", mounted(-down))
    (fit,), (judge,) = sound.fit, sound.judge
    yield Planted("a load that nobody described", "fit", replace(sound, fit=(base.loaded,)))
    yield Planted("a load that nobody described", "validation", replace(sound, judge=(base.loaded,)))
    yield Planted("one log of two carries a load", "fit", replace(sound, fit=(fit, base.loaded)))
    yield Planted("log of another robot", "fit", replace(sound, fit=(base.foreign,)))
    yield Planted(
        "log of another robot", "both", replace(sound, fit=(base.foreign,), judge=(thinned(2)(base.foreign),))
    )
    yield Planted("log of another robot", "validation", replace(sound, judge=(base.foreign,)))
    yield Planted("one log of two is of another robot", "fit", replace(sound, fit=(fit, base.foreign)))
    for name, copy in (
        ("judged by its own log", fit),
        ("judged by a copy of its own log", replace(fit, meta={"source": "other.csv"})),
        ("judged by its own log, shaken", shaken(fit)),
        ("judged by its own log, every second row", thinned(2)(fit)),
        ("judged by a piece of its own log", _piece(fit, 0.3, 0.8)),
    ):
        yield Planted(name, "validation", replace(sound, judge=(copy,)), known=True)
    yield Planted("judged by its own log and another", "validation", replace(sound, judge=(judge, fit)), known=True)


def _piece(log: Log, first: float, last: float) -> Log:
    rows = slice(int(first * len(log)), int(last * len(log)))
    signals = {n: x[rows] for n, x in log.signals.items() if x is not None}
    return replace(log, t=log.t[rows], segments=(), **signals)


# What a fault did.


@dataclass(frozen=True)
class Told:
    """What came of a planted fault: how far it moved a parameter (stated errors), how much worse the torque of a sound
    log of another motion is predicted (1: as before), and what was said. A refusal has the grade "refused"."""

    name: str
    where: str
    moved: float
    worse: float
    grade: str
    reason: str
    known: bool = False

    @property
    def harmful(self) -> bool:
        return self.moved > MOVED and self.worse > WORSE

    @property
    def missed(self) -> bool:
        """Whether the model is called good though it must not be."""
        return self.grade == "good" and (self.harmful or self.known)


class Bench:
    """A base, the model that its sound logs give, and what every fault makes of it."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.sound = identify(base.case.robot, base.case.fit, base.case.judge)
        self._error = self._error_of(self.sound)

    def _error_of(self, found: Identification) -> float:
        """Error of the witness' torque, mean over joints, % of its standard deviation, with its true mounting."""
        model = Model(self.base.case.robot, found.model.terms, found.model.theta)
        cutoff = self.sound.cutoff if hasattr(self, "sound") else found.cutoff
        return score(model, self.base.witness, Preparation(), cutoff, cutoff).mean_nrmse_percent

    def tell(self, fault: Planted) -> Told:
        try:
            found = identify(fault.case.robot, fault.case.fit, fault.case.judge)
        except SteelyardError as error:
            return Told(fault.name, fault.where, 0.0, 1.0, "refused", str(error), fault.known)
        said = found.verdict
        reason = "; ".join(said.reasons[:3])
        return Told(fault.name, fault.where, self._moved(found), self._error_of(found) / self._error, said.grade,
                    reason, fault.known)  # fmt: skip

    def _moved(self, found: Identification) -> float:
        """The farthest that a base parameter went, in standard errors as stated."""
        theirs = dict(
            zip(found.base.names, zip(found.estimate.beta, found.estimate.standard_errors, strict=True), strict=True)
        )
        out = 0.0
        for name, value in zip(self.sound.base.names, self.sound.estimate.beta, strict=True):
            if name in theirs:
                other, error = theirs[name]
                out = max(out, abs(other - value) / error) if 0.0 < error < np.inf else out
        return float(out)


# Sound logs: of a UR10e where they are at hand, and of simulated arms.


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
    """What a logger writes while `truth` follows harmonics: fine encoders, noise of `noisy` standard deviations."""
    rng = np.random.default_rng(1000 + seed)
    t = np.arange(int(duration * rate)) / rate
    q, dq, ddq = harmonics(robot, seed, duration)(t)
    tau = truth.torque(q, dq, ddq)
    tau = tau + noisy * np.std(tau, axis=0) * rng.normal(size=tau.shape)
    step = 2e-5
    measured = dq + 2e-3 * rng.normal(size=dq.shape) if velocity else None
    return Log(robot.joint_names, t, np.round(q / step) * step, dq=measured, tau=tau)


def truth_of(robot: Robot, seed: int) -> Model:
    """A model of a robot like the described one, with rotors and friction of its own."""
    from steelyard.parameters.terms import terms

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
