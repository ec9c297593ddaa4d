"""Many motions in parallel give the same numbers as one by one, on any device.

Without a GPU, a substitute evaluates the traced functions; everything else is the code of a GPU.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from gpu_here import HERE, LanesHere

from steelyard.dynamics.cuda.device import gpu
from steelyard.dynamics.cuda.grams import has_gpu
from steelyard.dynamics.cuda.lanes import LaneGroups, lanes_text
from steelyard.errors import ExcitationError
from steelyard.excitation import Fourier, SearchSettings, excite
from steelyard.excitation.constraints import Constraint, Plane, Point
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.constraints.traced_limit import box
from steelyard.excitation.criteria import CRITERIA
from steelyard.excitation.design_columns import DesignColumns
from steelyard.excitation.excite_options import ExciteOptions
from steelyard.excitation.gpu_starts import round as first_round
from steelyard.excitation.gpu_starts.round import ManyStarts, minimise
from steelyard.excitation.search import Search
from steelyard.excitation.search_problem import SearchProblem, requirements
from steelyard.excitation.settle import find_centre
from steelyard.excitation.trajectories import BSpline
from steelyard.robot import load_robot


@cache
def problem(criterion: str = "cond", scaling: str = "natural", region: bool = False) -> SearchProblem:
    """Return a short motion of a three-joint arm, one joint with a different family."""
    robot = load_robot("szabo3r")
    families = (Fourier(2, 4.0), BSpline(4.0, spans=4, closed=True), Fourier(2, 4.0))
    bounds = limits_from(robot, {"q": 2.0, "dq": 2.0, "ddq": 6.0, "tau": None})
    regions = [([Point(robot.link_names[-1])], (*box((-5, -5, -5), (5, 5, 5)), Plane.floor(-0.2)))] if region else []
    options = ExciteOptions(rate=25.0, criterion=criterion, scaling=scaling, regions=regions)
    design = DesignColumns(robot, families, bounds, options)
    needs = requirements(robot, families, bounds, options)
    goal = design.goal(options)
    return SearchProblem(goal, find_centre(families, bounds, needs, 0), needs)


def active(of: SearchProblem) -> list[Constraint]:
    return [c for c in of.constraints if c.smooth and not c.lazy]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("scaling", ["natural", "unit", "orthonormal"])
def test_objective_and_gradient_are_those_of_one_motion(criterion: str, scaling: str) -> None:
    one = problem(criterion, scaling)
    many = ManyStarts(one, active(one), HERE)
    x = many.starts(3, 0)
    for sharpness in (4, 8):
        values, gradients = many.goal.objective(x, sharpness)
        for k in range(3):
            value, gradient = one.objective(x[k], float(sharpness))
            # Errors of both are rounding times the condition of WᵀW, here 1e5 at most, and p such factors.
            assert values[k] == pytest.approx(value, abs=1e-8)
            assert np.abs(gradients[k] - gradient).max() <= 1e-8 * np.abs(gradient).max()


@pytest.mark.parametrize("region", [False, True])
def test_limits_are_those_of_one_motion(region: bool) -> None:
    one = problem(region=region)
    many = ManyStarts(one, active(one), HERE)
    assert len(many.limits) == 1 + region
    x, rng = 1.3 * many.starts(3, 1), np.random.default_rng(0)
    for constraint, limit in zip(active(one), many.limits, strict=True):
        values = limit.evaluate(x)
        push = rng.uniform(size=values.shape)
        pulls = limit.pull(x, push)
        for k in range(3):
            expected, pull = constraint.evaluate(x[k])
            mine, pushed = (limit.multipliers_of(np.take(a, k, limit.motions_axis)) for a in (values, push))
            there = pushed != 0.0  # padding after the last sample of a block
            assert np.allclose(mine[there], expected[there], rtol=0, atol=1e-13)
            assert np.allclose(pulls[k], pull(pushed), rtol=1e-12, atol=1e-12 * np.abs(pulls[k]).max())


def test_starts_are_those_of_a_search() -> None:
    one = problem()
    many = ManyStarts(one, active(one), HERE)
    x = many.starts(5, 3)
    for k in range(5):
        # Without torque limits a search does not draw them back.
        assert np.allclose(x[k], one.random_start(np.random.default_rng([3, k])), rtol=0, atol=1e-12)


def test_parallel_minimisations_find_the_minima() -> None:
    from scipy.optimize import rosen, rosen_der

    starts = np.random.default_rng(0).uniform(-2.0, 2.0, (8, 5))
    minima, _ = minimise(lambda x: (np.array([rosen(v) for v in x]), np.array([rosen_der(v) for v in x])), starts, 300)
    values = np.array([rosen(x) for x in minima])
    # The function of five variables has a second minimum, of 3.93, near (−1, 1, 1, 1, 1).
    assert np.all((values < 1e-8) | (np.abs(values - 3.9308) < 1e-3))
    assert np.sum(values < 1e-8) >= 4


def test_a_first_round_is_as_good_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    one = problem(region=True)
    monkeypatch.setattr(first_round, "gpu", lambda: HERE)
    settings = SearchSettings(starts=3, survivors=(2,), sharpness=(4.0, 8.0), iterations=25)
    alone, many = Search(one, settings, 0), Search(one, replace(settings, gpu=True), 0)
    ranks = []
    for k in range(3):
        alone.state.current = alone._start(k)
        ranks.append([alone._advance(4.0) for _ in range(2)][-1])
    many._all_starts()
    best = [rank for rank, _ in many.state.finished]
    assert len(best) == 2
    assert many.state.stage == 6
    # Objectives are logarithms: 5 % of the condition number.
    assert best[0] <= min(ranks) + 0.05
    trajectory = many.run()
    assert all(c.excess(trajectory) <= 0.0 for c in one.constraints)


def test_unsupported_options_are_refused() -> None:
    one = problem()
    with pytest.raises(ExcitationError, match="whole number"):
        ManyStarts(one, active(one), HERE).improve(2, 0, 4.5, 1, 1, 1)
    with pytest.raises(ExcitationError, match="generations"):
        excite("szabo3r", optimiser="ga", search=SearchSettings(gpu=True))


def test_the_kernel_agrees_with_the_engine(tmp_path: Path) -> None:
    """Compile the kernel's source for the processor and run its threads one by one."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    rows = problem().goal.observation
    function, widths = rows.function.adjoint(), [len(p) for p in rows.places]  # type: ignore[attr-defined]
    groups = {name: LaneGroups([width]) for name, width in function.inputs.items()} | {"cotangent": LaneGroups(widths)}
    text = lanes_text(function, groups, LaneGroups([3, 3, 3]))
    arrays = [*function.inputs, "out"]
    code = f"""#include <cmath>
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(x)
static struct {{ int x, y; }} blockIdx, threadIdx;
{text}
extern "C" void all({", ".join(f"double *{x}" for x in arrays)}, long long motions, long long samples)
{{
    for (blockIdx.x = 0; blockIdx.x < motions; ++blockIdx.x)
        for (blockIdx.y = 0; blockIdx.y * 128 < samples; ++blockIdx.y)
            for (threadIdx.x = 0; threadIdx.x < 128; ++threadIdx.x)
                lanes({", ".join(arrays)}, motions, samples);
}}"""
    source, library = tmp_path / "lanes.cpp", tmp_path / "lanes.so"
    source.write_text(code, "utf-8")
    subprocess.run([compiler, "-O0", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    rng, motions, samples = np.random.default_rng(0), 2, 130
    inputs = {name: rng.uniform(-2, 2, motions * samples * g.total) for name, g in groups.items()}
    out = np.zeros(9 * motions * samples)
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*inputs.values(), out)]
    ctypes.CDLL(str(library)).all(*pointers, ctypes.c_longlong(motions), ctypes.c_longlong(samples))
    expected = LanesHere(function, {"cotangent": widths}, [3, 3, 3])(motions, samples, **inputs)
    # Rounding of some hundred operations.
    assert np.abs(out - expected).max() <= 1e-12 * np.abs(expected).max()


def test_on_a_gpu() -> None:
    if not has_gpu():
        pytest.skip("needs a GPU")
    one = problem(region=True)
    there, here = (ManyStarts(one, active(one), device) for device in (gpu(), HERE))
    x = here.starts(50, 0)
    mine, other = there.device.fetch(there.goal.grams(there.starts(50, 0))), here.goal.grams(x)
    assert np.abs(mine - other).max() <= 1e-12 * np.abs(other).max()
