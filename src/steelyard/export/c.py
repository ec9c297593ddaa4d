"""`model_to_c`: the identified model as C99 that needs nothing but math.h."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from steelyard.dynamics.function import Function, trace
from steelyard.dynamics.model import Model
from steelyard.export.c_text import HELPERS, body_lines, used_helpers
from steelyard.export.error import ExportError
from steelyard.export.regroup import regrouped
from steelyard.files import write_whole
from steelyard.scalars import Vector

_KEYWORDS = frozenset(
    [
        *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern"),
        *("float", "for", "goto", "if", "inline", "int", "long", "main", "register", "restrict", "return", "short"),
        *(
            "signed",
            "sizeof",
            "static",
            "struct",
            "switch",
            "typedef",
            "union",
            "unsigned",
            "void",
            "volatile",
            "while",
        ),
    ]
)


def model_to_c(model: Model, path: str | os.PathLike[str], name: str) -> tuple[Path, Path]:
    """Write `path` (.c) and the header beside it (.h); returns both paths.

    Parameters are regrouped to the base parameters first, which changes no result and saves operations.
    The functions `NAME_inverse_dynamics`, `NAME_gravity` and `NAME_mass_matrix` are straight-line code with the
    model's numbers in it: no loops, no memory of their own and no state, so that
    they may run in any thread. Friction, rotors and all other terms are included.
    """
    target = Path(path)
    if target.suffix != ".c":
        raise ExportError(f"{target}: C code is written to a .c file (and a .h beside it); name it so.")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in _KEYWORDS:
        raise ExportError(f"'{name}' is not a name in C; use letters, digits and _, starting with a letter.")
    functions = c_functions(model)
    header = target.with_suffix(".h")
    write_whole(header, _header(model, name, functions))
    write_whole(target, _source(model, name, functions, header.name))
    return target, header


def c_functions(model: Model) -> dict[str, Function]:
    """The traced functions with the model's numbers, regrouped, as constants, so that zeros drop out."""
    n, dynamics = model.robot.dof, model.dynamics
    theta = [float(x) for x in regrouped(model).theta]
    still = [0.0] * n

    def inverse(q: Vector, dq: Vector, ddq: Vector) -> dict[tuple[int], object]:
        return {(k,): v for k, v in enumerate(dynamics.inverse_over_scalars(q, dq, ddq, theta))}

    def gravity(q: Vector) -> dict[tuple[int], object]:
        return {(k,): v for k, v in enumerate(dynamics.inverse_over_scalars(q, still, still, theta))}

    return {
        "inverse_dynamics": trace("inverse_dynamics", {"q": n, "dq": n, "ddq": n}, inverse, (n,)),
        "gravity": trace("gravity", {"q": n}, gravity, (n,)),
        "mass_matrix": trace("mass_matrix", {"q": n}, lambda q: dynamics.mass_over_scalars(q, theta), (n, n)),
    }


def _signature(name: str, key: str, function: Function, joints: str) -> str:
    inputs = [f"const double {x}[{joints}]" for x in function.inputs]
    result = f"double M[{joints} * {joints}]" if key == "mass_matrix" else f"double tau[{joints}]"
    return f"void {name}_{key}({', '.join([*inputs, result])})"


def _header(model: Model, name: str, functions: dict[str, Function]) -> str:
    robot = model.robot
    guard, joints = f"{name.upper()}_H", f"{name.upper()}_JOINTS"
    order = [f"{k}: {_plain(j.name)} ({j.unit}, {j.effort_unit})" for k, j in enumerate(robot.joints)]
    gravity = ", ".join(f"{g:g}" for g in robot.gravity)
    terms = ", ".join(dict.fromkeys(f"{t.kind} ({t.on})" for t in model.terms.terms)) or "none"
    lines = [
        f"Dynamic model of robot '{_plain(robot.name)}', written by Steelyard. C99, needs math.h only.",
        "",
        "Joints, in the order of all arrays (unit of position, of torque):",
        *(f"  {line}" for line in order),
        f"Gravity in the base frame: ({gravity}) m/s2. Joint terms: {_plain(terms)}.",
        "",
        "Operations per call (add, mul, div, sin and cos, others):",
        *(f"  {key}: {_counts(function)}" for key, function in functions.items()),
        "",
        "inverse_dynamics  the torque for a motion: rigid body, friction and all other terms",
        "gravity           the torque that holds the robot still: gravity, springs, offsets",
        "mass_matrix       M, row by row, rotors included; M[i * JOINTS + j] = M[j * JOINTS + i]",
        "Arguments must not overlap the result. The functions keep no state.",
    ]
    return "\n".join(
        [
            "/*",
            *(f" * {line}".rstrip() for line in lines),
            " */",
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            f"#define {joints} {robot.dof}",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            *(f"{_signature(name, key, function, joints)};" for key, function in functions.items()),
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            "#endif",
            "",
        ]
    )


def _source(model: Model, name: str, functions: dict[str, Function], header: str) -> str:
    joints = f"{name.upper()}_JOINTS"
    lines = [f"/* See {_plain(header)}. Generated: change the model and write it again. */"]
    lines += [f'#include "{header}"', "", "#include <math.h>", ""]
    for helper in sorted(set().union(*(used_helpers(function) for function in functions.values()))):
        lines += [HELPERS[helper], ""]
    for key, function in functions.items():
        lines += [_signature(name, key, function, joints), "{"]
        lines += [f"    {line}" for line in body_lines(function, "M" if key == "mass_matrix" else "tau")]
        lines += ["}", ""]
    return "\n".join(lines)


def _counts(function: Function) -> str:
    counts = {k: n for k, n in function.operation_counts.items() if k not in ("in", "const")}
    groups: Sequence[Sequence[str]] = (("add", "sub", "neg"), ("mul",), ("div",), ("sin", "cos"))
    parts = [sum(counts.get(kind, 0) for kind in group) for group in groups]
    return ", ".join(str(n) for n in [*parts, sum(counts.values()) - sum(parts)])


def _plain(text: str) -> str:
    """Text that cannot end a C comment early."""
    return " ".join(text.replace("*/", "* /").split())
