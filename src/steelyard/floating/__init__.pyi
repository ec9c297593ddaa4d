"""Mechanisms with a free base, contacts, or bodies without a robot."""

from .body_table import BodyRows, identify_bodies, is_body_table, read_bodies, read_body_rows
from .identify import identify_floating
from .log_check import FloatingLogCheck, check_floating_log
from .loop_check import LoopCheck, check_loops
from .result import FloatingIdentification, RowScore
from .setup import is_floating
from .stance_motion import StanceMotion, design_stance_motion

__all__ = [
    "BodyRows",
    "FloatingIdentification",
    "FloatingLogCheck",
    "LoopCheck",
    "RowScore",
    "StanceMotion",
    "check_floating_log",
    "check_loops",
    "design_stance_motion",
    "identify_bodies",
    "identify_floating",
    "is_body_table",
    "is_floating",
    "read_bodies",
    "read_body_rows",
]
