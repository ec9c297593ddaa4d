"""`ProjectedRegressor`: rows without unknown forces, Nᵀ D [Y f], from one traced function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.frame_motion import StackedJacobian
from steelyard.dynamics.function import trace
from steelyard.dynamics.native.compiled_function import Batch
from steelyard.dynamics.native.projected_lanes import NullSpaceRows
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Vector

# The same rows by NumPy take 8 µs per sample of a quadruped, compiling takes half a second. Counting samples
# instead of timing keeps runs exact.
_SAMPLES_BEFORE_COMPILING = 30_000


class ProjectedRegressor:
    """Rows of one robot for any set of unknown forces, as machine code.

    Args:
        dynamics: Physics with the terms.
        contacts: Jacobian of all contacts whose forces may be unknown.
        q, dq, ddq: Motion, `(samples, joints)`.
        force: Measured generalised forces, `(samples, joints)`.
        columns: Parameters of the rows.
        closed: Rows of the Jacobian with unknown forces.
        missing: Coordinates without a measured torque.
        basis: B: fixed orthonormal basis, N is its projection, `(joints, rows)`.
        scale: D, `(joints,)`.
    """

    def __init__(self, dynamics: Dynamics, contacts: StackedJacobian) -> None:
        self._dynamics, self._contacts = dynamics, contacts
        n = dynamics.robot.dof
        widths = {"q": n, "dq": n, "ddq": n, "force": n}
        if dynamics.terms.history:
            widths["history"] = len(dynamics.terms.history)
        self._width = len(dynamics.parameters) + 1
        shape = (n, self._width + contacts.count + n)
        self._function = trace("projected_regressor", widths, self._over_scalars, shape)
        self._rows = NullSpaceRows(self._function)
        self._samples = 0

    def worth_compiling(self, samples: int) -> bool:
        """Count `samples`, and return whether their sum is worth compiling."""
        self._samples += samples
        return self._samples > _SAMPLES_BEFORE_COMPILING

    def _over_scalars(
        self, q: Vector, dq: Vector, ddq: Vector, force: Vector, history: Vector = ()
    ) -> dict[tuple[int, int], Any]:
        signals = {"q": q, "dq": dq, "ddq": ddq, "history": history}
        out = dict(self._dynamics.over_scalars("torque_regressor", signals))
        out |= {(i, self._width - 1): value for i, value in enumerate(force)}
        out |= {(c, self._width + k): value for (k, c), value in self._contacts.over_scalars(q).items()}
        units = self._width + self._contacts.count
        return out | {(c, units + c): 1.0 for c in range(len(q))}

    def __call__(
        self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, force: ArrayLike, columns: Sequence[int],
        closed: Sequence[int], missing: Sequence[int], basis: Array, scale: Array,
    ) -> tuple[Array, Array, Array] | None:  # fmt: skip
        """Compute the rows `(samples, rows, columns + 1)`, with the forces last, and two measures of their precision.

        These are the ratio of the smallest to the largest pivot of the normal equations of the unknown forces, and an
        upper limit of 1/(smallest eigenvalue of Bᵀ N Nᵀ B). None if the columns are too few for a vector register.
        """
        inputs = {"q": q, "dq": dq, "ddq": ddq, "force": force}
        if self._dynamics.terms.history:
            inputs["history"] = self._dynamics.history(q, dq, ddq)
        wanted = (*columns, self._width - 1)
        if not NullSpaceRows.possible(len(wanted)):
            return None
        units = self._width + self._contacts.count
        unknowns = (*(self._width + k for k in closed), *(units + c for c in missing))
        return self._rows(Batch(self._function, inputs), wanted, unknowns, basis, scale)
