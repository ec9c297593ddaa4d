"""`excite_several`: motions that complement each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.excitation.criteria import criterion_named
from steelyard.excitation.error import ExcitationError
from steelyard.excitation.excite import excite
from steelyard.excitation.given import Given, motion_factor
from steelyard.excitation.plan import Plan
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.factor import Factor
from steelyard.robot.robot import Robot


def excite_several(
    robot: Robot,
    count: int,
    *,
    terms: Terms | None = None,
    prior: Factor | None = None,
    equations: Sequence[str] | None = None,
    sweeps: int = 1,
    seed: int = 0,
    **options: Any,
) -> tuple[Plan, ...]:
    """`count` motions whose logs together tell most; each one is within all limits.

    The first is designed for itself, each next one given the earlier ones. Then, `sweeps` times, each is designed anew
    given all the others and taken where that is better. A plan's `value` is that of all motions that were known when it
    was designed, together; the last one's counts all. Options are those of `excite`.
    """
    if count < 1:
        raise ExcitationError(f"{count} motions are asked for; give one at least.")
    base = base_parameters(robot, terms)

    def alone(plan: Plan) -> Factor:
        return Given(motion_factor(base, plan.trajectory, plan.rate), _ones(base.robot), 1.0).of(equations).factor

    def designed(others: Sequence[Plan], number: int) -> Plan:
        known = [f for f in (prior, *(alone(p) for p in others)) if f is not None]
        merged = known[0].merge(*known[1:]) if known else None
        return excite(robot, terms=terms, prior=merged, equations=equations, seed=seed + number, **options)

    plans: list[Plan] = []
    for k in range(count):
        plans.append(designed(plans, k))
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


def _ones(robot: Robot) -> Any:
    import numpy as np

    return np.ones(sum(robot.torque_used))
