"""Chooses the cut-off of a study by left-out blocks of its logs, and evaluates a stated one."""

from __future__ import annotations

from dataclasses import replace

from steelyard.errors import LogError
from steelyard.regression.band import HARMLESS, NearestPossible
from steelyard.signals.prepare import chosen_cutoff, motion_frequency, velocity_plan
from steelyard.signals.velocity import VelocityPlan
from steelyard.study import Study


def choose_cutoff(study: Study, possible: NearestPossible | None = None) -> Study:
    """Choose the cut-off, the torques' delay and the source of the velocities by left-out blocks of the logs.

    Values that the preparation states are not changed. All choices use the usual terms and the torques of all joints
    (`regression/band.py`). A measured delay is tried only if all joints have the same one.

    Args:
        study: Study with the usual terms.
        possible: Returns the nearest physically possible base parameters; None if the result may be impossible.
    """
    plan = study.sources or velocity_plan(study.beginnings, study.preparation)
    chosen = replace(study, sources=plan)
    if study.preparation.cutoff_hz is not None:
        return chosen
    motion_hz = motion_frequency(study.beginnings)
    levels = chosen.band_levels(motion_hz)
    choice = levels.choose()
    late = None if study.between is None or study.between.name != "auto" else study.between.delay
    if study.preparation.delay is None and late is not None and late.is_shared:
        other = replace(chosen, preparation=replace(study.preparation, delay=late.delay_s), delay=late)
        others = other.band_levels(motion_hz)
        if others.choose(choice.judged_hz).least_percent < choice.least_percent:
            chosen, levels, choice = other, others, others.choose()
    if any(plan.measured) and study.preparation.velocity == "auto":
        # A separate cache, which is freed if this choice is rejected.
        other = replace(
            chosen, sources=VelocityPlan.uniform(len(plan.measured), False), cache=chosen.cache.without_motions()
        )
        motions = [m for k in range(len(study.beginnings)) for m in other.first_motions(k) if m.long_enough]
        if not levels.would_do(motions, choice.judged_hz):
            others = other.band_levels(motion_hz)
            if others.choose(choice.judged_hz).least_percent < (1.0 - HARMLESS) * choice.least_percent:
                chosen, levels, choice = other, others, others.choose()
    if possible is not None:
        choice = levels.lower_for_bounds(choice, possible)
    if choice.is_ceiling:
        study.leave_tables(levels)
    return replace(chosen, cutoff_hz=choice.cutoff_hz, band=choice)


def judge_stated_cutoff(study: Study) -> Study:
    """Compare a stated cut-off with the best one on left-out blocks; the fit keeps the stated one.

    This takes as long as the choice of a cut-off: one more pass of the filter, and the same Gram matrices.

    Args:
        study: Study with a stated cut-off and the sources of its velocities.
    """
    stated, free = study.cutoff_hz, replace(study.preparation, cutoff_hz=None)
    try:
        ceiling = max(stated, chosen_cutoff(study.beginnings, free))
        motions = replace(study, preparation=free, cutoff_hz=ceiling)
        levels = motions.band_levels(motion_frequency(study.beginnings), stated)
    except LogError:  # the rule needs longer logs or more motion
        return study
    if stated not in levels.edges:
        return study
    choice = levels.choose()
    return replace(study, band=replace(choice, cutoff_hz=stated, advised_hz=choice.cutoff_hz))
