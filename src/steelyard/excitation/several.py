"""Motions that complement each other or earlier logs: `excite_several` and `excite_next`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard.errors import ExcitationError, UnknownNameError
from steelyard.excitation.criteria import criterion_named
from steelyard.excitation.excite import excite
from steelyard.excitation.excite_options import ExciteOptions
from steelyard.excitation.plan import Plan
from steelyard.excitation.search import Progress
from steelyard.ground.arrays import Array
from steelyard.ground.verb_options import with_changes
from steelyard.parameters.terms import TermsLike
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.factor import Factor, reduce
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
        logs: Logs of the robot.
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
    options: ExciteOptions | None = None,
    *,
    design: Any = excite,
    **changes: Any,
) -> Plan:
    """Design the next motion after earlier logs: `excite` for the information of old and new rows together.

    Rows are weighted by the logs' residuals. The new motion has the sampling rate of the logs' rows, so that a second
    of it counts as a second of the logs.

    Args:
        robot: The robot.
        logs: Logs of the robot, or their information (`earlier_logs`).
        options: Options of the design; None: the defaults, but with the rate of the logs and the criterion "d", which
            weighs the error bars of all parameters. The logs determine the weights and the prior.
        design: `excite` or `evolve`.
        **changes: Fields of `ExciteOptions` that replace those of `options`, and further arguments of `design`.
    """
    robot = as_robot(robot)
    terms, equations = (changes.get(name, getattr(options, name, None)) for name in ("terms", "equations"))
    information = (logs if isinstance(logs, EarlierLogs) else earlier_logs(robot, logs, terms)).of(equations)
    own = {"rate": 1.0 / information.period, "criterion": "d"} if options is None else {}
    known = {"weights": 1.0 / information.sigma, "prior": information.factor}
    plan: Plan = design(robot, options=options, **{**own, **changes, **known})
    return plan


def excite_several(
    robot: RobotLike,
    count: int,
    options: ExciteOptions | None = None,
    *,
    sweeps: int = 1,
    progress: Callable[[Progress], Any] | None = None,
    **changes: Any,
) -> tuple[Plan, ...]:
    """Design motions whose logs together are most informative; each one is within all limits.

    The first motion is designed alone, each next one given the earlier ones. Then, `sweeps` times, each is redesigned
    given all the others and replaced if that is better. A plan's `value` counts all motions known at its design; the
    value of the last plan counts all motions.

    Args:
        robot, progress: As in `excite`.
        count: Number of motions.
        options: Options of the design; the prior, if any, is the factor of earlier logs.
        sweeps: Number of improvement sweeps.
        **changes: Fields of `ExciteOptions` that replace those of `options`.
    """
    o = with_changes(options or ExciteOptions(), changes, "excite_several")
    if count < 1:
        raise ExcitationError(f"{count} motions cannot be designed; ask for one at least.")
    arm = as_robot(robot)
    base = base_parameters(arm, o.terms)

    def alone(plan: Plan) -> Factor:
        """Return the expected information of a motion, as the factor of a log."""
        q, dq, ddq = plan.trajectory.sample(plan.trajectory.times(plan.rate))
        factor = reduce(Rows(base.structure.dynamics, base.independent), q, dq, ddq, np.zeros_like(q))
        return EarlierLogs(factor, np.ones(len(factor.equations)), 1.0).of(o.equations).factor

    def design(others: Sequence[Plan], number: int) -> Plan:
        factors: list[Any] = [f for f in (o.prior, *(alone(p) for p in others)) if f is not None]
        merged = factors[0].merge(*factors[1:]) if factors else None
        return excite(arm, replace(o, prior=merged, seed=o.seed + number), progress=progress)

    plans: list[Plan] = []
    plans.extend(design(plans, k) for k in range(count))
    better = criterion_named(o.criterion).larger_is_better
    best = plans[-1].value
    for sweep in range(sweeps if count > 1 else 0):
        for k in range(count):
            trial = design([*plans[:k], *plans[k + 1 :]], (sweep + 1) * count + k)
            if (trial.value > best) if better else (trial.value < best):
                plans[k], best = trial, trial.value
    # The plan with the value of all motions comes last.
    worst_last = sorted(range(count), key=lambda k: plans[k].value != best)
    return tuple(plans[k] for k in reversed(worst_last))
