"""Gravity from poses at rest: identification, scores, compensation code, the next poses to hold."""

from .gravity_model import GravityModel, GravityScore
from .identify import identify_gravity

__all__ = ["GravityModel", "GravityScore", "identify_gravity"]
