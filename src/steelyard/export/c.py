"""`model_to_c`: exports a model as C99 that needs only math.h."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steelyard.dynamics.c_text import C_HELPERS, body_lines, c_literal, used_helpers
from steelyard.dynamics.function import Function, trace
from steelyard.dynamics.model import Model
from steelyard.errors import ExportError, StructureError
from steelyard.ground.files import write_whole
from steelyard.ground.scalars import Vector
from steelyard.parameters.hysteresis import Rate, Stop
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import base_parameters

# Allowed relative rounding error of regrouping; a model with a larger error is not regrouped.
_ROUNDING = 2e-13
_STATES = 32


def regrouped(model: Model) -> Model:
    """Regroup a `model` to its base parameters: same torques and mass matrix, but most parameters are zero.

    Zeros drop out of traced code: a six-axis arm needs a fifth fewer operations, and far fewer for the gravity torque.
    Single parameters then have no physical meaning. If the base parameters cannot be determined, the model is
    returned unchanged.
    """
    robot = model.robot.with_torque_used(model.robot.joint_names)
    try:
        base = base_parameters(robot, Terms(robot, model.terms.terms))
    except StructureError:
        return model
    theta = np.zeros(len(model.theta))
    theta[list(base.independent)] = base.values(model.theta)
    smaller = Model(model.robot, model.terms, theta)
    return smaller if _same(smaller, model) else model


def _same(a: Model, b: Model) -> bool:
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.uniform(-2.0, 2.0, (3, _STATES, a.robot.dof))
    still = np.zeros_like(q)
    pairs = [
        (a.torque(q, dq, ddq), b.torque(q, dq, ddq)),
        (a.torque(q, still, still), b.torque(q, still, still)),
        (a.mass_matrix(q), b.mass_matrix(q)),
    ]
    return all(float(np.max(np.abs(x - y))) <= _ROUNDING * float(np.max(np.abs(y))) for x, y in pairs)


_KEYWORDS = frozenset(
    [
        *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern"),
        *("float", "for", "goto", "if", "inline", "int", "long", "main", "register", "restrict", "return", "short"),
        *("signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile"),
        "while",
    ]
)


def model_to_c(model: Model, path: str | os.PathLike[str], name: str, only: Sequence[str] = ()) -> tuple[Path, Path]:
    """Write a model as C99 source and header; return both paths.

    The functions `NAME_inverse_dynamics`, `NAME_gravity` and `NAME_mass_matrix` are straight-line code with the
    model's numbers, without loops, memory or state, so that any thread may call them. Parameters are regrouped to
    base parameters first, which saves operations. All terms are included except the delay of measured torque (term
    `lag`). Friction with hysteresis has a state `NAME_state` of fixed size that the caller owns: `NAME_init` sets it,
    and `NAME_inverse_dynamics` updates it.

    Args:
        model: Model to write.
        path: Path of the source (.c); the header (.h) is next to it.
        name: Prefix NAME of the functions.
        only: Functions to write, such as "gravity" for a model without inertias; default: all.
    """
    target = c_target(path, name)
    functions = _c_functions(model)
    if only:
        functions = {key: functions[key] for key in only}
    header = target.with_suffix(".h")
    write_whole(header, _header(model, name, functions))
    write_whole(target, _source(model, name, functions, header.name))
    return target, header


def c_target(path: str | os.PathLike[str], name: str) -> Path:
    """Check the path and the name of a C file.

    Args:
        path: Path of the source (.c).
        name: Prefix of the functions.
    """
    target = Path(path)
    if target.suffix != ".c":
        raise ExportError(f"{target}: the name of a C file must end in .c; rename it.")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in _KEYWORDS:
        raise ExportError(f"'{name}' is not a valid name in C; use letters, digits and _, starting with a letter.")
    if not target.name.isprintable() or set(target.name) & set('"\\<>?*'):
        raise ExportError(f"{target}: C cannot include a file with this name; use letters, digits, - and _.")
    return target


_MEANING = {
    "inverse_dynamics": "the torque for a motion: rigid body, friction and all other terms",
    "gravity": "the torque that holds the robot still: gravity, springs, offsets",
    "mass_matrix": "M, row by row, rotors included; M[i * JOINTS + j] = M[j * JOINTS + i]",
}


def _c_functions(model: Model) -> dict[str, Function]:
    """Trace the functions with the regrouped numbers as constants, so that zeros drop out."""
    n, dynamics = model.robot.dof, model.dynamics
    theta = [float(x) for x in regrouped(model).theta]
    still = [0.0] * n

    history = dynamics.terms.history
    stops = [k for k, (a, _) in enumerate(history) if isinstance(a, Stop)]

    def inverse(q: Vector, dq: Vector, ddq: Vector, s: Vector = ()) -> dict[tuple[int], object]:
        states = dict(zip(stops, s, strict=True))
        past = [states.get(k) for k in range(len(history))]
        return {(k,): v for k, v in enumerate(dynamics.inverse_over_scalars(q, dq, ddq, theta, past))}

    def gravity(q: Vector) -> dict[tuple[int], object]:
        relaxed = [0.0] * len(history)
        return {(k,): v for k, v in enumerate(dynamics.inverse_over_scalars(q, still, still, theta, relaxed))}

    def positions(q: Vector) -> dict[tuple[int], object]:
        return {(k,): history[place][1].position(q) for k, place in enumerate(stops)}

    inputs = {"q": n, "dq": n, "ddq": n} | ({"s": len(stops)} if stops else {})
    return {
        **({"positions": trace("positions", {"q": n}, positions, (len(stops),))} if stops else {}),
        "inverse_dynamics": trace("inverse_dynamics", inputs, inverse, (n,)),
        "gravity": trace("gravity", {"q": n}, gravity, (n,)),
        "mass_matrix": trace("mass_matrix", {"q": n}, lambda q: dynamics.mass_over_scalars(q, theta), (n, n)),
    }


def _stop_widths(model: Model) -> list[float]:
    return [a.width for a, _ in model.terms.history if isinstance(a, Stop)]


def _memory_header(model: Model, name: str) -> list[str]:
    """The state of friction with hysteresis, and its init function."""
    if not _stop_widths(model):
        return []
    stops = f"{name.upper()}_STOPS"
    return [
        f"#define {stops} {len(_stop_widths(model))}",
        "",
        f"typedef struct {{ double u[{stops}], s[{stops}]; }} {name}_state;",
        "",
        f"void {name}_init({name}_state *state, const double q[{name.upper()}_JOINTS]);",
    ]


def _memory_source(model: Model, name: str, positions: Function) -> list[str]:
    """Functions that set the stops to zero force at a posture, and that update them at the next posture."""
    widths = _stop_widths(model)
    body = [f"    {line}" for line in body_lines(positions, "u")]
    arguments = f"{name}_state *state, const double q[{name.upper()}_JOINTS]"
    start = [f"    state->{x}[{k}] = {v};" for k in range(len(widths)) for x, v in (("u", f"u[{k}]"), ("s", "0.0"))]
    follow = [
        line
        for k, wide in enumerate(map(c_literal, widths))
        for line in (
            f"    state->s[{k}] = fmin(fmax(state->s[{k}] + (u[{k}] - state->u[{k}]) / {wide}, -1.0), 1.0);",
            f"    state->u[{k}] = u[{k}];",
        )
    ]
    own = f"    double u[{name.upper()}_STOPS];"
    return [
        *(f"void {name}_init({arguments})", "{", own, *body, *start, "}", ""),
        *(f"static void follow({arguments})", "{", own, *body, *follow, "}", ""),
    ]


def _signature(name: str, key: str, function: Function, joints: str) -> str:
    inputs = [f"const double {x}[{joints}]" for x in function.inputs if x != "s"]
    if "s" in function.inputs:
        inputs.insert(0, f"{name}_state *state")
    result = f"double M[{joints} * {joints}]" if key == "mass_matrix" else f"double tau[{joints}]"
    return f"void {name}_{key}({', '.join([*inputs, result])})"


def _header(model: Model, name: str, functions: dict[str, Function]) -> str:
    robot = model.robot
    guard, joints = f"{name.upper()}_H", f"{name.upper()}_JOINTS"
    order = [f"{k}: {plain_comment(j.name)} ({j.unit}, {j.effort_unit})" for k, j in enumerate(robot.joints)]
    gravity = ", ".join(f"{g:g}" for g in robot.gravity)
    included = [t for t in model.terms.terms if not any(isinstance(a, Rate) for a in t.history)]
    terms = ", ".join(dict.fromkeys(f"{t.kind} ({t.on})" for t in included)) or "none"
    delay = (
        ["The delay of the measured torque (lag) is not part of the robot and is left out."]
        if len(included) < len(model.terms.terms)
        else []
    )
    state = "The functions have no state."
    if _stop_widths(model):
        state = (
            "*state holds the hysteresis of friction: call init once, then inverse_dynamics at each posture in turn."
        )
    lines = [
        f"Dynamic model of robot '{plain_comment(robot.name)}', written by Steelyard. C99, needs math.h only.",
        "",
        "Joints, in the order of all arrays (unit of position, of torque):",
        *(f"  {line}" for line in order),
        f"Gravity in the base frame: ({gravity}) m/s2. Joint terms: {plain_comment(terms)}.",
        *delay,
        "",
        "Operations per call (add, mul, div, sin and cos, others):",
        *(f"  {key}: {_counts(function)}" for key, function in functions.items() if key != "positions"),
        "",
        *(f"{key:<18}{_MEANING[key]}" for key in functions if key in _MEANING),
        f"Arguments must not overlap the result. {state}",
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
            *_memory_header(model, name),
            *(f"{_signature(name, k, function, joints)};" for k, function in functions.items() if k != "positions"),
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
    lines = [f"/* See {plain_comment(header)}. Generated: change the model and write it again. */"]
    lines += [f'#include "{header}"', "", "#include <math.h>", ""]
    for helper in sorted(set().union(*(used_helpers(function) for function in functions.values()))):
        lines += [C_HELPERS[helper], ""]
    for key, function in functions.items():
        if key == "positions":
            lines += _memory_source(model, name, function)
            continue
        lines += [_signature(name, key, function, joints), "{"]
        if "s" in function.inputs:
            lines += ["    const double *s = state->s;", "    follow(state, q);"]
        lines += [f"    {line}" for line in body_lines(function, "M" if key == "mass_matrix" else "tau")]
        lines += ["}", ""]
    return "\n".join(lines)


def _counts(function: Function) -> str:
    counts = {k: n for k, n in function.operation_counts.items() if k not in ("in", "const")}
    groups: Sequence[Sequence[str]] = (("add", "sub", "neg"), ("mul",), ("div",), ("sin", "cos"))
    parts = [sum(counts.get(kind, 0) for kind in group) for group in groups]
    return ", ".join(str(n) for n in [*parts, sum(counts.values()) - sum(parts)])


# Text that ends a comment, starts one inside it (-Wcomment), is a trigraph or an escape, or looks like a JSON string.
_NOT_IN_COMMENTS = re.compile(r'\*/|/\*|\?\?|\\|^"')


def plain_comment(text: str) -> str:
    """Return a `text` that is safe in a C comment: unchanged, or as a JSON string."""
    if text.isprintable() and not _NOT_IN_COMMENTS.search(text):
        return text
    safe = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in json.dumps(text, ensure_ascii=False))
    return safe.replace("*", "\\u002a").replace("??", "?\\u003f")
