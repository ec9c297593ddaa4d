"""The torques against those of the description's inertias: sign, order of the joints, scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from steelyard.check._channels import STILL
from steelyard.check._evidence import Evidence, basis, fit
from steelyard.check.explained import CERTAIN, wrong_sign
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding, Severity

# What the description says the torques should be, and what of it depends on the direction of gravity.


def nominal_torque(robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    """Torque of the links alone, `(samples, joints)`; friction and rotors are left to be fitted."""
    return robot.dynamics.inverse_dynamics(q, dq, ddq, robot.inertial_parameters)


def gravity_columns(robot: Robot, q: Array) -> Array:
    """Torque per m/s² of gravity along the base's axes, `(samples, joints, 3)`.

    τ_j = ∂U/∂q_j with U = −g·Σ m p, so that the column of joint j is −Σ ∂(m p)/∂q_j over the links it carries.
    """
    rotations, origins = link_poses(robot, q)
    out = np.zeros((*q.shape, 3))
    for index, link in enumerate(robot.links):
        if link.inertia is None:
            continue
        mass = float(link.inertia[0])
        first = mass * link.frame_translation + link.frame_rotation @ link.inertia[1:4]
        moment = mass * origins[:, index] + rotations[:, index] @ first
        for above in robot.ancestors(index):
            carrier = robot.links[above]
            axis = rotations[:, above] @ carrier.axis
            arm = moment - mass * origins[:, above]
            out[:, carrier.coordinate] -= carrier.ratio * (
                mass * axis if carrier.kind == "prismatic" else np.cross(axis, arm)
            )
    return out


def drive_columns(dq: Array, ddq: Array, slow: float) -> Array:
    """What a drive adds to its joint's torque, whatever its size: rotor, viscous and dry friction, offset."""
    return np.column_stack([ddq, dq, np.tanh(dq / slow), np.ones_like(dq)])


MOST_ROWS = 400
# The description counts where its torque explains this share of what the drive's own terms leave.
TELLING = 0.6
# A sign or a scale is believed if no more than this of the torque itself is then left.
WELL = 0.3
# An exchange is believed if it lowers Σ log(share left) over the joints by this. In sound logs of five real robots the
# best exchange lowered nothing; in simulated ones an exchange that is taken back lowers it by 1 (joints of one wrist
# with parallel axes) to 18.
GAIN = 2.0
# Shares below this are noise, and no gain.
NOISE = 1e-4
# Beyond a factor of three, a description is not inaccurate: the torque is in another unit.
SCALE = 3.0
# All torques together: nearer to 1 than this, inertias that were estimated from a drawing may be the reason.
COMMON_SCALE = (0.67, 1.9)


@dataclass(frozen=True, eq=False)
class States:
    """A thinned motion with its torques."""

    robot: Robot
    q: Array
    dq: Array
    ddq: Array
    tau: Array

    @classmethod
    def of(cls, seen: Evidence, most: int = MOST_ROWS) -> States:
        """At most so many rows (`most`) of what was `seen`."""
        rows = seen.thinned(most)
        return cls(seen.robot, seen.q[rows], seen.dq[rows], seen.ddq[rows], seen.tau[rows])

    def exchanged(self, order: Sequence[int], torque_only: bool) -> States:
        """The joints' channels in another order: all of them, or the torques alone."""
        o = list(order)
        if torque_only:
            return States(self.robot, self.q, self.dq, self.ddq, self.tau[:, o])
        return States(self.robot, self.q[:, o], self.dq[:, o], self.ddq[:, o], self.tau[:, o])


@dataclass(frozen=True, eq=False)
class Match:
    """How the description's torque fits the measured one, joint by joint (NaN where it cannot tell).

    `slope` of the measured on the nominal torque beside drive terms; `left` of the torque's variance; `alone` is what
    the drive terms leave by themselves.
    """

    slope: Array
    left: Array
    alone: Array

    @property
    def telling(self) -> NDArray[np.bool_]:
        """Whether the description explains most of what the drive's terms leave, and that is not nothing."""
        with np.errstate(invalid="ignore"):
            return (self.left < (1.0 - TELLING) * self.alone) & (self.alone > 0.02)

    @property
    def forward(self) -> Array:
        """What is left if only positive slopes are allowed."""
        return np.where(self.slope > 0.0, self.left, self.alone)


def match(states: States, joints: Sequence[int] | None = None, nominal: Array | None = None) -> Match:
    """Fit every joint's torque by its nominal torque (computed unless it is given) and drive terms."""
    robot = states.robot
    nominal = nominal_torque(robot, states.q, states.dq, states.ddq) if nominal is None else nominal
    out = np.full((3, robot.dof), np.nan)
    for j in range(robot.dof) if joints is None else joints:
        y = states.tau[:, j]
        if not robot.torque_used[j] or np.ptp(y) == 0.0 or np.ptp(nominal[:, j]) == 0.0:
            continue
        if np.ptp(states.q[:, j]) < STILL[robot.joints[j].kind]:
            continue  # a joint at rest carries what its dry friction lets it carry
        drive = drive_columns(states.dq[:, j], states.ddq[:, j], SMOOTHING_SPEED[robot.joints[j].kind])
        out[:, j] = _slope_beside(drive, nominal[:, j], y)
    return Match(*out)


