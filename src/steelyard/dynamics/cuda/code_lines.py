"""The lines of a traced function for a thread of a GPU: inputs are read late, and outputs written early."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from steelyard.dynamics.c_text import C_HELPERS, c_expression, c_literal, used_helpers
from steelyard.dynamics.function import Function
from steelyard.dynamics.graph import Node, arguments, live


def device_helpers(*functions: Function) -> str:
    """Write the helpers that some `functions` call."""
    used = sorted(set().union(*map(used_helpers, functions)))
    helpers = [C_HELPERS[x].replace("static", "__device__ __forceinline__") for x in used]
    return "".join(f"{text}\n" for text in helpers)


def row_lines(function: Function, read: Callable[[str, int], str], write: Callable[[int, str], str]) -> Iterator[str]:
    """Write lines that compute a sample of a function and store each output as soon as it is available.

    Args:
        function: Traced function.
        read: Returns the expression for entry k of an input, by the input's name.
        write: Returns the line that stores a value at a position of the result.
    """
    graph, operations = function.graph, function.graph.operations
    order = live(graph, function.outputs)
    wanted: dict[int, list[int]] = {}
    for place, output in zip(function.places, function.outputs, strict=True):
        if isinstance(output, Node):
            wanted.setdefault(output.index, []).append(int(place))
        elif output:
            yield write(int(place), c_literal(float(output)))
    angles = {
        kind: {arguments(operations[k])[0]: k for k in order if operations[k][0] == kind} for kind in ("sin", "cos")
    }
    names: dict[int, str] = {}
    for index in order:
        op = operations[index]
        if op[0] == "const":
            names[index] = c_literal(op[1])
            continue
        fresh = index not in names
        names[index] = f"v{index}"
        if op[0] == "in":
            yield f"const double v{index} = {read(op[1], op[2])};"
        elif op[0] in angles and all(arguments(op)[0] in found for found in angles.values()):
            if fresh:  # compute both at once, for little more than the cost of one
                sine, cosine = (angles[kind][arguments(op)[0]] for kind in ("sin", "cos"))
                names[sine], names[cosine] = f"v{sine}", f"v{cosine}"
                yield f"double v{sine}, v{cosine};"
                yield f"sincos({names[arguments(op)[0]]}, &v{sine}, &v{cosine});"
        else:
            yield f"const double v{index} = {c_expression(op[0], [names[k] for k in arguments(op)])};"
        yield from (write(place, f"v{index}") for place in wanted.get(index, ()))
