"""Do the joints bear witness for one another? Scale and order of torques that are nearly all friction.

All joints share the parameters of the links. A mistake about a joint that carries little makes the joints leave hardly
more together than they leave alone, but it does so all the time. What their common fit leaves is therefore compared,
block of time by block, with what it leaves if the mistake is undone: a mean difference that is many times its own
scatter is no accident, however small it is (so are models compared that do not contain one another; Vuong 1989). This
needs nothing from the description but lengths and axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np

from steelyard.check._description import drive_columns, exchange
from steelyard.check._evidence import Evidence, Fit, basis
from steelyard.check._mistakes import Together, coupled_motors, turning_motor, wrong_scale
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.signals.log import Finding

_BLOCKS = 20
# Mean of the blocks' differences over its standard error. By chance beyond 3.5 once in 800 (19 degrees of freedom).
_CERTAIN = 3.5
# What undoing a mistake must take off what is left: less does no harm.
_MATTERS = 0.05
# Factors of a torque that are tried, and how near to 1 torque constants are usually known.
_FACTORS = np.geomspace(0.1, 10.0, 25)
_KNOWN = 1.35
_MOST_ROWS, _MOST_ROWS_EXCHANGED = 600, 200
# The torque of one motor in that of another: so near to once, and leaving so small a part of what was left.
_ONCE, _LEAVES = 0.15, 0.3
_RIDGE = 1e-10  # of the squared length of a column; what the motion does not show stays small


def check_witness(seen: Evidence, fits: Mapping[int, Fit]) -> Iterator[Finding]:
    """The one mistake, of a torque's scale or of two joints' order, by which all others say they fit better.

    Args:
        seen: the rows of a log.
        fits: of each joint's equation by itself, by the joint's number.
    """
    if len(seen.joints) < 3:
        return  # one joint against one other: none of them is the witness
    together = Together.of(seen, fits, _MOST_ROWS)
    as_it_is = _blocks(together, _rest(together.A, together.y))
    if as_it_is.sum() * (1.0 - _MATTERS) < len(together.y):
        return  # alone they leave as much, up to what matters (weighted, 1 per row)
    found = max([*_exchanges(seen, fits), *_scales(together, as_it_is)], key=lambda f: f[0], default=None)
    if found is not None:
        yield found[1]


def check_coupled(seen: Evidence) -> Iterator[Finding]:
    """Two neighbours of which one's torque holds the other's once, as those of a wrist's motors do.

    Where the friction of a motor that turns with both joints explains it as well, it is that: signals are the joints',
    and the description does not know of the coupling.

    Args:
        seen: the rows of a log.
    """
    rows, joints = seen.thinned(_MOST_ROWS), seen.robot.joints
    found: list[tuple[float, Finding]] = []
    for e, j in enumerate(seen.joints):
        A, y = seen.A[e][rows], seen.y[e][rows]
        Q = basis(A)
        for other in (b for b in seen.joints if abs(b - j) == 1 and joints[b].kind == joints[j].kind):
            rest, beside = (x - Q @ (Q.T @ x) for x in (y, seen.tau[rows, other]))
            share = float(beside @ rest) / max(float(beside @ beside), 1e-300)
            after = rest - share * beside
            part = float(after @ after) / max(float(rest @ rest), 1e-300)
            blocks = [np.array([np.sum(b**2) for b in np.array_split(r, _BLOCKS)]) for r in (rest, after)]
            if abs(abs(share) - 1.0) > _ONCE or part > _LEAVES or _certainty(*blocks) < _CERTAIN:
                continue
            sign = float(np.sign(share))
            speed, rise = (x[rows, other] + sign * x[rows, j] for x in (seen.dq, seen.ddq))
            Q2 = basis(np.column_stack([A, drive_columns(speed, rise, SMOOTHING_SPEED[joints[j].kind])]))
            rubbing = float(np.sum((y - Q2 @ (Q2.T @ y)) ** 2)) < _LEAVES * float(rest @ rest)
            names = joints[j].name, joints[other].name
            found.append((part, turning_motor(*names, sign) if rubbing else coupled_motors(*names, -sign)))
    if found:
        yield min(found, key=lambda f: f[0])[1]


def _certainty(before: Array, after: Array) -> float:
    """By how many standard errors blocks leave less than before; 0 if the gain does not matter."""
    gain = before - after
    if gain.sum() < _MATTERS * before.sum():
        return 0.0
    return float(gain.mean() / max(gain.std(ddof=1) / np.sqrt(len(gain)), 1e-300))


def _scales(together: Together, before: Array) -> Iterator[tuple[float, Finding]]:
    """Torques that agree with the other joints' at another scale, each with how certain that is."""
    seen = together.seen
    links = np.array(seen.base.independent) < seen.robot.inertial_count
    scale = 1.0 / np.maximum(np.linalg.norm(together.A, axis=0), 1e-300)
    parts = [together.A[rows] * scale for rows in together.equations]
    grams = [A.T @ A for A in parts]
    sides = [A.T @ together.y[rows] for A, rows in zip(parts, together.equations, strict=True)]
    power = float(together.y @ together.y)
    for e, joint in enumerate(seen.joints):
        costs = []
        for factor in _FACTORS:
            # Links that are seen through a torque `factor` times too small: their columns are 1/factor times as large.
            through = np.where(links, 1.0 / factor, 1.0)
            G = sum(grams) + grams[e] * (np.outer(through, through) - 1.0)
            side = sum(sides) + sides[e] * (through - 1.0)
            costs.append(power - float(side @ np.linalg.solve(G + _RIDGE * np.eye(len(G)), side)))
        best = int(np.argmin(costs))
        factor = float(_FACTORS[best])
        if best in (0, len(costs) - 1) or 1.0 / _KNOWN < factor < _KNOWN:
            continue  # without end: the links say nothing of this torque
        A = np.array(together.A)
        A[together.equations[e]] *= np.where(links, 1.0 / factor, 1.0)
        certain = _certainty(before, _blocks(together, _rest(A, together.y)))
        if certain > _CERTAIN:
            yield certain, _supposed(wrong_scale(seen.robot.joints[joint].name, factor))


