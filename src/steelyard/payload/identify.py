"""`identify_payload`: identifies the payload of a robot from its joint torques with and without it.

A payload adds to the ten parameters θ_k of its link, so the base parameters of the arm become β + K_k θ_payload, with
K_k the columns of the link in the base matrix. Logs with and without the payload form one linear regression: all logs
share the arm's inertial base parameters, those with the payload share its ten parameters, and each log has its own
friction, which changes with temperature and load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.assessment.holdout import moving_part
from steelyard.cutoff import choose_cutoff
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.linear.block_jackknife import JACKKNIFE_BLOCKS, block_jackknife
from steelyard.estimation.linear.least_squares import WeightedLeastSquares
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.linear.widening import motion_variance
from steelyard.export.coerce import ModelLike, as_model
from steelyard.floating.setup import is_floating
from steelyard.ground.arrays import Array
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns
from steelyard.ground.progress import ProgressCallback, report_progress, reports_progress, steps
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.inertial import INERTIAL_NAMES, nearest_possible_body
from steelyard.parameters.terms import TermsLike
from steelyard.payload._plan import Friction, Plan
from steelyard.payload.payload import Payload, frame_transfer, link_frame
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Part, Unknowns, substitute
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.as_logs import LogLike, LogsLike, is_one_log
from steelyard.signals.held_poses import logs_or_poses, rows_are_poses
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import AnyMapping
from steelyard.study import Study


@short_repr
@dataclass(frozen=True, eq=False)
class RepeatStatistics:
    """Statistics of repeated identifications of one payload in one frame.

    Attributes:
        count: Number of identifications.
        mean: Mean of the ten parameters.
        std: Standard deviation of the ten parameters.
    """

    count: int
    mean: Array
    std: Array

    def interval(self, level: float = 0.99) -> Array:
        """Compute half the width of the confidence interval of the mean at `level`: Student's t over √n."""
        from scipy.stats import t

        return np.asarray(t.ppf(0.5 * (1.0 + level), self.count - 1) * self.std / np.sqrt(self.count))

    def interval_as_printed(self, level: float = 0.99) -> Array:
        """Compute the interval at `level` of Kozłowski & Dutkiewicz 1996, Table I: normal quantile over √(n − 1)."""
        from scipy.stats import norm

        return np.asarray(norm.ppf(0.5 * (1.0 + level)) * self.std / np.sqrt(self.count - 1))


def repeats(loads: Sequence[Payload]) -> RepeatStatistics:
    """Compute the statistics of repeated identifications `loads` of one payload in one frame."""
    if len(loads) < 2:
        raise SteelyardError("Statistics need at least two identifications.")
    frames = {load.frame for load in loads}
    if len(frames) > 1:
        raise SteelyardError(f"The payloads have different frames ({', '.join(sorted(frames))}); use in_frame first.")
    values = np.array([load.parameters for load in loads])
    return RepeatStatistics(len(loads), values.mean(axis=0), values.std(axis=0, ddof=1))


