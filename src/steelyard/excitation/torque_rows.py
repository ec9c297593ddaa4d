"""`TorqueRows`: the rows of the torque equation τ = Y θ along a motion, their Gram matrices, and exact gradients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.function import Function
from steelyard.dynamics.native.gram import BlockEquations, BlockFunction, empty_blocks
from steelyard.excitation.goal import place_columns
from steelyard.excitation.sampled import Sampled
from steelyard.ground.arrays import Array

# Blocks whose rows are kept between the two passes of a gradient: a megabyte or two, which a core's caches hold. Longer
# motions are cut into parts whose rows are computed twice; reading them back from memory would take longer.
_BLOCKS = 16


class TorqueRows:
    """Torque rows of the `joints` at the samples of a motion, over chosen columns.

    `grams(x)` keeps the rows of a short motion; `pull(S)` then gives the gradient of Σ_e ⟨S_e, G_e⟩ with respect to x,
    (∂W/∂x)ᵀ 2 W S, by the compiled adjoint. Rows are never transposed or copied, and those of long motions never held.
    """

    def __init__(self, dynamics: Dynamics, columns: Sequence[int], sampled: Sampled, joints: Sequence[int]) -> None:
        regressor = dynamics.function("torque_regressor")
        entries = place_columns(regressor, columns)
        self.names = tuple(dynamics.robot.joint_names[j] for j in joints)
        self.places = tuple(np.array(sorted(entries[j]), dtype=np.int64) for j in joints)
        self._equations = BlockEquations([len(p) for p in self.places])
        outputs: list[object] = []
        for j, place, size in zip(joints, self.places, self._equations.sizes, strict=True):
            outputs += [entries[j][int(k)] for k in place] + [0.0] * (int(size) - len(place))
        rows = Function(
            "rows", regressor.graph, regressor.inputs, tuple(outputs), (len(outputs),), np.arange(len(outputs))
        )
        back = rows.adjoint()
        self._parts = sampled.parts(_BLOCKS)
        blocks, self._signals = self._parts[0].blocks, 3 * sampled.joints
        # Signals and the rows' cotangents stand side by side: together they are the adjoint's input.
        self._input = empty_blocks(blocks, self._signals + len(outputs))
        self._forward, self._backward = BlockFunction(rows, self._input), BlockFunction(back, self._input)
        self._found = back.places

    def grams(self, x: Array) -> list[Array]:
        """WᵀW of every equation, over its own columns (`places`)."""
        self._x = x
        totals: list[Array] = []
        for part in self._parts:
            grams = self._equations.grams(self._rows_of(part))
            totals = [a + b for a, b in zip(totals, grams, strict=True)] if totals else grams
        return totals

    def pull(self, weights: Sequence[Array]) -> Array:
        """Gradient of Σ_e ⟨weights_e, G_e⟩ at the x of the last `grams`; weights are symmetric."""
        doubled = [2.0 * S for S in weights]
        total = np.zeros(len(self._x))
        for part in self._parts:
            rows = self._forward.result[: part.blocks] if len(self._parts) == 1 else self._rows_of(part)
            self._equations.weigh(rows, doubled, self._input[: part.blocks, self._signals :])
            found = self._backward(part.samples)
            blocks = np.zeros((part.blocks, self._signals, found.shape[2]))
            blocks[:, self._found] = found[:, : len(self._found)]
            total += part.pull(blocks)
        return total

    def _rows_of(self, part: Sampled) -> Array:
        part.in_blocks(self._x, self._input[: part.blocks, : self._signals])
        return self._forward(part.samples)
