"""Check the delay between torque and motion, and whether a velocity is the derivative of its position."""

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


def best_shift(a: Array, b: Array, most: int) -> tuple[float, float]:
    """Find the lag of one signal behind another at which they correlate best; return lag [samples] and r².

    Signs do not matter. A parabola through r² refines the lag between samples.

    Args:
        a: Signal.
        b: Signal that lags.
        most: Longest lag [samples].
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
    """Find the extreme of the parabola through a value and its neighbours, relative to it; 0 at the ends.

    Args:
        values: Values.
        place: Index of the middle value.
    """
    if not 0 < place < len(values) - 1:
        return 0.0
    left, middle, right = values[place - 1 : place + 2]
    bend = left - 2.0 * middle + right
    return float(np.clip(0.5 * (left - right) / bend, -0.5, 0.5)) if bend != 0.0 else 0.0


def _energy(before: Array, after: Array, shift: int) -> float:
    """Compute Σa² Σb² over the overlapping samples if b is shifted by `shift`."""
    n = len(before)
    if shift >= 0:
        return float(before[n - shift - 1] * (after[-1] - (after[shift - 1] if shift else 0.0)))
    return float((before[-1] - before[-shift - 1]) * after[n + shift - 1])


LONGEST_DELAY = 0.1  # s
STEPS = 40  # shifts to try either way
MOST_ROWS = 2000
# A shift counts if it reduces the residual squares to less than BETTER (for a single joint: to less than CLEARLY), and
# if it is longer than half a period and a millisecond.
BETTER, CLEARLY, SHORTEST = 0.75, 0.3, 1e-3
LONG = 0.045  # s; in sound logs gears and lubricant of single joints lagged by up to 37 ms
# Above this share of residual squares the fit explains too little for a delay.
LEFT = 0.3
# Friction itself lags a reversal (gears wind up, lubricant builds up). A torque with more than this part of friction is
# delayed only if a LONG delay CLEARLY reduces the residual, and explains it BETTER than the friction of the fit.
MOSTLY_FRICTION = 0.5


def check_delay(evidence: Evidence, friction: Mapping[int, float], fits: Mapping[int, Fit]) -> Iterator[Finding]:
    """Report a delay of the torques: one entry if the joints agree, else one for each delayed joint.

    Terms with memory could imitate a delay, so the delay is estimated with friction without memory.

    Args:
        evidence: Prepared rows of the log.
        friction: Share of friction in the torque, by joint number.
        fits: Fit of every joint's torque alone, by joint number.
    """
    motion = max(evidence.motions, key=lambda m: len(m.t))
    period = motion.filter.period
    offsets = np.linspace(-LONGEST_DELAY, LONGEST_DELAY, 2 * STEPS + 1)
    torques = [m.filter(m.tau, _some(m)) for m in evidence.motions]
    found = {j: d for j in evidence.joints if (d := _delay(evidence, j, offsets, torques)) is not None}
    out = {j: lag for j, (lag, part, _) in found.items() if part < BETTER and abs(lag) > max(SHORTEST, 0.5 * period)}

    def no_friction(j: int) -> bool:
        lag, part, left = found[j]
        return part < CLEARLY and abs(lag) > LONG and left < BETTER * fits[j].left

    late = {j: lag for j, lag in out.items() if friction.get(j, 0.0) < MOSTLY_FRICTION or no_friction(j)}
    if not late:
        yield from _short_delay(evidence, period)
        return
    middle = float(np.median(list(late.values())))
    tolerance = max(2.0 * period, 0.3 * abs(middle))
    # Joints with much friction do not prove a delay alone, but they can confirm a common one.
    alike = sum(abs(lag - middle) < tolerance for lag in out.values())
    if len(found) > 1 and 2 * alike > len(found):
        estimate = delay_of(evidence.base, evidence.motions, middle)
        if estimate is None or abs(estimate.delay_s - middle) > tolerance:
            yield _entry("The torques are", middle, "warning", None)
        else:
            yield _measured(estimate.delay_s, estimate.error_s, "warning")
        return
    for j, lag in late.items():
        name = evidence.robot.joints[j].name
        # A single joint may have friction or a spring that the terms do not describe, which is more likely if its
        # torque seems to precede its motion.
        severity: Severity = "warning" if found[j][1] < CLEARLY or lag > LONG else "note"
        yield _entry(f"The torque of '{name}' is", lag, severity, name)


# Least size of a short delay, in standard errors and in seconds.
CERTAIN, LEAST_DELAY = 4.0, 1e-4


def _short_delay(evidence: Evidence, period: float) -> Iterator[Finding]:
    """Report delays that are too short for shifts but visible to a fit, and the torque between samples."""
    estimate = delay_of(evidence.base, evidence.motions)
    if estimate is None:
        return
    rest, least = estimate.delay_s, LEAST_DELAY
    if not evidence.motions[0].between:
        choice = choose_between(estimate, period)
        rest -= lag_s(choice.name, period)
        if choice.name in ("held", "averaged"):
            advice = f"Nothing to do. To state it: --torque-between {choice.name}."
            yield Finding("torque_between", "note", choice.text, advice)
            # Half a sample is exact only to first order in the sampling interval.
            least = max(least, 0.1 * period)
    if abs(rest) > max(CERTAIN * estimate.error_s, least):
        yield _measured(rest, estimate.error_s, "note")


def _measured(delay: float, error: float, severity: Severity) -> Finding:
    """Report a delay that all joints share, with its standard error [s]."""
    word = "behind" if delay > 0.0 else "ahead of"
    message = f"The torques are {1e3 * abs(delay):.2f} ms {word} the motion (± {1e3 * error:.2f} ms)."
    advice = f"Use --delay {delay:.5f}, or log torque and position with the same clock."
    return Finding("delay", severity, message, advice)


def _entry(what: str, delay: float, severity: Severity, joint: str | None) -> Finding:
    word = "behind" if delay > 0.0 else "ahead of"
    advice = "Log torque and position with the same clock, at the same place in the control loop."
    return Finding("delay", severity, f"{what} {1e3 * abs(delay):.1f} ms {word} the motion.", advice, joint)


def _delay(
    evidence: Evidence, joint: int, offsets: Array, torques: Sequence[Array]
) -> tuple[float, float, float] | None:
    """Estimate a joint's torque delay: lag [s], residual squares relative to those without it, and to the variance.

    None if no shift explains the torque. `torques` are the filtered torques of every motion, at the samples of `_some`.
    """
    e = evidence.joints.index(joint)
    plain = _without_memory(evidence, e)
    slow = SMOOTHING_SPEED[evidence.robot.joints[joint].kind]
    first = 0
    left = np.zeros(len(offsets))
    total = 0.0
    for motion, smoothed in zip(evidence.motions, torques, strict=True):
        count = motion.rows
        rows = slice(first, first + count)
        first += count
        kept = motion.t[motion.keep]
        inside = (kept > motion.t[0] + LONGEST_DELAY) & (kept < motion.t[-1] - LONGEST_DELAY)
        step = max(1, int(inside.sum()) // MOST_ROWS)
        A, times = evidence.A[e][rows][:, plain][inside][::step], kept[inside][::step]
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


def _without_memory(evidence: Evidence, equation: int) -> list[bool]:
    """For each column of an equation, whether it depends on the state alone."""
    links = evidence.robot.inertial_count
    of_state = evidence.base.terms.per_parameter(lambda term, _: not term.history)
    places = (evidence.base.independent[int(c)] - links for c in evidence.columns[equation])
    return [p < 0 or of_state[p] for p in places]


def _at(signal: Array, places: Array) -> Array:
    """Interpolate a uniformly sampled signal linearly."""
    before = np.clip(places.astype(np.int64), 0, len(signal) - 2)
    share = places - before
    return np.asarray((1.0 - share) * signal[before] + share * signal[before + 1])


DEGREES = 180.0 / np.pi
# A slope farther from 1 than this means another unit, gear ratio or sign.
FACTOR = 0.1
# Below this r² the velocity and the derivative of the position belong to different joints.
ALIKE = 0.8
LONGEST_VELOCITY_DELAY = 0.5  # s
# Relative error of the velocity up to which a delay does no harm; `prepare` allows as much.
HARMLESS = 0.1
ALL_ALIKE = 0.03  # relative range of a factor that all joints share


def check_velocity(robot: Robot, motions: Sequence[Motion], log: Log) -> Iterator[Finding]:
    """Check sign, factor, delay and likeness of every joint's velocity in the longest motion.

    Args:
        robot: Robot of the log.
        motions: Prepared motions of the log.
        log: Log to check.
    """
    if log.dq is None or not motions:
        yield Finding("velocity", "ok", "There is no measured velocity; it is computed from the positions.")
        return
    longest = max(motions, key=lambda m: len(m.t))
    logged = np.column_stack([np.interp(longest.t, log.t, column) for column in log.dq.T])
    # Both are filtered, so these samples contain everything that is left of the signals.
    inner = _some(longest, longest.keep.start, longest.keep.stop)
    period = longest.filter.period * inner.step
    derived = longest.filter(derivative(longest.q, longest.filter.period), inner)
    low = longest.filter(logged, inner)
    lags: dict[str, tuple[float, float]] = {}
    moving = [k for k, j in enumerate(robot.joints) if np.ptp(longest.q[:, k]) > STILL[j.kind]]
    factors = [
        _joint(robot.joints[k], derived[:, k], low[:, k], period, lags)
        for k in moving if np.ptp(logged[:, k]) > 0.0
    ]  # fmt: skip
    yield from _factors(factors)
    yield from (e for _, entries in factors for e in entries)
    yield from _delays(lags)


def _some(motion: Motion, start: int = 0, stop: int | None = None) -> slice:
    """Return samples that represent a filtered signal: forty per period of the cut-off."""
    return slice(start, stop, max(1, int(1.0 / (40.0 * motion.filter.cutoff_hz * motion.filter.period))))


def _factors(factors: list[tuple[float, list[Finding]]]) -> Iterator[Finding]:
    """One entry in place of those of the joints where all of them are wrong by one and the same factor: the clock."""
    slopes = [slope for slope, _ in factors]
    kinds = {e.kind for _, entries in factors for e in entries}
    if len(slopes) < 2 or kinds != {"velocity_factor"} or np.ptp(slopes) > ALL_ALIKE * abs(float(np.median(slopes))):
        return
    for _, entries in factors:
        entries.clear()
    factor = float(np.median(slopes))
    message = (
        f"All velocities are {factor:.4g} times the derivative of the positions: the clock is wrong, or their unit."
    )
    advice = "Check the unit of the time and the sampling rate (units.time, or time = {rate = …}), then units.velocity."
    yield Finding("clock", "problem", message, advice, fix={"time.factor": 1.0 / factor})


def _joint(
    joint: Joint, derivative: Array, logged: Array, period: float, lags: dict[str, tuple[float, float]]
) -> tuple[float, list[Finding]]:
    """Return the factor and the findings; add the delay [s] and the relative difference it causes to `lags`."""
    shift, common = best_shift(derivative, logged, int(LONGEST_VELOCITY_DELAY / period))
    a, b = _aligned(derivative, logged, round(shift))
    slope = float(a @ b / (a @ a))
    # A nearly constant speed is recognised by its mean.
    common = max(common, slope * float(a @ b / (b @ b)))
    name = joint.name
    if common < ALIKE:
        message = f"The velocity of '{name}' is not the derivative of its position: r² is {common:.2f}."
        advice = f"Check which column is the velocity of '{name}', or leave the velocity out (velocity = [])."
        return slope, [Finding("velocity_unlike", "warning", message, advice, name, fix={"velocity": False})]
    if abs(shift) > 1.5 and abs(shift) * period > 2e-3:
        lags[name] = shift * period, float(np.std(logged / slope - derivative) / np.std(derivative))
    return slope, [_wrong_factor(name, slope)] if abs(slope - 1.0) > FACTOR else []


def _delays(lags: dict[str, tuple[float, float]]) -> Iterator[Finding]:
    """Report harmful delays in one entry, harmless ones in another."""
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
        advice = "Leave the velocity out (velocity = []): computed from the positions it has no delay."
        whose = names[0] if len(names) == 1 else None
        yield Finding("velocity_delay", severity, message, advice, whose, fix={"velocity": False})


def _wrong_factor(name: str, slope: float) -> Finding:
    measurement = f"The velocity of '{name}' is {slope:.4g} times the derivative of its position"
    if abs(abs(slope) / DEGREES - 1.0) < FACTOR:
        advice = 'State units.velocity = "deg/s" in the mapping.'
        return Finding("velocity_degrees", "problem", f"{measurement}: it looks like degrees per second.", advice, name,
                       fix={"units.velocity": "deg/s"})  # fmt: skip
    if abs(abs(slope) * DEGREES - 1.0) < FACTOR:
        advice = 'State units.position = "deg" in the mapping.'
        return Finding("degrees", "problem", f"{measurement}: the position looks like degrees.", advice, name,
                       fix={"units.position": "deg"})  # fmt: skip
    if abs(slope + 1.0) < FACTOR:
        advice = f"Turn the sign of the velocity (or of the position) of '{name}' with sign in the mapping."
        return Finding("velocity_sign", "problem", f"{measurement}: its sign is wrong.", advice, name,
                       fix={"sign.velocity": {name: -1.0}})  # fmt: skip
    advice = f"Check unit, gear ratio and side (motor or joint) of position and velocity of '{name}'."
    return Finding("velocity_factor", "warning", f"{measurement}.", advice, name)


def _aligned(a: Array, b: Array, shift: int) -> tuple[Array, Array]:
    """Return the overlap of a and b, with b shifted by `shift` samples."""
    if shift >= 0:
        return a[: len(a) - shift], b[shift:]
    return a[-shift:], b[: len(b) + shift]
