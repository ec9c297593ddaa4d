"""Rows along a motion: those of the torque equation τ = Y θ (`TorqueRows`), and of integral models (`SchemeRows`).

    energy     [E_kin + E_pot] over a window + ∫ dissipation dt  = ∫ τᵀq̇ dt        (one equation)
    momentum   [P] over a window + ∫ D dt                        = ∫ τ dt         (one per joint)

Kozłowski & Dutkiewicz 1996, eqs. 6–7 and 19. Windows follow each other ("short") or all start at the beginning
("long"). All rows are linear in the regressors along the motion, so gradients use the regressors' adjoints. Integrals
are trapezoidal sums over the samples, as in the identification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.function import Function
from steelyard.dynamics.native.gram import BlockEquations, BlockFunction, empty_blocks
from steelyard.errors import ExcitationError, UnknownNameError
from steelyard.excitation.goal import column_entries
from steelyard.excitation.sampled_motions import SampledMotions
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array
from steelyard.regression.schemes import SCHEMES

# Blocks whose rows are stored between the two passes of a gradient: a megabyte or two, which fits into a core's caches.
# Longer motions are cut into parts whose rows are computed twice, which is faster than reading them back from memory.
_BLOCKS = 16


class TorqueRows:
    """Torque rows of some joints at the samples of a motion, over chosen columns.

    `grams(x)` stores the rows of a short motion; `pull(S)` then gives the gradient of Σ_e ⟨S_e, G_e⟩ with respect to x,
    (∂W/∂x)ᵀ 2 W S, by the compiled adjoint. Rows are never transposed or copied; those of long motions are not stored.
    """

    def __init__(
        self, dynamics: Dynamics, columns: Sequence[int], sampled: SampledMotions, joints: Sequence[int]
    ) -> None:
        regressor = dynamics.function("torque_regressor")
        entries = column_entries(regressor, columns)
        self.names = tuple(dynamics.robot.joint_names[j] for j in joints)
        self.places = tuple(np.array(sorted(entries[j]), dtype=np.int64) for j in joints)
        self.sampled, self._equations = sampled, BlockEquations([len(p) for p in self.places])
        own = [[entries[j][int(k)] for k in place] for j, place in zip(joints, self.places, strict=True)]
        padded = [[*row, *[0.0] * (int(size) - len(row))] for row, size in zip(own, self._equations.sizes, strict=True)]
        # All rows in sequence; the machine code needs each row padded to whole tiles.
        self.function, rows = (_joined(regressor, [x for row in all_rows for x in row]) for all_rows in (own, padded))
        outputs = rows.outputs
        back = rows.adjoint()
        self._parts = sampled.parts(_BLOCKS)
        blocks, self._signals = self._parts[0].blocks, 3 * sampled.joints
        # The adjoint's input: signals, followed by the rows' cotangents.
        self._input = empty_blocks(blocks, self._signals + len(outputs))
        self._forward, self._backward = BlockFunction(rows, self._input), BlockFunction(back, self._input)
        self._output_places = back.places

    def grams(self, x: Array) -> list[Array]:
        """Return WᵀW of every equation over its own columns (`places`) for coefficients `x`."""
        self._x = x
        totals: list[Array] = []
        for part in self._parts:
            grams = self._equations.grams(self._rows_of(part))
            totals = [a + b for a, b in zip(totals, grams, strict=True)] if totals else grams
        return totals

    def pull(self, weights: Sequence[Array]) -> Array:
        """Return the gradient of Σ_e ⟨`weights`_e, G_e⟩ at the x of the last `grams`; weights are symmetric."""
        doubled = [2.0 * S for S in weights]
        total = np.zeros(len(self._x))
        for part in self._parts:
            rows = self._forward.result[: part.blocks] if len(self._parts) == 1 else self._rows_of(part)
            self._equations.weigh(rows, doubled, self._input[: part.blocks, self._signals :])
            output = self._backward(part.samples)
            blocks = np.zeros((part.blocks, self._signals, output.shape[2]))
            blocks[:, self._output_places] = output[:, : len(self._output_places)]
            total += part.pull(blocks)
        return total

    def _rows_of(self, part: SampledMotions) -> Array:
        part.in_blocks(self._x, self._input[: part.blocks, : self._signals])
        return self._forward(part.samples)


def _joined(regressor: Function, outputs: Sequence[object]) -> Function:
    """Return a function of the given `outputs` of the graph of a `regressor`, concatenated."""
    count = len(outputs)
    return Function("rows", regressor.graph, regressor.inputs, tuple(outputs), (count,), np.arange(count))


@dataclass(frozen=True)
class Windows:
    """Pairs of sample indices between which a balance is evaluated."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    step: float

    @staticmethod
    def along(samples: int, rate: float, window: float, long: bool) -> Windows:
        width = max(1, round(window * rate))
        edges = np.arange(0, samples, width, dtype=np.int64)
        if len(edges) < 2:
            raise ExcitationError(f"A window of {window:g} s does not fit into the motion; give a shorter one.")
        starts = np.zeros(len(edges) - 1, dtype=np.int64) if long else edges[:-1]
        return Windows(starts, edges[1:], 1.0 / rate)

    def difference(self, values: Array) -> Array:
        out: Array = values[self.ends] - values[self.starts]
        return out

    def integral(self, values: Array) -> Array:
        total = np.zeros_like(values)
        total[1:] = np.cumsum(0.5 * self.step * (values[1:] + values[:-1]), axis=0)
        return self.difference(total)

    def pull_difference(self, rows: Array, samples: int) -> Array:
        out = np.zeros((samples, *rows.shape[1:]))
        np.add.at(out, self.ends, rows)
        np.add.at(out, self.starts, -rows)
        return out

    def pull_integral(self, rows: Array, samples: int) -> Array:
        later = self.pull_difference(rows, samples)[::-1].cumsum(axis=0)[::-1]  # Σ over all later samples
        out = np.zeros_like(later)
        out[1:] += 0.5 * self.step * later[1:]
        out[:-1] += 0.5 * self.step * later[1:]
        return out


