"""Chávez-Olivares et al. 2012, Table 2 in simulation: many runs of the experiment, and which scheme does best."""

from __future__ import annotations

import numpy as np
import pytest
from papers.rotradi_experiment import (
    RATE,
    arm,
    clock,
    encode,
    identification_torque,
    play_torque,
    validation_torque,
)

from steelyard.assessment.replay import replay
from steelyard.estimation.registry import make_estimator
from steelyard.regression.schemes import make_scheme, paper_motion
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation, chosen_cutoff, prepare

# Friction with a ramp of 5 mrad/s, as in most simulations, and true sticking, which is slower to simulate.
SEEDS = {"smooth": 20, "stick": 4}
# As in the paper, errata corrected: signals as measured, all of the log, ordinary least squares.
PAPER = {
    "dynamic": "dynamic",
    "filtered-dynamic": f"filtered-dynamic:cutoff_hz={RATE / (2.0 * np.pi)},torque=paper,still=0",
    "energy": "energy:samples=1,growing=yes,work=trapezoid",
    "power": "power",
    "filtered-power": f"filtered-power:cutoff_hz={RATE / (2.0 * np.pi)},work=paper",
}
OURS = ("dynamic", "filtered-dynamic", "momentum", "energy", "power", "filtered-power")


def errors_of(theta: np.ndarray, judge: Log) -> tuple[float, float, float]:
    """Median and mean error of θ1…θ21 (percent), and the positions' ‖error‖₂ summed over the joints (rad)."""
    a = arm()
    percent = a.errors(a.map @ theta)
    shown = replay(a.model(a.map @ theta), judge, method="rk4", smoothing=5e-3)
    distance = np.inf if shown.position_error is None else float(shown.position_error.sum())
    return float(np.median(percent)), float(np.mean(percent)), distance


def one_run(seed: int, draw: str, friction: str, judge: Log) -> dict[str, tuple[float, float, float]]:
    a = arm()
    log = encode(play_torque(a.truth, identification_torque(seed, draw), clock(), friction=friction, smoothing=5e-3))
    as_measured = paper_motion(log)
    settings = Preparation()
    prepared = list(prepare(log, settings, chosen_cutoff([log], settings)))
    out = {}
    for name, scheme in PAPER.items():
        data = make_scheme(scheme).data(a.dynamics, a.base, lambda: as_measured)
        out[f"paper {name}"] = errors_of(make_estimator("ols").fit(data, a.base).theta, judge)
    for name in OURS:
        data = make_scheme(name).data(a.dynamics, a.base, lambda: prepared)
        out[f"ours {name}"] = errors_of(make_estimator("wls").fit(data, a.base).theta, judge)
    return out


@pytest.mark.proof
@pytest.mark.parametrize("friction", SEEDS)
def test_schemes_over_many_runs(friction: str) -> None:
    """Medians over seeds with one phase per run and as many with one per sample; printed with `-s`."""
    a = arm()
    judge = play_torque(a.truth, validation_torque(), clock(), smoothing=5e-3).log()
    cases = [(seed, draw) for draw in ("run", "sample") for seed in range(SEEDS[friction])]
    runs = [one_run(seed, draw, friction, judge) for seed, draw in cases]
    table = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    for name, values in table.items():
        low, middle, high = np.percentile(values, (25, 50, 75), axis=0)
        cells = "  ".join(f"{m:8.3f} ({a_:.3f}–{b:.3f})" for a_, m, b in zip(low, middle, high, strict=True))
        print(f"{name:24s} {cells}  diverged {int(np.sum(~np.isfinite(values[:, 2])))}")
    parameter = {name: float(np.median(values[:, 0])) for name, values in table.items()}
    position = {name: float(np.median(values[:, 2])) for name, values in table.items()}
    for kind in ("paper", "ours"):
        free = [f"{kind} {n}" for n in ("filtered-dynamic", "energy", "filtered-power")]
        for measure in (parameter, position):
            # Acceleration-free beats acceleration-based; among the former the order changes from run to run.
            assert max(measure[n] for n in free) < min(measure[f"{kind} {n}"] for n in ("dynamic", "power"))
    best_printed = parameter["paper filtered-dynamic"]
    for name in ("filtered-dynamic", "momentum", "energy", "filtered-power"):
        assert parameter[f"ours {name}"] < 0.5 * best_printed
    each = table["ours filtered-dynamic"][:, 0] < 0.5 * table["paper filtered-dynamic"][:, 0]
    assert np.mean(each) > 0.9
