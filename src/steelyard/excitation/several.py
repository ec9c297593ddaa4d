"""`excite_several`: motions that complement each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard.errors import ExcitationError, UnknownNameError
from steelyard.excitation.criteria import criterion_named
from steelyard.excitation.excite import excite
from steelyard.excitation.plan import Plan
from steelyard.ground.arrays import Array
from steelyard.parameters.terms import TermsLike
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.factor import Factor
from steelyard.regression.reduce import reduce
from steelyard.regression.rows import Rows
from steelyard.robot.load import RobotLike, as_robot
from steelyard.signals.given import LogsLike, as_logs
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import AnyMapping
from steelyard.study import Study


@dataclass(frozen=True, eq=False)
class EarlierLogs:
    """The triangular factor of logs, the standard deviation `sigma` (N m, N) of what they leave unexplained per
    equation, and the time between their rows (s)."""

    factor: Factor
    sigma: Array
    period: float

    @property
    def equations(self) -> tuple[str, ...]:
        return tuple(e.name for e in self.factor.equations)

    def of(self, equations: Sequence[str] | None) -> EarlierLogs:
        """What some `equations` (joints' names; None: all) alone have shown."""
        if equations is None:
            return self
        for name in equations:
            if name not in self.equations:
                raise UnknownNameError("equation", name, self.equations)
        kept = [self.equations.index(name) for name in equations]
        some: dict[str, Any] = {
            x: tuple(getattr(self.factor, x)[k] for k in kept) for x in ("equations", "triangles", "rows")
        }
        return EarlierLogs(replace(self.factor, **some), self.sigma[kept], self.period)


def given_by(
    robot: RobotLike,
    logs: LogsLike,
    terms: TermsLike | None = None,
    preparation: Preparation | None = None,
    mapping: AnyMapping = None,
) -> EarlierLogs:
    """What `logs` of `robot` say about its base parameters with `terms`, filtered and thinned as `identify` does it.
    `preparation` None is the usual one; `mapping` says what the columns of files and frames mean."""
    robot = as_robot(robot)
    logs = as_logs(logs, robot, mapping)
    if not logs:
        raise ExcitationError("There is no log that could say what is known; give one, or design from nothing.")
    # The next motion is designed for the robot as it is described here, and its rows must have the same equations.
    study = replace(Study.of(robot, logs, terms or (), preparation), robot=robot)
    data, base = study.rows, study.base
    factor = data.factor()
    triangle = factor.joined(columns=base.independent)
    # What the logs do not show at all stays zero: it explains nothing, and the residuals are what counts here.
    theta = np.linalg.lstsq(triangle[:, :-1], triangle[:, -1], rcond=1e-10)[0]
    sums = factor.residual_sums(theta, base.independent)
    sigma = np.sqrt(sums / np.maximum(np.array(factor.rows) - base.rank, 1))
    return EarlierLogs(factor, np.maximum(sigma, 1e-9), data.period)


def excite_next(
    robot: RobotLike,
    logs: LogsLike | EarlierLogs,
    *,
    terms: TermsLike | None = None,
    equations: Sequence[str] | None = None,
    rate: float | None = None,
    criterion: Any = "d",
    design: Any = excite,
    **options: Any,
) -> Plan:
    """The next motion, given what has been measured: `excite` for the information of old and new rows together.

    Rows are weighted by what the logs left unexplained, and the new motion is sampled as often as the logs' rows
    (unless `rate` says otherwise), so that a second of it counts as a second of the logs. The `criterion` is "d" by
    default: the error bars of all parameters together. `logs` are those of `robot`, or what they say (`given_by`);
    `design` is `excite`, or `evolve`, and gets `terms`, `equations` and `options`.
    """
    robot = as_robot(robot)
    known = (logs if isinstance(logs, EarlierLogs) else given_by(robot, logs, terms)).of(equations)
    plan: Plan = design(
        robot,
        terms=terms,
        equations=equations,
        rate=rate or 1.0 / known.period,
        criterion=criterion,
        weights=1.0 / known.sigma,
        prior=known.factor,
        **options,
    )
    return plan


def excite_several(
    robot: RobotLike,
    count: int,
    *,
    terms: TermsLike | None = None,
    prior: Factor | None = None,
    equations: Sequence[str] | None = None,
    sweeps: int = 1,
    seed: int = 0,
    **options: Any,
) -> tuple[Plan, ...]:
    """`count` motions whose logs together tell most; each one is within all limits.

    The first is designed for itself, each next one given the earlier ones. Then, `sweeps` times, each is designed anew
    given all the others and taken where that is better. A plan's `value` is that of all motions that were known when it
    was designed, together; the last one's counts all. `robot`, `terms`, `equations`, `seed` and `options` are those of
    `excite`; `prior` is the factor of earlier logs.
    """
    if count < 1:
        raise ExcitationError(f"{count} motions are asked for; give one at least.")
    arm = as_robot(robot)
    base = base_parameters(arm, terms)

    def alone(plan: Plan) -> Factor:
        """What playing a motion would show, as the factor of a log."""
        q, dq, ddq = plan.trajectory.sample(plan.trajectory.times(plan.rate))
        seen = reduce(Rows(base.structure.dynamics, base.independent), q, dq, ddq, np.zeros_like(q))
        return EarlierLogs(seen, np.ones(len(seen.equations)), 1.0).of(equations).factor

    def designed(others: Sequence[Plan], number: int) -> Plan:
        known = [f for f in (prior, *(alone(p) for p in others)) if f is not None]
        merged = known[0].merge(*known[1:]) if known else None
        return excite(arm, terms=terms, prior=merged, equations=equations, seed=seed + number, **options)

    plans: list[Plan] = []
    plans.extend(designed(plans, k) for k in range(count))
    better = criterion_named(options.get("criterion", "cond")).larger_is_better
    best = plans[-1].value
    for sweep in range(sweeps if count > 1 else 0):
        for k in range(count):
            trial = designed([*plans[:k], *plans[k + 1 :]], (sweep + 1) * count + k)
            if (trial.value > best) if better else (trial.value < best):
                plans[k], best = trial, trial.value
    # The last one's value is that of all together.
    worst_last = sorted(range(count), key=lambda k: plans[k].value != best)
    return tuple(plans[k] for k in reversed(worst_last))
