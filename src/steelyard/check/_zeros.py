"""Zeros, directions and the clock, held against the inertias of a description that explains the torques."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.check._channels import STILL
from steelyard.check._description import States, drive_columns, nominal_torque
from steelyard.check._evidence import Evidence, Fit, basis, fit
from steelyard.check._mistakes import wrong_clock, wrong_direction, wrong_zero
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.signals.log import Finding

_ANGLES = np.deg2rad(np.arange(-165, 181, 15))
_LEAST_ZERO = 0.2  # rad; centres of gravity that are described in another direction pass for less
_GAIN = 0.8  # of Σ log(share left) over the joints
# A joint whose share of the torque left falls by this factor agrees, if its blocks of time say so by this many standard
# errors. Two must: a centre of gravity that was guessed (Panda) or a load that nobody described changes what is left
# of its own joint alone.
_AGREES, _SURELY = 1.25, 2.0
_BLOCKS = 20
_WELL = 0.1


def check_zeros(seen: Evidence, fits: Mapping[int, Fit]) -> Iterator[Finding]:
    """The zero or the direction of one joint that makes the description explain the torques much better.

    What a joint's own of the `fits` leaves is noise: to leave less is no gain.
    """
    states = States.of(seen, 200)
    robot = states.robot
    probe = _Probe.of(seen, fits, 200)
    if len(probe.joints) < 2:
        return
    nominal = nominal_torque(robot, states.q, states.dq, states.ddq)
    before, _, _ = probe.judged(nominal[None])
    trials: list[tuple[int, float]] = [
        (k, s) for k, j in enumerate(robot.joints)
        if j.kind == "revolute" and np.ptp(states.q[:, k]) > STILL[j.kind] for s in (*_ANGLES[_ANGLES != 0.0], np.nan)
    ]  # fmt: skip
    best = _best(probe, states, trials)
    if best is None or before[0] - best[0] < _GAIN:
        return
    _, (joint, shift) = best
    if np.isfinite(shift):
        finer = [(joint, shift + s) for s in np.deg2rad(np.arange(-14, 15, 2))]
        best = _best(probe, states, finer) or best
        shift = best[1][1]
        if abs(shift) < _LEAST_ZERO:
            return
    moved = _at(states, [best[1]])[0]
    _, left, slope = probe.judged(moved[None])
    if np.sum(probe.agreeing(nominal, moved)) < 2 or np.sum((left[0] < _WELL) & (slope[0] > 0.0)) < 2:
        return  # a description that is right about no joint cannot tell
    name = robot.joints[joint].name
    found = wrong_zero(name, float(shift)) if np.isfinite(shift) else wrong_direction(name)
    # Weaker evidence: inertias of a description may be wrong, and a load that it does not know of looks alike.
    message = f"{found.message[:-1]}, by the description's inertias, unless the robot carries what they do not know of."
    yield replace(found, severity="warning", message=message)


def _at(states: States, trials: Sequence[tuple[int, float]]) -> Array:
    """Nominal torques of every trial (joint, shift; NaN: turned round), `(trials, samples, joints)`, in one call."""
    q, dq, ddq = (np.repeat(x[None], len(trials), axis=0) for x in (states.q, states.dq, states.ddq))
    for t, (joint, shift) in enumerate(trials):
        if np.isfinite(shift):
            q[t, :, joint] += shift
        else:
            for x in (q, dq, ddq):
                x[t, :, joint] *= -1.0
    flat = [x.reshape(-1, x.shape[-1]) for x in (q, dq, ddq)]
    return nominal_torque(states.robot, *flat).reshape(q.shape)


def _best(probe: _Probe, states: States, trials: Sequence[tuple[int, float]]) -> tuple[float, tuple[int, float]] | None:
    if not trials:
        return None
    sums, _, _ = probe.judged(_at(states, trials))
    k = int(np.argmin(sums))
    return float(sums[k]), trials[k]


@dataclass(frozen=True, eq=False)
class _Probe:
    """Torques without what rotors and friction explain, joint by joint, to hold many nominal torques against."""

    joints: tuple[int, ...]
    bases: tuple[Array, ...]
    rests: tuple[Array, ...]
    totals: tuple[float, ...]
    floors: Array

    @classmethod
    def of(cls, seen: Evidence, fits: Mapping[int, Fit], most: int) -> _Probe:
        rows, out = seen.thinned(most), []
        links = seen.robot.inertial_count
        for e, j in enumerate(seen.joints):
            y = seen.y[e][rows]
            if np.ptp(y) == 0.0:
                continue
            own = [k for k, c in enumerate(seen.columns[e]) if seen.base.independent[int(c)] >= links]
            slow = SMOOTHING_SPEED[seen.robot.joints[j].kind]
            drive = drive_columns(seen.dq[rows, j], seen.ddq[rows, j], slow)
            Q = basis(np.column_stack([seen.A[e][rows][:, own], drive]))
            out.append((j, Q, y - Q @ (Q.T @ y), float(np.sum((y - y.mean()) ** 2)), fits[j].left))
        joints, bases, rests, totals, floors = zip(*out, strict=True) if out else ((),) * 5
        return cls(joints, bases, rests, totals, np.array(floors))

    def judged(self, nominal: Array) -> tuple[Array, Array, Array]:
        """For every trial Σ log(share left) over the joints; the shares, and the slopes."""
        left, slope = (np.empty((len(nominal), len(self.joints))) for _ in range(2))
        for c, (j, Q, rest, total) in enumerate(zip(self.joints, self.bases, self.rests, self.totals, strict=True)):
            x = nominal[:, :, j]
            x = x - (x @ Q) @ Q.T
            power = np.maximum(np.sum(x**2, axis=1), 1e-300)
            slope[:, c] = (x @ rest) / power
            left[:, c] = (float(rest @ rest) - np.maximum(slope[:, c], 0.0) ** 2 * power) / total
        return np.sum(np.log(np.maximum(left, self.floors)), axis=1), left, slope

    def agreeing(self, before: Array, after: Array) -> Array:
        """Whether each joint's torque is explained better by one nominal torque than by another, in most blocks."""
        out = []
        for j, Q, rest in zip(self.joints, self.bases, self.rests, strict=True):
            sums = []
            for nominal in (before, after):
                x = nominal[:, j] - Q @ (Q.T @ nominal[:, j])
                slope = max(float(x @ rest), 0.0) / max(float(x @ x), 1e-300)
                sums.append([float(np.sum(part**2)) for part in np.array_split(rest - slope * x, _BLOCKS)])
            first, second = np.array(sums)
            gain = first - second
            surely = gain.mean() > _SURELY * gain.std(ddof=1) / np.sqrt(_BLOCKS)
            out.append(surely and first.sum() > _AGREES * second.sum())
        return np.array(out)