# Least part of a column that is independent of the others for it to be identifiable.
_INDEPENDENT = 1e-8
# A mass that is negative by this many standard errors indicates wrong logs.
_NEGATIVE_LIMIT = 5.0
# Limit of the residual of a joint in the common fit, relative to a fit to that log alone. Logs of a UR10e have at most
# 1.1, logs of arms whose links differ by a sixth 4 and more.
_MISMATCH_LIMIT = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class PayloadResult(DisplayMixin):
    """Identified payloads.

    Attributes:
        loads: One payload per group of logs.
        residual_std: Standard deviation of the residuals of each joint [N m or N].
        cutoff_hz: Cut-off of the low-pass filter [Hz]; 0 for poses at rest.
        details: Result code of the estimator and names of the unknowns.
    """

    loads: tuple[Payload, ...]
    residual_std: Array
    cutoff_hz: float
    details: dict[str, object] = field(default_factory=dict)

    @property
    def load(self) -> Payload:
        return self.loads[0]

    def headline(self) -> Headline:
        each = [load.headline() for load in self.loads]
        worst: Any = "warning" if any(g.kind != "good" for g in each) else "good"
        return Headline(worst, "; ".join(g.sentence for g in each), tuple(p for g in each for p in g.points))

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Tables of the payloads; several payloads are joined, with their number in the first column."""
        return {name: partial(self._joined, name) for name in self.load.tables()}

    def _joined(self, name: str) -> NamedColumns:
        each = [load.tables()[name]() for load in self.loads]
        if len(each) == 1:
            return each[0]
        numbers = [k + 1 for k, columns in enumerate(each) for _ in columns["name"]]
        return {"load": numbers} | {head: [x for columns in each for x in columns[head]] for head in each[0]}


@reports_progress
def identify_payload(
    robot: RobotLike,
    with_load: LogsLike | Sequence[Sequence[LogLike]],
    without: LogsLike = (),
    *,
    arm: ModelLike | None = None,
    frame: str = "",
    terms: TermsLike | None = None,
    friction: Friction = "own",
    physical: bool = True,
    preparation: Preparation | None = None,
    at_rest: bool | None = None,
    mapping: AnyMapping = None,
    progress: ProgressCallback | None = None,
) -> PayloadResult:
    """Identify a payload from logs with it and either logs without it or a known model of the arm.

    Args:
        robot: Robot without the payload, as `load_robot` takes it.
        with_load: Logs with the payload, as paths, `Log`s, frames or dicts of arrays; a list of lists for several
            payloads, which are identified together.
        without: Logs of the bare robot.
        arm: Model of the bare robot, as `as_model` takes it, taken as exact (incl. friction if that is "common").
        frame: Frame of the payload (of a link, flange or tool); default: the last link.
        terms: Joint terms, as for `identify`.
        friction: "own": each log has its own friction, which depends on temperature and load; "common": all logs share
            one.
        physical: Require a physically possible body.
        preparation: As for `identify`.
        at_rest: Use poses at rest alone, which determine mass and centre of gravity: rows of tables, or phases at rest
            in logs. Default: only if the rows of all logs are held poses.
        mapping: Meaning of the columns of files and frames, as in `read_log`.
        progress: Callback for the progress (`steelyard.ground.progress`).
    """
    robot, arm = as_robot(robot), None if arm is None else as_model(arm)
    if is_floating(robot, mapping):
        from steelyard.payload.floating_payload import floating_payload

        return floating_payload(robot, with_load, without, arm, frame, terms, physical, mapping)
    with_load, without = _groups(with_load, robot, mapping), logs_or_poses(without, robot, mapping)
    every = [*without, *(log for group in with_load for log in group)]
    if at_rest or (at_rest is None and every and all(rows_are_poses(robot, log) for log in every)):
        from steelyard.payload.held_payload import payload_at_rest

        each = [payload_at_rest(robot, group, without, arm, frame) for group in with_load]
        return PayloadResult(tuple(load for load, _ in each), each[0][1], 0.0, {"result": "at rest"})
    if arm is None and not without:
        raise SteelyardError(
            "Logs with the payload alone are not enough: give logs without it, or a model of the bare arm."
        )
    if arm is not None and arm.robot.joint_names != robot.joint_names:
        raise SteelyardError(f"The arm's model is of '{arm.robot.name}', another robot than '{robot.name}'.")
    used = arm.terms if arm is not None and terms is None else terms
    rows = prepare_rows(robot, with_load, without, used, preparation)
    host = rows.robot.moving_frame(frame).host
    plan = Plan(rows.base, rows.carried, host, max(rows.carried) + 1, friction, arm_beta(rows.base, arm))
    return solve_payloads(plan, rows, frame or rows.robot.link_names[host], physical)


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """Regression rows of logs, those without a payload first.

    Attributes:
        robot: Robot without the payload.
        base: Base parameters.
        data: Rows of each log.
        carried: Index of the payload of each log; −1 for none.
        cutoff_hz: Cut-off of the low-pass filter [Hz].
        names: Name of each log, for messages.
    """

    robot: Robot
    base: BaseParameters
    data: tuple[RegressionData, ...]
    carried: tuple[int, ...]
    cutoff_hz: float
    names: tuple[str, ...]


def prepare_rows(
    robot: Robot,
    groups: Sequence[Sequence[Log]],
    bare: Sequence[Log],
    terms: TermsLike | None,
    preparation: Preparation | None,
) -> PreparedRows:
    """Compute the regression rows of logs, without their stand-stills.

    Args:
        robot: Robot without the payload.
        groups: Logs with each payload.
        bare: Logs without a payload.
        terms: Joint terms.
        preparation: Preparation of the signals.
    """
    if not groups or not all(groups):
        raise SteelyardError("There is no log with the payload.")
    logs = [*bare, *(log for group in groups for log in group)]
    # The treatment of torques is chosen before the cut-off is lowered, as in `identify`.
    whole = Study.of(robot, [moving_part(log) for log in logs], terms, preparation).with_torque_between()
    study = choose_cutoff(whole)
    data = tuple(study.rows_of(log) for log in steps(study.logs, "Rows of the logs", lambda _: "", 0.05, 0.8))
    carried = [-1] * len(bare) + [g for g, group in enumerate(groups) for _ in group]
    sources = [str(log.meta.get("source", "")) for log in logs]
    kinds = ["without" if load < 0 else "with" for load in carried]
    names = tuple(f"'{Path(s).name}'" if s else f"the log {kind} it" for s, kind in zip(sources, kinds, strict=True))
    return PreparedRows(study.robot, study.base, data, tuple(carried), study.cutoff_hz, names)


def solve_payloads(plan: Plan, rows: PreparedRows, frame: str, physical: bool) -> PayloadResult:
    """Solve for the payloads.

    Args:
        plan: Unknowns of the logs.
        rows: Rows of the logs.
        frame: Frame of the payloads.
        physical: Require physically possible bodies.
    """
    report_progress("Payload", 0.8)
    parts, names = plan.parts(rows.data), plan.names
    whole = LeastSquaresProblem.of(substitute(parts, Unknowns(names)), Unknowns(names))
    identifiable = _identifiable(whole, 10 * plan.loads)
    used = [k for k in range(len(names)) if identifiable[k]]
    if not all(identifiable[10 * g] for g in range(plan.loads)):
        raise EstimationError(
            "The mass of the payload is not identifiable from this motion; let the joints move it against gravity."
        )
    unknowns = Unknowns(tuple(names[k] for k in used))
    reduced = [Part(p.data, p.columns, p.matrix[:, used], p.known) for p in parts]
    fit = WeightedLeastSquares().free(substitute(reduced, unknowns), unknowns)
    if plan.friction == "own":  # with common friction, real differences of friction would cause a mismatch
        _refuse_mismatch(reduced, fit.beta, rows, plan.arm is not None)
    estimate = fit.covariance
    noise = np.maximum(np.diag(estimate.matrix), 0.0)
    # Friction that the terms lack biases the payload differently in every part of the motion.
    variation = block_jackknife(fit.problem.data, unknowns, fit.residual_std)
    added = motion_variance(noise, variation, JACKKNIFE_BLOCKS)
    factor = np.sqrt(1.0 + added / np.where(noise > 0.0, noise, 1.0))
    covariance = estimate.matrix * np.outer(factor, factor)
    loads = []
    for g in range(plan.loads):
        own = [used.index(k) for k in range(10 * g, 10 * g + 10) if identifiable[k]]
        shown, degrees = tuple(identifiable[10 * g : 10 * g + 10]), float(np.min(estimate.degrees[own]))
        loads.append(_payload(plan, frame, fit.beta[own], covariance[own][:, own], shown, physical, degrees))
    details: dict[str, object] = {"result": fit.result.value, "unknowns": unknowns.names}
    return PayloadResult(tuple(loads), fit.residual_std, rows.cutoff_hz, details)


def _refuse_mismatch(parts: Sequence[Part], solution: Array, rows: PreparedRows, known_arm: bool) -> None:
    """Refuse logs of different arms: compare the residual of each log with that of a fit to it alone."""
    ratios: list[float] = []
    for part in parts:
        factor, columns = part.data.factor(), part.columns.independent
        own = WeightedLeastSquares().free(part.data, part.columns).beta
        common, alone = (factor.residual_sums(x, columns) for x in (part.known + part.matrix @ solution, own))
        ratios.append(float(np.sqrt(np.max(common / np.maximum(alone, 1e-300)))))
    if max(ratios) < _MISMATCH_LIMIT:
        return
    worst = rows.names[int(np.argmax(ratios))]
    if known_arm:
        problem = f"{worst} is not of the arm of the model"
    elif len(parts) == 2:
        problem = f"{rows.names[0]} and {rows.names[1]} are not of one robot"
    else:
        problem = f"{worst} is not of the robot of the other logs"
    raise SteelyardError(
        f"For any payload, {problem}: the residual torque of a joint is {max(ratios):.2g} times that of a fit to that "
        "log alone; give logs of one robot with one mounting."
    )


def _identifiable(problem: LeastSquaresProblem, first: int) -> list[bool]:
    """Find the identifiable unknowns. The arm has priority over the payload, whose unknowns are the `first` ones."""
    from scipy.linalg import qr

    R = problem.combined_triangle(np.ones(len(problem.blocks)))[:-1, :-1]
    lengths = np.linalg.norm(R, axis=0)
    scaled = R / np.where(lengths > 0.0, lengths, 1.0)
    identifiable = np.zeros(R.shape[1], dtype=bool)
    rest = np.arange(first, R.shape[1])
    independent: list[int] = []
    for group in (rest, np.arange(first)):
        block = scaled[:, group]
        if independent:
            q = np.linalg.qr(scaled[:, independent])[0]
            block = block - q @ (q.T @ block)
        _, r, order = qr(block, mode="economic", pivoting=True)
        strong = np.abs(np.diag(r)) > _INDEPENDENT
        chosen = [int(group[k]) for k, s in zip(order, strong, strict=False) if s]
        identifiable[chosen] = True
        independent += chosen
    return identifiable.tolist()  # type: ignore[no-any-return]


def _payload(
    plan: Plan, frame: str, values: Array, known: Array, shown: tuple[bool, ...], physical: bool, degrees: float
) -> Payload:
    robot = plan.base.robot
    theta, covariance = np.zeros(10), np.zeros((10, 10))
    index = np.flatnonzero(shown)
    theta[index] = values
    covariance[np.ix_(index, index)] = known
    notes = []
    if not all(shown):
        hidden = ", ".join(n for n, s in zip(INERTIAL_NAMES, shown, strict=True) if not s)
        notes.append(f"Not identifiable from this motion, set to zero: {hidden} of the payload.")
    if theta[0] < 2.0 * np.sqrt(covariance[0, 0]):
        notes.append(
            f"The mass, {theta[0]:.3g} ± {np.sqrt(covariance[0, 0]):.2g} kg, is not significantly above zero; there "
            "may be no payload, or the motion moves it too little."
        )
    if theta[0] < -_NEGATIVE_LIMIT * np.sqrt(covariance[0, 0]):
        reason = "the logs with and without it seem to be exchanged; give the logs with it as --with (with_load)."
        if all(shown):
            difference = nearest_possible_body(-theta, covariance)[0] + theta
            if difference @ np.linalg.solve(covariance, difference) > len(theta) * _NEGATIVE_LIMIT**2:
                reason = (
                    "neither adding nor removing a body explains this; the logs are of different robots, or of "
                    "different mountings."
                )
        raise SteelyardError(
            f"The mass of the payload would be {theta[0]:.3g} ± {np.sqrt(covariance[0, 0]):.2g} kg: {reason}"
        )
    boundary = False
    if physical and all(shown):
        theta, boundary = nearest_possible_body(theta, covariance)
        if boundary:
            notes.append("The free estimate is physically impossible; this is the nearest possible body.")
    place = robot.frame(frame)
    transfer = frame_transfer(link_frame(robot.links[plan.host], plan.host), place)
    theta, covariance, degrees = transfer @ theta, transfer @ covariance @ transfer.T, max(degrees - 2.0, 1.0)
    return Payload(frame, theta, covariance, shown, degrees, boundary, tuple(notes))


def _groups(logs: Any, robot: Robot, mapping: AnyMapping) -> list[list[Log]]:
    """Read logs by payload: one group, unless `logs` is a list of lists."""
    is_list = isinstance(logs, Sequence) and not is_one_log(logs)
    several = is_list and bool(logs) and not any(is_one_log(x) for x in logs)
    return [logs_or_poses(x, robot, mapping) for x in (logs if several else [logs])]


def arm_beta(base: BaseParameters, arm: Model | None) -> Array | None:
    """Return the base parameters of a known arm; terms are matched by name, missing ones are zero.

    Args:
        base: Base parameters of the rows.
        arm: Model of the bare robot; None: unknown.
    """
    if arm is None:
        return None
    if arm.robot.fingerprint != base.robot.fingerprint:
        raise SteelyardError(f"The arm's model is of '{arm.robot.name}', another robot than '{base.robot.name}'.")
    values = {p.name: v for p, v in zip(arm.dynamics.parameters, arm.theta, strict=True)}
    return base.values(np.array([values.get(p.name, 0.0) for p in base.parameters]))
