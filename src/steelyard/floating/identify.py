"""`identify_floating`: identifies a mechanism with a floating base or contacts from logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError
from steelyard.estimation.possible.reference import nominal_prior
from steelyard.floating.closed_loops import loop_summary
from steelyard.floating.mechanism_logs import FEW_SAMPLES, MechanismLogs
from steelyard.floating.motion import Preparer
from steelyard.floating.phases import phase_summaries
from steelyard.floating.result import FloatingIdentification, RowScore
from steelyard.floating.scores import row_score
from steelyard.floating.setup import FloatingMapping
from steelyard.parameters.terms import Terms, TermsLike, identification_terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.load import RobotLike, load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log

# Terms of joints without a drive.
_PASSIVE_TERMS = ("viscous", "coulomb")


def identify_floating(
    robot: RobotLike,
    log: Any,
    validate: Any = (),
    *,
    mapping: Any = None,
    terms: TermsLike | None = None,
    prior: str = "nominal",
    cutoff_hz: float | None = None,
    holdout: float | None = None,
    source: Path | None = None,
) -> FloatingIdentification:
    """Identify a mechanism with a floating base, passive joints, contacts or closed loops.

    Measured contact forces enter the equations of motion. A projection removes unknown contact forces and torques.
    Joints of closed loops need no encoder: the loops determine their motion.

    Args:
        robot: Robot, as `load_robot` takes it, with `floating=True` or a floating joint; with `loops=…` for a loop
            table.
        log: Path of a log, a `Log` as `Preparer.read` returns it, or several.
        validate: Validation logs.
        mapping: Mapping file or dict with the tables [base], [contacts] and passive (`FloatingMapping`).
        terms: Joint terms; default: rotor, viscous, Coulomb and offset of driven joints, friction of passive ones with
            an encoder. Stated terms act on all joints, also on those of closed loops without an encoder.
        prior: "nominal" (inertias of the description) or "none".
        cutoff_hz: Cut-off of the low-pass of all signals [Hz]; None: chosen by the error of left-out stretches, or
            by error bars if contact forces are unknown.
        holdout: Share of the end of each log for the hold-out.
        source: Description with the meshes and names of the exported file.
    """
    robot = robot if isinstance(robot, Robot) else load_robot(robot, loops=True)
    stated = FloatingMapping.of(mapping, robot)
    preparer = Preparer(robot, stated)
    logs, judged = ([preparer.read(x) for x in _several(some)] for some in (log, validate))
    if not logs:
        raise SteelyardError("Identification needs at least one log; name one.")
    robot = _trusted(robot, logs)
    preparer.robot = robot
    bound = bound_terms(robot, stated, terms)
    base = base_parameters(robot, bound)
    known = nominal_prior(robot, bound) if prior == "nominal" else None
    task = MechanismLogs(preparer, base, known)
    task.find_errors(logs, cutoff_hz or task.middle_cutoff(logs), holdout, FEW_SAMPLES)
    chosen = cutoff_hz or task.choose_cutoff(logs, holdout)
    task.find_errors(logs, chosen, holdout)
    used, held = task.stretches(logs, chosen, holdout)
    fit, maker = task.fit(used)
    described = None
    if known is not None and robot.has_inertia:
        described = np.where(known.mask, known.theta, 0.0)
    scores: list[RowScore] = []
    checks = [("Hold-out", held), ("Validation", task.stretches(judged, chosen, None)[0] if judged else [])]
    for name, stretches in checks:
        if stretches:
            scores.append(row_score(name, [maker.data(stretches)], maker.base, fit.estimate.theta, described))
    model = Model(robot, bound, fit.estimate.theta)
    rows = {"used": sum(fit.estimate.details["rows"])}
    rows |= {f"samples left out: {reason}": n for reason, n in preparer.left_out.items() if n}
    findings = [f"{f.message} {f.advice}".strip() for f in preparer.findings]
    findings.append(f"Cut-off of all signals: {chosen:.3g} Hz{'' if cutoff_hz else ', chosen by stretches left out'}.")
    findings += [*preparer.errors.sentences(), *preparer.contact_states.sentences(), *_about_left_out(preparer)]
    mechanism = preparer.mechanism
    phases = phase_summaries(maker, used) if mechanism is None else ()
    loops = None if mechanism is None else loop_summary(mechanism, preparer, rows)
    return FloatingIdentification(
        robot, model, fit, tuple(e.name for e in maker.equations), tuple(scores), described, tuple(findings), rows,
        source, phases, loops, preparer.errors if preparer.errors.present.any() else None, chosen,
    )  # fmt: skip


def _about_left_out(preparer: Preparer) -> list[str]:
    """State the samples that contacts cost."""
    counts = {k: preparer.left_out.get(k, 0) for k in ("changes of contacts", "sliding feet")}
    text = ", ".join(f"{n} near {k}" if k.startswith("changes") else f"{n} with {k}" for k, n in counts.items() if n)
    return [f"Samples left out: {text}."] if text else []


def _several(some: Any) -> list[Any]:
    return list(some) if isinstance(some, Sequence) and not isinstance(some, str) else [some]


def _trusted(robot: Robot, logs: Sequence[Log]) -> Robot:
    """Return the robot without torques that the logs lack or distrust; joints without a drive have zero torque."""
    lacking = any(log.tau is None for log in logs)
    if lacking and robot.loops:
        raise LogError("A mechanism with closed loops needs torques, and the logs lack them; name their columns.")
    reliable = next((log.meta.get("torque_used") for log in logs if log.meta.get("torque_used")), None)
    if not lacking and reliable is None:
        return robot
    driven = set(logs[0].joints)
    names = [n for n in robot.joint_names if n not in driven or (not lacking and n in (reliable or ()))]
    if not names:
        raise LogError(
            "The logs lack torques and the base of the robot is fixed; name the torque columns, or let the base float."
        )
    return robot.with_torque_used(names)


def bound_terms(robot: Robot, stated: FloatingMapping, terms: TermsLike | None) -> Terms:
    """Bind the terms of joints with a measured torque, and the friction of passive joints.

    Args:
        robot: Robot.
        stated: Mapping with the passive joints.
        terms: Stated terms; None: the default.
    """
    if terms is not None:
        return identification_terms(robot, terms)
    from steelyard.parameters.terms import DEFAULT_TERMS, terms_named
    from steelyard.parameters.terms import terms as bind
    from steelyard.robot.free import driven_joints

    measures = dict(zip(robot.joint_names, robot.torque_used, strict=True))
    moving = [n for n in driven_joints(robot) or robot.joint_names if measures[n]]
    # Friction of joints without an encoder is optional: it is nearly collinear with the friction of the drives.
    if robot.loops:
        measured = {*(stated.log.joints or robot.actuated), *stated.passive}
        moving = [n for n in moving if n in measured]
    drives = tuple(n for n in moving if n not in stated.passive)
    result = [t for name in DEFAULT_TERMS for t in terms_named(robot, name, drives)] if drives else []
    passive = tuple(n for n in moving if n in stated.passive)
    result += [t for name in _PASSIVE_TERMS for t in terms_named(robot, name, passive)] if passive else []
    return bind(robot, *result)
