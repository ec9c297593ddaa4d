"""`Function`: a traced piece of physics with named inputs and one dense result, and its exact derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.graph import Graph, Node, count_operations, forward, reverse
from steelyard.ground.short_repr import short_repr


@short_repr
@dataclass(frozen=True, eq=False)
class Function:
    """result = f(inputs), sample by sample.

    `inputs` maps each input's name to its width. A sample's result has the given `shape`; only its entries `outputs`
    are not structurally zero, and output k belongs at flat position `places[k]`.
    """

    name: str
    graph: Graph
    inputs: Mapping[str, int]
    outputs: tuple[Any, ...]
    shape: tuple[int, ...]
    places: NDArray[np.int64]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    @property
    def input_rows(self) -> dict[str, int]:
        """First row of each input if all are stacked."""
        starts = np.cumsum([0, *self.inputs.values()])
        return dict(zip(self.inputs, (int(s) for s in starts), strict=False))

    @cached_property
    def operation_counts(self) -> dict[str, int]:
        return count_operations(self.graph, self.outputs)

    @property
    def cost(self) -> int:
        """Number of arithmetic operations per sample."""
        return sum(n for kind, n in self.operation_counts.items() if kind not in ("in", "const"))

    def adjoint(self, wrt: Sequence[str] | None = None) -> Function:
        """Return x̄ = (∂f/∂x)ᵀ f̄ for the inputs `wrt` (default: all), one after the other in one vector.

        It has one more input, `cotangent`: f̄, as wide as the dense result.
        """
        names = tuple(wrt or self.inputs)
        graph = self.graph
        seeds = [graph.input("cotangent", int(place)) for place in self.places]
        found = reverse(graph, self.outputs, seeds)
        flat = [found.get((name, k), 0.0) for name in names for k in range(self.inputs[name])]
        return dense(f"{self.name}_adjoint", graph, {**self.inputs, "cotangent": self.size}, flat)

    def tangent(self, wrt: Sequence[str] | None = None) -> Function:
        """Return ḟ = (∂f/∂x) ẋ; it has one more input `tangent_x` for every input x of `wrt` (default: all)."""
        names = tuple(wrt or self.inputs)
        graph = self.graph
        moves = {(x, k): graph.input(f"tangent_{x}", k) for x in names for k in range(self.inputs[x])}
        flat = forward(graph, self.outputs, moves)
        more = {f"tangent_{x}": self.inputs[x] for x in names}
        return _sparse(f"{self.name}_tangent", graph, {**self.inputs, **more}, flat, self.shape, self.places)


def dense(name: str, graph: Graph, inputs: Mapping[str, int], flat: Sequence[Any]) -> Function:
    """Create a function with a vector as result; zeros in it become structural.

    Args:
        name: Name of the function.
        graph: Graph of the operations.
        inputs: Width of each input.
        flat: Entries of the result.
    """
    return _sparse(name, graph, inputs, flat, (len(flat),), range(len(flat)))


def _sparse(
    name: str, graph: Graph, inputs: Mapping[str, int], values: Sequence[Any], shape: tuple[int, ...], places: Any
) -> Function:
    """Create a function with the nonzero entries `values` at flat positions `places`."""
    pairs = [(int(p), v) for p, v in zip(places, values, strict=True) if isinstance(v, Node) or v != 0.0]
    pairs.sort(key=lambda pair: pair[0])
    where = np.array([p for p, _ in pairs], dtype=np.int64)
    return Function(name, graph, dict(inputs), tuple(v for _, v in pairs), shape, where)


@dataclass
class Trace:
    """A graph with named inputs, to write a function into."""

    inputs: dict[str, int]
    graph: Graph = field(default_factory=Graph)

    def __getitem__(self, name: str) -> list[Node]:
        return self.graph.inputs(name, self.inputs[name])

    def all(self) -> list[list[Node]]:
        return [self[name] for name in self.inputs]


def trace(
    name: str, inputs: dict[str, int], body: Callable[..., Mapping[Any, Any]], shape: tuple[int, ...]
) -> Function:
    """Trace a function.

    Args:
        name: Name of the function, for messages.
        inputs: Width of each input.
        body: Computes nonzero entries by index from a list of scalars per input.
        shape: Shape of the dense result.
    """
    tracer = Trace(inputs)
    entries = body(*tracer.all())
    places = [int(np.ravel_multi_index(key, shape)) for key in entries]
    return _sparse(name, tracer.graph, inputs, list(entries.values()), shape, places)
