"""Discrete mistakes of a log: signs, directions, order of joints, quarter turns, time units, gravity's direction.

Each mistake is a rival hypothesis. The log is corrected for it, base parameters are fitted to the corrected log, and
the blocks of time that a fit leaves out decide. The inertias of the description are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from steelyard.check import corrections
from steelyard.check._channels import STILL
from steelyard.check.gravity_direction import gravity_directions
from steelyard.check.inertia_sign import InertiaSigns
from steelyard.check.left_out import PARTS, Channels, LeftOutFits
from steelyard.ground.arrays import Array
from steelyard.ground.student import quantile
from steelyard.regression.block_grams import BlockGrams, Mask
from steelyard.signals.log import Finding

# Probability that a sound log is given any of all mistakes.
_FALSE_ALARMS = 0.02
# A mistake matters where it makes the torque error, in the mean of the joints, larger by this part: half of what counts
# as harm, since the parameters suffer more than the torques of the log that they are fitted to.
_HARM = 0.1
# Mistakes that are corrected one after the other, at most.
_MOST = 3
# Standard errors by which one mistake must explain more than another to be chosen.
_SURELY = 3.0
# A mistake is a rival of another one if it gains at least this many standard errors.
_LIKELY = 2.0
# Part of another one's gain that a rival explains.
_AS_MUCH = 0.8
# Share of a torque's power beyond which a correction has not explained it.
_UNEXPLAINED = 0.5
# Units of time that are confused, and sampling rates that are off by two or four.
_CLOCKS = (0.001, 0.01, 0.1, 0.25, 0.5, 2.0, 4.0, 10.0, 100.0, 1000.0)
_STATES = ("q", "dq", "ddq")


@dataclass(frozen=True, eq=False)
class Mistake:
    """A mistake that is there or not.

    Attributes:
        findings: Message, advice and fix; one for each joint concerned.
        fits: Fits that judge the corrected log.
        undo: Corrects the signals.
        order: Joint whose torque channel every joint has after the correction.
    """

    findings: tuple[Finding, ...]
    fits: LeftOutFits
    undo: Callable[[Channels], Channels]
    order: tuple[int, ...]

    def errors(self, measure: Callable[[BlockGrams, Array], Array], blocks: int, weights: Array) -> Array:
        """Measure the errors of the corrected log, in the order of the torque channels.

        Args:
            measure: Method of `fits`.
            blocks: Number of blocks of time that it wants.
            weights: 1/σ of every torque channel.
        """
        joints = self.fits.evidence.joints
        channels = [joints.index(self.order[j]) for j in joints]
        errors = measure(self.fits.sums(self.undo(self.fits.channels), blocks), weights[channels])
        out = np.empty_like(errors)
        out[..., channels] = errors
        return out


def find_mistakes(fits: LeftOutFits) -> list[Finding]:
    """Find the mistakes without which left-out blocks of a log are predicted much better.

    Args:
        fits: Fits of the log as it is.
    """
    out: list[Finding] = []
    for _ in range(_MOST):
        best, others = _most_telling(fits)
        if best is None:
            break
        if others:
            # The same mistake of another joint explains as much: of two joints, either may have the wrong sign.
            first = best.findings[0]
            return [*out, replace(first, message=f"{first.message} Or that of {', '.join(others)}.", fix=None)]
        out += best.findings
        fits = LeftOutFits(fits.evidence, best.undo(fits.channels), best.fits.every_link)
    return out


def name_rivals(fits: LeftOutFits, gain: float) -> list[str]:
    """Name mistakes that explain about as much as another one does, though not beyond doubt.

    Args:
        fits: Fits of the log as it is.
        gain: Part of the squared error on left-out blocks that the other one explains.
    """
    gains = _gains(fits, list(_mistakes(fits)), _LIKELY, 0.0)
    as_much = [m for m, logs in gains.items() if 1.0 - np.exp(-logs.mean()) > _AS_MUCH * gain]
    names = (f"{f.kind.replace('_', ' ')} of {f.joint}" if f.joint else f.kind for m in as_much for f in m.findings)
    return list(dict.fromkeys(names))


def _most_telling(fits: LeftOutFits) -> tuple[Mistake | None, list[str]]:
    """Find the mistake that explains most, if left-out blocks gain enough and beyond doubt."""
    trials = list(_mistakes(fits))
    gains = _gains(fits, trials, quantile(1.0 - _FALSE_ALARMS / len(trials), PARTS - 1), _HARM)
    gains = _without_brakes(fits, gains)
    if not gains:
        return None, []
    best = max(gains.values(), key=np.sum)
    alike = [mistake for mistake, gain in gains.items() if not _is_beyond(best - gain, _SURELY)]
    # Several can explain the same, such as the sign of a torque and that of its position: the most common one counts.
    # Two values of the same number cannot: then the log does not show the number.
    first = alike[0].findings[0]
    if any(m.findings[0].key == first.key and _differ(m.findings[0], first) for m in alike):
        return None, []
    same = [m.findings[0].joint for m in alike[1:] if len(m.findings) == 1 and m.findings[0].kind == first.kind]
    return alike[0], [f"'{name}'" for name in same if name and name != first.joint]


def _without_brakes(fits: LeftOutFits, gains: dict[Mistake, Array]) -> dict[Mistake, Array]:
    """Remove turned torques and positions of joints whose inertia has the right sign as logged: their motors brake.

    If only the sign of friction is evidence, the finding states that and has no fix.
    """
    turned = {m: j for m in gains if (j := _turned_joints(fits, m))}
    if not turned:
        return gains
    signs, out = InertiaSigns(fits), dict(gains)
    for mistake, joints in turned.items():
        told = [signs.of(j) for j in joints]
        if sum(told) > 0:
            del out[mistake]
        elif not any(told) and not _is_beyond(_explained(fits, _left_out_freely(fits, mistake), free=True), _LIKELY):
            doubt = " Only friction says so: the motor may brake as well, or its friction is compensated."
            first, *rest = (replace(f, severity="warning", fix=None) for f in mistake.findings)
            found = (replace(first, message=f"{first.message}{doubt}"), *rest)
            out = {replace(m, findings=found) if m is mistake else m: gain for m, gain in out.items()}
    return out


def _turned_joints(fits: LeftOutFits, mistake: Mistake) -> list[int]:
    """List the joints whose torque or position, but not both, a mistake turns."""
    keys = {"sign.torque", "sign.position"}
    turned = [f.joint for f in mistake.findings if len(keys & set(f.fix or ())) == 1]
    return [j for j in fits.evidence.joints if fits.robot.joint_names[j] in turned]


def _left_out_freely(fits: LeftOutFits, mistake: Mistake) -> Array:
    """Compute the errors on left-out parts of a corrected log, with friction of either sign."""
    return mistake.errors(partial(mistake.fits.left_out, free=True), PARTS, fits.weights)


def _gains(fits: LeftOutFits, trials: Sequence[Mistake], errors: float, harm: float) -> dict[Mistake, Array]:
    """Compute the gains of corrections on left-out parts, for those that gain by at least `errors` standard errors."""
    as_it_is, out = fits.in_sample(fits.whole, fits.weights), {}
    same = tuple(range(fits.robot.dof))
    for mistake in trials:
        # A correction that gains little on the rows it is fitted to gains by chance on others: without this limit, a
        # sound log of a real arm had a zero that is off by a quarter turn.
        judges = _judges(fits, mistake)
        if not _harms(judges, as_it_is, mistake.errors(mistake.fits.in_sample, 1, fits.weights), harm):
            continue
        left = mistake.errors(mistake.fits.left_out, PARTS, fits.weights)
        after, gain = left.sum(axis=0), _explained(fits, left)
        explains = _unexplained(fits, mistake, after) < _UNEXPLAINED
        before = fits.together.sum(axis=0)
        # Exchanged channels are both wrong: if one of them alone gains, its friction or delay is the cause.
        groups = [judges] if mistake.order == same else list(np.eye(len(judges), dtype=bool)[judges])
        if explains and _is_beyond(gain, errors) and all(_harms(one, before, after, harm) for one in groups):
            out[mistake] = gain
    return out


def _differ(one: Finding, other: Finding) -> bool:
    """Whether two findings correct the same number by values that differ."""
    if one.kind != "gravity":
        return one.fix != other.fix
    a, b = (np.array((f.fix or {})["gravity"]) for f in (one, other))
    return bool(np.linalg.norm(a - b) > 0.1 * np.linalg.norm(a))


def _judges(fits: LeftOutFits, mistake: Mistake) -> Mask:
    """Return the equations whose errors judge a correction: of exchanged joints these two, otherwise all that live.

    On a large arm two exchanged joints of the wrist hardly change the other joints' torques.
    """
    is_exchange = mistake.order != tuple(range(fits.robot.dof))
    return fits.live & _concerned(fits, mistake) if is_exchange else fits.live


def _concerned(fits: LeftOutFits, mistake: Mistake) -> Mask:
    """Return the equations of the joints that a mistake names; all if it names none."""
    names = {name for finding in mistake.findings for name in (finding.joint or "").split(", ")} - {""}
    return np.array([not names or fits.robot.joint_names[j] in names for j in fits.evidence.joints])


def _harms(judges: Mask, before: Array, after: Array, least: float) -> bool:
    """Whether the error is larger as logged than corrected by more than this part, in the mean of the judges."""
    ratios = before[judges] / np.maximum(after[judges], 1e-300)
    return bool(len(ratios) and np.mean(np.sqrt(ratios)) > 1.0 + least)


def _explained(fits: LeftOutFits, left: Array, free: bool = False) -> Array:
    """Compute how much less of the torque a correction leaves, as a logarithm for every part of the left-out blocks."""
    logged = fits.left_out(fits.parts, fits.weights, free=True) if free else fits.together
    before, after = (x @ fits.weights**2 for x in (logged, left))
    rounding = 1e-12 * before.mean()
    return np.asarray(np.log((before + rounding) / (after + rounding)))


def _unexplained(fits: LeftOutFits, mistake: Mistake, after: Array) -> float:
    """Compute the share of the torque's power that a correction leaves, of the joints that it concerns."""
    power = np.array([gram[-1, -1] for gram in fits.whole.totals])
    power -= fits.whole.sums.sum(axis=0) ** 2 / np.maximum(fits.whole.rows.sum(axis=0), 1.0)
    own = fits.live & _concerned(fits, mistake)
    shares = after[own] / np.maximum(power[own], 1e-300)
    return float(np.median(shares) if own.sum() > 2 else np.max(shares, initial=0.0))


