"""Mechanisms with a free base, contacts, or bodies without a robot."""

from .bodies import BodyRows, identify_bodies, read_bodies, read_body_rows
from .identify import identify_floating
from .loop_check import LoopCheck, check_loops
from .result import FloatingIdentification, RowScore

__all__ = [
    "BodyRows",
    "FloatingIdentification",
    "LoopCheck",
    "RowScore",
    "check_loops",
    "identify_bodies",
    "identify_floating",
    "read_bodies",
    "read_body_rows",
]
