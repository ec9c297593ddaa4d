"""Which compiler for the traced core? LLVM text, Numba text and CasADi on the same torque regressor of a UR10.

Needs numba and casadi; decided docs/decisions/001-llvm-text.md.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from common import arm, machine, one_core, save, show

os.environ["STEELYARD_CACHE"] = tempfile.mkdtemp()  # cold, whatever was compiled before

from steelyard.dynamics import regressors
from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import Function
from steelyard.dynamics.graph import Node, arguments, live
from steelyard.dynamics.native._code import vector_width
from steelyard.dynamics.native.emit import LANES, STRIDE
from steelyard.dynamics.native.kernel import aligned


def per_sample(call, count: int, repeats: int = 30) -> float:
    """Nanoseconds per sample, best of many."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) / count * 1e9


def llvm(function: Function) -> tuple[float, float]:
    start = time.perf_counter()
    evaluator = Evaluator(function)
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(evaluator.kernel)
    compiled = time.perf_counter() - start
    rows_in, rows_out = evaluator.machine.scratch()
    rows_in[:] = np.random.default_rng(0).uniform(-3, 3, len(rows_in))
    a, b, vectors = rows_in.ctypes.data, rows_out.ctypes.data, LANES // vector_width()

    def many() -> None:
        for _ in range(100):
            kernel(a, b, vectors)

    return compiled, per_sample(many, 100 * LANES)


def numba_text(function: Function) -> str:
    lines: list[str] = []
    names: dict[int, str] = {}
    first_output = sum(function.inputs.values())
    symbol = {"add": "+", "sub": "-", "mul": "*"}
    for index in live(function.graph, function.outputs):
        op = function.graph.operations[index]
        args = [names[k] for k in arguments(op)]
        if op[0] == "const":
            names[index] = repr(op[1])
            continue
        if op[0] == "in":
            text = f"A[{(function.input_rows[op[1]] + op[2]) * STRIDE} + s]"
        elif op[0] == "neg":
            text = f"-{args[0]}"
        elif op[0] in ("sin", "cos"):
            text = f"math.{op[0]}({args[0]})"
        else:
            text = f"{args[0]} {symbol[op[0]]} {args[1]}"
        names[index] = f"t{index}"
        lines.append(f"        t{index} = {text}")
    for row, output in enumerate(function.outputs):
        value = names[output.index] if isinstance(output, Node) else repr(output)
        lines.append(f"        A[{(first_output + row) * STRIDE} + s] = {value}")
    head = ["import math", "from numba import njit", '@njit("void(float64[::1])", fastmath=True, nogil=True)']
    return "\n".join([*head, "def kernel(A):", f"    for s in range({LANES}):", *lines])


def numba(function: Function) -> tuple[float, float]:
    import numba  # noqa: F401  the import is not part of the compile time

    path = Path(tempfile.mkdtemp()) / "generated.py"
    path.write_text(numba_text(function))
    spec = importlib.util.spec_from_file_location("generated", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    start = time.perf_counter()
    spec.loader.exec_module(module)
    compiled = time.perf_counter() - start
    rows = aligned(sum(function.inputs.values()) + len(function.outputs))
    rows[:] = np.random.default_rng(0).uniform(-3, 3, len(rows))

    def many() -> None:
        for _ in range(100):
            module.kernel(rows)

    return compiled, per_sample(many, 100 * LANES)


def casadi(robot) -> dict[str, tuple[float, float]]:
    import casadi as ca

    ca.GlobalOptions.setNumpyMode(-1)
    n, count = robot.dof, 5000
    start = time.perf_counter()
    q, dq, ddq = (ca.SX.sym(x, n) for x in ("q", "dq", "ddq"))
    entries = regressors.torque_regressor(robot, *([x[k] for k in range(n)] for x in (q, dq, ddq)))
    f = ca.Function("f", [q, dq, ddq], [ca.vertcat(*[ca.SX(v) for v in entries.values()])])
    traced = time.perf_counter() - start
    data = np.random.default_rng(0).uniform(-3, 3, (3, n, count))
    mapped = f.map(count)
    out = {"CasADi, virtual machine": (traced, per_sample(lambda: mapped(*data), count, 5))}
    folder = Path(tempfile.mkdtemp())
    start = time.perf_counter()
    f.generate("f.c")
    Path("f.c").rename(folder / "f.c")
    command = f"gcc -O3 -march=native -ffast-math -shared -fPIC {folder}/f.c -o {folder}/f.so"
    subprocess.run(command.split(), check=True)
    compiled = traced + time.perf_counter() - start
    external = ca.external("f", f"{folder}/f.so").map(count)
    out["CasADi, C through gcc (called from Python)"] = (compiled, per_sample(lambda: external(*data), count, 5))
    return out


def main() -> None:
    one_core()
    robot, _ = arm("ur10")
    function = robot.dynamics.function("torque_regressor")
    results = {"LLVM text (chosen)": llvm(function), "Numba text": numba(function), **casadi(robot)}
    rows = [[name, f"{c:.2f}", f"{ns:.0f}"] for name, (c, ns) in results.items()]
    show(f"Torque regressor of a UR10, one core ({machine()})", ["way", "trace + compile, s", "ns per sample"], rows)
    save("tracers", {name: {"compile_s": c, "ns_per_sample": ns} for name, (c, ns) in results.items()})


if __name__ == "__main__":
    main()
