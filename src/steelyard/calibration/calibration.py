"""`Calibration`: a calibrated robot, with its errors before and after."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.calibration.chain import Chain
from steelyard.calibration.choose import EffectChoice, EffectTrial, surely_better
from steelyard.calibration.corrected_robot import corrected_robot, corrections_json, written_files
from steelyard.calibration.deviation_fit import Fit, Problem
from steelyard.calibration.errors_of import Uncertainty, tool_stds
from steelyard.calibration.identifiable import GeometryIdentifiability, identifiable
from steelyard.calibration.joint_effects import EFFECTS, postures_of
from steelyard.calibration.pose_table import PoseTable
from steelyard.calibration.weights import distances
from steelyard.gravity.gravity_model import GravityModel
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation
from steelyard.ground.short_repr import short_repr
from steelyard.robot.robot import Robot

# Random postures for the error outside of the measured volume.
_POSTURES = 500
# Left-out poses may have this much more error than fitted ones before the poses are too few: the parameters then add
# more than half of the residual variance to the error.
_TOO_FEW = 1.25


@short_repr
@dataclass(frozen=True, eq=False)
class StageFit:
    """A model of some size with its fit.

    Attributes:
        name: "nominal", "geometry" (offsets and axes, which a URDF can state) or "full".
        problem: Poses and parameters.
        fit: Fit.
        uncertainty: Covariance of the parameters.
    """

    name: str
    problem: Problem
    fit: Fit
    uncertainty: Uncertainty


@short_repr
@dataclass(frozen=True)
class PoseErrors:
    """Errors of a model on some poses, in the unit of the channel: m, rad.

    Attributes:
        mean: Mean.
        median: Median.
        p95: 95th percentile.
        rms: Root of the mean square.
        largest: Largest.
        count: Number of readings.
    """

    mean: float
    median: float
    p95: float
    rms: float
    largest: float
    count: int

    @classmethod
    def of(cls, sizes: Array) -> PoseErrors:
        """Summarise the `sizes` of residuals, NaN left out."""
        r = sizes[np.isfinite(sizes)]
        if not len(r):
            return cls(*(float("nan"),) * 5, 0)
        return cls(
            float(np.mean(r)), float(np.median(r)), float(np.quantile(r, 0.95)), float(np.sqrt(np.mean(r**2))),
            float(np.max(r)), len(r),
        )  # fmt: skip


@short_repr
@dataclass(frozen=True, eq=False)
class Calibration(OutcomeWithPage):
    """A calibrated robot.

    Attributes:
        chain: Joints between base and tool, with the nominal geometry.
        table: Poses of the fit.
        holdout: Poses that only evaluate the result, if any.
        choice: Effects that were tried, and the chosen ones.
        stages: Models "nominal", "geometry" and "full", each with its own setup.
        findings: Remarks: outliers, sessions, units.
        gravity: Gravity model whose torques deflect the joints, if one was identified.
    """

    chain: Chain
    table: PoseTable
    holdout: PoseTable | None
    choice: EffectChoice
    stages: Mapping[str, StageFit]
    findings: tuple[str, ...] = field(default=())
    gravity: GravityModel | None = None

    @property
    def robot(self) -> Robot:
        """The robot with corrected joint placements, which any URDF can state."""
        return corrected_robot(self.chain, self.stages["geometry"])

    @property
    def effects(self) -> tuple[str, ...]:
        """Chosen effects."""
        return self.choice.chosen.effects

    def residuals(self, table: PoseTable, stage: str = "full") -> Array:
        """Compute predicted minus measured readings.

        Args:
            table: Poses with readings of the same kind.
            stage: Model: "nominal", "geometry" or "full".
        """
        own = self.stages[stage]
        postures = postures_of(self.chain, table.q, table.approach)
        problem = Problem.of(own.problem.deviations, postures, table.measurement)
        return problem.residuals(own.fit.setup, own.fit.values)

    def errors(self, table: PoseTable, stage: str = "full") -> dict[str, PoseErrors]:
        """Compute the errors by channel: position [m], rotation [rad].

        Args:
            table: Poses with readings of the same kind.
            stage: Model: "nominal", "geometry" or "full".
        """
        sizes = distances(table.measurement, self.residuals(table, stage))
        blocks = table.measurement.blocks
        return {
            channel: PoseErrors.of(sizes[:, [k for k, (_, c) in enumerate(blocks) if c == channel]])
            for channel in dict.fromkeys(c for _, c in blocks)
        }

    @cached_property
    def left_out(self) -> dict[str, EffectTrial]:
        """Errors on poses left out within the fit, of the nominal and of the chosen model."""
        return {"nominal": self.choice.candidates[0], "full": self.choice.chosen}

    @property
    def overfit(self) -> float:
        """Mean error on left-out poses over that on fitted ones."""
        fitted = self.errors(self.table)
        own = self.choice.chosen.mean
        return float(np.mean([own[c] / max(fitted[c].mean, 1e-300) for c in own]))

    @property
    def enough_poses(self) -> int:
        """Number of poses needed for at most a tenth more error on left-out poses than on fitted ones.

        The excess is the uncertainty of the parameters, which falls with the number of poses.
        """
        return int(np.ceil(len(self.table) * max(self.overfit - 1.0, 0.0) / 0.1))

    @property
    def few_poses(self) -> bool:
        """Whether the parameters add more than half of the residual variance to the error of left-out poses."""
        return self.overfit > _TOO_FEW

    @cached_property
    def local(self) -> bool:
        """Whether the error outside of the measured volume, parameters included, may exceed that of the description."""
        nominal, full = (next(iter(self.left_out[name].mean.values())) for name in ("nominal", "full"))
        return bool(self.volume["outside"] ** 2 + full**2 > nominal**2)

    @property
    def doubtful(self) -> bool:
        """Whether a gain that few poses show within their volume is too small for a description of the whole workspace.

        Left-out poses are from the same volume. If the parameters may do harm elsewhere, the gain must be clear:
        half of the variance of the description's error, or a gain beyond the luck of the best of all candidates.
        """
        before, after = self.left_out["nominal"], self.left_out["full"]
        nominal, full = (next(iter(trial.mean.values())) for trial in (before, after))
        clear = full**2 < 0.5 * nominal**2 or surely_better(before, after, len(self.choice.candidates))
        return self.few_poses and not clear and self.local

    def shown(self, effect: str) -> bool:
        """Whether an `effect` is significant: without it, left-out poses are worse by two standard errors."""
        better, error = self.choice.evidence.get(effect, (0.0, 1.0))
        return better > 2.0 * error

    @cached_property
    def volume(self) -> dict[str, Any]:
        """Box of the measured tool positions, and expected errors of the geometry in it and in the workspace [m]."""
        own = self.stages["full"]
        tips = self.chain.tips(self.table.q)
        lower, upper = (np.array([getattr(j, k) for j in self.chain.robot.joints]) for k in ("lower", "upper"))
        turning = np.array([j.kind == "revolute" for j in self.chain.robot.joints])
        low = np.where(
            np.isfinite(lower), np.maximum(lower, np.where(turning, -np.pi, lower)), np.where(turning, -np.pi, 0.0)
        )
        high = np.where(
            np.isfinite(upper), np.minimum(upper, np.where(turning, np.pi, upper)), np.where(turning, np.pi, 0.0)
        )
        still = np.ptp(self.table.q, axis=0) == 0.0
        q = np.random.default_rng(0).uniform(low, np.maximum(high, low), (_POSTURES, len(low)))
        q[:, still] = self.table.q[0, still]
        anywhere = Problem.of(own.problem.deviations, postures_of(self.chain, q), own.problem.measurement)
        with one_blas_thread():
            inside, outside = tool_stds(own.problem, anywhere, own.fit, own.uncertainty)
        box = np.array([tips.position.min(axis=0), tips.position.max(axis=0)])
        reach = self.chain.tips(q).position
        part = np.prod(np.ptp(box, axis=0)) / max(float(np.prod(np.ptp(reach, axis=0))), 1e-300)
        return {"box": box, "share": float(part), "inside": float(np.sqrt(np.mean(inside**2))),
                "outside": float(np.sqrt(np.mean(outside**2)))}  # fmt: skip

    @cached_property
    def identifiability(self) -> GeometryIdentifiability:
        """The deviations that this kind of measurement can identify on this robot, for any set of poses."""
        own = self.stages["full"]
        effects = tuple(e for e in ("offsets", "axes", "compliance") if e in self.effects or e != "compliance")
        with one_blas_thread():
            return identifiable(self.chain, effects, own.problem.measurement, own.fit.setup)

    @property
    def unmoved(self) -> tuple[str, ...]:
        """Joints of the chain with the same position in all poses."""
        names = (self.chain.robot.joints[link.coordinate] for link in self.chain.links)
        still = np.ptp(self.table.q, axis=0) == 0.0
        return tuple(j.name for j in names if still[self.chain.robot.joint_index(j.name)])

    def offsets(self) -> dict[str, float]:
        """Return the offsets of the joints alone [rad, m], for a robot whose description stays as it is."""
        own = self.stages["offsets"]
        pairs = zip(own.problem.deviations.parameters, own.fit.values, strict=True)
        return {self.chain.links[p.link].joint: float(v) for p, v in pairs if p.effect == "offsets"}

    def parameters(self) -> list[dict[str, Any]]:
        """Return the deviations with values, standard errors and whether the readings determine them."""
        own = self.stages["full"]
        rows = zip(
            own.problem.deviations.parameters, own.fit.values, own.uncertainty.standard_errors,
            own.uncertainty.informed, strict=True,
        )  # fmt: skip
        return [
            {"name": p.name, "effect": p.effect, "value": float(v), "standard_error": float(e), "unit": p.unit,
             "determined": float(i)}
            for p, v, e, i in rows
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        from steelyard.calibration.trust import verdict_of

        tables = {"fit": self.table, **({"holdout": self.holdout} if self.holdout is not None else {})}
        verdict = verdict_of(self)
        return {
            "robot": self.chain.robot.name,
            "poses": {name: len(t) for name, t in tables.items()},
            "measurement": self.table.measurement.name,
            "verdict": {"kind": verdict.kind, "headline": verdict.headline, "points": list(verdict.points)},
            "effects": [
                {"name": e, "about": EFFECTS[e].about, "shown": self.shown(e)} for e in self.effects
            ],
            "errors": {
                name: {stage: {c: vars(e) for c, e in self.errors(t, stage).items()} for stage in self.stages}
                    for name, t in tables.items()
            },
            "candidates": [
                {"effects": list(c.effects), "parameters": c.parameters, "left_out_mean": c.mean}
                for c in self.choice.candidates
            ],
            "parameters": self.parameters(),
            "identifiability": {
                "rank": self.identifiability.rank, "unknowns": len(self.identifiability.names),
                "formulas": list(self.identifiability.formulas), "alone": list(self.identifiability.alone),
                "joints_that_did_not_move": list(self.unmoved),
            },
            "setup": self.stages["full"].fit.setup.to_json(),
            "volume": {**self.volume, "box": self.volume["box"].tolist()},
            "corrections": corrections_json(self.chain, self.stages["geometry"]),
            "findings": list(self.findings),
            **({"gravity": self.gravity.to_json()} if self.gravity is not None else {}),
        }  # fmt: skip

    def files(self) -> Mapping[str, Content]:
        return written_files(self)

    def to_urdf(self, path: str | os.PathLike[str]) -> None:
        """Write the corrected robot as URDF to `path`; names and meshes of an original URDF are kept."""
        from steelyard.calibration.corrected_robot import write_urdf

        write_urdf(self, path)

    def view(self) -> Presentation:
        from steelyard.calibration.page import calibration_report, print_calibration

        return calibration_report, print_calibration
