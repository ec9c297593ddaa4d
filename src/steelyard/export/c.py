"""`model_to_c`: the identified model as C99 that needs nothing but math.h."""

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

# The same torques from fewer numbers: a model whose parameters are its base parameters and zeros.


# Regrouping is exact but for rounding; where the structure is not clear enough for that it is not done.
_ROUNDING = 2e-13
_STATES = 32


def regrouped(model: Model) -> Model:
    """A model with the same torques and the same mass matrix as `model`, most of whose parameters are zero.

    Zeros drop out of traced code: a six-axis arm loses a fifth of its operations, and most of those of its gravity
    torque. The parameters mean nothing one by one. Where the structure cannot be decided the model comes back.
    """
    robot = model.robot.with_torque_used(model.robot.joint_names)
    try:
        base = base_parameters(robot, Terms(robot, model.terms.terms))
    except StructureError:
        return model
    theta = np.zeros(len(model.theta))
    theta[list(base.independent)] = base.values(model.theta)
    lean = Model(model.robot, model.terms, theta)
    return lean if _same(lean, model) else model


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
    """Write `model` to `path` (.c) and the header beside it (.h); returns both paths.

    Parameters are regrouped to the base parameters first, which changes no result and saves operations.
    The functions `NAME_inverse_dynamics`, `NAME_gravity` and `NAME_mass_matrix` (NAME: `name`) are straight-line code
    with the model's numbers in it: no loops, no memory of their own and no state, so that
    they may run in any thread. Friction, rotors and all other terms are included, but for torque that is measured late
    (term `lag`), which is no part of the robot. Where friction remembers, its state is a struct `NAME_state` of fixed
    size that the caller owns: `NAME_init` sets it up, `NAME_inverse_dynamics` takes it along the motion.
    """
    target = c_target(path, name)
    functions = _c_functions(model)
    header = target.with_suffix(".h")
    write_whole(header, _header(model, name, functions))
    write_whole(target, _source(model, name, functions, header.name))
    return target, header


def c_target(path: str | os.PathLike[str], name: str) -> Path:
    """The `path` of a file of C code whose functions begin with `name`; refused where C would not take either."""
    target = Path(path)
    if target.suffix != ".c":
        raise ExportError(f"{target}: C code is written to a .c file (and a .h beside it); name it so.")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in _KEYWORDS:
        raise ExportError(f"'{name}' is not a name in C; use letters, digits and _, starting with a letter.")
    if not target.name.isprintable() or set(target.name) & set('"\\<>?*'):
        raise ExportError(f"{target}: C cannot include a file of this name; use letters, digits, - and _.")
    return target


def _c_functions(model: Model) -> dict[str, Function]:
    """The traced functions with the model's numbers, regrouped, as constants, so that zeros drop out."""
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
    """The struct of a model whose friction remembers, and the function that sets it up."""
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
    """Setting up the stops, relaxed where the robot stands, and taking them along to the next posture."""
    widths = _stop_widths(model)
    body = [f"    {line}" for line in body_lines(positions, "u")]
    given = f"{name}_state *state, const double q[{name.upper()}_JOINTS]"
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
        *(f"void {name}_init({given})", "{", own, *body, *start, "}", ""),
        *(f"static void follow({given})", "{", own, *body, *follow, "}", ""),
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
    said = [t for t in model.terms.terms if not any(isinstance(a, Rate) for a in t.history)]
    terms = ", ".join(dict.fromkeys(f"{t.kind} ({t.on})" for t in said)) or "none"
    late = (
        ["Torque that is measured late (lag) is no part of the robot, and left out."]
        if len(said) < len(model.terms.terms)
        else []
    )
    state = "The functions keep no state."
    if _stop_widths(model):
        state = "Friction remembers, in *state alone: call init once, then inverse_dynamics at each posture in turn."
    lines = [
        f"Dynamic model of robot '{plain_comment(robot.name)}', written by Steelyard. C99, needs math.h only.",
        "",
        "Joints, in the order of all arrays (unit of position, of torque):",
        *(f"  {line}" for line in order),
        f"Gravity in the base frame: ({gravity}) m/s2. Joint terms: {plain_comment(terms)}.",
        *late,
        "",
        "Operations per call (add, mul, div, sin and cos, others):",
        *(f"  {key}: {_counts(function)}" for key, function in functions.items() if key != "positions"),
        "",
        "inverse_dynamics  the torque for a motion: rigid body, friction and all other terms",
        "gravity           the torque that holds the robot still: gravity, springs, offsets",
        "mass_matrix       M, row by row, rotors included; M[i * JOINTS + j] = M[j * JOINTS + i]",
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


# What ends a comment, begins one inside it (-Wcomment), or means another character (trigraphs); and what a string of
# JSON is told by.
_NOT_IN_COMMENTS = re.compile(r'\*/|/\*|\?\?|\\|^"')


def plain_comment(text: str) -> str:
    """A name, `text`, as a comment may hold it: as it is, or, if C could take it for more, as a string of JSON."""
    if text.isprintable() and not _NOT_IN_COMMENTS.search(text):
        return text
    safe = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in json.dumps(text, ensure_ascii=False))
    return safe.replace("*", "\\u002a").replace("??", "?\\u003f")
