"""Populations instead of gradients: motions that no derivative leads to, such as via-point programs, are bred."""

from steelyard.excitation.evolution.evolve import evolve
from steelyard.excitation.evolution.genome import Coefficients, Genome
from steelyard.excitation.evolution.strategies import Covariance, Genetic
from steelyard.excitation.evolution.via_points import ViaPoints, programs_in

__all__ = ["Coefficients", "Covariance", "Genetic", "Genome", "ViaPoints", "evolve", "programs_in"]
