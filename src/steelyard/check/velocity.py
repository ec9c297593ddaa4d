"""Is the measured velocity the derivative of the measured position?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from steelyard.check.channels import STILL
from steelyard.check.entry import Entry, Severity
from steelyard.check.shift import best_shift
from steelyard.robot.robot import Joint, Robot
from steelyard.robot.spatial import Array
from steelyard.signals.filters import derivative
from steelyard.signals.prepare import Motion

DEGREES = 180.0 / np.pi
# A slope further from 1 than this is another unit, another gear or another sign, not noise.
FACTOR = 0.1
# Less of the derivative's variance than this in common: the two are not the same joint's.
ALIKE = 0.8
LONGEST = 0.5  # s, of a delay that is looked for
# A delay that makes the velocity differ by less than this part of it does no harm; `prepare` allows as much.
HARMLESS = 0.1


def check_velocity(
    robot: Robot, motions: Sequence[Motion], measured: Sequence[Array | None]
) -> Iterator[Entry]:  # fmt: skip
    """Sign, factor, delay and likeness, joint by joint; `measured` are the velocities of each motion as logged."""
    pairs = [(m, v) for m, v in zip(motions, measured, strict=True) if v is not None]
    if not pairs:
        yield Entry("velocity", "ok", "There is no measured velocity; it is made from the positions.")
        return
    longest, logged = max(pairs, key=lambda p: len(p[0].t))
    period = longest.filter.period
    made = longest.filter(derivative(longest.q, period))
    low = longest.filter(logged)
    inner = slice(longest.keep.start, longest.keep.stop)
    lags: dict[str, tuple[float, float]] = {}
    for k, joint in enumerate(robot.joints):
        if np.ptp(longest.q[:, k]) > STILL[joint.kind] and np.ptp(logged[:, k]) > 0.0:
            yield from _joint(joint, made[inner, k], low[inner, k], period, lags)
    yield from _delays(lags)


def _joint(
    joint: Joint, made: Array, logged: Array, period: float, lags: dict[str, tuple[float, float]]
) -> Iterator[Entry]:
    """Likeness and factor; the delay (s), and how much it makes the two differ, go into `lags`."""
    shift, common = best_shift(made, logged, int(LONGEST / period))
    a, b = _aligned(made, logged, round(shift))
    slope = float(a @ b / (a @ a))
    # A speed that hardly varies has only its mean to be recognised by.
    common = max(common, slope * float(a @ b / (b @ b)))
    name = joint.name
    if common < ALIKE:
        message = f"The velocity of '{name}' is not the derivative of its position: {100 * common:.0f} % in common."
        advice = f"Check which column is the velocity of '{name}', or leave the velocity out (velocity = [])."
        yield Entry("velocity_unlike", "warning", message, advice, name)
        return
    if abs(slope - 1.0) > FACTOR:
        yield _wrong_factor(name, slope)
    if abs(shift) > 1.5 and abs(shift) * period > 2e-3:
        lags[name] = shift * period, float(np.std(logged / slope - made) / np.std(made))


def _delays(lags: dict[str, tuple[float, float]]) -> Iterator[Entry]:
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
        yield Entry("velocity_delay", severity, message, advice, names[0] if len(names) == 1 else None)


def _wrong_factor(name: str, slope: float) -> Entry:
    seen = f"The velocity of '{name}' is {slope:.4g} times the derivative of its position"
    if abs(abs(slope) / DEGREES - 1.0) < FACTOR:
        advice = 'State units.velocity = "deg/s" in the mapping.'
        return Entry("velocity_degrees", "problem", f"{seen}: it looks like degrees per second.", advice, name)
    if abs(abs(slope) * DEGREES - 1.0) < FACTOR:
        advice = 'State units.position = "deg" in the mapping.'
        return Entry("degrees", "problem", f"{seen}: the position looks like degrees.", advice, name)
    if abs(slope + 1.0) < FACTOR:
        advice = f"Turn the sign of the velocity (or of the position) of '{name}' with sign in the mapping."
        return Entry("velocity_sign", "problem", f"{seen}: its sign is wrong.", advice, name)
    advice = f"Check unit, gear ratio and side (motor or joint) of position and velocity of '{name}'."
    return Entry("velocity_factor", "warning", f"{seen}.", advice, name)


def _aligned(a: Array, b: Array, shift: int) -> tuple[Array, Array]:
    """a and b, b taken `shift` samples later."""
    if shift >= 0:
        return a[: len(a) - shift], b[shift:]
    return a[-shift:], b[: len(b) + shift]
