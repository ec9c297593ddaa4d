"""Write a traced function as lines of C, which CUDA accepts as well.

For a thread of a GPU, inputs are read late and outputs written early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from steelyard.dynamics.function import Function
from steelyard.dynamics.graph import Node, arguments, live

C_HELPERS = {
    "sign": "static double sign_of(double x)\n{\n    return (double)((x > 0.0) - (x < 0.0));\n}",
    "step": "static double step_of(double x)\n{\n    return x > 0.0 ? 1.0 : 0.0;\n}",
    "min": "static double least_of(double a, double b)\n{\n    return a < b ? a : b;\n}",
    "max": "static double most_of(double a, double b)\n{\n    return a > b ? a : b;\n}",
}
_CALLS = {
    **{name: name for name in ("sin", "cos", "sqrt", "exp", "tanh", "atan")},
    **{"abs": "fabs", "sign": "sign_of", "step": "step_of", "min": "least_of", "max": "most_of"},
}
_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def used_helpers(function: Function) -> set[str]:
    """Return the helpers that a `function` calls; compilers warn about unused ones."""
    return set(function.operation_counts) & set(C_HELPERS)


def body_lines(function: Function, result: str) -> list[str]:
    """Write one line per operation, then those that fill the result.

    Args:
        function: Traced function.
        result: Name of the array for the result.
    """
    graph, operations = function.graph, function.graph.operations
    order = live(graph, function.outputs)
    lines, names = [], {}
    for index in order:
        op = operations[index]
        if op[0] == "const":
            names[index] = c_literal(op[1])
        elif op[0] == "in":
            names[index] = f"{op[1]}[{op[2]}]"
        else:
            names[index] = f"v{index}"
            lines.append(f"const double v{index} = {c_expression(op[0], [names[k] for k in arguments(op)])};")
    found = {
        int(place): names[value.index] if isinstance(value, Node) else c_literal(float(value))
        for place, value in zip(function.places, function.outputs, strict=True)
    }
    lines += [f"{result}[{k}] = {found.get(k, '0.0')};" for k in range(function.size)]
    read = {operations[k][1] for k in order if operations[k][0] == "in"}
    return [*lines, *(f"(void){name};" for name in function.inputs if name not in read)]


def c_literal(value: float) -> str:
    """Write the number `value` such that C reads it back exactly."""
    text = repr(value)
    if "." not in text and "e" not in text:
        text += ".0"
    return f"({text})" if text.startswith("-") else text


def c_expression(kind: str, args: list[str]) -> str:
    """Write an operation of a graph.

    Args:
        kind: Kind of the operation.
        args: Expressions of its arguments.
    """
    if kind == "neg":
        return f"-{args[0]}"
    if kind in _OPERATORS:
        return f"{args[0]} {_OPERATORS[kind]} {args[1]}"
    return f"{_CALLS[kind]}({', '.join(args)})"


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