class SchemeRows:
    """Rows of an integral model over chosen columns; the module docstring states the equations."""

    def __init__(
        self,
        dynamics: Dynamics,
        columns: Sequence[int],
        sampled: SampledMotions,
        scheme: str,
        joints: Sequence[int],
        windows: Windows,
    ) -> None:
        windowed = [name for name, item in SCHEMES.items() if item.windowed]
        if scheme not in windowed:
            raise UnknownNameError("scheme", scheme, ("dynamic", *windowed))
        balance = SCHEMES[scheme].balance
        self.dynamics, self.sampled, self.windows = dynamics, sampled, windows
        self.columns = np.array(columns, dtype=np.int64)
        self.differenced, self.integrated = balance.stored, balance.lost
        self._joints = None if balance.scalar else np.array(joints, dtype=np.int64)
        names = dynamics.robot.joint_names
        self.names = (balance.name,) if self._joints is None else tuple(names[j] for j in joints)
        self.places = tuple(np.arange(len(self.columns)) for _ in self.names)

    def _inputs(self, name: str) -> dict[str, Array]:
        signals = dict(zip(("q", "dq", "ddq"), self._signals, strict=True))
        return {x: signals[x] for x in self.dynamics.function(name).inputs}

    def _chosen(self, values: Array) -> Array:
        """Return the used columns of a regressor's values, shape (samples, equations, columns)."""
        picked = values[..., self.columns]
        return picked[:, None] if self._joints is None else picked[:, self._joints]

    def grams(self, x: Array) -> list[Array]:
        self._signals = self.sampled.signals(x)
        self._rows = np.zeros((len(self.windows.ends), len(self.names), len(self.columns)))
        for names, operate in ((self.differenced, self.windows.difference), (self.integrated, self.windows.integral)):
            for name in names:
                self._rows += operate(self._chosen(self.dynamics.evaluator(name)(self._inputs(name))))
        return [self._rows[:, e].T @ self._rows[:, e] for e in range(len(self.names))]

    def pull(self, weights: Sequence[Array]) -> Array:
        back = np.stack([2.0 * self._rows[:, e] @ S for e, S in enumerate(weights)], axis=1)
        total = {x: np.zeros_like(s) for x, s in zip(("q", "dq", "ddq"), self._signals, strict=True)}
        samples = self.sampled.samples
        for names, transposed in (
            (self.differenced, self.windows.pull_difference),
            (self.integrated, self.windows.pull_integral),
        ):
            cotangent = transposed(back, samples)
            for name in names:
                function = self.dynamics.function(name)
                full = np.zeros((samples, *function.shape))
                if self._joints is None:
                    full[:, self.columns] = cotangent[:, 0]
                else:
                    full[:, self._joints[:, None], self.columns] = cotangent
                for x, bar in self.dynamics.adjoint(name, full, **self._inputs(name)).items():
                    total[x] += bar
        return self.sampled.pull_signals([total["q"], total["dq"], total["ddq"]])


def grams_along(
    dynamics: Dynamics,
    columns: NDArray[np.int64],
    motion: Trajectory,
    rate: float,
    joints: Sequence[int],
    settings: Mapping[str, Any],
) -> tuple[Array, ...]:
    """Compute WᵀW of every equation along a motion with the rows of a design.

    Args:
        dynamics: Dynamics of the robot with its terms.
        columns: Indices of the regressor's columns.
        motion: The motion.
        rate: Sampling rate [Hz].
        joints: Joints whose torques count.
        settings: Settings of the design: "scheme" (default "dynamic"), "window" [s] and "long_windows".
    """
    times, scheme = motion.times(rate), settings.get("scheme") or "dynamic"
    if scheme == "dynamic":
        Y = dynamics.torque_regressor(*motion.sample(times))
        return tuple(W.T @ W for W in (Y[:, j][:, columns] for j in joints))
    window, long = settings.get("window") or 1.0 / rate, bool(settings.get("long_windows"))
    windows = Windows.along(len(times), rate, window, long)
    rows = SchemeRows(dynamics, columns.tolist(), SampledMotions(motion.families, times), scheme, joints, windows)
    return tuple(rows.grams(motion.coefficients))
