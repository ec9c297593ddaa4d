"""Identification with friction that was measured before: what remains to be found, and whether it was worth it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from steelyard.identification._search_offers import ROUNDINGS
from steelyard.parameters.terms import TermsLike
from steelyard.regression.schemes import Dynamic
from steelyard.regression.schemes.still import friction_coordinate
from steelyard.robot.robot import Robot
from steelyard.signals.source import Source
from steelyard.study import Study

if TYPE_CHECKING:
    from steelyard.friction.compensation import CurvesLike, SmoothedCurve
    from steelyard.identification.identification import Identification


def known_terms(
    robot: Robot, given: CurvesLike, terms: TermsLike | None
) -> tuple[Mapping[str, SmoothedCurve], TermsLike | None]:
    """The curves of friction that is known, and the terms that remain to be found."""
    from steelyard.friction.compensation import remaining_terms, smoothed_curves  # few ask for it

    curves = smoothed_curves(robot, given)
    return curves, remaining_terms(robot, curves) if curves and terms is None else terms


def rounded_as_seen(study: Study, curves: Mapping[str, SmoothedCurve]) -> Mapping[str, SmoothedCurve]:
    """The known `curves`, each with the rounding at reversals that leaves least of its own joint's torque.

    A jump that is rounded off at a speed that a joint hardly reaches is no jump; the search tries the same roundings.
    """
    plain = replace(study.opening, scheme=Dynamic())
    ways = []
    for times in (1.0, *ROUNDINGS):
        tried = {name: replace(curve, smooth=times * curve.smooth) for name, curve in curves.items()}
        one = replace(plain, known_friction=tried)
        left = dict(zip((e.name for e in one.rows.equations), one.quick_fit()[1], strict=True))
        ways.append((tried, left))
    # What rubs on a drive is felt by every joint that it moves.
    weights = {name: friction_coordinate(study.robot, name).weights for name in curves}

    def felt(name: str, left: Mapping[str, float]) -> float:
        return sum(left.get(joint, 0.0) for joint, w in zip(study.robot.joint_names, weights[name], strict=True) if w)

    return {name: min(ways, key=lambda way: felt(name, way[1]))[0][name] for name in curves}


def error_without(robot: Robot, log: Source | Sequence[Source] | Study, found: Identification) -> float:
    """The mean error on the fitted logs, % of the torque, if friction is found in them instead of being known.

    Friction changes with temperature, load and wear: what was measured on one day may mislead on another.
    """
    from steelyard.identification.identify import identify  # which asks this

    settings = found.settings
    other = identify(
        robot, log, physical=settings.physical, prior=settings.prior, preparation=settings.preparation,
        score_cutoff_hz=found.score_cutoff_hz, check=False, files=False,
    )  # fmt: skip
    return float(np.mean([score.mean_moving_nrmse_percent for score in other.identification]))
