"""Payloads of robots with a floating base: the rows are those of `identify_floating`, without contact forces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.estimation.possible.reference import nominal_prior
from steelyard.floating.identify import bound_terms
from steelyard.floating.mechanism_logs import MechanismLogs
from steelyard.floating.motion import Preparer
from steelyard.floating.setup import FloatingMapping
from steelyard.parameters.terms import TermsLike
from steelyard.payload._plan import Plan
from steelyard.payload.identify import PayloadResult, PreparedRows, arm_beta, solve_payloads
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.free import refuse_free
from steelyard.robot.robot import Robot
from steelyard.signals.read import AnyMapping


def floating_payload(
    robot: Robot, groups: Any, bare: Any, arm: Model | None, frame: str, terms: TermsLike | None, physical: bool,
    mapping: AnyMapping,
) -> PayloadResult:  # fmt: skip
    """Identify what a robot with a floating base carries: a backpack on its trunk, or a load on another link.

    Args:
        robot: Robot without the payload.
        groups: Logs with the payload, or one list of logs per payload.
        bare: Logs without a payload.
        arm: Model of the bare robot; None: from the logs without payload.
        frame: Frame of the payload; "": that of the trunk.
        terms: Joint terms; None: those of `identify_floating`.
        physical: Require a physically possible body.
        mapping: Mapping with the tables [base] and [contacts].
    """
    if robot.loops:
        refuse_free(robot, "payloads of closed loops are not supported", "lock the loops' joints.")
    several = groups if isinstance(groups, (list, tuple)) else [groups]
    nested = [list(g) for g in several] if several and isinstance(several[0], (list, tuple)) else [list(several)]
    empty = list(bare) if isinstance(bare, (list, tuple)) else [bare]
    if arm is None and not empty:
        raise SteelyardError(
            "Logs with the payload alone are not enough: give logs without it, or a model of the bare robot."
        )
    if not nested or not all(nested):
        raise SteelyardError("There is no log with the payload.")
    stated = FloatingMapping.of(mapping, robot)
    preparer = Preparer(robot, stated)
    paths = [*empty, *(log for group in nested for log in group)]
    bound = bound_terms(robot, stated, terms)
    known = nominal_prior(robot, bound) if robot.has_inertia else None
    rows = MechanismLogs(preparer, base_parameters(robot, bound), known)
    data, base, cutoff_hz = rows.of_logs([preparer.read(path) for path in paths], len(empty) or len(nested[0]))
    carried = (*[-1] * len(empty), *(g for g, group in enumerate(nested) for _ in group))
    names = tuple(f"'{Path(str(p)).name}'" if isinstance(p, (str, Path)) else "a log" for p in paths)
    host = robot.moving_frame(frame or robot.link_names[0]).host
    # Contact forces make friction of single logs hardly visible, so all logs share it.
    plan = Plan(base, carried, host, len(nested), "common", arm_beta(base, arm))
    made = PreparedRows(robot, base, tuple(data), carried, cutoff_hz, names)
    return solve_payloads(plan, made, frame or robot.link_names[host], physical)
