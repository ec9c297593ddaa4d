"""Populations instead of gradients: motions that no derivative leads to, such as via-point programs, are bred."""

from steelyard.excitation.evolution.coefficients import Coefficients
from steelyard.excitation.evolution.covariance import Covariance
from steelyard.excitation.evolution.evolve import evolve
from steelyard.excitation.evolution.genetic import Genetic
from steelyard.excitation.evolution.genome import Genome
from steelyard.excitation.evolution.via_points import ViaPoints

__all__ = ["Coefficients", "Covariance", "Genetic", "Genome", "ViaPoints", "evolve"]