def check_clock(seen: Evidence) -> Iterator[Finding]:
    """Inertia against weight: by the description both are too large or too small alike, unless the clock is wrong."""
    states = States.of(seen, 400)
    robot = states.robot
    still = np.zeros_like(states.q)
    weight = nominal_torque(robot, states.q, still, still)
    inertia = nominal_torque(robot, states.q, states.dq, states.ddq) - weight
    heavy: list[float] = []
    moving: list[float] = []
    for j in range(robot.dof):
        y = states.tau[:, j]
        if not robot.torque_used[j] or np.ptp(y) == 0.0 or np.ptp(states.q[:, j]) < STILL[robot.joints[j].kind]:
            continue
        drive = drive_columns(states.dq[:, j], states.ddq[:, j], SMOOTHING_SPEED[robot.joints[j].kind])
        found = fit(np.column_stack([weight[:, j], inertia[:, j], drive]), y)
        if found.left > _WELL:
            continue
        for k, (slopes, column, least) in enumerate(((heavy, weight, 0.2), (moving, inertia, 0.05))):
            telling = found.values[k] * np.std(column[:, j]) > least * np.std(y)
            if telling and found.values[k] > _CLEAR * found.errors[k]:
                slopes.append(float(found.values[k]))
    if len(heavy) < 2 or not moving or max(heavy) > 2.0 * min(heavy):
        return
    ratio = float(np.median(moving)) / float(np.median(heavy))
    if 1.0 / _INERTIA < ratio < _INERTIA:
        return
    finding = wrong_clock(float(np.sqrt(ratio)))
    message = (
        f"{finding.message} By the description's inertias, inertia is {ratio:.3g} times what the weight would let "
        "one expect."
    )
    yield Finding("clock", "warning", message, finding.advice, fix=finding.fix)


_CLEAR = 6.0  # standard errors
_INERTIA = 2.5
