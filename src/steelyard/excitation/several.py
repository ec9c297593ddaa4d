"""Motions that complement each other or earlier logs: `excite_several` and `excite_next`."""

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
from steelyard.signals.as_logs import LogsLike, as_logs
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import AnyMapping
from steelyard.study import Study


@dataclass(frozen=True, eq=False)
class EarlierLogs:
    """Information of earlier logs.

    Attributes:
        factor: Triangular factor of their rows.
        sigma: Standard deviation of the residual per equation [N m, N].
        period: Time between their rows [s].
    """

    factor: Factor
    sigma: Array
    period: float

    @property
    def equations(self) -> tuple[str, ...]:
        return tuple(e.name for e in self.factor.equations)

    def of(self, equations: Sequence[str] | None) -> EarlierLogs:
        """Return the information of some `equations` (names of joints; None: all)."""
        if equations is None:
            return self
        for name in equations:
            if name not in self.equations:
                raise UnknownNameError("equation", name, self.equations)
        indices = [self.equations.index(name) for name in equations]
        fields: dict[str, Any] = {
            x: tuple(getattr(self.factor, x)[k] for k in indices) for x in ("equations", "triangles", "rows")
        }
        return EarlierLogs(replace(self.factor, **fields), self.sigma[indices], self.period)


def earlier_logs(
    robot: RobotLike,
    logs: LogsLike,
    terms: TermsLike | None = None,
    preparation: Preparation | None = None,
    mapping: AnyMapping = None,
) -> EarlierLogs:
    """Compute the information of logs on the base parameters, filtered and thinned as in `identify`.

    Args:
        robot: The robot.
        logs: Its logs.
        terms: Joint terms.
        preparation: Filtering of the logs; None: the default.
        mapping: Meaning of the columns of files and frames.
    """
    robot = as_robot(robot)
    logs = as_logs(logs, robot, mapping)
    if not logs:
        raise ExcitationError("No log is given; give one, or design without earlier logs.")
    # The next motion is designed for the robot as described here, and its rows must have the same equations.
    study = replace(Study.of(robot, logs, terms or (), preparation), robot=robot)
    data, base = study.rows, study.base
    factor = data.factor()
    triangle = factor.combined_triangle(columns=base.independent)
    # Unidentifiable parameters are zero: they do not change the residuals, which are all that is needed here.
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
    """Design the next motion after earlier logs: `excite` for the information of old and new rows together.

    Rows are weighted by the logs' residuals. The new motion has the sampling rate of the logs' rows, so that a second
    of it counts as a second of the logs.

    Args:
        robot: The robot.
        logs: Its logs, or their information (`earlier_logs`).
        terms, equations: As in `excite`.
        rate: Sampling rate [Hz]; None: that of the logs.
        criterion: As in `excite`; "d" weighs the error bars of all parameters.
        design: `excite` or `evolve`.
        options: Further options of `design`.
    """
    robot = as_robot(robot)
    information = (logs if isinstance(logs, EarlierLogs) else earlier_logs(robot, logs, terms)).of(equations)
    plan: Plan = design(
        robot,
        terms=terms,
        equations=equations,
        rate=rate or 1.0 / information.period,
        criterion=criterion,
        weights=1.0 / information.sigma,
        prior=information.factor,
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
    """Design motions whose logs together are most informative; each one is within all limits.

    The first motion is designed alone, each next one given the earlier ones. Then, `sweeps` times, each is redesigned
    given all the others and replaced if that is better. A plan's `value` counts all motions known at its design; the
    value of the last plan counts all motions.

    Args:
        robot, terms, equations, seed: As in `excite`.
        count: Number of motions.
        prior: Factor of earlier logs.
        sweeps: Number of improvement sweeps.
        options: Further options of `excite`.
    """
    if count < 1:
        raise ExcitationError(f"{count} motions cannot be designed; ask for one at least.")
    arm = as_robot(robot)
    base = base_parameters(arm, terms)

    def alone(plan: Plan) -> Factor:
        """Return the expected information of a motion, as the factor of a log."""
        q, dq, ddq = plan.trajectory.sample(plan.trajectory.times(plan.rate))
        factor = reduce(Rows(base.structure.dynamics, base.independent), q, dq, ddq, np.zeros_like(q))
        return EarlierLogs(factor, np.ones(len(factor.equations)), 1.0).of(equations).factor

    def design(others: Sequence[Plan], number: int) -> Plan:
        factors = [f for f in (prior, *(alone(p) for p in others)) if f is not None]
        merged = factors[0].merge(*factors[1:]) if factors else None
        return excite(arm, terms=terms, prior=merged, equations=equations, seed=seed + number, **options)

    plans: list[Plan] = []
    plans.extend(design(plans, k) for k in range(count))
    better = criterion_named(options.get("criterion", "cond")).larger_is_better
    best = plans[-1].value
    for sweep in range(sweeps if count > 1 else 0):
        for k in range(count):
            trial = design([*plans[:k], *plans[k + 1 :]], (sweep + 1) * count + k)
            if (trial.value > best) if better else (trial.value < best):
                plans[k], best = trial, trial.value
    # The plan with the value of all motions comes last.
    worst_last = sorted(range(count), key=lambda k: plans[k].value != best)
    return tuple(plans[k] for k in reversed(worst_last))
