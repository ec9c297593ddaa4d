"""`observer_to_c`: exports the momentum observer of a model as C99 for a controller; it needs only math.h.

It performs the operations of `watch.MomentumObserver`. Momentum p and torque d are the same traced function with the
model's numbers; the other operations are written here and there. A test compiles the code and compares both.
"""

from __future__ import annotations

import os
from pathlib import Path

from steelyard.dynamics.c_text import C_HELPERS, body_lines, c_literal, used_helpers
from steelyard.dynamics.function import Function
from steelyard.dynamics.model import Model
from steelyard.dynamics.momentum import MomentumBalance, momentum_balance
from steelyard.export.c import c_target, plain_comment, regrouped
from steelyard.export.formats import MODEL_FORMATS, ModelFormat, c_name
from steelyard.ground.files import write_whole
from steelyard.ground.outcome import Content


def observer_to_c(model: Model, path: str | os.PathLike[str], name: str) -> tuple[Path, Path]:
    """Write the observer of a model as C99 source and header; return both paths.

    The caller owns the state, a struct `NAME_observer` of fixed size. `NAME_observer_init` sets it;
    `NAME_observer_step` processes a sample, after which `r` contains the external torque of every joint. The code
    allocates no memory, has no data-dependent loops, and calls only functions of math.h.

    Args:
        model: Model of the robot.
        path: Path of the source (.c); the header (.h) is next to it.
        name: Prefix NAME of the functions.
    """
    target = c_target(path, name)
    balance = momentum_balance(regrouped(model))
    header = target.with_suffix(".h")
    write_whole(header, _header(model, name, balance))
    write_whole(target, _source(name, balance, header.name))
    return target, header


def _header(model: Model, name: str, balance: MomentumBalance) -> str:
    robot, upper = model.robot, name.upper()
    n, guard = f"{upper}_OBSERVER_JOINTS", f"{upper}_OBSERVER_H"
    order = [f"{k}: {plain_comment(j.name)} ({j.unit}, {j.effort_unit})" for k, j in enumerate(robot.joints)]
    counts = {k: c for k, c in balance.function.operation_counts.items() if k not in ("in", "const")}
    trigonometric = counts.get("sin", 0) + counts.get("cos", 0)
    lines = [
        f"External torque on robot '{plain_comment(robot.name)}' from its momentum balance, written by Steelyard.",
        "C99, needs math.h only. Fixed memory, no allocation, bounded time.",
        "",
        "Joints, in the order of all arrays (unit of position, of torque):",
        *(f"  {line}" for line in order),
        f"Operations per sample: about {sum(counts.values())}, including {trigonometric} sines and cosines.",
        "",
        "init  resets the state; cutoff_hz is the cut-off of the low-pass. Call it again after a gap in the samples.",
        "step  processes a sample: time t (s), positions q, velocities dq, measured torques tau. It returns 1 if e and",
        "      r are valid for the interval that ends with the sample, and 0 at the first sample and for a sample that",
        "      is not later than the last one (it is ignored).",
        "e is the external torque of the last interval, r its low-passed value; p is the momentum, d the torque that",
        "changes it according to the model.",
    ]
    stops = len(balance.widths)
    fields = [f"    double e[{n}], r[{n}], p[{n}], d[{n}];", f"    double t, rate, dq[{n}], tau[{n}];"]
    if stops:
        fields.append(f"    double u[{stops}], s[{stops}];")
    fields.append("    int begun;")
    inputs = f"const double q[{n}], const double dq[{n}], const double tau[{n}]"
    return "\n".join(
        [
            *("/*", *(f" * {line}".rstrip() for line in lines), " */"),
            *(f"#ifndef {guard}", f"#define {guard}", "", f"#define {n} {robot.dof}", ""),
            *("#ifdef __cplusplus", 'extern "C" {', "#endif", ""),
            *("typedef struct {", *fields, f"}} {name}_observer;", ""),
            f"void {name}_observer_init({name}_observer *o, double cutoff_hz);",
            f"int {name}_observer_step({name}_observer *o, double t, {inputs});",
            *("", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""),
        ]
    )


