"""Find values that are not measurements: zeros, limits, echoes of the motion, and computed torques."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from steelyard.check._channels import STILL
from steelyard.check._description import States, nominal_torque
from steelyard.check._evidence import Evidence, Fit, fit
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import percent
from steelyard.robot.robot import Joint, Robot
from steelyard.signals.log import Finding, Log, Severity

# Size of the jump at both ends of a drop-out, in ordinary steps, in levels and as a part of the standard deviation.
_JUMP, _LEVELS, _FAR = 8.0, 2.5, 0.15
_FEW, _MANY = 3, 0.002  # least number of drop-outs, and their share of the log that spoils a result


def check_drop_outs(robot: Robot, log: Log) -> Iterator[Finding]:
    """Report samples that are exactly zero although their neighbours are not near zero.

    Args:
        robot: Robot of the log.
        log: Log to check.
    """
    for joint, what, x in _logged(robot, log):
        yield from _dropped(joint, what, x)


def _logged(robot: Robot, log: Log) -> Iterator[tuple[Joint, str, Array]]:
    """Yield the used torques and the positions: joint, "torque" or "position", and its samples."""
    for what, signal in (("torque", log.tau), ("position", log.q)):
        if signal is None:
            continue
        for k, joint in enumerate(robot.joints):
            if what == "position" or robot.torque_used[k]:
                yield joint, what, signal[:, k]


def _dropped(joint: Joint, what: str, x: Array) -> Iterator[Finding]:
    zero = x == 0.0
    if not np.any(zero) or np.mean(zero) > 0.5:
        return
    steps = np.abs(np.diff(x))
    inner = steps[~(zero[1:] | zero[:-1])]
    ordinary = float(np.median(inner)) if len(inner) else 0.0
    # Two levels of a coarse signal are its noise.
    level = float(np.median(np.diff(np.unique(x))))
    far = max(
        _JUMP * ordinary,
        _LEVELS * level,
        _FAR * float(np.std(x[~zero])),
        STILL[joint.kind] if what == "position" else 0.0,
    )
    # A signal that passes through zero does not come back.
    starts, ends = np.flatnonzero(zero[1:] & ~zero[:-1]), np.flatnonzero(~zero[1:] & zero[:-1]) + 1
    for first in starts:
        later = ends[np.searchsorted(ends, first, side="right") :]
        if len(later) and x[first] * x[later[0]] < 0.0:
            zero[first + 1 : later[0]] = False
    edges = zero[1:] != zero[:-1]
    jumps = int(np.sum(edges & (steps > far)))
    if jumps < 2 * _FEW or jumps < 0.5 * int(np.sum(edges)):
        return
    count = int(np.sum(zero))
    message = f"The {what} of '{joint.name}' drops to zero {jumps // 2} times, {count} samples in all."
    advice = f"Cut these parts out (window), or find out why the {what} of '{joint.name}' is lost."
    severity: Severity = "problem" if count > _MANY * len(x) else "warning"
    yield Finding("drop_out", severity, message, advice, joint.name)


# A spike lasts this many samples at most.
_SHORT = 2


def check_spikes(robot: Robot, log: Log) -> Iterator[Finding]:
    """Report single samples that lie beyond all others by as much as the whole signal varies.

    Args:
        robot: Robot of the log.
        log: Log to check.
    """
    for joint, what, x in _logged(robot, log):
        yield from _spikes(joint, what, x, log.t)


def _spikes(joint: Joint, what: str, x: Array, t: Array) -> Iterator[Finding]:
    usual = np.quantile(x, (1.0 - _TOP, _TOP))
    reach = max(float(np.ptp(usual)), STILL[joint.kind] if what == "position" else 0.0)
    far = (x > usual[1] + reach) | (x < usual[0] - reach)
    if reach == 0.0 or not far.any():
        return
    runs = np.diff(np.flatnonzero(np.diff(np.concatenate([[False], far, [False]]))))[::2]
    if runs.max() > _SHORT:
        return  # a motion, or a step
    first, unit = int(np.argmax(far)), joint.effort_unit if what == "torque" else joint.unit
    others = f", and {len(runs) - 1} more such samples" if len(runs) > 1 else ""
    message = (
        f"The {what} of '{joint.name}' is {x[first]:.4g} {unit} at t = {t[first]:.4g} s{others}; all others are "
        f"between {x[~far].min():.4g} and {x[~far].max():.4g} {unit}."
    )
    advice = "Remove these rows from the log: no robot moves there and back within a sample."
    yield Finding("spike", "problem", message, advice, joint.name, count=len(runs))


# A limit hidden by noise: ratio of samples just at the extreme to samples just below it, least visits and share.
_CROWDED, _VISITS, _SHARE = 5.0, 3, 0.02
_TOP = 0.999  # quantile taken as the extreme, so that outliers do not count
_SIDES = {"above": 1.0, "below": -1.0}
_NEAR = "stays near its extreme"
# Samples that give the noise to one percent.
_NOISE_SAMPLES = 20_000


def check_hidden_limit(robot: Robot, log: Log) -> Iterator[Finding]:
    """Report torques that return to the same extreme and stay near it, within the noise.

    Args:
        robot: Robot of the log.
        log: Log to check.
    """
    if log.tau is None:
        return
    for k, joint in enumerate(robot.joints):
        x = np.ascontiguousarray(log.tau[:, k])
        if not robot.torque_used[k] or len(x) < 500 or np.ptp(log.q[:, k]) < STILL[joint.kind]:
            continue
        if len(np.unique(x[:1024])) < 256:
            continue  # few levels: `check_channels` finds runs of one value
        words = [word for word, sign in _SIDES.items() if _hidden_limit(sign * x) is not None]
        if words:
            message = f"The torque of '{joint.name}' {_NEAR} {' and '.join(words)}: its drive saturates."
            advice = f"Move '{joint.name}' more gently so that its drive does not saturate, or cut these parts out."
            yield Finding("saturated", "warning", message, advice, joint.name)


def without_plateaus(
    findings: Sequence[Finding], log: Log, evidence: Evidence, fits: Mapping[int, Fit]
) -> list[Finding]:
    """Remove hidden limits that are plateaus of dry friction: a fit misses a limited torque more than the others.

    A limit without noise stays: its runs of one value are more than friction does.

    Args:
        findings: Findings about the channels of a log.
        log: The log.
        evidence: Its prepared rows.
        fits: Fit of every joint's torque alone, by joint number.
    """
    return [e for e in findings if _NEAR not in e.message or not _is_plateau(e, log, evidence, fits)]


def _is_plateau(finding: Finding, log: Log, evidence: Evidence, fits: Mapping[int, Fit]) -> bool:
    joint = evidence.robot.joint_index(str(finding.joint))
    if log.tau is None or joint not in fits:
        return False
    rest = fits[joint].residual
    y = evidence.y[evidence.joints.index(joint)]
    y = y[:: max(1, -(-len(y) // len(rest)))][: len(rest)]
    for word, sign in _SIDES.items():
        if word in finding.message:
            level = _hidden_limit(sign * log.tau[:, joint])
            at = np.zeros(len(y), dtype=bool) if level is None else sign * y > level
            if not at.any() or np.mean(rest[at] ** 2) > np.mean(rest**2):
                return False
    return True


def _hidden_limit(x: Array) -> float | None:
    """Return the level above which a torque crowds at its extreme; None if it does not."""
    some = np.diff(x, 2)[:: max(1, len(x) // _NOISE_SAMPLES)]
    noise = float(np.median(np.abs(some))) / 0.6745 / np.sqrt(6.0)
    extent = float(np.ptp(x))
    band = max(6.0 * noise, 0.01 * extent)
    if 4.0 * band > extent:
        return None
    top = _near_the_top(x)
    at = x > top - band
    count, wider = (int(np.count_nonzero(flags)) for flags in (at, x > top - 2.0 * band))
    if count < _SHARE * len(x) or count < _CROWDED * max(wider - count, 1):
        return None
    # A visit starts well below the limit and reaches it.
    state, visits = False, 0
    for up, low in zip(at, x < top - 3.0 * band, strict=True):
        if up and not state:
            state, visits = True, visits + 1
        elif low:
            state = False
    return top - band if visits >= _VISITS else None


def _near_the_top(x: Array) -> float:
    """Compute np.quantile(x, 0.999) in a tenth of the time: only the highest values are sorted."""
    tail = x[x >= np.quantile(x[:: max(1, len(x) // 1000)], 0.98)]
    place = _TOP * (len(x) - 1) - (len(x) - len(tail))
    return float(np.interp(place, np.arange(len(tail)), np.sort(tail))) if place >= 0.0 else float(np.quantile(x, _TOP))


# Share of rows in which a fit predicts a torque beyond its own extreme by a standard deviation of the residual, and
# mean residual (in these deviations) where the prediction is highest. The share is at most 0.7 % in sound logs of four
# real arms, and 1 to 4 % for a torque cut off at 60 or 70 % of its range.
_BEYOND, _TOO_LOW = 0.008, -1.0


def check_overshoot(evidence: Evidence, fits: Mapping[int, Fit]) -> Iterator[Finding]:
    """Report torques that stay below the values that the motion needs: a limit, with or without noise.

    Args:
        evidence: Prepared rows of the log.
        fits: Fit of every joint's torque alone, by joint number.
    """
    for joint, y in zip(evidence.joints, evidence.y, strict=True):
        rest = fits[joint].residual
        y = y[:: max(1, -(-len(y) // len(rest)))][: len(rest)]
        size = float(np.std(rest))
        if fits[joint].left > 0.06 or len(rest) < 200:
            continue
        words = []
        for word, sign in (("above", 1.0), ("below", -1.0)):
            wanted = sign * (y - rest)
            beyond = float(np.mean(wanted > float(np.max(sign * y)) + size))
            top = wanted > np.quantile(wanted, 0.97)
            if beyond > _BEYOND and float(np.mean(sign * rest[top])) < _TOO_LOW * size:
                words.append(word)
        if words:
            name = evidence.robot.joints[joint].name
            message = f"The torque of '{name}' looks cut off {' and '.join(words)}: its motion needs more."
            advice = f"Move '{name}' more gently so that its drive does not saturate, or cut these parts out."
            yield Finding("saturated", "warning", message, advice, name)


# Share of variance that a multiple of one signal leaves of an echo; of a real torque it leaves far more.
_ECHO = 2e-3
# Share of variance that the description without friction leaves of a computed torque.
_COMPUTED = 2e-3


def check_echo(evidence: Evidence) -> Iterator[Finding]:
    """Report torques that are multiples of the position or the velocity."""
    rows = evidence.thinned(2000)
    for j in evidence.joints:
        joint, y = evidence.robot.joints[j], evidence.tau[rows, j]
        if np.ptp(y) == 0.0 or np.ptp(evidence.q[rows, j]) < STILL[joint.kind] or evidence.robot.dof == 1:
            continue
        for what, signal in (("position", evidence.q), ("velocity", evidence.dq)):
            left = fit(np.column_stack([signal[rows, j], np.ones_like(y)]), y).left
            if left < _ECHO:
                message = f"The torque of '{joint.name}' is a multiple of its {what}, but for {percent(100 * left)}."
                advice = f"Log the measured torque of '{joint.name}' instead of a command."
                yield Finding("echo", "problem", message, advice, joint.name)
                break


def check_computed(evidence: Evidence) -> Iterator[Finding]:
    """Report torques that equal those of the description without friction."""
    states = States.of(evidence, 400)
    nominal = nominal_torque(states.robot, states.q, states.dq, states.ddq)
    used = [j for j in evidence.joints if np.ptp(states.tau[:, j]) > 0.0 and np.ptp(nominal[:, j]) > 0.0]
    left = [float(np.var(states.tau[:, j] - nominal[:, j]) / np.var(states.tau[:, j])) for j in used]
    exact = [states.robot.joints[j].name for j, x in zip(used, left, strict=True) if x < _COMPUTED]
    if len(exact) >= 2 and 2 * len(exact) > len(used):
        message = (
            f"The torques of {', '.join(exact)} are those of the description without friction: computed, not measured."
        )
        advice = "Log measured torques or currents, not a controller's feed-forward."
        yield Finding("echo", "problem", message, advice)