def _slope_beside(drive: Array, nominal: Array, y: Array) -> tuple[float, float, float]:
    """The slope of y on `nominal` beside the drive's columns, and the shares of y's variance left by all, by these.

    What the drive's columns span is taken off both (Frisch & Waugh 1933): dozens of these fits are wanted at once.
    """
    Q = basis(drive)
    rest, own = (x - Q @ (Q.T @ x) for x in (y, nominal))
    total = float(np.sum((y - y.mean()) ** 2))
    power = float(own @ own)
    seen = power > 1e-16 * float(nominal @ nominal)
    slope = float(own @ rest) / power if seen else 0.0
    alone = float(rest @ rest)
    if not total > 0.0:  # the squares are too small to be numbers
        return np.nan, np.nan, np.nan
    return slope, min((alone - slope**2 * (power if seen else 0.0)) / total, 1.0), min(alone / total, 1.0)


def check_description(seen: Evidence, powers: Mapping[int, float]) -> Iterator[Finding]:
    """Order, signs and scale. `powers` of friction (in standard errors) speak against a sign that they contradict."""
    states = States.of(seen)
    found = match(states)
    flips = _flips(found, powers)
    swap = _swap(states, found, flips)
    if swap is not None:
        yield swap
        return
    for j in flips:
        reason = f"it goes with {found.slope[j]:.2f} times the torque that the description's inertias would need"
        yield wrong_sign(seen.robot.joints[j].name, reason)
    yield from _scale(seen.robot, found)


def _flips(found: Match, powers: Mapping[int, float]) -> list[int]:
    """Joints that go against the description, if the description is right about others or friction agrees."""
    against = [int(j) for j in np.flatnonzero(found.telling & (found.slope < 0.0))]
    agreeing = int(np.sum(found.telling & (found.slope > 0.0)))
    return [
        j
        for j in against
        if found.left[j] < WELL
        and powers.get(j, 0.0) < CERTAIN
        and (agreeing >= len(against) or powers.get(j, 0.0) < -CERTAIN)
    ]


def _swap(states: States, found: Match, flips: Sequence[int]) -> Finding | None:
    """The two joints whose exchange explains the torques much better, if there are such."""
    used = [j for j in range(states.robot.dof) if np.isfinite(found.left[j])]
    as_is = np.where(np.isin(np.arange(states.robot.dof), flips), found.left, found.forward)
    best: tuple[float, tuple[int, int], bool, Match] | None = None
    pairs = [(a, b) for a, b in combinations(used, 2) if states.robot.joints[a].kind == states.robot.joints[b].kind]
    if not pairs:
        return None
    moved = [states.exchanged(exchange(states.robot.dof, *pair), False) for pair in pairs]
    # All postures in one call: it is the calls that take time.
    every = nominal_torque(states.robot, *(np.concatenate([getattr(m, x) for m in moved]) for x in ("q", "dq", "ddq")))
    as_described = nominal_torque(states.robot, states.q, states.dq, states.ddq)
    for (a, b), other, nominal in zip(pairs, moved, np.split(every, len(pairs)), strict=True):
        for torque_only in (True, False):
            exchanged = states.exchanged(exchange(states.robot.dof, a, b), True) if torque_only else other
            trial = match(exchanged, used, as_described if torque_only else nominal)
            gain = float(np.nansum(np.log(np.maximum(as_is, NOISE) / np.maximum(trial.forward, NOISE))))
            if best is None or gain > best[0]:
                best = gain, (a, b), torque_only, trial
    if best is None or best[0] < GAIN:
        return None
    _, (a, b), torque_only, trial = best
    if np.sum(trial.telling & (trial.slope > 0.0)) < 2:
        return None  # a description that is right about no joint cannot tell them apart
    first, second = (states.robot.joints[k].name for k in (a, b))
    what = "torques" if torque_only else "channels"
    message = (
        f"The {what} of '{first}' and '{second}' look exchanged: exchanged back, the description leaves "
        f"{_percent(trial)} % of the joints' torques unexplained instead of {_percent(found)} %."
    )
    advice = (
        f"Check the order of the joints ('{first}', '{second}') in the mapping: joints = […], or the columns' names."
    )
    fix = {"exchange torques" if torque_only else "exchange": [first, second]}
    return Finding("order", "problem", message, advice, f"{first}, {second}", fix=fix)


def exchange(count: int, a: int, b: int) -> list[int]:
    """The order of `count` joints in which `a` and `b` have changed places."""
    order = list(range(count))
    order[a], order[b] = b, a
    return order


