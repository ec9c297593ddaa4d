"""A small graph of scalar operations: the result of tracing physics.

Every operation is stored once (common subexpressions vanish), constants are folded, and zeros and ones disappear, so
that the graph of a robot holds only the arithmetic that this robot needs. Derivatives of a graph, forward and reverse,
are more nodes of the same graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

UNARY: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "sin": np.sin,
    "cos": np.cos,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "tanh": np.tanh,
    "atan": np.arctan,
    "abs": np.abs,
    "sign": np.sign,
    # 1 for positive arguments, else 0: the derivative of minimum and maximum.
    "step": lambda x: np.heaviside(x, 0.0),
}
BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "min": np.minimum,
    "max": np.maximum,
}

Operation = tuple[Any, ...]


class Node:
    """Scalar `index` of a `graph`. Arithmetic on nodes gives nodes, or plain numbers if the result is constant.

    Args:
        graph: Graph of the node.
        index: Index of its operation.
    """

    __slots__ = ("graph", "index")

    def __init__(self, graph: Graph, index: int) -> None:
        self.graph, self.index = graph, index

    @property
    def operation(self) -> Operation:
        return self.graph.operations[self.index]

    def _argument_of_neg(self) -> Node | None:
        op = self.operation
        return Node(self.graph, op[1]) if op[0] == "neg" else None

    def __neg__(self) -> Any:
        op = self.operation
        if op[0] == "neg":
            return Node(self.graph, op[1])
        if op[0] == "sub":
            return self.graph.node("sub", op[2], op[1])
        return self.graph.node("neg", self.index)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Node):
            other = float(other)
            return self if other == 0.0 else self.graph.node("add", *sorted((self.index, self.graph.constant(other))))
        if (minus := other._argument_of_neg()) is not None:
            return self - minus
        if (minus := self._argument_of_neg()) is not None:
            return other - minus
        return self.graph.node("add", *sorted((self.index, other.index)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if not isinstance(other, Node):
            return self + (-float(other))
        if other.index == self.index:
            return 0.0
        if (minus := other._argument_of_neg()) is not None:
            return self + minus
        if (minus := self._argument_of_neg()) is not None:
            return -(minus + other)
        return self.graph.node("sub", self.index, other.index)

    def __rsub__(self, other: Any) -> Any:
        other = float(other)
        return -self if other == 0.0 else self.graph.node("sub", self.graph.constant(other), self.index)

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Node):
            return self._scaled(float(other))
        a, b, negative = self, other, False
        if (minus := a._argument_of_neg()) is not None:
            a, negative = minus, not negative
        if (minus := b._argument_of_neg()) is not None:
            b, negative = minus, not negative
        product = self.graph.node("mul", *sorted((a.index, b.index)))
        return -product if negative else product

    __rmul__ = __mul__

    def _scaled(self, k: float) -> Any:
        # Move signs out of products, so that k·x and −k·x share one multiplication.
        if k == 0.0:
            return 0.0
        if k < 0.0:
            return -self._scaled(-k)
        if k == 1.0:
            return self
        if (minus := self._argument_of_neg()) is not None:
            return -minus._scaled(k)
        return self.graph.node("mul", *sorted((self.index, self.graph.constant(k))))

    def __truediv__(self, other: Any) -> Any:
        if not isinstance(other, Node):
            return self * (1.0 / float(other))
        return self.graph.node("div", self.index, other.index)

    def __rtruediv__(self, other: Any) -> Any:
        other = float(other)
        return 0.0 if other == 0.0 else self.graph.node("div", self.graph.constant(other), self.index)

    def __pow__(self, exponent: Any) -> Any:
        if exponent != int(exponent) or exponent < 0:
            raise TypeError("Only whole, non-negative powers can be traced; use sqrt and / for the others.")
        result: Any = 1.0
        for _ in range(int(exponent)):
            result = result * self
        return result

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply NumPy's functions (np.sin, np.tanh, np.float64(2) * node, …) to nodes."""
        if method != "__call__" or options:
            return NotImplemented
        if ufunc in _UFUNC_UNARY:
            return self.graph.unary(_UFUNC_UNARY[ufunc], inputs[0])
        if ufunc in _UFUNC_BINARY:
            return _UFUNC_BINARY[ufunc](self.graph, *inputs)
        raise TypeError(f"np.{ufunc.__name__} cannot be traced; use the functions of steelyard.ground.scalars.")


