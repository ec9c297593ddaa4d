"""The Gram kernel for GPUs: its rows compiled as C, its tiles, and, with a GPU, its sums."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from steelyard.dynamics import Dynamics
from steelyard.dynamics.c_text import row_lines
from steelyard.dynamics.cuda.grams import TILE_EDGE, gram_plan, gram_text, has_gpu, unpack_grams
from steelyard.errors import SteelyardError
from steelyard.parameters import terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.factor import reduce
from steelyard.regression.rows import Rows
from steelyard.robot import load_robot

LIMITS = {"q": 3.0, "dq": 2.0, "ddq": 5.0, "tau": 50.0}


def rows_of(name: str, pad: int = 1) -> Rows:
    robot = load_robot(name)
    bound = terms(robot, "rotor", "viscous", "coulomb", "offset")
    return Rows(Dynamics(robot, bound), base_parameters(robot, bound).independent, pad)


def samples(joints: int, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {x: rng.uniform(-r, r, (count, joints)) for x, r in LIMITS.items()}


@pytest.mark.parametrize("name", ["ns16", "prrrp"])
def test_the_rows_of_the_kernel_are_those_of_the_engine(name: str, tmp_path: Path) -> None:
    """The kernel's own lines, compiled as C for the processor, one sample at a time."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler on this machine")
    rows = rows_of(name)
    widths = rows.function.inputs
    lines = "\n".join(
        row_lines(
            rows.function,
            lambda name, k: f"{name}[sample * {widths[name]} + {k}]",
            lambda place, value: f"X[{place}] = inside ? {value} : 0.0;",
        )
    )
    arrays = ", ".join(f"const double *{x}" for x in rows.function.inputs)
    helpers = "static double sign_of(double x) { return (double)((x > 0.0) - (x < 0.0)); }"
    code = f"""#define _GNU_SOURCE
#include <math.h>
#include <stdbool.h>
{helpers}
void rows({arrays}, long long sample, bool inside, double *X) {{ {lines} (void)sign_of; }}"""
    source, library = tmp_path / "rows.c", tmp_path / "rows.so"
    source.write_text(code, "utf-8")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
    call = ctypes.CDLL(str(library)).rows
    given = samples(rows.dynamics.robot.dof, 20)
    expected = rows.evaluator(given)
    held = [given[x].ctypes.data_as(ctypes.c_void_p) for x in rows.function.inputs]
    for k in range(20):
        for inside in (True, False):
            found = np.zeros(rows.function.size)
            call(*held, ctypes.c_longlong(k), ctypes.c_bool(inside), found.ctypes.data_as(ctypes.c_void_p))
            # Rounding of a few hundred operations; a missing sample gives zeros.
            assert np.allclose(found, inside * expected[k], rtol=1e-12, atol=1e-12 * np.abs(expected[k]).max())


@pytest.mark.parametrize("widths", [(40, 39, 33, 26, 19, 12), (1,), (8, 9), (60, 55, 50, 40, 30, 20, 10, 5)])
def test_every_tile_is_assigned_and_sums_are_combined(widths: tuple[int, ...]) -> None:
    plan = gram_plan(widths)
    tiles = [tile for warp in plan.tiles for tile in warp]
    assert len(tiles) == len(set(tiles)) == sum(t * (t + 1) // 2 for t in (-(-w // TILE_EDGE) for w in widths))
    assert plan.shared <= 227 * 1024
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(50, w)) for w in widths]
    wide = [np.pad(x, ((0, 0), (0, -x.shape[1] % TILE_EDGE))) for x in X]
    sums = np.zeros((plan.warps, plan.max_tiles, TILE_EDGE**2))
    for warp, own in enumerate(plan.tiles):
        for k, (g, i, j) in enumerate(own):
            a, b = (wide[g][:, TILE_EDGE * n : TILE_EDGE * (n + 1)] for n in (i, j))
            sums[warp, k] = (a.T @ b).ravel()
    for x, gram in zip(X, unpack_grams(plan, widths, sums), strict=True):
        assert np.allclose(gram, x.T @ x, rtol=1e-13, atol=1e-12)


def test_rows_that_exceed_shared_memory_are_refused() -> None:
    with pytest.raises(SteelyardError, match="shared memory"):
        gram_plan([1000])


def test_the_kernel_compiles(tmp_path: Path) -> None:
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("there is no nvcc on this machine")
    rows = rows_of("rotradi")
    plan = gram_plan([e.width for e in rows.equations])
    source = tmp_path / "grams.cu"
    source.write_text(gram_text(rows.function, [int(x) for x in rows.firsts], plan), "utf-8")
    made = subprocess.run(
        [compiler, "-arch=sm_90", "-cubin", str(source), "-o", str(tmp_path / "x")], capture_output=True
    )
    assert made.returncode == 0, made.stderr.decode()


@pytest.mark.parametrize("name", ["ns16", "arm7"])
def test_sums_on_a_gpu_are_those_of_the_processor(name: str) -> None:
    if not has_gpu():
        pytest.skip("there is no GPU on this machine")
    from steelyard.regression.on_gpu import GpuReduction

    rows, joints = rows_of(name), load_robot(name).dof
    logs = [samples(joints, count) for count in (1, 31, 5000, 12345)]
    for log, factor in zip(logs, GpuReduction(rows)(logs), strict=True):
        for mine, other in zip(factor.triangles, reduce(rows, **log).triangles, strict=True):
            gram = other.T @ other
            assert np.abs(mine.T @ mine - gram).max() <= 1e-12 * np.abs(gram).max()
