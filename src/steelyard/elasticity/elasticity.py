"""`Elasticity`: the elastic joints of a robot, as identified from logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.elasticity.joint_elasticity import Interval, JointElasticity
from steelyard.errors import UnknownNameError
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns, by_columns
from steelyard.ground.numbers import number
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation, file_name
from steelyard.ground.reasons import explained
from steelyard.robot.robot import Robot

_WHY_NULL = {
    "skew_s": "The joints have one encoder, or the skews of their link encoders differ.",
    "joints/*/stiffness": "The logs do not determine it; unknown_because states the reason.",
    "joints/*/stiffness_interval": "The logs do not determine it; unknown_because states the reason.",
    "joints/*/stiffness_interval/*": "The compliance may be zero.",
    "joints/*/damping": "The stiffness is not known.",
    "joints/*/rotor": "The stiffness is not known, or known links give the torque.",
    "joints/*/link": "Two encoders determine the stiffness without the inertia of the link.",
    "joints/*/skew": "The joint has one encoder.",
    "joints/*/hysteresis": "It needs two encoders and the torque of the motor.",
    "joints/*/frequencies_hz": "They belong to joints with one encoder.",
    "joints/*/explained": "It belongs to joints with two encoders.",
    "joints/*/explained_without_skew": "It belongs to joints with two encoders.",
    "joints/*/held_out/*": "The joint hardly moves in this log.",
    "torque_explained/*": "The torque comes from known links, so there is no fit of it.",
}

# The deflection row is a poor model of a joint if it explains less than this share of a validation log's deflection.
_EXPLAINS = 0.9


@dataclass(frozen=True, eq=False, repr=False)
class Elasticity(OutcomeWithPage, DisplayMixin):
    """Stiffness, damping and encoder skew of elastic joints.

    Attributes:
        robot: The robot.
        joints: Joints with an estimate.
        names: Names of the logs of the fit, then of those for validation.
        findings: Remarks on the logs.
        cutoff_hz: Cut-off of the low-pass [Hz]; 0 for resonances.
        torque_explained: Share of the variance of each joint's torque that the rigid robot explains.
        source: Description that the exported model extends.
    """

    robot: Robot
    joints: tuple[JointElasticity, ...]
    names: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    cutoff_hz: float = 0.0
    torque_explained: tuple[float, ...] = ()
    source: Path | None = None

    def __getitem__(self, joint: str) -> JointElasticity:
        """Return the elasticity of a `joint`."""
        for one in self.joints:
            if one.joint == joint:
                return one
        raise UnknownNameError("elastic joint", joint, [one.joint for one in self.joints])

    @property
    def known(self) -> tuple[JointElasticity, ...]:
        """Joints whose stiffness is known."""
        return tuple(one for one in self.joints if one.known)

    @property
    def skew(self) -> Interval | None:
        """Clock skew of the link encoders [s]; None if the joints disagree."""
        each = [one.skew for one in self.joints if one.skew is not None]
        if not each:
            return None
        values, widths = (np.array([getattr(x, n) for x in each]) for n in ("value", "half_width"))
        weights = 1.0 / np.maximum(widths, 1e-12) ** 2
        mean = float(weights @ values / weights.sum())
        # The 99 % interval of a normal distribution is 1.31 times the 95 % interval; the factor √n allows for n joints.
        if np.any(np.abs(values - mean) > 1.31 * np.sqrt(len(each)) * widths):
            return None
        return Interval(mean, float(1.0 / np.sqrt(weights.sum())))

    def headline(self) -> Headline:
        known, count = self.known, len(self.joints)
        points = []
        if self.joints[0].skew is not None:
            points.append(self._skew_sentence())
        for one in self.joints:
            low, high = one.stiffness_interval
            if one.known:
                upper = number(high, 3) if np.isfinite(high) else "unlimited"
                points.append(
                    f"{one.joint}: K = {number(one.stiffness, 3)} {one.stiffness_unit} "
                    f"(95 %: {number(low, 3)} to {upper})."
                )
            else:
                points.append(f"{one.joint}: the stiffness is unknown, because {one.unknown}.")
        scores = [x for one in self.joints for x in one.held_out.values()]
        if scores:
            points.append(
                f"The fit explains {number(100 * min(scores), 4)} % or more of the deflection of validation logs."
            )
        points += self.findings
        if not known:
            return Headline("bad", "The logs do not determine the stiffness of any joint.", tuple(points))
        badly = [one for one in known if min([*one.held_out.values(), 1.0]) < _EXPLAINS]
        if len(known) < count or badly:
            return Headline(
                "warning", f"The logs determine the stiffness of {len(known)} of {count} joints.", tuple(points)
            )
        return Headline("good", f"The logs determine the stiffness of {'all ' if count > 1 else ''}{count} joint"
                        f"{'s' if count > 1 else ''}.", tuple(points))  # fmt: skip

    def _skew_sentence(self) -> str:
        skew, ms = self.skew, 1e3
        if skew is None:
            each = ", ".join(f"{x.joint} {number(ms * x.skew.value, 3)}" for x in self.joints if x.skew is not None)
            return f"The clock skews of the link encoders differ, and were removed [ms]: {each}."
        verb = "lag behind" if skew.value >= 0.0 else "are ahead of"
        return (
            f"The link encoders {verb} those of the motors by {number(ms * abs(skew.value), 3)} ± "
            f"{number(ms * skew.half_width, 2)} ms, which was removed."
        )

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Joints ("joints")."""
        return {"joints": self.joint_columns}

    def joint_columns(self) -> NamedColumns:
        """Return the main numbers of all joints by column."""
        heads = ("joint", "source", "known", "stiffness", "low", "high", "unit", "damping", "rotor", "link", "skew_s",
                 "skew_half_width_s", "explained", "held_out")  # fmt: skip
        nan = float("nan")
        rows = [
            [x.joint, x.source, x.known, x.stiffness, *(x.stiffness_interval if x.known else (nan, nan)),
             x.stiffness_unit, *(nan if v is None else v.value for v in (x.damping, x.rotor, x.link, x.skew)),
             nan if x.skew is None else x.skew.half_width, x.explained, min([*x.held_out.values()], default=nan)]
            for x in self.joints
        ]  # fmt: skip
        return by_columns(heads, rows)

    def to_json(self) -> dict[str, Any]:
        glance, skew = self.headline(), self.skew
        document = {
            "robot": self.robot.name,
            "verdict": {"kind": glance.kind, "sentence": glance.sentence, "points": list(glance.points)},
            "logs": list(self.names),
            "cutoff_hz": self.cutoff_hz,
            "skew_s": None if skew is None else skew.to_json(),
            "joints": [one.to_json() for one in self.joints],
            "torque_explained": list(self.torque_explained),
        }
        return explained(document, _WHY_NULL)

    def files(self) -> dict[str, Content]:
        from steelyard.elasticity.elastic_files import elastic_files

        return elastic_files(self, file_name(self.robot.name))

    def view(self) -> Presentation:
        from steelyard.elasticity.page import elasticity_report, print_elasticity

        return elasticity_report, print_elasticity
