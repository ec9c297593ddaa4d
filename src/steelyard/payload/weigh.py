"""`weigh`: the load that a robot carries, from the torques of its joints with and without it.

A load in the frame of a link adds to the link's ten parameters θ_k, so that base parameters of the arm become
β + K_k θ_load with K_k the columns of the base matrix that belong to the link. Logs with and without the load are one
linear regression: the arm's inertial base parameters are common to all logs, the load's ten to those that carry it,
and friction belongs to each log, since it changes with temperature and load.
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
from steelyard.ground.arrays import Array
from steelyard.ground.displayed import Displayed, Glance, NamedColumns
from steelyard.ground.progress import ProgressCallback, reports_progress, steps, tell_progress
from steelyard.ground.renamed import renamed
from steelyard.parameters.inertial import INERTIAL_NAMES, nearest_possible_body
from steelyard.parameters.terms import TermsLike
from steelyard.payload._plan import Friction, Plan
from steelyard.payload.load import Load, between, own_frame
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Part, Unknowns, substituted
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.given import LogLike, LogsLike, as_logs, is_one_log
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import AnyMapping
from steelyard.study import Study


@renamed(deviation="std")
@dataclass(frozen=True, eq=False)
class Repeats:
    """Mean and standard deviation of the ten parameters over `count` weighings in one frame.

    Intervals of the mean are at a confidence `level` (of 1).
    """

    count: int
    mean: Array
    std: Array

    def interval(self, level: float = 0.99) -> Array:
        """Half the width of the confidence interval of the mean: Student's t over √n."""
        from scipy.stats import t

        return np.asarray(t.ppf(0.5 * (1.0 + level), self.count - 1) * self.std / np.sqrt(self.count))

    def interval_as_printed(self, level: float = 0.99) -> Array:
        """The same by the rule behind Table I of Kozłowski & Dutkiewicz 1996: the normal quantile over √(n − 1)."""
        from scipy.stats import norm

        return np.asarray(norm.ppf(0.5 * (1.0 + level)) * self.std / np.sqrt(self.count - 1))


def repeats(loads: Sequence[Load]) -> Repeats:
    """Statistics over several weighings of the same load, `loads`, in one frame."""
    if len(loads) < 2:
        raise SteelyardError("Statistics need at least two weighings.")
    frames = {load.frame for load in loads}
    if len(frames) > 1:
        raise SteelyardError(f"The loads are in different frames ({', '.join(sorted(frames))}); use seen_from first.")
    values = np.array([load.parameters for load in loads])
    return Repeats(len(loads), values.mean(axis=0), values.std(axis=0, ddof=1))


# Part of a column that must be left beside the others for it to count as seen.
_INDEPENDENT = 1e-8
# A mass that is negative by so many standard errors is no accident.
_LIGHTER = 5.0
# What a log's torque of a joint leaves in the common fit over what it leaves in a fit to that log alone. Weighings with
# a UR10e have at most 1.1, logs of arms whose links differ by a sixth 4 and more.
_STRANGE = 2.0


