"""Elastic joints: stiffness and encoder skew from two encoders, resonances from one, springs as torque sensors."""

from .elastic_files import elastic_to_mjcf
from .elastic_mapping import ElasticMapping
from .elastic_simulation import simulate_elastic
from .elasticity import Elasticity
from .identify import identify_elasticity
from .joint_elasticity import Interval, JointElasticity
from .spring_torque import spring_torque

__all__ = [
    "ElasticMapping", "Elasticity", "Interval", "JointElasticity", "elastic_to_mjcf", "identify_elasticity",
    "simulate_elastic", "spring_torque",
]  # fmt: skip