def _source(name: str, balance: MomentumBalance, header: str) -> str:
    n = f"{name.upper()}_OBSERVER_JOINTS"
    functions = [f for f in (balance.positions, balance.function) if f is not None]
    lines = [f"/* See {plain_comment(header)}. Generated: change the model and write it again. */"]
    lines += [f'#include "{header}"', "", "#include <math.h>", ""]
    for helper in sorted(set().union(*(used_helpers(function) for function in functions))):
        lines += [C_HELPERS[helper], ""]
    for function, called, result in zip(functions[::-1], ("balance", "positions"), ("out", "u"), strict=False):
        lines += _static(function, called, result)
    stops, loads = len(balance.widths), balance.needs_acceleration
    width = [f"static const double width[{stops}] = {{{', '.join(c_literal(w) for w in balance.widths)}}};", ""]
    init = [
        f"void {name}_observer_init({name}_observer *o, double cutoff_hz)",
        "{",
        "    int k;",
        "    o->begun = 0;",
        "    o->t = 0.0;",
        "    o->rate = 6.283185307179586 * cutoff_hz;",
        f"    for (k = 0; k < {n}; k++) {{",
        "        o->e[k] = o->r[k] = o->p[k] = o->d[k] = o->dq[k] = o->tau[k] = 0.0;",
        "    }",
        *([f"    for (k = 0; k < {stops}; k++) {{", "        o->u[k] = o->s[k] = 0.0;", "    }"] if stops else []),
        "}",
        "",
    ]
    follow = [
        "    positions(q, u);",
        f"    for (k = 0; k < {stops}; k++) {{",
        "        const double s = begins ? 0.0 : o->s[k] + (u[k] - o->u[k]) / width[k];",
        "        o->s[k] = s < -1.0 ? -1.0 : s > 1.0 ? 1.0 : s;",
        "        o->u[k] = u[k];",
        "    }",
    ]
    given = f"const double q[{n}], const double dq[{n}], const double tau[{n}]"
    inputs = ["q", "dq", *(["ddq"] if loads else []), *(["o->s"] if stops else [])]
    step = [
        f"int {name}_observer_step({name}_observer *o, double t, {given})",
        "{",
        "    const int begins = !o->begun;",
        "    const double h = t - o->t;",
        f"    double out[2 * {n}]{f', ddq[{n}]' if loads else ''}{f', u[{stops}]' if stops else ''}, gain;",
        "    int k;",
        "    if (!begins && !(h > 0.0)) {",
        "        return 0;",
        "    }",
        *([f"    for (k = 0; k < {n}; k++) {{", "        ddq[k] = begins ? 0.0 : (dq[k] - o->dq[k]) / h;", "    }"]
          if loads else []),
        *(follow if stops else []),
        f"    balance({', '.join(inputs)}, out);",
        "    gain = begins ? 0.0 : 1.0 - exp(-o->rate * h);",
        f"    for (k = 0; k < {n}; k++) {{",
        f"        const double p = out[k], d = out[{n} + k];",
        "        if (!begins) {",
        "            o->e[k] = (p - o->p[k]) / h + 0.5 * (d + o->d[k]) - 0.5 * (tau[k] + o->tau[k]);",
        "            o->r[k] = o->r[k] + gain * (o->e[k] - o->r[k]);",
        "        }",
        "        o->p[k] = p;",
        "        o->d[k] = d;",
        "        o->dq[k] = dq[k];",
        "        o->tau[k] = tau[k];",
        "    }",
        "    o->t = t;",
        "    o->begun = 1;",
        "    return !begins;",
        "}",
        "",
    ]  # fmt: skip
    return "\n".join([*lines, *(width if stops else []), *init, *step])


def _static(function: Function, called: str, result: str) -> list[str]:
    """A traced function as a static C function."""
    inputs = ", ".join(f"const double {x}[{width}]" for x, width in function.inputs.items())
    body = [f"    {line}" for line in body_lines(function, result)]
    return [f"static void {called}({inputs}, double {result}[{function.size}])", "{", *body, "}", ""]


def _observer(model: Model, name: str, source: Path | None) -> dict[str, Content]:
    return {f"{name}_observer.c": lambda path: observer_to_c(model, path, c_name(name))}


MODEL_FORMATS.register("observer")(
    ModelFormat("C99 observer of the external joint torques", _observer, beside=("_observer.h",))
)
