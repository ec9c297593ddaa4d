"""One mistake that would explain it all: a scale, a zero, a clock, a coupling, gravity from another side.

All joints share the parameters of the links. Fitted together they leave hardly more than fitted one by one, unless a
channel is not what it is taken for; then what they leave together is held against what each single mistake would. This
needs nothing from the description but lengths and axes. Where the description has inertias that explain the torques,
zeros, directions and the clock are also held against them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.check._channels import STILL
from steelyard.check._description import States, drive_columns, gravity_columns, nominal_torque
from steelyard.check._evidence import Evidence, Fit, fit
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding

_MOST_ROWS = 400
# What a joint's torque leaves in the common fit over what it leaves alone. Sound logs of five real arms have at most
# 1.5 where the motion was well prepared; a counterbalance nobody described has 2.4 to 2.9.
_NOTABLE, _TOO_MUCH = 1.6, 2.0
# A mistake is named if it explains this part of what the joints leave together beyond what they leave alone.
_EXPLAINS = 0.8
_TILT = 5.0  # degrees of gravity that inexact link lengths do not explain
_CLOCK = 1.6  # a factor of the clock nearer to 1 may be friction or noise that passes for inertia
_FACTORS = (0.001, 0.01, 0.1, 0.25, 0.5, 2.0, 4.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True, eq=False)
class _Together:
    """The weighted rows of all joints, equation below equation, and what the common fit leaves of them."""

    seen: Evidence
    rows: slice
    weights: Array
    A: Array
    y: Array

    @classmethod
    def of(cls, seen: Evidence, fits: Mapping[int, Fit]) -> _Together:
        rows = seen.thinned(_MOST_ROWS)
        weights = np.array(
            [1.0 / max(float(np.std(fits[j].residual)), 1e-3 * float(np.std(y)), 1e-12)
             for j, y in zip(seen.joints, seen.y, strict=True)]
        )  # fmt: skip
        A = [np.zeros((len(y[rows]), seen.base.rank)) for y in seen.y]
        for block, columns, one in zip(A, seen.columns, seen.A, strict=True):
            block[:, columns] = one[rows]
        y = np.concatenate([w * x[rows] for w, x in zip(weights, seen.y, strict=True)])
        return cls(seen, rows, weights, np.vstack([w * a for w, a in zip(weights, A, strict=True)]), y)

    def stacked(self, torques: Array) -> Array:
        """Torques `(samples, joints)` weighted and below one another as the rows are."""
        return np.concatenate([w * torques[:, j] for w, j in zip(self.weights, self.seen.joints, strict=True)])

    def solved(self, A: Array) -> tuple[Array, Array, Array]:
        """Of a common fit with columns A: the parameters, what is left, and an orthonormal basis of the columns."""
        lengths = np.linalg.norm(A, axis=0)
        scale = np.where(lengths > 1e-12 * lengths.max(), lengths, np.inf)
        U, s, V = np.linalg.svd(A / scale, full_matrices=False)
        kept = s > 1e-7 * s[0]
        Q = U[:, kept]
        inside = Q.T @ self.y
        return (V[kept].T / s[kept]) @ inside / scale, self.y - Q @ inside, Q

    def moved(self, q: Array, dq: Array, ddq: Array) -> Array:
        """The columns with those of the links at other states; friction and rotors are free, and stay."""
        robot, independent = self.seen.robot, np.array(self.seen.base.independent)
        links = np.flatnonzero(independent < robot.inertial_count)
        Y = robot.dynamics.torque_regressor(q, dq, ddq)[:, :, independent[links]]
        A = np.array(self.A)
        A[:, links] = np.concatenate([w * Y[:, j] for w, j in zip(self.weights, self.seen.joints, strict=True)])
        return A


def check_together(seen: Evidence, fits: Mapping[int, Fit]) -> Iterator[Finding]:
    """What is wrong between the joints, by name where one mistake explains it; nothing if they agree."""
    if len(seen.joints) < 2:
        return
    together = _Together.of(seen, fits)
    beta, rest, Q = together.solved(together.A)
    excess = np.sqrt(np.mean(rest.reshape(len(seen.joints), -1) ** 2, axis=1))
    power = float(rest @ rest) / len(rest)
    worst = int(np.argmax(excess))
    if excess[worst] < _NOTABLE:
        return
    room = max(1.0 - 1.0 / power, 1e-3)

    def explained(left: float) -> float:
        return (1.0 - left / float(rest @ rest)) / room

    named = _named(together, beta, rest, Q, explained) if power > 1.2 else None
    if named is not None:
        yield named
    elif excess[worst] > _TOO_MUCH:
        name = seen.robot.joints[seen.joints[worst]].name
        message = (
            f"The joints contradict one another: fitted together they leave {excess[worst]:.1f} times as much of the "
            f"torque of '{name}' as it leaves alone."
        )
        advice = f"Check zero, sign, scale and unit of '{name}' and its neighbours, and whether a spring acts there."
        yield Finding("inconsistent", "warning", message, advice, name)


def _named(
    together: _Together, beta: Array, rest: Array, Q: Array, explained: Callable[[float], float]
) -> Finding | None:
    """The mistake that explains most of what is left, if it explains enough."""
    seen, robot = together.seen, together.seen.robot
    best: tuple[float, Finding] = (_EXPLAINS, Finding("none", "ok", ""))

    def offer(left: float, finding: Finding, handicap: float = 0.0) -> None:
        nonlocal best
        share = explained(left) - handicap
        if share > best[0]:
            best = share, finding

    q, dq, ddq = (x[together.rows] for x in (seen.q, seen.dq, seen.ddq))
    tau = seen.tau[together.rows]
    theta = np.zeros(robot.inertial_count)
    for value, place in zip(beta, seen.base.independent, strict=True):
        if place < robot.inertial_count:
            theta[place] = value

    def beside(columns: Array) -> tuple[float, Array]:
        H = columns - Q @ (Q.T @ columns)
        step, *_ = np.linalg.lstsq(H, rest, rcond=1e-8)
        return float(np.sum((rest - H @ step) ** 2)), np.asarray(step, dtype=np.float64)

    # Gravity: two numbers.
    poses = gravity_columns(_with(robot, theta), q)
    left, step = beside(np.column_stack([together.stacked(poses[:, :, k]) for k in range(3)]))
    stated = np.asarray(robot.gravity)
    found = stated + step
    size = float(np.linalg.norm(found))
    across = np.cross(found, stated)
    if size > 0.0 and np.linalg.norm(stated) > 0.0:
        sine = float(np.linalg.norm(across)) / (size * float(np.linalg.norm(stated)))
        angle = np.degrees(np.arctan2(sine, float(found @ stated) / (size * float(np.linalg.norm(stated)))))
        if angle > _TILT and 0.8 < size / 9.81 < 1.25:
            offer(left, _tilted(found, stated, float(angle)))
    for j in seen.joints:
        name = robot.joints[j].name
        only = np.zeros_like(tau)
        only[:, j] = tau[:, j]
        left, step = beside(together.stacked(only)[:, None])
        factor = 1.0 - float(step[0])
        if not 0.8 < factor < 1.25 and abs(factor) > 0.2:
            offer(left, _scaled(name, factor))
        for other in (b for b in seen.joints if abs(b - j) == 1):
            only = np.zeros_like(tau)
            only[:, j] = tau[:, other]
            left, step = beside(together.stacked(only)[:, None])
            if abs(abs(float(step[0])) - 1.0) < 0.3:
                offer(left, _coupled(name, robot.joints[other].name), 0.05)
        if robot.joints[j].kind == "revolute" and np.ptp(q[:, j]) > STILL["revolute"]:
            # To first order: the torque at q + δ explains the rest, so that the true position is δ more than logged.
            slope = _slope(robot, theta, (q, dq, ddq), j)
            first = float(beside(together.stacked(slope)[:, None])[1][0])
            for shift in (0.5 * np.pi, -0.5 * np.pi, np.pi, *([first] if 0.1 < abs(first) < 1.0 else [])):
                moved = np.array(q)
                moved[:, j] += shift
                _, after, _ = together.solved(together.moved(moved, dq, ddq))
                offer(float(after @ after), wrong_zero(name, shift), 0.02)
        turned = [np.array(x) for x in (q, dq, ddq)]
        for x in turned:
            x[:, j] *= -1.0
        _, after, _ = together.solved(together.moved(*turned))
        offer(float(after @ after), wrong_direction(name), 0.02)
    for factor in _FACTORS:
        _, after, _ = together.solved(together.moved(q, dq * factor, ddq * factor**2))
        offer(float(after @ after), wrong_clock(factor))
    return best[1] if best[1].kind != "none" else None


def _slope(robot: Robot, theta: Array, states: tuple[Array, Array, Array], joint: int) -> Array:
    """∂τ/∂q of one joint, of the links."""
    q, dq, ddq = states
    moved = np.array(q)
    moved[:, joint] += 1e-4
    torque = robot.dynamics.inverse_dynamics
    return np.asarray(1e4 * (torque(moved, dq, ddq, theta) - torque(q, dq, ddq, theta)))


def _with(robot: Robot, theta: Array) -> Robot:
    links = tuple(replace(link, inertia=theta[10 * k : 10 * k + 10]) for k, link in enumerate(robot.links))
    return replace(robot, links=links)


# What each mistake is called, and what mends it.


def _tilted(found: Array, stated: Array, angle: float) -> Finding:
    vector = ", ".join(f"{x:.2f}" for x in found)
    message = (
        f"The joints agree best with gravity along ({vector}) m/s², {angle:.0f}° from the stated "
        f"({', '.join(f'{x:.4g}' for x in stated)})."
    )
    advice = f"State how the robot is mounted: gravity = [{vector}] in the mapping, rounded to the true direction."
    return Finding("gravity", "problem", message, advice, fix={"gravity": [round(float(x), 2) for x in found]})


def _scaled(name: str, factor: float) -> Finding:
    if factor < 0.0:
        message = f"The torque of '{name}' has the wrong sign: turned, it agrees with the other joints."
        advice = f"Turn the sign of the torque of '{name}' (sign.torque, or torque_constants, in the mapping)."
        return Finding("sign", "problem", message, advice, name, fix={"sign.torque": {name: -1.0}})
    message = f"The torque of '{name}' agrees with the other joints' if it is taken {factor:.3g} times."
    advice = f"Check torque constant, gear ratio and side (motor or joint) of '{name}' and of its neighbours."
    return Finding("torque_scale", "problem", message, advice, name, fix={"torque_scale": {name: factor}})


def _coupled(name: str, other: str) -> Finding:
    message = f"The torque of '{name}' holds that of '{other}' as well: they look like the two motors of a wrist."
    advice = f"State the coupling of '{name}' and '{other}' in the mapping (coupling, side)."
    return Finding("coupled", "problem", message, advice, f"{name}, {other}")


def wrong_zero(name: str, shift: float) -> Finding:
    """That the zero of the joint `name` is off, and that adding `shift` (rad) to its position mends it."""
    message = f"The zero of '{name}' looks off by {-shift:.2f} rad ({-np.degrees(shift):.0f}°)."
    advice = f"Compare a posture of the robot with the description's; offset of '{name}' in the mapping: {shift:.2f}."
    return Finding("zero", "problem", message, advice, name, fix={"offset": {name: shift}})


def wrong_direction(name: str) -> Finding:
    """That the joint `name` turns the other way than its description, and how to say so."""
    message = f"The position of '{name}' looks turned round: with the other sign it agrees with the torques."
    advice = f"Turn the sign of position and velocity of '{name}' (sign.position, sign.velocity in the mapping)."
    return Finding("position_sign", "problem", message, advice, name, fix={"sign.position": {name: -1.0}})


def wrong_clock(factor: float) -> Finding:
    """That the clock is too slow by `factor`: speeds are so many times higher than the stamps say."""
    times = f"{factor:.3g} times as long as it was" if factor > 1.0 else f"{1.0 / factor:.3g} times too short"
    message = f"The clock looks wrong: weight and inertia agree if the motion is logged {times}."
    advice = "Check the unit of the time and the sampling rate (units.time, or time = {rate = …} in the mapping)."
    # A velocity that is logged agrees with the wrong clock, or it would have told.
    return Finding("clock", "problem", message, advice, fix={"time.factor": 1.0 / factor, "velocity": False})


# The same questions to the description's inertias.

_ANGLES = np.deg2rad(np.arange(-165, 181, 15))
_LEAST_ZERO = 0.2  # rad; centres of gravity that are described in another direction pass for less
_GAIN = 0.8  # of Σ log(share left) over the joints
# A joint whose share of the torque left falls by this factor agrees. Two must: a centre of gravity that was guessed
# (Panda) or a load that nobody described changes what is left of its own joint alone.
_AGREES = 1.25
_FLOOR = 3e-3  # shares below are noise, and inertias that are not exact
_WELL = 0.1


def check_zeros(seen: Evidence) -> Iterator[Finding]:
    """The zero or the direction of one joint that makes the description explain the torques much better."""
    states = States.of(seen, 200)
    robot = states.robot
    probe = _Probe.of(states)
    if len(probe.joints) < 2:
        return
    before, (left_before, _) = probe.judged(nominal_torque(robot, states.q, states.dq, states.ddq)[None])
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
    left, slope = probe.judged(_at(states, [best[1]]))[1]
    agreeing = np.maximum(left_before[0], _FLOOR) > _AGREES * np.maximum(left[0], _FLOOR)
    if np.sum(agreeing) < 2 or np.sum((left[0] < _WELL) & (slope[0] > 0.0)) < 2:
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
    sums, _ = probe.judged(_at(states, trials))
    k = int(np.argmin(sums))
    return float(sums[k]), trials[k]


@dataclass(frozen=True, eq=False)
class _Probe:
    """Torques without what the drives' own terms explain, joint by joint, to hold many nominal torques against."""

    joints: tuple[int, ...]
    bases: tuple[Array, ...]
    rests: tuple[Array, ...]
    totals: tuple[float, ...]

    @classmethod
    def of(cls, states: States) -> _Probe:
        robot, out = states.robot, []
        for j in range(robot.dof):
            y = states.tau[:, j]
            if not robot.torque_used[j] or np.ptp(y) == 0.0:
                continue
            drive = drive_columns(states.dq[:, j], states.ddq[:, j], SMOOTHING_SPEED[robot.joints[j].kind])
            lengths = np.linalg.norm(drive, axis=0)
            U, s, _ = np.linalg.svd(drive / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
            Q = U[:, s > 1e-8 * s[0]]
            out.append((j, Q, y - Q @ (Q.T @ y), float(np.sum((y - y.mean()) ** 2))))
        return cls(*(tuple(x) for x in zip(*out, strict=True))) if out else cls((), (), (), ())

    def judged(self, nominal: Array) -> tuple[Array, tuple[Array, Array]]:
        """For every trial Σ log(share left) over the joints; the shares, and the slopes."""
        left, slope = (np.empty((len(nominal), len(self.joints))) for _ in range(2))
        for c, (j, Q, rest, total) in enumerate(zip(self.joints, self.bases, self.rests, self.totals, strict=True)):
            x = nominal[:, :, j]
            x = x - (x @ Q) @ Q.T
            power = np.maximum(np.sum(x**2, axis=1), 1e-300)
            slope[:, c] = (x @ rest) / power
            left[:, c] = (float(rest @ rest) - np.maximum(slope[:, c], 0.0) ** 2 * power) / total
        return np.sum(np.log(np.maximum(left, _FLOOR)), axis=1), (left, slope)


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