@renamed(cutoff="cutoff_hz", spread="residual_std")
@dataclass(frozen=True, eq=False, repr=False)
class Weighing(Displayed):
    """What was found: one load per group of logs that carried it, and the residuals' standard deviation, N m or N."""

    loads: tuple[Load, ...]
    residual_std: Array
    cutoff_hz: float
    details: dict[str, object] = field(default_factory=dict)

    @property
    def load(self) -> Load:
        return self.loads[0]

    def glance(self) -> Glance:
        each = [load.glance() for load in self.loads]
        worst: Any = "warning" if any(g.kind != "good" for g in each) else "good"
        return Glance(worst, "; ".join(g.sentence for g in each), tuple(p for g in each for p in g.points))

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Those of each load, with the number of the load in front where there are several."""
        return {name: partial(self._joined, name) for name in self.load.tables()}

    def _joined(self, name: str) -> NamedColumns:
        each = [load.tables()[name]() for load in self.loads]
        if len(each) == 1:
            return each[0]
        numbers = [k + 1 for k, columns in enumerate(each) for _ in columns["name"]]
        return {"load": numbers} | {head: [x for columns in each for x in columns[head]] for head in each[0]}


@reports_progress
def weigh(
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
    mapping: AnyMapping = None,
    progress: ProgressCallback | None = None,
) -> Weighing:
    """Find the load from logs with it, and logs without it or a known model of the arm.

    Args:
        robot: the robot, without the load, as `load_robot` takes it.
        with_load: logs that carry the load, as paths, `Log`s, frames or dicts of arrays; a list of lists for several
            loads, weighed together.
        without: logs of the bare robot.
        arm: a model of the bare robot, as `as_model` takes it, that is taken as exact; its friction too if
            `friction` is "common".
        frame: the frame the load is described in (a link's, a flange's, a tool's); default: the last link's.
        terms: joint terms, as for `identify`.
        friction: "own": every log has its own (it warms up, and a load presses on the gears); "common": all the same.
        physical: whether the load must be a body that can exist.
        preparation: as for `identify`.
        mapping: what the columns of files and frames mean, as in `read_log`.
        progress: told how far it is (`steelyard.ground.progress`); None: nobody.
    """
    robot, arm = as_robot(robot), None if arm is None else as_model(arm)
    with_load, without = _groups(with_load, robot, mapping), as_logs(without, robot, mapping)
    if arm is None and not without:
        raise SteelyardError("The load is a difference: give logs without it, or a model of the bare arm.")
    if arm is not None and arm.robot.joint_names != robot.joint_names:
        raise SteelyardError(f"The arm's model is of '{arm.robot.name}', another robot than '{robot.name}'.")
    wanted = arm.terms if arm is not None and terms is None else terms
    rows = prepared_rows(robot, with_load, without, wanted, preparation)
    host = rows.robot.moving_frame(frame).host
    plan = Plan(rows.base, rows.carried, host, max(rows.carried) + 1, friction, _arm_beta(rows.base, arm))
    return _solve(plan, rows, frame or rows.robot.link_names[host], physical)


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """The rows of every log over the base parameters, those without a load first; `carried` numbers the loads."""

    robot: Robot
    base: BaseParameters
    data: tuple[RegressionData, ...]
    carried: tuple[int, ...]
    cutoff_hz: float
    names: tuple[str, ...]


def prepared_rows(
    robot: Robot,
    groups: Sequence[Sequence[Log]],
    bare: Sequence[Log],
    terms: TermsLike | None,
    preparation: Preparation | None,
) -> PreparedRows:
    """Rows of logs of `robot`, by the load that each of the `groups` carries and `bare`, but for stand-stills, by
    `terms` and `preparation`."""
    if not groups or not all(groups):
        raise SteelyardError("There is no log with the load.")
    logs = [*bare, *(log for group in groups for log in group)]
    # Before the cut-off is lowered, as in `identify`.
    whole = Study.of(robot, [moving_part(log) for log in logs], terms, preparation).with_torque_between()
    study = choose_cutoff(whole)
    data = tuple(study.rows_of(log) for log in steps(study.logs, "Rows of the logs", lambda _: "", 0.05, 0.8))
    carried = [-1] * len(bare) + [g for g, group in enumerate(groups) for _ in group]
    given = [str(log.meta.get("source", "")) for log in logs]
    kinds = ["without" if load < 0 else "with" for load in carried]
    names = tuple(f"'{Path(g).name}'" if g else f"the log {kind} it" for g, kind in zip(given, kinds, strict=True))
    return PreparedRows(study.robot, study.base, data, tuple(carried), study.cutoff_hz, names)


def _solve(plan: Plan, rows: PreparedRows, frame: str, physical: bool) -> Weighing:
    tell_progress("Weighing", 0.8)
    parts, names = plan.parts(rows.data), plan.names
    whole = LeastSquaresProblem.of(substituted(parts, Unknowns(names)), Unknowns(names))
    seen = _seen(whole, 10 * plan.loads)
    kept = [k for k in range(len(names)) if seen[k]]
    if not all(seen[10 * g] for g in range(plan.loads)):
        raise EstimationError("The motion does not show the load's mass; let the joints move it against gravity.")
    chosen = Unknowns(tuple(names[k] for k in kept))
    reduced = [Part(p.data, p.columns, p.matrix[:, kept], p.known) for p in parts]
    fit = WeightedLeastSquares().free(substituted(reduced, chosen), chosen)
    if plan.friction == "own":  # friction that is said to be common may differ without anybody being a stranger
        _refuse_strangers(reduced, fit.beta, rows, plan.arm is not None)
    found = fit.covariance
    noise = np.maximum(np.diag(found.matrix), 0.0)
    # Friction that the terms lack leans on the load in another way in every part of the motion.
    wander = block_jackknife(fit.problem.data, chosen, fit.residual_std)
    added = motion_variance(noise, wander, JACKKNIFE_BLOCKS)
    grown = np.sqrt(1.0 + added / np.where(noise > 0.0, noise, 1.0))
    covariance = found.matrix * np.outer(grown, grown)
    loads = []
    for g in range(plan.loads):
        mine = [kept.index(k) for k in range(10 * g, 10 * g + 10) if seen[k]]
        shown, degrees = tuple(seen[10 * g : 10 * g + 10]), float(np.min(found.degrees[mine]))
        loads.append(_load(plan, frame, fit.beta[mine], covariance[mine][:, mine], shown, physical, degrees))
    details: dict[str, object] = {"result": fit.result.value, "unknowns": chosen.names}
    return Weighing(tuple(loads), fit.residual_std, rows.cutoff_hz, details)


def _refuse_strangers(parts: Sequence[Part], solution: Array, rows: PreparedRows, known_arm: bool) -> None:
    """Refuse logs that one arm cannot have made, whatever it carries: each is held against a fit to it alone."""
    worst: list[float] = []
    for part in parts:
        factor, columns = part.data.factor(), part.columns.independent
        own = WeightedLeastSquares().free(part.data, part.columns).beta
        common, alone = (factor.residual_sums(x, columns) for x in (part.known + part.matrix @ solution, own))
        worst.append(float(np.sqrt(np.max(common / np.maximum(alone, 1e-300)))))
    if max(worst) < _STRANGE:
        return
    strange = rows.names[int(np.argmax(worst))]
    if known_arm:
        who = f"{strange} is not of the arm whose model is given"
    elif len(parts) == 2:
        who = f"{rows.names[0]} and {rows.names[1]} are not of one robot"
    else:
        who = f"{strange} is not of the robot that made the others"
    raise SteelyardError(
        f"Whatever the load, {who}: a joint's torque is missed by {max(worst):.2g} times what a fit to that log alone "
        "leaves; give logs of one robot, mounted alike."
    )


def _seen(problem: LeastSquaresProblem, first: int) -> list[bool]:
    """Which unknowns the rows tell apart. The arm's give way to each other, the load's ten (the first) to the arm's:
    what could as well be the arm is not the load."""
    from scipy.linalg import qr

    R = problem.joined(np.ones(len(problem.blocks)))[:-1, :-1]
    lengths = np.linalg.norm(R, axis=0)
    scaled = R / np.where(lengths > 0.0, lengths, 1.0)
    seen = np.zeros(R.shape[1], dtype=bool)
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
        seen[chosen] = True
        independent += chosen
    return seen.tolist()  # type: ignore[no-any-return]


def _load(
    plan: Plan, frame: str, values: Array, known: Array, shown: tuple[bool, ...], physical: bool, degrees: float
) -> Load:
    robot = plan.base.robot
    theta, covariance = np.zeros(10), np.zeros((10, 10))
    index = np.flatnonzero(shown)
    theta[index] = values
    covariance[np.ix_(index, index)] = known
    notes = []
    if not all(shown):
        hidden = ", ".join(n for n, s in zip(INERTIAL_NAMES, shown, strict=True) if not s)
        notes.append(f"The motion does not show {hidden} of the load apart from the rest; they are set to zero.")
    if theta[0] < 2.0 * np.sqrt(covariance[0, 0]):
        notes.append(
            f"The mass, {theta[0]:.3g} ± {np.sqrt(covariance[0, 0]):.2g} kg, is hardly more than its uncertainty; "
            "there may be no load, or the motion shows it too little."
        )
    if theta[0] < -_LIGHTER * np.sqrt(covariance[0, 0]):
        why = "the logs with and without it look exchanged; give those that carry it as --with (with_load)."
        if all(shown):
            away = nearest_possible_body(-theta, covariance)[0] + theta
            if away @ np.linalg.solve(covariance, away) > len(theta) * _LIGHTER**2:
                why = "no body, put on or taken off; the logs are not of one robot, or it was mounted otherwise."
        raise SteelyardError(f"The load would weigh {theta[0]:.3g} ± {np.sqrt(covariance[0, 0]):.2g} kg: {why}")
    boundary = False
    if physical and all(shown):
        theta, boundary = nearest_possible_body(theta, covariance)
        if boundary:
            notes.append("The free estimate was no body that can exist; the nearest one is given.")
    place = robot.frame(frame)
    transfer = between(own_frame(robot.links[plan.host], plan.host), place)
    theta, covariance, degrees = transfer @ theta, transfer @ covariance @ transfer.T, max(degrees - 2.0, 1.0)
    return Load(frame, theta, covariance, shown, degrees, boundary, tuple(notes))


# -------------------------------------------------------------------- what goes in


def _groups(given: Any, robot: Robot, mapping: AnyMapping) -> list[list[Log]]:
    """Logs by the load that they carry: one group, unless there are lists in a list."""
    listed = isinstance(given, Sequence) and not is_one_log(given)
    several = listed and bool(given) and not any(is_one_log(x) for x in given)
    return [as_logs(x, robot, mapping) for x in (given if several else [given])]


def _arm_beta(base: BaseParameters, arm: Model | None) -> Array | None:
    """The base parameters of a known arm; its terms are matched by name, and what it lacks is zero."""
    if arm is None:
        return None
    if arm.robot.fingerprint != base.robot.fingerprint:
        raise SteelyardError(f"The arm's model is of '{arm.robot.name}', another robot than '{base.robot.name}'.")
    values = {p.name: v for p, v in zip(arm.dynamics.parameters, arm.theta, strict=True)}
    return base.values(np.array([values.get(p.name, 0.0) for p in base.parameters]))
