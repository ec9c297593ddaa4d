"""The rows y = A θ that a sample contributes, one group per equation, as one traced function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import Function, dense
from steelyard.dynamics.graph import Graph


@dataclass(frozen=True, eq=False)
class Equation:
    """One scalar equation per sample (a joint's torque balance) and the parameters that appear in it."""

    name: str
    columns: NDArray[np.int64]

    @property
    def width(self) -> int:
        """Columns of [A y]."""
        return len(self.columns) + 1

    def among(self, columns: Iterable[int]) -> tuple[list[int], list[int]]:
        """Which of its columns are among `columns`, by place in the equation, and where they stand there."""
        own, where = _among(self, tuple(columns))
        return list(own), list(where)


@lru_cache(4096)  # asked again and again of the same equations, for thousands of logs
def _among(equation: Equation, columns: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    place = {int(c): k for k, c in enumerate(columns)}
    own = tuple(k for k, c in enumerate(equation.columns) if int(c) in place)
    return own, tuple(place[int(equation.columns[k])] for k in own)


@dataclass(frozen=True, eq=False)
class Part:
    """Some entries of a sample's rows: their `places` among all, and what computes them."""

    places: NDArray[np.int64]
    evaluator: Evaluator


class Rows:
    """[A y] of the torque equation τ = Y θ, joint by joint, restricted to `columns` (default: all that ever appear).

    Equations of joints whose torque is not used are left out. `function` computes from `dynamics`, per sample, the
    entries of the first equation, its right side, then the second's, and so on; rows of each equation are padded with
    zeros to a multiple of `pad`, which the Gram kernel's tiles want.
    """

    def __init__(self, dynamics: Dynamics, columns: Sequence[int] | None = None, pad: int = 1) -> None:
        self.dynamics, self.pad = dynamics, pad
        regressor = dynamics.function("torque_regressor")
        chosen = None if columns is None else set(map(int, columns))
        joints, parameters = regressor.shape
        entries: list[dict[int, object]] = [{} for _ in range(joints)]
        for place, output in zip(regressor.places, regressor.outputs, strict=True):
            joint, column = divmod(int(place), parameters)
            if chosen is None or column in chosen:
                entries[joint][column] = output
        robot = dynamics.robot
        used = [j for j in range(joints) if robot.torque_used[j]]
        self.parameters = parameters
        self.equations = tuple(
            Equation(robot.joint_names[j], np.array(sorted(entries[j]), dtype=np.int64)) for j in used
        )
        self.function = self._function(regressor, [[entries[j][c] for c in sorted(entries[j])] for j in used], used)

    @classmethod
    def kept(cls, dynamics: Dynamics, columns: Sequence[int], pad: int = 1) -> Rows:
        """Those of `columns`, traced and compiled once for all logs that `dynamics` is asked about."""
        key = Rows, tuple(map(int, columns)), pad
        if key not in dynamics.kept:
            dynamics.kept[key] = cls(dynamics, columns, pad)
        return cast(Rows, dynamics.kept[key])

    def _function(self, regressor: Function, blocks: list[list[object]], used: list[int]) -> Function:
        graph: Graph = regressor.graph
        outputs: list[object] = []
        for joint, block in zip(used, blocks, strict=True):
            outputs += [*block, graph.input("tau", joint)]
            outputs += [0.0] * (-len(outputs) % self.pad)
        inputs = {**regressor.inputs, "tau": self.dynamics.robot.dof}
        places = np.arange(len(outputs), dtype=np.int64)
        return Function("rows", graph, inputs, tuple(outputs), (len(outputs),), places)

    @cached_property
    def evaluator(self) -> Evaluator:
        return Evaluator(self.function)

    @cached_property
    def whole(self) -> Part:
        """All entries."""
        return Part(np.arange(len(self.function.outputs)), self.evaluator)

    @cached_property
    def smooth(self) -> Part:
        """The entries of links: of a smooth motion they are smooth, and jump nowhere."""
        return self._part(self._of_links, self.dynamics.function("torque_regressor").inputs)

    @cached_property
    def rough(self) -> Part:
        """All other entries: those of terms, some of which all but jump, and the measured torques."""
        return self._part(~self._of_links, self.function.inputs)

    @property
    def _of_links(self) -> NDArray[np.bool_]:
        links, flags = self.dynamics.robot.inertial_count, np.zeros(len(self.function.outputs), dtype=bool)
        for first, e in zip(self.firsts, self.equations, strict=True):
            flags[first : first + len(e.columns)] = e.columns < links
        return flags

    def _part(self, chosen: NDArray[np.bool_], inputs: Mapping[str, int]) -> Part:
        places = np.flatnonzero(chosen)
        outputs = [self.function.outputs[k] for k in places]
        return Part(places, Evaluator(dense("rows", self.function.graph, inputs, outputs)))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each equation, padding included."""
        return np.array([-(-e.width // self.pad) * self.pad for e in self.equations], dtype=np.int64)

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """Where each equation's rows begin."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    @property
    def operations(self) -> int:
        """Arithmetic of one sample's rows."""
        return self.function.cost