def _percent(found: Match) -> str:
    return ", ".join(f"{100.0 * x:.2g}" for x in found.forward if np.isfinite(x))


def _scale(robot: Robot, found: Match) -> Iterator[Finding]:
    """Torques that are plain multiples of the description's, joint by joint or all of them."""
    telling = [int(j) for j in np.flatnonzero(found.telling & (found.left < WELL))]
    odd = [j for j in telling if not 1.0 / SCALE < abs(found.slope[j]) < SCALE]
    middle = float(np.median(np.abs(found.slope[telling]))) if telling else 1.0
    if len(telling) > 1 and not COMMON_SCALE[0] < middle < COMMON_SCALE[1] and len(odd) in (0, len(telling)):
        if middle > 1.0:
            advice = (
                "Check the unit and side (motor or joint) of the torque, and whether the inertias are placeholders."
            )
            message = f"All torques are some {middle:.3g} times what the description's inertias need."
        else:
            advice = "If these are currents, name them as current and give torque_constants; else check unit and side."
            message = f"All torques are some {middle:.3g} times what the description's inertias need: amperes?"
        yield Finding("torque_scale", "warning", message, advice)
        return
    for j in odd:
        name = robot.joints[j].name
        message = f"The torque of '{name}' is {found.slope[j]:.3g} times what the description's inertias need."
        advice = (
            f"Check torque constant, gear ratio and side (motor or joint) of '{name}', and whether there is a load."
        )
        # A load that the description does not know of multiplies the torque of a wrist; nothing divides it.
        severity: Severity = "warning" if abs(found.slope[j]) < 1.0 else "note"
        yield Finding("torque_scale", severity, message, advice, name)


# Which way is down? The direction of gravity that the torques ask for, with the description's inertias.


# Degrees between the stated and the found direction that inaccurate inertias do not explain.
AWRY = 25.0
# The found direction must explain the torques, and much better than the stated one: shares of the weighted sum.
LEAVES, BETTER = 0.3, 0.5
# A pull that far from the earth's is no gravity, but something else that the fit put there.
STRENGTH = (0.5, 2.0)
# A direction counts if turning gravity that way changes the torques by this part of what the strongest way does.
SEEN = 0.05


def check_gravity(states: States) -> Iterator[Finding]:
    """Compare the stated direction with the one that fits best."""
    robot = states.robot
    stated = np.asarray(robot.gravity)
    columns = gravity_columns(robot, states.q)
    rest = nominal_torque(robot, states.q, states.dq, states.ddq) - columns @ stated
    G, y = [], []
    for j in range(robot.dof):
        std = float(np.std(states.tau[:, j]))
        if not robot.torque_used[j] or std == 0.0:
            continue
        drive = drive_columns(states.dq[:, j], states.ddq[:, j], SMOOTHING_SPEED[robot.joints[j].kind])
        # What the drive's own terms can explain counts for no direction; an offset is none of gravity's.
        sides = (*columns[:, j].T, states.tau[:, j] - rest[:, j])
        free = [fit(drive, x).residual / std if np.ptp(x) > 0.0 else np.zeros_like(x) for x in sides]
        G.append(np.column_stack(free[:3]))
        y.append(free[3])
    if not G:
        return
    found, before, after, total = _direction(np.concatenate(G), np.concatenate(y), stated)
    size = float(np.linalg.norm(found))
    if size == 0.0 or after > LEAVES * total or after > BETTER * before:
        return
    if not STRENGTH[0] < size / 9.81 < STRENGTH[1]:
        return
    length = float(np.linalg.norm(stated))
    angle = float(np.degrees(np.arccos(np.clip(found @ stated / (size * length), -1.0, 1.0)))) if length else 180.0
    if angle < AWRY:
        return
    vector = ", ".join(f"{x:.1f}" for x in found)
    message = (
        f"The torques ask for gravity along ({vector}) m/s², {angle:.0f}° from the stated "
        f"({', '.join(f'{x:.4g}' for x in stated)})."
    )
    advice = f"State how the robot is mounted: gravity = [{vector}] in the mapping, rounded to the true direction."
    yield Finding("gravity", "problem", message, advice, fix={"gravity": [round(float(x), 2) for x in found]})


def _direction(G: Array, y: Array, stated: Array) -> tuple[Array, float, float, float]:
    """Gravity that fits, and the sums of squares left by the stated one, by the found one, and by none.

    Only directions that show in the torques are changed; the others stay as stated.
    """
    U, s, V = np.linalg.svd(G, full_matrices=False)
    shown = s > SEEN * s[0]
    change = V.T @ np.where(shown, (U.T @ (y - G @ stated)) / np.where(shown, s, 1.0), 0.0)
    found = stated + change
    sums = [float(np.sum((y - G @ g) ** 2)) for g in (stated, found, np.zeros(3))]
    return found, sums[0], sums[1], sums[2]
