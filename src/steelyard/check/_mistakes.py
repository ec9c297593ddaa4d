"""One mistake that would explain it all: a scale, a zero, a clock, a coupling, gravity from another side.

All joints share the parameters of the links. Fitted together they leave hardly more than fitted one by one, unless a
channel is not what it is taken for; then what they leave together is held against what each single mistake would. This
needs nothing from the description but lengths and axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steelyard.check._channels import STILL
from steelyard.check._description import gravity_columns
from steelyard.check._evidence import Evidence, Fit
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding

_MOST_ROWS = 400
# What a joint's torque leaves in the common fit over what it leaves alone. Sound logs of five real arms have at most
# 1.5 where the motion was well prepared; a counterbalance nobody described has 2.4 to 2.9.
_NOTABLE, _TOO_MUCH = 1.6, 2.0
# A mistake is named if it explains this part of what the joints leave together beyond what they leave alone.
_EXPLAINS = 0.8
_CLEARLY = 0.05  # by which a factor of the clock must explain more than its neighbours do
_TILT = 5.0  # degrees of gravity that inexact link lengths do not explain
_FACTORS = (0.001, 0.01, 0.1, 0.25, 0.5, 2.0, 4.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True, eq=False)
class Together:
    """The weighted rows of all joints, equation below equation, and what the common fit leaves of them."""

    seen: Evidence
    rows: slice
    weights: Array
    A: Array
    y: Array

    @classmethod
    def of(cls, seen: Evidence, fits: Mapping[int, Fit], most: int = _MOST_ROWS) -> Together:
        """At most so many rows (`most`) of what was `seen`, weighted by what each joint's own of the `fits` leaves."""
        rows = seen.thinned(most)
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

    @property
    def equations(self) -> list[slice]:
        """Where the rows of each equation stand."""
        count = len(self.y) // len(self.seen.joints)
        return [slice(e * count, (e + 1) * count) for e in range(len(self.seen.joints))]

    @property
    def _links(self) -> NDArray[np.int64]:
        return np.flatnonzero(np.array(self.seen.base.independent) < self.seen.robot.inertial_count).astype(np.int64)

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        """The columns of the links at other states, `(samples, joints, columns)`."""
        columns = np.array(self.seen.base.independent)[self._links]
        return np.asarray(self.seen.robot.dynamics.torque_regressor(q, dq, ddq)[:, :, columns])

    def with_links(self, Y: Array) -> Array:
        """The columns with others `(samples, joints, columns)` of the links; friction and rotors are free, and stay."""
        A = np.array(self.A)
        A[:, self._links] = np.concatenate([w * Y[:, j] for w, j in zip(self.weights, self.seen.joints, strict=True)])
        return A

    def moved(self, q: Array, dq: Array, ddq: Array) -> Array:
        """The columns with those of the links at other states."""
        return self.with_links(self.regressor(q, dq, ddq))


def check_together(seen: Evidence, fits: Mapping[int, Fit]) -> Iterator[Finding]:
    """What is wrong between the joints, by name where one mistake explains it; nothing if they agree."""
    if len(seen.joints) < 2:
        return
    together = Together.of(seen, fits)
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
    together: Together, beta: Array, rest: Array, Q: Array, explained: Callable[[float], float]
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
            offer(left, wrong_scale(name, factor))
        for other in (b for b in seen.joints if abs(b - j) == 1):
            only = np.zeros_like(tau)
            only[:, j] = tau[:, other]
            left, step = beside(together.stacked(only)[:, None])
            if abs(abs(float(step[0])) - 1.0) < 0.3:
                offer(left, coupled_motors(name, robot.joints[other].name, -float(np.sign(step[0]))), 0.05)
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
    rests = [together.solved(together.moved(q, dq * f, ddq * f**2))[1] for f in _FACTORS]
    left_at = np.array([float(x @ x) for x in rests])
    k = int(np.argmin(left_at))
    # Where other factors do as well it is no clock: a torque that holds no inertia (a spring carries it) fits them all.
    beside_it = left_at[[m for m in (k - 1, k + 1) if 0 <= m < len(_FACTORS)]]
    if explained(float(beside_it.min())) < explained(left_at[k]) - _CLEARLY:
        offer(float(left_at[k]), wrong_clock(_FACTORS[k]))
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


def wrong_scale(name: str, factor: float) -> Finding:
    """That the torque of the joint `name` must be taken `factor` times, or turned round where that is below zero."""
    if factor < 0.0:
        message = f"The torque of '{name}' has the wrong sign: turned, it agrees with the other joints."
        advice = f"Turn the sign of the torque of '{name}' (sign.torque, or torque_constants, in the mapping)."
        return Finding("sign", "problem", message, advice, name, fix={"sign.torque": {name: -1.0}})
    message = f"The torque of '{name}' agrees with the other joints' if it is taken {factor:.3g} times."
    advice = f"Check torque constant, gear ratio and side (motor or joint) of '{name}' and of its neighbours."
    return Finding("torque_scale", "problem", message, advice, name, fix={"torque_scale": {name: factor}})


def coupled_motors(name: str, other: str, factor: float) -> Finding:
    """That the motor of `other` moves the joint `name`, too, `factor` (1, −1) times."""
    message = f"The torque of '{name}' holds that of '{other}' as well: they look like the two motors of a wrist."
    advice = f"State the coupling of '{name}' and '{other}' in the mapping (coupling, side)."
    fix = {"coupling": {"joint": name, "motor": other, "factor": factor, "torque": "motor"}}
    return Finding("coupled", "problem", message, advice, f"{name}, {other}", fix=fix)


def turning_motor(name: str, other: str, factor: float) -> Finding:
    """That the motor of the joint `other` turns with the joint `name` too, `factor` (1, −1) times, and rubs on both."""
    message = f"Friction of '{other}' acts on '{name}' as well: its motor looks as if it turned with both joints."
    advice = f"State the coupling of '{name}' and '{other}' in the mapping (coupling, side)."
    fix = {"coupling": {"joint": name, "motor": other, "factor": factor, "torque": "joint"}}
    return Finding("coupled", "warning", message, advice, f"{name}, {other}", fix=fix)


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
