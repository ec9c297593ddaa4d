"""The delay between torque and motion: the shift at which the motion explains the torque best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from steelyard.check._channels import STILL
from steelyard.check._description import drive_columns
from steelyard.check._evidence import Evidence, Fit, basis
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.regression.torque_between import choose_between, delay_of
from steelyard.robot.robot import Joint, Robot
from steelyard.signals.between import lag_s
from steelyard.signals.filters import derivative
from steelyard.signals.log import Finding, Log, Severity
from steelyard.signals.prepare import Motion

# By how many samples one signal lags another.


def best_shift(a: Array, b: Array, most: int) -> tuple[float, float]:
    """The lag of `b` behind `a`, in samples, where they have most in common, and the share r² they then have.

    Signs do not matter. The lag is refined between samples by a parabola through r².
    """
    most = min(most, len(a) // 4)
    x, y = a - a.mean(), b - b.mean()
    size = 1 << (len(x) + most).bit_length()
    product = np.fft.irfft(np.conj(np.fft.rfft(x, size)) * np.fft.rfft(y, size), size)
    lags = np.arange(-most, most + 1)
    before, after = np.cumsum(x * x), np.cumsum(y * y)
    common = np.array([_energy(before, after, int(s)) for s in lags])
    share = np.where(common > 0.0, product[lags] ** 2 / np.maximum(common, 1e-300), 0.0)
    best = int(np.argmax(share))
    return float(lags[best]) + vertex(share, best), float(min(share[best], 1.0))


def vertex(values: Array, place: int) -> float:
    """Where, relative to `place`, the parabola through it and its neighbours has its extreme; 0 at the ends."""
    if not 0 < place < len(values) - 1:
        return 0.0
    left, middle, right = values[place - 1 : place + 2]
    bend = left - 2.0 * middle + right
    return float(np.clip(0.5 * (left - right) / bend, -0.5, 0.5)) if bend != 0.0 else 0.0


def _energy(before: Array, after: Array, shift: int) -> float:
    """Σa² Σb² over the samples that overlap when b is taken `shift` later."""
    n = len(before)
    if shift >= 0:
        return float(before[n - shift - 1] * (after[-1] - (after[shift - 1] if shift else 0.0)))
    return float((before[-1] - before[-shift - 1]) * after[n + shift - 1])


LONGEST_DELAY = 0.1  # s
STEPS = 40  # shifts that are tried either way
MOST_ROWS = 2000
# A shift counts if it leaves less than this part of what was left without it, for one joint on its own if it leaves
# CLEARLY less, and if it is longer than half a period and a millisecond.
BETTER, CLEARLY, SHORTEST = 0.75, 0.3, 1e-3
LONG = 0.045  # s; gears and lubricant of one joint alone lagged by up to 37 ms in sound logs
# Beyond this the torque explains nothing, and a shift of it neither.
LEFT = 0.3
# Friction follows a reversal late by itself (gears wind up, lubricant builds up); a torque that is friction for more
# than this part of its standard deviation is late only if that is CLEARLY so, by a LONG time, and explains it BETTER
# than whatever friction the fit found, which may remember.
MOSTLY_FRICTION = 0.5


def check_delay(seen: Evidence, friction: Mapping[int, float], fits: Mapping[int, Fit]) -> Iterator[Finding]:
    """One entry for the log if the joints agree, else one for each joint that is out of step.

    `friction` is, by joint, its share of the torque in `fits`. The terms of the fits may follow a torque that is late,
    or remember; a delay is looked for beside friction without memory.
    """
    motion = max(seen.motions, key=lambda m: len(m.t))
    period = motion.filter.period
    offsets = np.linspace(-LONGEST_DELAY, LONGEST_DELAY, 2 * STEPS + 1)
    torques = [m.filter(m.tau, _some(m)) for m in seen.motions]
    found = {j: d for j in seen.joints if (d := _delay(seen, j, offsets, torques)) is not None}
    out = {j: lag for j, (lag, part, _) in found.items() if part < BETTER and abs(lag) > max(SHORTEST, 0.5 * period)}

    def no_friction(j: int) -> bool:
        lag, part, left = found[j]
        return part < CLEARLY and abs(lag) > LONG and left < BETTER * fits[j].left

    late = {j: lag for j, lag in out.items() if friction.get(j, 0.0) < MOSTLY_FRICTION or no_friction(j)}
    if not late:
        yield from _short_delay(seen, period)
        return
    middle = float(np.median(list(late.values())))
    tolerance = max(2.0 * period, 0.3 * abs(middle))
    # Joints with much friction accuse nobody, but they may bear witness that all are late together.
    alike = sum(abs(lag - middle) < tolerance for lag in out.values())
    if len(found) > 1 and 2 * alike > len(found):
        estimate = delay_of(seen.base, seen.motions, middle)
        if estimate is None or abs(estimate.delay_s - middle) > tolerance:
            yield _entry("The torques are", middle, "warning", None)
        else:
            yield _measured(estimate.delay_s, estimate.error_s, "warning")
        return
    for j, lag in late.items():
        name = seen.robot.joints[j].name
        # A joint on its own may also have friction, or a spring, of another kind than the terms can describe; a torque
        # that seems to come before its motion is sooner that.
        severity: Severity = "warning" if found[j][1] < CLEARLY or lag > LONG else "note"
        yield _entry(f"The torque of '{name}' is", lag, severity, name)


# A short delay counts beyond so many standard errors, and beyond so many seconds.
CERTAIN, LEAST_DELAY = 4.0, 1e-4


def _short_delay(seen: Evidence, period: float) -> Iterator[Finding]:
    """Delays too short to be seen in a comparison of shifts, which a fit still tells; and torque between samples."""
    estimate = delay_of(seen.base, seen.motions)
    if estimate is None:
        return
    rest, least = estimate.delay_s, LEAST_DELAY
    if not seen.motions[0].between:
        choice = choose_between(estimate, period)
        rest -= lag_s(choice.name, period)
        if choice.name in ("held", "averaged"):
            advice = f"Nothing, or state it: --torque-between {choice.name}."
            yield Finding("torque_between", "note", choice.text, advice)
            # Half a sample is exact to first order in the sampling interval alone.
            least = max(least, 0.1 * period)
    if abs(rest) > max(CERTAIN * estimate.error_s, least):
        yield _measured(rest, estimate.error_s, "note")


def _measured(delay: float, error: float, severity: Severity) -> Finding:
    """The entry of a delay that all joints share, with its standard error [s]."""
    word = "behind" if delay > 0.0 else "ahead of"
    message = f"The torques are {1e3 * abs(delay):.2f} ms {word} the motion (± {1e3 * error:.2f} ms)."
    advice = f"Use --delay {delay:.5f}, or log torque and position with the stamps of one clock."
    return Finding("delay", severity, message, advice)


def _entry(what: str, delay: float, severity: Severity, joint: str | None) -> Finding:
    word = "behind" if delay > 0.0 else "ahead of"
    advice = "Log torque and position with the stamps of one clock, at the same place of the control loop."
    return Finding("delay", severity, f"{what} {1e3 * abs(delay):.1f} ms {word} the motion.", advice, joint)


def _delay(seen: Evidence, joint: int, offsets: Array, torques: Sequence[Array]) -> tuple[float, float, float] | None:
    """The torque's lag, s, what it leaves of what was left without it, and of the torque's variance.

    None where no shift explains the torque. `torques` are those of every motion through its filter, at the samples of
    `_some`.
    """
    e = seen.joints.index(joint)
    plain = _without_memory(seen, e)
    slow = SMOOTHING_SPEED[seen.robot.joints[joint].kind]
    first = 0
    left = np.zeros(len(offsets))
    total = 0.0
    for motion, smoothed in zip(seen.motions, torques, strict=True):
        count = motion.rows
        rows = slice(first, first + count)
        first += count
        kept = motion.t[motion.keep]
        inside = (kept > motion.t[0] + LONGEST_DELAY) & (kept < motion.t[-1] - LONGEST_DELAY)
        step = max(1, int(inside.sum()) // MOST_ROWS)
        A, times = seen.A[e][rows][:, plain][inside][::step], kept[inside][::step]
        if not all(plain):
            drive = drive_columns(motion.dq[:, joint], motion.ddq[:, joint], slow)
            some = range(*motion.keep.indices(len(motion.t)))[int(np.argmax(inside)) :: step]
            A = np.column_stack([A, motion.filter(drive, slice(some.start, some.stop, some.step))[: len(A)]])
        if len(A) < 3 * A.shape[1]:
            continue
        Q = basis(A)
        smooth = smoothed[:, joint]
        period = motion.filter.period * _some(motion).step
        y = _at(smooth, (times[:, None] + offsets - motion.t[0]) / period)
        left += np.sum((y - Q @ (Q.T @ y)) ** 2, axis=0)
        total += float(np.var(smooth)) * len(times)
    best = int(np.argmin(left))
    if total == 0.0 or left[best] > LEFT * total:
        return None
    lag = offsets[best] + vertex(left, best) * (offsets[1] - offsets[0])
    inside_range = 0 < best < len(offsets) - 1
    part = float(left[best] / left[len(offsets) // 2]) if inside_range else 1.0
    return float(lag), part, float(left[best]) / total


def _without_memory(seen: Evidence, equation: int) -> list[bool]:
    """For each column of an equation, whether it goes by the state alone."""
    links = seen.robot.inertial_count
    of_state = seen.base.terms.per_parameter(lambda term, _: not term.history)
    places = (seen.base.independent[int(c)] - links for c in seen.columns[equation])
    return [p < 0 or of_state[p] for p in places]


def _at(signal: Array, places: Array) -> Array:
    """A signal between its samples, linearly; on a uniform clock nothing need be searched for."""
    before = np.clip(places.astype(np.int64), 0, len(signal) - 2)
    share = places - before
    return np.asarray((1.0 - share) * signal[before] + share * signal[before + 1])


# Is the measured velocity the derivative of the measured position?


DEGREES = 180.0 / np.pi
# A slope further from 1 than this is another unit, another gear or another sign, not noise.
FACTOR = 0.1
# Less of the derivative's variance than this in common: the two are not the same joint's.
ALIKE = 0.8
LONGEST_VELOCITY_DELAY = 0.5  # s, of a delay that is looked for
# A delay that makes the velocity differ by less than this part of it does no harm; `prepare` allows as much.
HARMLESS = 0.1
ALL_ALIKE = 0.03  # of a factor that all joints share


def check_velocity(robot: Robot, motions: Sequence[Motion], log: Log) -> Iterator[Finding]:
    """Sign, factor, delay and likeness, joint by joint, on the longest of the `motions` of a `log`."""
    if log.dq is None or not motions:
        yield Finding("velocity", "ok", "There is no measured velocity; it is made from the positions.")
        return
    longest = max(motions, key=lambda m: len(m.t))
    logged = np.column_stack([np.interp(longest.t, log.t, column) for column in log.dq.T])
    # Both go through the filter, which leaves no more to see than this many samples show.
    inner = _some(longest, longest.keep.start, longest.keep.stop)
    period = longest.filter.period * inner.step
    made = longest.filter(derivative(longest.q, longest.filter.period), inner)
    low = longest.filter(logged, inner)
    lags: dict[str, tuple[float, float]] = {}
    moving = [k for k, j in enumerate(robot.joints) if np.ptp(longest.q[:, k]) > STILL[j.kind]]
    found = [
        _joint(robot.joints[k], made[:, k], low[:, k], period, lags)
        for k in moving if np.ptp(logged[:, k]) > 0.0
    ]  # fmt: skip
    yield from _factors(found)
    yield from (e for _, entries in found for e in entries)
    yield from _delays(lags)


def _some(motion: Motion, start: int = 0, stop: int | None = None) -> slice:
    """Samples of a filtered signal that hold it: forty in a period of the cut-off."""
    return slice(start, stop, max(1, int(1.0 / (40.0 * motion.filter.cutoff_hz * motion.filter.period))))


def _factors(found: list[tuple[float, list[Finding]]]) -> Iterator[Finding]:
    """One entry in place of those of the joints where all of them are wrong by one and the same factor: the clock."""
    slopes = [slope for slope, _ in found]
    kinds = {e.kind for _, entries in found for e in entries}
    if len(slopes) < 2 or kinds != {"velocity_factor"} or np.ptp(slopes) > ALL_ALIKE * abs(float(np.median(slopes))):
        return
    for _, entries in found:
        entries.clear()
    factor = float(np.median(slopes))
    message = (
        f"All velocities are {factor:.4g} times the derivative of the positions: the clock is wrong, or their unit."
    )
    advice = "Check the unit of the time and the sampling rate (units.time, or time = {rate = …}), then units.velocity."
    yield Finding("clock", "problem", message, advice, fix={"time.factor": 1.0 / factor})


def _joint(
    joint: Joint, made: Array, logged: Array, period: float, lags: dict[str, tuple[float, float]]
) -> tuple[float, list[Finding]]:
    """The factor, and what is wrong; the delay (s), and how much it makes the two differ, go into `lags`."""
    shift, common = best_shift(made, logged, int(LONGEST_VELOCITY_DELAY / period))
    a, b = _aligned(made, logged, round(shift))
    slope = float(a @ b / (a @ a))
    # A speed that hardly varies has only its mean to be recognised by.
    common = max(common, slope * float(a @ b / (b @ b)))
    name = joint.name
    if common < ALIKE:
        message = f"The velocity of '{name}' is not the derivative of its position: {100 * common:.0f} % in common."
        advice = f"Check which column is the velocity of '{name}', or leave the velocity out (velocity = [])."
        return slope, [Finding("velocity_unlike", "warning", message, advice, name, fix={"velocity": False})]
    if abs(shift) > 1.5 and abs(shift) * period > 2e-3:
        lags[name] = shift * period, float(np.std(logged / slope - made) / np.std(made))
    return slope, [_wrong_factor(name, slope)] if abs(slope - 1.0) > FACTOR else []


def _delays(lags: dict[str, tuple[float, float]]) -> Iterator[Finding]:
    """One entry for those that do harm, one for those that do not."""
    groups: tuple[tuple[Severity, list[str]], ...] = (
        ("warning", [name for name, (_, harm) in lags.items() if harm > HARMLESS]),
        ("note", [name for name, (_, harm) in lags.items() if harm <= HARMLESS]),
    )
    for severity, names in groups:
        if not names:
            continue
        times = [1e3 * lags[name][0] for name in names]
        word = "behind" if np.median(times) > 0.0 else "ahead of"
        span = f"{min(map(abs, times)):.1f}"
        if len(names) > 1:
            span += f" to {max(map(abs, times)):.1f}"
        message = f"The velocity is {span} ms {word} the position of {', '.join(names)}."
        advice = "Leave the velocity out (velocity = []): made from the positions it has no delay."
        whose = names[0] if len(names) == 1 else None
        yield Finding("velocity_delay", severity, message, advice, whose, fix={"velocity": False})


def _wrong_factor(name: str, slope: float) -> Finding:
    seen = f"The velocity of '{name}' is {slope:.4g} times the derivative of its position"
    if abs(abs(slope) / DEGREES - 1.0) < FACTOR:
        advice = 'State units.velocity = "deg/s" in the mapping.'
        return Finding("velocity_degrees", "problem", f"{seen}: it looks like degrees per second.", advice, name,
                       fix={"units.velocity": "deg/s"})  # fmt: skip
    if abs(abs(slope) * DEGREES - 1.0) < FACTOR:
        advice = 'State units.position = "deg" in the mapping.'
        return Finding("degrees", "problem", f"{seen}: the position looks like degrees.", advice, name,
                       fix={"units.position": "deg"})  # fmt: skip
    if abs(slope + 1.0) < FACTOR:
        advice = f"Turn the sign of the velocity (or of the position) of '{name}' with sign in the mapping."
        return Finding("velocity_sign", "problem", f"{seen}: its sign is wrong.", advice, name,
                       fix={"sign.velocity": {name: -1.0}})  # fmt: skip
    advice = f"Check unit, gear ratio and side (motor or joint) of position and velocity of '{name}'."
    return Finding("velocity_factor", "warning", f"{seen}.", advice, name)


def _aligned(a: Array, b: Array, shift: int) -> tuple[Array, Array]:
    """a and b, b taken `shift` samples later."""
    if shift >= 0:
        return a[: len(a) - shift], b[shift:]
    return a[-shift:], b[: len(b) + shift]
