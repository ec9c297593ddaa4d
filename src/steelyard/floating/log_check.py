"""`check_floating_log`: mistakes in the statement of base and contacts, before identification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import LogError
from steelyard.floating.mechanism_logs import mechanism_band
from steelyard.floating.motion import FloatingMotion, Preparer
from steelyard.floating.setup import CONTACT_ROWS, ContactColumns, FloatingMapping
from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Outcome
from steelyard.ground.short_repr import short_repr
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding

if TYPE_CHECKING:
    from rich.console import Console

# Cut-off relative to the band of the motion: the middle of the candidates of an identification.
_CUTOFF = 4.0
# A closed contact slides if its speed exceeds this share of its speed with locked joints. Wrong radii and leg lengths
# move a standing foot by some percent.
_SLIDES = 0.15
# The same relative to the other closed feet, whose own errors add to it, and to the speed that they have in common.
_SLIDES_RELATIVE = 0.5
# Smallest ratio of net displacement to path in a quarter of a period: jitter has almost no net displacement.
_DIRECTED = 0.5


@dataclass(frozen=True)
class ContactCheck:
    """A contact in a log.

    Attributes:
        frame: Frame of the contact.
        closed: Share of the time in contact.
        stances: Number of sufficiently long stances.
        speed: Median speed while it is closed, over a quarter of the motion's period [m/s]; NaN if it is unknown.
        slides: Whether it slides.
    """

    frame: str
    closed: float
    stances: int
    speed: float
    slides: bool


@short_repr
@dataclass(frozen=True, eq=False)
class FloatingLogCheck(Outcome):
    """Mistakes of a log of a mechanism with a floating base or contacts.

    Attributes:
        robot: The mechanism.
        source: The log.
        findings: Mistakes and remarks.
        contacts: Contacts whose force is unknown.
        left_out: Number of samples that an identification excludes, by reason.
        samples: Number of samples.
    """

    robot: Robot
    source: str
    findings: tuple[Finding, ...]
    contacts: tuple[ContactCheck, ...]
    left_out: Mapping[str, int]
    samples: int

    @property
    def exit_code(self) -> int:
        """0 without a problem, else 1."""
        return int(any(f.severity == "problem" for f in self.findings))

    def to_json(self) -> dict[str, Any]:
        return {
            "robot": self.robot.name,
            "log": self.source,
            "samples": self.samples,
            "left_out": dict(self.left_out),
            "findings": [
                {"kind": f.kind, "severity": f.severity, "message": f.message, "advice": f.advice}
                for f in self.findings
            ],
            "contacts": [vars(c) | {"speed": _finite(c.speed)} for c in self.contacts],
            "why_null": {
                "contacts/*/speed": "The stances are too short, or the log lacks velocity and position of the base.",
            },
        }

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say

        say(out, f"{self.source}: {self.samples} samples, {'; '.join(self._left_out()) or 'all usable'}.")
        for c in self.contacts:
            speed = f", with {1e3 * c.speed:.2g} mm/s" if np.isfinite(c.speed) else ""
            say(out, f"Contact '{c.frame}': closed {100 * c.closed:.0f} % of the time in {c.stances} stances{speed}.")
        for finding in self.findings:
            say(out, f" • {finding.severity}: {finding.message} {finding.advice}".rstrip())
        if not self.findings:
            say(out, "No mistakes were found.")

    def _left_out(self) -> list[str]:
        return [f"{n} left out: {reason}" for reason, n in self.left_out.items() if n]


def check_floating_log(robot: RobotLike, log: Any, *, mapping: Any = None) -> FloatingLogCheck:
    """Check a log of a mechanism with a floating base or contacts.

    It detects a wrong order of the quaternion, wrong axes of the twist, an accelerometer without gravity or in another
    unit, and contacts that slide while the log states contact.

    Args:
        robot: Robot, in any form that `load_robot` accepts, with `floating=True` or a floating joint.
        log: Path of a log, or a `Log` as `Preparer.read` returns it.
        mapping: Mapping file or dict with the tables [base], [contacts] and passive.
    """
    arm = as_robot(robot)
    preparer = Preparer(arm, FloatingMapping.of(mapping, arm))
    one = preparer.read(log)
    period = float(np.median(np.diff(one.t)))
    cutoff = min(_CUTOFF * mechanism_band(preparer, [one]), 0.4 / period)
    motions = list(preparer.motions(one, cutoff))
    source = str(one.meta.get("source", "The log"))
    if not motions:
        raise LogError(f"{source}: every piece of the log is too short for a check; record longer phases.")
    findings = [*one.findings, *preparer.findings]
    contacts = []
    # A wrong base motion makes every foot slide, so it is tested first.
    wrong = any(f.severity == "problem" for f in preparer.findings)
    for contact in preparer.unknown:
        checked = _contact(preparer, contact, motions, 0.25 * _CUTOFF / cutoff)
        contacts.append(checked)
        if checked.slides and not wrong:
            findings.append(
                Finding("sliding", "problem", f"Contact '{contact.frame}' slides: while it is closed it moves with "
                        f"{1e3 * checked.speed:.2g} mm/s.",
                        "Check its state column, its radius and the lengths of the leg, or leave this log out.")
            )  # fmt: skip
    return FloatingLogCheck(arm, source, tuple(findings), tuple(contacts), dict(preparer.left_out), len(one.t))


def _contact(
    preparer: Preparer, contact: ContactColumns, motions: Sequence[FloatingMotion], quarter: float
) -> ContactCheck:
    """Measure the speed of a contact while it is closed, over quarters of the motion's period."""
    k = preparer.unknown.index(contact)
    rows = list(CONTACT_ROWS[contact.kind][:3])
    speeds, shares, held_speeds = [], [], []
    closed = total = stances = 0
    known = _knows_velocity(preparer)
    for motion in motions:
        h = motion.low_pass.period
        inside = np.zeros(len(motion.t), dtype=bool)
        trim = max(motion.low_pass.memory // 3, 1)
        inside[trim:-trim] = True
        standing = motion.standing[:, k] & inside
        if known:
            J = preparer.contact_jacobian(contact, motion.q)[:, rows]
            velocity = _velocity(preparer, contact, motion)
            own = list(preparer.floating.coordinates) if preparer.floating else []
            held = np.linalg.norm(np.einsum("tij,tj->ti", J[:, :, own], motion.dq[:, own]), axis=1)
        else:  # feet at rest have one common velocity relative to the base
            each = np.stack([_velocity(preparer, c, motion) for c in preparer.unknown], axis=1)
            stands = motion.standing[:, :, None]
            common = np.sum(each * stands, axis=1) / np.maximum(stands.sum(axis=1), 1)
            velocity, held = each[:, k] - common, np.linalg.norm(common, axis=1)
        closed, total = closed + int(standing.sum()), total + int(inside.sum())
        length = max(round(quarter / h), 2)
        for first, last in _stretches(standing):
            edge = length if last - first < inside.sum() else 0  # the filter spreads a step into the stance
            starts = range(first + edge, last - edge - length + 1, length)
            stances += bool(len(starts))
            for at in starts:
                part = velocity[at : at + length]
                net, path = float(np.linalg.norm(part.mean(axis=0))), float(np.mean(np.linalg.norm(part, axis=1)))
                speeds.append(net)
                shares.append(net / max(path, 1e-12))
                held_speeds.append(float(np.mean(held[at : at + length])))
    share = closed / max(total, 1)
    if not speeds or not (known or len(preparer.unknown) > 1):
        return ContactCheck(contact.frame, share, stances, float("nan"), False)
    speed = float(np.median(speeds))
    limit = _SLIDES if known else _SLIDES_RELATIVE
    slides = speed > limit * float(np.median(held_speeds)) and float(np.median(shares)) > _DIRECTED
    return ContactCheck(contact.frame, share, stances, speed, slides)


def _velocity(preparer: Preparer, contact: ContactColumns, motion: FloatingMotion) -> Array:
    """Return the velocity of a contact in the world, or relative to the base if its velocity is not measured."""
    J = preparer.contact_jacobian(contact, motion.q)[:, list(CONTACT_ROWS[contact.kind][:3])]
    return np.asarray(np.einsum("tij,tjk,tk->ti", preparer.contact_axes(contact, motion.q), J, motion.dq))


def _knows_velocity(preparer: Preparer) -> bool:
    """Whether the log contains the velocity of the base; an IMU alone does not measure it."""
    base = preparer.mapping.base
    return (
        preparer.floating is not None and base is not None and bool({"position", "linear_velocity"} & set(base.columns))
    )


def _stretches(flags: Any) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _finite(x: float) -> float | None:
    return x if np.isfinite(x) else None
