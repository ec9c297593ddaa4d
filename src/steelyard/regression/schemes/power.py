"""`Power`: the power equation at instants, q̇ᵀτ = q̇ᵀY(q, q̇, q̈) θ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.rows import Equation
from steelyard.regression.schemes.balance import check_all_torques
from steelyard.regression.schemes.instant import instants
from steelyard.regression.schemes.known_friction import Curves, KnownFriction
from steelyard.regression.schemes.scheme import Motions, first_of
from steelyard.signals.prepare import Motion


@dataclass(frozen=True)
class Power:
    """q̇ᵀτ = d/dt(E θ) + L θ = q̇ᵀY θ at every sample, one equation; both sides through the motion's filter.

    A mask has no effect: what holds a joint still does no work.
    """

    name: ClassVar[str] = "power"
    uses_acceleration: ClassVar[bool] = True

    def data(
        self,
        dynamics: Dynamics,
        base: BaseParameters,
        motions: Motions,
        mask: float = 0.0,
        known_friction: Curves | None = None,
    ) -> RegressionData:
        check_all_torques(dynamics)
        friction = KnownFriction.of(dynamics.robot, known_friction)
        columns = np.array(base.independent, dtype=np.int64)

        def table(motion: Motion, part: slice) -> Array:
            dq = motion.dq[part]
            Y = dynamics.torque_regressor(motion.q[part], dq, motion.ddq[part])
            A = np.einsum("nj,njp->np", dq, Y)[:, columns]
            y = np.sum(dq * (motion.tau[part] - friction.torque(dq)), axis=1)
            return np.column_stack([A, y])[:, None]

        equations = (Equation("power", np.sort(columns)),)
        return instants(dynamics, equations, columns, table, motions, 0.0, first_of(motions).row_period)
