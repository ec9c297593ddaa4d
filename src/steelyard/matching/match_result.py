"""`Match`: a robot matched to command logs, with its rollout errors and its error bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.dynamics import Model
from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation
from steelyard.ground.short_repr import short_repr
from steelyard.matching.command_stretch import CommandStretch
from steelyard.matching.joint_drives import Drives
from steelyard.matching.match_coordinates import GAIN_FACTORS, MatchPoint
from steelyard.matching.match_errors import Posterior, derived_errors
from steelyard.matching.rollout_score import FrequencyResidual, MotionScore
from steelyard.matching.window_fit import WindowFit
from steelyard.matching.window_rollout import Physics
from steelyard.parameters.inertial import inertial_parameters_of
from steelyard.parameters.term import make_term
from steelyard.parameters.terms import Terms
from steelyard.robot.robot import Robot

# If the logs remove a smaller share of its prior variance, a number comes mainly from the description.
INFORMED = 0.5
_UNITS = {"armature": "kg m²", "viscous": "N m s/rad", "dry": "N m", "bias": "rad", "delay": "s", "kp": "N m/rad",
         "kd": "N m s/rad", "limit": "N m"}  # fmt: skip
_LINEAR_UNITS = {"armature": "kg", "viscous": "N s/m", "dry": "N", "bias": "m", "delay": "s", "kp": "N/m",
                 "kd": "N s/m", "limit": "N"}  # fmt: skip


@short_repr
@dataclass(frozen=True, eq=False)
class MatchedNumber:
    """A number of a matched robot with its error bar.

    Attributes:
        name: Name, such as "armature".
        on: Joint or link.
        unit: Unit.
        value: Value.
        standard_error: Standard error.
        half_width: Half width of the 95 % interval.
        before: Value of the description.
        informed: Share of the prior variance that the logs remove.
    """

    name: str
    on: str
    unit: str
    value: float
    standard_error: float
    half_width: float
    before: float
    informed: float

    @property
    def from_logs(self) -> bool:
        """Whether the number comes mainly from the logs and not from the description."""
        return self.informed > INFORMED


@short_repr
@dataclass(frozen=True, eq=False)
class Match(OutcomeWithPage):
    """A robot matched to command logs.

    Attributes:
        robot: Robot with the inertias of its description.
        fit: Fit of the rollouts.
        posterior: Uncertainty of its coordinates.
        physics: Its traced functions, for further rollouts.
        train, test: Pieces of the logs for the fit and for the validation; without `test`, the scores use `train`.
        steps: Steps of the simulation per sample.
        described: The description, with the stated drives.
        remarks: Remarks on single joints.
        scores: Scores "fit", "hold-out" and "description" (of the description on the hold-out).
        spectra: Residuals over frequency, by joint.
        draws: Draws of the coordinates.
    """

    robot: Robot
    fit: WindowFit
    posterior: Posterior
    physics: Physics
    train: tuple[CommandStretch, ...]
    test: tuple[CommandStretch, ...]
    steps: int
    described: MatchPoint
    remarks: tuple[str, ...]
    scores: Mapping[str, MotionScore]
    spectra: tuple[FrequencyResidual, ...]
    draws: Array

    @property
    def point(self) -> MatchPoint:
        """Values of the matched robot."""
        return self.fit.point

    @property
    def drives(self) -> Drives:
        """Gains, limits and delay."""
        return self.point.drives

    @cached_property
    def model(self) -> Model:
        """The robot with its links, rotor inertias and friction."""
        return self._model(self.fit.coordinates.theta(self.fit.z))

    def _model(self, theta: Array) -> Model:
        return Model(self.robot, self.terms, theta)

    @cached_property
    def terms(self) -> Terms:
        """Joint terms of the model."""
        return Terms(self.robot, tuple(make_term(kind) for kind in ("rotor", "viscous", "coulomb")))

    def drawn_models(self) -> list[Model]:
        """Return the models of the posterior draws, for domain randomisation."""
        return [self._model(self.fit.coordinates.theta(z)) for z in self.draws]

    @cached_property
    def joint_numbers(self) -> tuple[MatchedNumber, ...]:
        """Estimated numbers of the joints and drives."""
        c, fit = self.fit.coordinates, self.fit
        before = c.centre
        out = []
        for name in c.fit:
            place = c.blocks[name]
            slope = np.zeros((place.stop - place.start, len(fit.z)))
            slope[:, place] = np.eye(place.stop - place.start)
            values, first = fit.z[place], before[place]
            if name in GAIN_FACTORS:
                stated = getattr(c.drives, name)
                slope *= (stated * np.exp(values))[:, None]
                values, first = stated * np.exp(values), stated
            out += self._numbers(name, values, slope, first)
        return tuple(out)

    def _numbers(self, name: str, values: Array, slope: Array, before: Array) -> list[MatchedNumber]:
        errors, informed = derived_errors(self.posterior, slope)
        joints = self.robot.joints
        owners = ["all joints"] if name == "delay" else [j.name for j in joints]
        units = (
            ["s"] if name == "delay" else [(_UNITS if j.kind == "revolute" else _LINEAR_UNITS)[name] for j in joints]
        )
        rows = zip(owners, units, values, errors, before, informed, strict=True)
        return [
            MatchedNumber(name, on, unit, float(v), float(e), float(self.posterior.quantile * e), float(b), float(i))
            for on, unit, v, e, b, i in rows
        ]

    @cached_property
    def base_numbers(self) -> tuple[MatchedNumber, ...]:
        """Base parameters of the links."""
        c, fit = self.fit.coordinates, self.fit
        slope = c.slope(fit.z, self.point)[: c.base.rank]
        return self._inertial(c.base.names, c.base.units, self.point.beta, slope, self.described.beta)

    @cached_property
    def link_numbers(self) -> tuple[MatchedNumber, ...]:
        """Ten parameters of each link."""
        from steelyard.matching.match_coordinates import link_slopes

        parameters = inertial_parameters_of(self.robot)
        slope = link_slopes(self.fit.coordinates, self.fit.z)
        names, units = [p.name for p in parameters], [p.unit for p in parameters]
        return self._inertial(names, units, self.point.links, slope, self.described.links)

    def _inertial(
        self, names: Any, units: Any, values: Array, slope: Array, before: Array
    ) -> tuple[MatchedNumber, ...]:
        errors, informed = derived_errors(self.posterior, slope)
        rows = zip(names, units, values, errors, before, informed, strict=True)
        return tuple(
            MatchedNumber(
                str(n), "links", u, float(v), float(e), float(self.posterior.quantile * e), float(b), float(i)
            )
            for n, u, v, e, b, i in rows
        )

    @cached_property
    def for_mujoco(self) -> WindowFit:
        """The fit of the MJCF, with a delay of the goals alone."""
        from steelyard.matching.match_files import fit_for_mujoco

        return fit_for_mujoco(self.fit, self.physics)

    @cached_property
    def score_in_mujoco(self) -> MotionScore:
        """Score of `for_mujoco` on the left-out motion."""
        from steelyard.matching.rollout_score import score_rollouts

        stretches = self.test or self.train
        if self.for_mujoco is self.fit:
            return self.scores["hold-out"]
        window = self.fit.windows.duration
        return score_rollouts(self.physics, self.for_mujoco.point, stretches, window, self.steps)

    @property
    def at_description(self) -> tuple[str, ...]:
        """Numbers that the logs do not determine; they stay near the description."""
        own = (*self.base_numbers, *self.joint_numbers)
        return tuple(
            n.name if n.on in ("links", "all joints") else f"{n.name} of {n.on}" for n in own if not n.from_logs
        )

    @property
    def missed(self) -> tuple[FrequencyResidual, ...]:
        """Joints whose response to the goal is wrong at some frequency."""
        return tuple(s for s in self.spectra if s.missed_hz is not None)

    def to_json(self) -> dict[str, Any]:
        from steelyard.matching.match_files import match_json

        return match_json(self)

    def files(self) -> Mapping[str, Content]:
        from steelyard.matching.match_files import match_files

        return match_files(self)

    def view(self) -> Presentation:
        from steelyard.matching.page import match_report, print_match

        return match_report, print_match
