"""`StudyCache`: intermediate results that all studies of the same logs share."""

from __future__ import annotations

from dataclasses import dataclass, field

from steelyard.regression.band import BandLevels
from steelyard.regression.base_parameters import BaseParameters
from steelyard.signals.prepare import Motion


@dataclass(frozen=True, eq=False)
class StudyCache:
    """Results that studies share that differ in their settings: a copy of a study holds the same cache.

    Attributes:
        motions: Prepared motions of logs in memory, by log and settings (and by terms and reference if terms have a
            history).
        bases: Base parameters of all robots and terms that were used.
        band_tables: Tables from the choice of the band, until they are taken.
    """

    motions: dict[tuple[object, ...], tuple[Motion, ...]] = field(default_factory=dict)
    bases: list[BaseParameters] = field(default_factory=list)
    band_tables: list[BandLevels] = field(default_factory=list)

    def without_motions(self) -> StudyCache:
        """Return a cache with its own motions, which are freed with it."""
        return StudyCache({}, self.bases, self.band_tables)
