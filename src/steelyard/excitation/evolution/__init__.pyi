"""Evolutionary design: populations of motions that need no derivatives, such as via-point programs."""

from .evolve import evolve
from .genome import Coefficients, Genome
from .strategies import CovarianceAdaptation, Genetic
from .via_points import ViaPoints, programs_in

__all__ = [
    "Coefficients", "CovarianceAdaptation", "Genetic", "Genome", "ViaPoints", "evolve", "programs_in",
]  # fmt: skip
