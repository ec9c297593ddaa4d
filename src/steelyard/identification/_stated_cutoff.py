"""Compare a cut-off that the user stated with those that left-out blocks of the logs would choose among."""

from __future__ import annotations

from dataclasses import replace

from steelyard.errors import LogError
from steelyard.signals.prepare import chosen_cutoff
from steelyard.study import Study


def with_judged_cutoff(study: Study) -> Study:
    """Note how a stated cut-off does on left-out blocks beside the one that they choose; the fit stays as stated.

    It costs what the choice costs where none is stated: one more pass of the filter, and the same Gram matrices.

    Args:
        study: With a stated cut-off and the sources of its velocities.
    """
    stated, free = study.cutoff_hz, replace(study.preparation, cutoff_hz=None)
    try:
        ceiling = max(stated, chosen_cutoff(study.beginnings, free))
        motions = replace(study, preparation=free, cutoff_hz=ceiling)
        levels = motions.band_levels(stated)
    except LogError:  # too short or too still for the rule: nothing to compare with
        return study
    if stated not in levels.edges:
        return study
    choice = levels.choose()
    return replace(study, band=replace(choice, cutoff_hz=stated, advised_hz=choice.cutoff_hz))
