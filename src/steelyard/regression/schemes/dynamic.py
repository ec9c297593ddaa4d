"""`Dynamic`: the torque equation at instants, τ = Y(q, q̇, q̈) θ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.observe import observe
from steelyard.regression.rows import Rows
from steelyard.regression.schemes.instant import instants
from steelyard.regression.schemes.known_friction import Curves, KnownFriction
from steelyard.regression.schemes.paper_motion import Unfiltered
from steelyard.regression.schemes.scheme import Motions, first_of
from steelyard.signals.prepare import Motion


@dataclass(frozen=True)
class Dynamic:
    """τ = Y(q, q̇, q̈) θ at every sample, one equation per joint; both sides through the motion's filter.

    Rows of a joint that moves more slowly than the mask are left out. `reversals` (rad/s, m/s; instead of a mask) is
    how well a velocity's zero crossing is known: rows slower than that count less, since the direction of dry friction
    is uncertain there.
    """

    name: ClassVar[str] = "dynamic"
    uses_acceleration: ClassVar[bool] = True
    reversals: float = 0.0

    def __post_init__(self) -> None:
        if not self.reversals >= 0.0:
            raise SteelyardError(f"reversals is a speed, zero or positive, not {self.reversals:g}.")

    def data(
        self,
        dynamics: Dynamics,
        base: BaseParameters,
        motions: Motions,
        mask: float = 0.0,
        known_friction: Curves | None = None,
    ) -> RegressionData:
        first = first_of(motions)
        friction = KnownFriction.of(dynamics.robot, known_friction)

        def without_friction() -> Iterable[Motion]:
            return (replace(m, tau=m.tau - friction.torque(m.dq)) for m in motions())

        given = motions if known_friction is None else without_friction
        if not isinstance(first.filter, Unfiltered):
            return observe(dynamics, base, given, mask, reversals=self.reversals)
        columns = np.array(base.independent, dtype=np.int64)
        joints = np.flatnonzero(dynamics.robot.torque_used)

        def table(motion: Motion, part: slice) -> Array:
            Y = dynamics.torque_regressor(motion.q[part], motion.dq[part], motion.ddq[part])
            A = Y[np.ix_(np.arange(len(Y)), joints, columns)]
            return np.concatenate([A, motion.tau[part][:, joints, None]], axis=2)

        equations = Rows(dynamics, base.independent).equations
        return instants(dynamics, equations, columns, table, given, mask, first.row_period)