def _is_beyond(gain: Array, errors: float) -> bool:
    """Whether the mean gain of the parts is above zero by more than `errors` standard errors."""
    return bool(gain.mean() > errors * gain.std(ddof=1) / np.sqrt(len(gain)))


def _mistakes(fits: LeftOutFits) -> Iterator[Mistake]:
    """List all mistakes, those that are made most often first."""
    robot, used = fits.robot, sorted(fits.evidence.joints)
    names, dof = robot.joint_names, robot.dof
    as_it_is = tuple(range(dof))
    moved = [k for k, j in enumerate(robot.joints) if np.ptp(fits.channels.q[:, k]) > STILL[j.kind]]

    def one(finding: Finding, undo: Callable[[Channels], Channels]) -> Mistake:
        return Mistake((finding,), fits, undo, as_it_is)

    def turn(k: int, *names: str) -> Callable[[Channels], Channels]:
        return partial(_times, names, np.where(np.arange(dof) == k, -1.0, 1.0))

    reason = "with the opposite sign, left-out parts of the log are predicted much better"
    signs = tuple(corrections.wrong_sign(names[k], reason) for k in used)
    for k, sign in zip(used, signs, strict=True):
        yield one(sign, turn(k, "tau"))
    if fits.live.sum() < 3:
        return  # of two joints, none is the witness of the other's mistake; its friction is, of a torque's sign
    if len(used) > 1:
        yield Mistake(signs, fits, partial(_times, ("tau",), -np.ones(dof)), as_it_is)
    stated, tilted = fits.channels.gravity, LeftOutFits(fits.evidence, fits.channels, every_link=True)
    for gravity in gravity_directions(tilted):
        finding = corrections.tilted_gravity(gravity, stated)
        yield Mistake((finding,), tilted, partial(Channels.with_signals, gravity=gravity), as_it_is)
    for k in moved:
        yield one(corrections.wrong_direction(names[k]), turn(k, *_STATES))
        yield one(corrections.reversed_axis(names[k]), turn(k, *_STATES, "tau"))
    for k in moved:
        if robot.joints[k].kind == "revolute":
            for shift in (0.5 * np.pi, -0.5 * np.pi, np.pi):
                q = fits.channels.q + shift * (np.arange(dof) == k)
                yield one(corrections.wrong_zero(names[k], shift), partial(Channels.with_signals, q=q))
    for a, b in combinations(sorted(set(used) & set(moved)), 2):
        if robot.joints[a].kind == robot.joints[b].kind:
            yield from _exchanges(fits, a, b)
    for factor in _CLOCKS:
        clock = factor * fits.channels.clock
        yield one(corrections.wrong_clock(factor), partial(Channels.with_signals, clock=clock))


def _times(names: Sequence[str], factors: Array, c: Channels) -> Channels:
    return c.with_signals(**{name: getattr(c, name) * factors for name in names})


def _exchanges(fits: LeftOutFits, a: int, b: int) -> Iterator[Mistake]:
    names, order = fits.robot.joint_names, list(range(fits.robot.dof))
    order[a], order[b] = b, a

    def exchange(signals: tuple[str, ...], c: Channels) -> Channels:
        return c.with_signals(**{name: np.ascontiguousarray(getattr(c, name)[:, order]) for name in signals})

    for signals, torque_only in (((*_STATES, "tau", "moving"), False), (("tau",), True)):
        finding = corrections.exchanged_joints(names[a], names[b], torque_only)
        yield Mistake((finding,), fits, partial(exchange, signals), tuple(order))