def _exchanges(seen: Evidence, fits: Mapping[int, Fit]) -> Iterator[tuple[float, Finding]]:
    """Pairs of joints whose channels agree with all others if they are exchanged, each with how certain that is."""
    robot = seen.robot
    if len(seen.joints) < robot.dof:
        return
    together = Together.of(seen, fits, _MOST_ROWS_EXCHANGED)
    states = [x[together.rows] for x in (seen.q, seen.dq, seen.ddq)]
    pairs = [(a, b) for a, b in combinations(range(robot.dof), 2) if robot.joints[a].kind == robot.joints[b].kind]
    orders = [list(range(robot.dof)), *(exchange(robot.dof, *pair) for pair in pairs)]
    # All postures in one call: it is the calls that take time.
    every = together.regressor(*(np.concatenate([x[:, order] for order in orders]) for x in states))
    before, *others = np.split(every, len(orders))
    as_it_is = _blocks(together, _rest(together.with_links(before), together.y))
    for (a, b), order, Y in zip(pairs, orders[1:], others, strict=True):
        # A channel keeps its friction, and takes the other joint's place among the links.
        after = _blocks(together, _rest(together.with_links(Y[:, order]), together.y))
        certain = _certainty(as_it_is, after)
        if certain > _CERTAIN:
            yield certain, _supposed(_exchanged(robot.joints[a].name, robot.joints[b].name))


def _exchanged(first: str, second: str) -> Finding:
    message = f"The channels of '{first}' and '{second}' look exchanged: exchanged back, they agree with the others'."
    advice = (
        f"Check the order of the joints ('{first}', '{second}') in the mapping: joints = […], or the columns' names."
    )
    return Finding("order", "problem", message, advice, f"{first}, {second}", fix={"exchange": [first, second]})


def _supposed(finding: Finding) -> Finding:
    """A warning: that it is certain does not say that nothing else would explain it as well."""
    return replace(finding, severity="warning")


def _rest(A: Array, y: Array) -> Array:
    """What a fit leaves of y."""
    scaled = A / np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    G = scaled.T @ scaled
    return np.asarray(y - scaled @ np.linalg.solve(G + _RIDGE * np.eye(len(G)), scaled.T @ y))


def _blocks(together: Together, rest: Array) -> Array:
    """Sums of squares in blocks of time, over all joints."""
    power = np.sum(rest.reshape(len(together.seen.joints), -1) ** 2, axis=0)
    return np.array([part.sum() for part in np.array_split(power, _BLOCKS)])
