"""Supports identification with known friction curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from steelyard.identification.structure import ROUNDINGS
from steelyard.parameters.terms import TermsLike
from steelyard.regression.schemes import Dynamic
from steelyard.regression.schemes.still import friction_coordinate
from steelyard.robot.robot import Robot
from steelyard.signals.source import Source
from steelyard.study import Study

if TYPE_CHECKING:
    from steelyard.friction.compensation import CurvesLike, SmoothedCurve
    from steelyard.identification.identification import Identification


def friction_curves(
    robot: Robot, known: CurvesLike, terms: TermsLike | None
) -> tuple[Mapping[str, SmoothedCurve], TermsLike | None]:
    """Return the known friction curves and the terms that remain to be fitted."""
    from steelyard.friction.compensation import remaining_terms, smoothed_curves

    curves = smoothed_curves(robot, known)
    return curves, remaining_terms(robot, curves) if curves and terms is None else terms


def fit_rounding(study: Study, curves: Mapping[str, SmoothedCurve]) -> Mapping[str, SmoothedCurve]:
    """Give each known curve the rounding at reversals with the smallest residual of its joint.

    The structure search tries the same roundings. A joint that is slower than the default rounding speed needs less.
    """
    plain = replace(study.opening, scheme=Dynamic())
    trials = []
    for times in (1.0, *ROUNDINGS):
        rounded = {name: replace(curve, smooth=times * curve.smooth) for name, curve in curves.items()}
        one = replace(plain, known_friction=rounded)
        left = dict(zip((e.name for e in one.rows.equations), one.quick_fit()[1], strict=True))
        trials.append((rounded, left))
    # Friction of a drive acts on every joint that it moves.
    weights = {name: friction_coordinate(study.robot, name).weights for name in curves}

    def residual(name: str, left: Mapping[str, float]) -> float:
        return sum(left.get(joint, 0.0) for joint, w in zip(study.robot.joint_names, weights[name], strict=True) if w)

    return {name: min(trials, key=lambda trial: residual(name, trial[1]))[0][name] for name in curves}


def error_with_fitted_friction(robot: Robot, log: Source | Sequence[Source] | Study, result: Identification) -> float:
    """Compute the mean error on the fitted logs with fitted instead of known friction [% of the torque].

    Friction changes with temperature, load and wear, so a known curve can be outdated.
    """
    from steelyard.identification.identify import identify  # Circular import.

    settings = result.settings
    other = identify(
        robot, log, physical=settings.physical, prior=settings.prior, preparation=settings.preparation,
        score_cutoff_hz=result.score_cutoff_hz, check=False, files=False,
    )  # fmt: skip
    return float(np.mean([score.mean_moving_nrmse_percent for score in other.identification]))