_UFUNC_UNARY = {function: name for name, function in UNARY.items() if isinstance(function, np.ufunc)}
_UFUNC_BINARY: dict[Any, Callable[..., Any]] = {
    np.add: lambda graph, a, b: b + a if isinstance(b, Node) else a + b,
    np.subtract: lambda graph, a, b: a - b if isinstance(a, Node) else b.__rsub__(a),
    np.multiply: lambda graph, a, b: b * a if isinstance(b, Node) else a * b,
    np.true_divide: lambda graph, a, b: a / b if isinstance(a, Node) else b.__rtruediv__(a),
    np.power: lambda graph, a, b: a**b,
    np.minimum: lambda graph, a, b: graph.binary("min", a, b),
    np.maximum: lambda graph, a, b: graph.binary("max", a, b),
}


class Graph:
    """The operations, in an order in which each comes after its arguments.

    Args:
        operation: Name of an operation and its arguments: indices of nodes, the value of a constant, or the position in
            an input.
        name: Name of an operation or of an input.
        value: Value of a constant.
        position: Position in the input.
        count: Number of scalars of the input.
        x: Node or number.
        a, b: Nodes or numbers.
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._known: dict[Operation, int] = {}

    def node(self, *operation: Any) -> Node:
        return Node(self, self._index(operation))

    def _index(self, operation: Operation) -> int:
        index = self._known.get(operation)
        if index is None:
            index = self._known[operation] = len(self.operations)
            self.operations.append(operation)
        return index

    def constant(self, value: float) -> int:
        return self._index(("const", value))

    def input(self, name: str, position: int) -> Node:
        return self.node("in", name, position)

    def inputs(self, name: str, count: int) -> list[Node]:
        return [self.input(name, k) for k in range(count)]

    def unary(self, name: str, x: Any) -> Any:
        if not isinstance(x, Node):
            return float(UNARY[name](x))
        if name == "neg":
            return -x
        # Odd and even functions drop the sign of their argument: sin(−x) and sin(x) are computed once.
        if (minus := x._argument_of_neg()) is not None:
            if name in ("sin", "tanh", "atan", "sign"):
                return -self.unary(name, minus)
            if name in ("cos", "abs"):
                return self.unary(name, minus)
        return self.node(name, x.index)

    def binary(self, name: str, a: Any, b: Any) -> Any:
        if not isinstance(a, Node) and not isinstance(b, Node):
            return float(BINARY[name](a, b))
        left = a.index if isinstance(a, Node) else self.constant(float(a))
        right = b.index if isinstance(b, Node) else self.constant(float(b))
        return self.node(name, left, right)


def arguments(operation: Operation) -> tuple[int, ...]:
    """Return the indices that an `operation` reads."""
    return () if operation[0] in ("const", "in") else operation[1:]


def live(graph: Graph, outputs: Iterable[Any]) -> list[int]:
    """Return the indices that some outputs need, arguments first.

    Args:
        graph: Graph.
        outputs: Nodes or numbers.
    """
    needed: set[int] = set()
    stack = [node.index for node in outputs if isinstance(node, Node)]
    while stack:
        index = stack.pop()
        if index not in needed:
            needed.add(index)
            stack.extend(arguments(graph.operations[index]))
    return sorted(needed)


def count_operations(graph: Graph, outputs: Iterable[Any]) -> dict[str, int]:
    """Count the operations of each kind that some outputs need.

    Args:
        graph: Graph.
        outputs: Nodes or numbers.
    """
    counts: dict[str, int] = {}
    for index in live(graph, outputs):
        kind = graph.operations[index][0]
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def _local_derivatives(graph: Graph, index: int) -> list[tuple[int, Any]]:
    """Return (argument, ∂node/∂argument) of one operation, the derivatives as nodes or numbers."""
    op = graph.operations[index]
    kind, args = op[0], [Node(graph, k) for k in arguments(op)]
    me = Node(graph, index)
    if kind == "neg":
        return [(args[0].index, -1.0)]
    if kind in ("add", "sub"):
        return [(args[0].index, 1.0), (args[1].index, 1.0 if kind == "add" else -1.0)]
    if kind == "mul":
        return [(args[0].index, args[1]), (args[1].index, args[0])]
    if kind == "div":
        inverse = 1.0 / args[1]
        return [(args[0].index, inverse), (args[1].index, -me * inverse)]
    if kind in ("min", "max"):
        first = graph.unary("step", args[1] - args[0] if kind == "min" else args[0] - args[1])
        return [(args[0].index, first), (args[1].index, 1.0 - first)]
    x = args[0] if args else me
    derivative: dict[str, Callable[[], Any]] = {
        "sin": lambda: graph.unary("cos", x),
        "cos": lambda: -graph.unary("sin", x),
        "sqrt": lambda: 0.5 / me,
        "exp": lambda: me,
        "tanh": lambda: 1.0 - me * me,
        "atan": lambda: 1.0 / (1.0 + x * x),
        "abs": lambda: graph.unary("sign", x),
    }
    # sign and step are flat almost everywhere; constants and inputs do not have arguments.
    return [(x.index, derivative[kind]())] if kind in derivative else []


def reverse(graph: Graph, outputs: Sequence[Any], seeds: Sequence[Any]) -> dict[tuple[str, int], Any]:
    """Compute adjoints of all inputs, Σ_k seeds[k] · ∂outputs[k]/∂input, by reverse accumulation.

    Args:
        graph: Graph.
        outputs: Nodes or numbers.
        seeds: Adjoint of each output.
    """
    adjoint: dict[int, Any] = {}
    for output, seed in zip(outputs, seeds, strict=True):
        if isinstance(output, Node):
            adjoint[output.index] = adjoint.get(output.index, 0.0) + seed
    for index in reversed(live(graph, outputs)):
        if index in adjoint:
            for argument, derivative in _local_derivatives(graph, index):
                adjoint[argument] = adjoint.get(argument, 0.0) + adjoint[index] * derivative
    operations = graph.operations
    return {(operations[k][1], operations[k][2]): a for k, a in adjoint.items() if operations[k][0] == "in"}


def forward(graph: Graph, outputs: Sequence[Any], tangents: Mapping[tuple[str, int], Any]) -> list[Any]:
    """Compute tangents of outputs, Σ ∂output/∂input · tangents[input], by forward accumulation.

    Args:
        graph: Graph.
        outputs: Nodes or numbers.
        tangents: Tangent of each input scalar, by name and position.
    """
    tangent: dict[int, Any] = {}
    for index in live(graph, outputs):
        op = graph.operations[index]
        if op[0] == "in":
            tangent[index] = tangents.get((op[1], op[2]), 0.0)
            continue
        total: Any = 0.0
        for argument, derivative in _local_derivatives(graph, index):
            moved = tangent[argument]
            if isinstance(moved, Node) or moved != 0.0:
                total = total + moved * derivative
        tangent[index] = total
    return [tangent[o.index] if isinstance(o, Node) else 0.0 for o in outputs]


def evaluate_graph(
    graph: Graph, outputs: Sequence[Any], inputs: Mapping[str, Sequence[Any]], library: Any = np
) -> list[Any]:
    """Evaluate outputs on arrays of samples, one array operation per node, without a compiler.

    Values are freed after their last use, so that a block of samples stays in the cache.

    Args:
        graph: Graph.
        outputs: Nodes or numbers.
        inputs: Arrays by name of the input, then position.
        library: NumPy, or `jax.numpy`.
    """
    order = live(graph, outputs)
    keep = {o.index for o in outputs if isinstance(o, Node)}
    last_use: dict[int, int] = {}
    for index in order:
        for argument in arguments(graph.operations[index]):
            last_use[argument] = index
    functions = _functions_of(library)
    values: dict[int, Any] = {}
    for index in order:
        op = graph.operations[index]
        if op[0] == "const":
            values[index] = op[1]
        elif op[0] == "in":
            values[index] = inputs[op[1]][op[2]]
        else:
            args = arguments(op)
            values[index] = functions[op[0]](*[values[k] for k in args])
            for k in set(args):
                if last_use[k] == index and k not in keep:
                    del values[k]
    return [values[o.index] if isinstance(o, Node) else o for o in outputs]


def _functions_of(library: Any) -> dict[str, Callable[..., Any]]:
    if library is np:
        return UNARY | BINARY
    names = {"neg": "negative", "atan": "arctan", "add": "add", "sub": "subtract", "mul": "multiply"}
    names |= {"div": "true_divide", "min": "minimum", "max": "maximum"}
    functions = {name: getattr(library, names.get(name, name)) for name in (UNARY | BINARY) if name != "step"}
    functions["step"] = lambda x: library.heaviside(x, 0.0)
    return functions
