"""Evaluates formulas in hand-written files, such as `l2/2` or `-q + pi/2`, without executing code."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Mapping

from steelyard.errors import UnknownNameError

# Characters: enough for any dimension of a robot, and too few to overflow the stack of Python's parser.
LONGEST = 300

# constant + slope · variable
Affine = tuple[float, float]


class FormulaError(ValueError):
    """An expression outside the grammar; the message gives the reason."""


def evaluate_expression(expression: str, names: Mapping[str, float], variables: Collection[str] = ()) -> Affine:
    """Evaluate an expression to (constant, slope), meaning constant + slope · variable.

    The grammar is numbers, `pi`, names, + - * / ** and parentheses.

    Args:
        expression: Text of the formula.
        names: Values of constants by name.
        variables: Names of the one free variable, which must enter affinely. Without one the slope is 0.
    """
    if len(expression) > LONGEST:
        raise FormulaError(f"the expression is longer than {LONGEST} characters; name its parts as constants")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise FormulaError(f"'{expression}' is not a number or a formula such as 2*l1 + pi/2") from None
    try:
        constant, slope = _value(tree.body, names, variables)
    except ZeroDivisionError:
        raise FormulaError(f"'{expression}' divides by zero") from None
    except OverflowError:
        raise FormulaError(f"'{expression}' is too large") from None
    if not (math.isfinite(constant) and math.isfinite(slope)):
        raise FormulaError(f"'{expression}' is not finite")
    return constant, slope


def _value(node: ast.expr, names: Mapping[str, float], variables: Collection[str]) -> Affine:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number):
            return float(number), 0.0
        case ast.Name(id=name):
            return _named(name, names, variables)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, names, variables)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            constant, slope = _value(operand, names, variables)
            return -constant, -slope
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATIONS:
            return _OPERATIONS[type(operator)](_value(left, names, variables), _value(right, names, variables))
    raise FormulaError(f"'{ast.unparse(node)}' is not allowed; use numbers, names, pi, + - * / ** and parentheses")


def _named(name: str, names: Mapping[str, float], variables: Collection[str]) -> Affine:
    if name in variables:
        return 0.0, 1.0
    if name in names:
        return names[name], 0.0
    if name == "pi":
        return math.pi, 0.0
    raise FormulaError(str(UnknownNameError("constant", name, [*names, *variables, "pi"])).rstrip("."))


def _times(a: Affine, b: Affine) -> Affine:
    if a[1] and b[1]:
        raise FormulaError("the joint variable may only appear once, as q or -q plus a constant")
    return a[0] * b[0], a[0] * b[1] + a[1] * b[0]


def _divided(a: Affine, b: Affine) -> Affine:
    if b[1]:
        raise FormulaError("nothing may be divided by the joint variable")
    return a[0] / b[0], a[1] / b[0]


def _power(a: Affine, b: Affine) -> Affine:
    if a[1] or b[1]:
        raise FormulaError("the joint variable may not be raised to a power")
    result = a[0] ** b[0]
    if isinstance(result, complex):
        raise FormulaError("a negative number has no such power")
    return float(result), 0.0


_OPERATIONS: Mapping[type[ast.operator], Callable[[Affine, Affine], Affine]] = {
    ast.Add: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ast.Sub: lambda a, b: (a[0] - b[0], a[1] - b[1]),
    ast.Mult: _times,
    ast.Div: _divided,
    ast.Pow: _power,
}
