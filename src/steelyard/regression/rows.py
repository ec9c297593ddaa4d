"""The rows y = A θ of a sample, one group per equation, as one traced function."""

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
from steelyard.ground.short_repr import short_repr


@short_repr
@dataclass(frozen=True, eq=False)
class Equation:
    """One scalar equation per sample (a joint's torque balance) and the parameters in it."""

    name: str
    columns: NDArray[np.int64]

    @property
    def width(self) -> int:
        """Number of columns of [A y]."""
        return len(self.columns) + 1

    def among(self, columns: Iterable[int]) -> tuple[list[int], list[int]]:
        """Return its columns that are among `columns`, as positions in the equation and in `columns`."""
        own, where = _among(self, tuple(columns))
        return list(own), list(where)


@lru_cache(4096)  # called repeatedly for the same equations, for thousands of logs
def _among(equation: Equation, columns: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    place = {int(c): k for k, c in enumerate(columns)}
    own = tuple(k for k, c in enumerate(equation.columns) if int(c) in place)
    return own, tuple(place[int(equation.columns[k])] for k in own)


@dataclass(frozen=True, eq=False)
class RowPart:
    """Some entries of a sample's rows: their `places` among all, and what computes them."""

    places: NDArray[np.int64]
    evaluator: Evaluator


class Rows:
    """[A y] of the torque equation τ = Y θ, joint by joint.

    Equations of joints with unused torque are omitted. `function` computes the entries of the first equation and its
    right side per sample, then those of the second, and so on.

    Args:
        dynamics: Physics of the robot with its terms.
        columns: Columns of the parameter vector; default: all that appear.
        pad: Pad each equation's rows with zeros to a multiple of this, for the tiles of the Gram kernel.
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
    def cached(cls, dynamics: Dynamics, columns: Sequence[int], pad: int = 1) -> Rows:
        """Return rows that are traced and compiled once for `dynamics`."""
        key = Rows, tuple(map(int, columns)), pad
        if key not in dynamics.cache:
            dynamics.cache[key] = cls(dynamics, columns, pad)
        return cast(Rows, dynamics.cache[key])

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
    def whole(self) -> RowPart:
        """All entries."""
        return RowPart(np.arange(len(self.function.outputs)), self.evaluator)

    @cached_property
    def smooth(self) -> RowPart:
        """The entries of links: of a smooth motion they are smooth, and jump nowhere."""
        return self._part(self._of_links, self.dynamics.function("torque_regressor").inputs)

    @cached_property
    def rough(self) -> RowPart:
        """All other entries: those of terms, some of which all but jump, and the measured torques."""
        return self._part(~self._of_links, self.function.inputs)

    @property
    def _of_links(self) -> NDArray[np.bool_]:
        links, flags = self.dynamics.robot.inertial_count, np.zeros(len(self.function.outputs), dtype=bool)
        for first, e in zip(self.firsts, self.equations, strict=True):
            flags[first : first + len(e.columns)] = e.columns < links
        return flags

    def _part(self, chosen: NDArray[np.bool_], inputs: Mapping[str, int]) -> RowPart:
        places = np.flatnonzero(chosen)
        outputs = [self.function.outputs[k] for k in places]
        return RowPart(places, Evaluator(dense("rows", self.function.graph, inputs, outputs)))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each equation, including padding."""
        return np.array([-(-e.width // self.pad) * self.pad for e in self.equations], dtype=np.int64)

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """First row of each equation."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    @property
    def operations(self) -> int:
        """Number of arithmetic operations per sample."""
        return self.function.cost
