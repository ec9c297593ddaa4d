"""Filters over state and parameters on twenty simulated logs: do they end well, and do they say so where they do not?

    python benchmarks/filters.py                      # results/filters.json, the table of docs/theory/kalman.md
    python benchmarks/filters.py --logs 2 --cases prior --filters ekf,ukf

`ns16` (six joints, 58 base parameters) follows other sines in every log: 6 s at 500 Hz, positions with noise of 1e-5
rad, torques with 1 %. The prior has every parameter 20 % too large or too small, as a coin falls. What was found before
by the same sources is kept: a run that is stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from common import ended, save

import steelyard as sy
from steelyard.estimation import Experiment, Prior, Tuning, estimator_names, make_experiment_estimator
from steelyard.parameters import Stribeck, terms
from steelyard.simulation import PD, Sensors, simulate

POSITION, TORQUE, OFF = 1e-5, 0.01, 0.2
FILTERS = estimator_names(family="filter")
WHOLE = ("ekf", "ukf", "ckf", "cdkf")
# Case: what the filter is told, and which filters are asked. Square roots differ from the others by rounding.
CASES = {
    "prior": tuple(name for name in FILTERS if name != "pf"),
    "least squares": WHOLE,
    "torque noise told a tenth": ("ekf", "ukf"),
    "start told ten times too good": ("ekf", "ukf"),
    "friction that the model lacks": ("ekf", "ukf"),
    "particles": ("pf",),
}
Array = np.ndarray


class Sines:
    """Five harmonics of 0.2 Hz."""

    def __init__(self, robot: sy.Robot, seed: int) -> None:
        rng = np.random.default_rng(seed)
        unit = np.array([1.0 if joint.kind == "revolute" else 0.1 for joint in robot.joints])
        self.w = 2.0 * np.pi * 0.2 * np.arange(1, 6)[:, None]
        self.a = rng.normal(size=(5, robot.dof)) / np.arange(1, 6)[:, None] * unit
        self.phase = rng.uniform(0.0, 2.0 * np.pi, (5, robot.dof))

    def sample(self, t: Array) -> tuple[Array, ...]:
        p = np.asarray(t)[:, None, None] * self.w + self.phase
        return tuple((self.a * self.w**k * np.sin(p + k * np.pi / 2)).sum(axis=1) for k in range(3))


@cache
def case(robot_name: str, seed: int, stribeck: bool) -> tuple[Experiment, sy.Model, Array]:
    """The experiment, the model as it is known, and the noise of each torque."""
    robot = sy.load_robot(robot_name)
    model = plant = sy.Model.nominal(robot)
    if stribeck:
        names = sy.base_parameters(robot, model.terms).parameters
        more = terms(robot, *model.terms.terms, Stribeck(speed=0.1))
        dry = [v for p, v in zip(names, model.theta, strict=True) if p.name.startswith("Fc")]
        plant = sy.Model(robot, more, np.concatenate([model.theta, 0.5 * np.array(dry)]))
    reference, t = Sines(robot, seed), np.arange(3000) / 500.0
    controller = PD.for_model(model, bandwidth_rad_s=40.0)
    q, dq, _ = reference.sample(t[:1])
    run = simulate(plant, controller, times=t, step=1e-3, q0=q[0], dq0=dq[0], reference=reference)
    noise = TORQUE * np.std(run.tau, axis=0)
    log = run.log(sensors=Sensors(position_noise=POSITION, torque_noise=tuple(noise.tolist()), seed=seed + 1))
    log = sy.Log(log.joints, log.t, log.q, tau=log.tau)
    experiment = Experiment.from_logs(
        robot, model.terms, log, controller=controller, references=reference,
        preparation=sy.Preparation(cutoff_hz=20.0, decimation=5),
    )  # fmt: skip
    return experiment, model, noise


def fit(what: str, name: str, seed: int) -> dict[str, Any]:
    experiment, model, noise = case("prrrp" if name == "pf" else "ns16", seed, "friction" in what)
    base = sy.base_parameters(model.robot, model.terms)
    coin = np.random.default_rng(1000 + seed).choice([-1.0, 1.0], size=model.theta.shape)
    prior = Prior(model.theta * (1.0 + OFF * coin))
    settings: dict[str, Any] = {}
    if what == "least squares":
        settings["tuning"] = Tuning(start="least-squares")
    if "tenth" in what:
        settings["tuning"] = Tuning(torque_noise=0.1 * noise, position_noise=POSITION)
    if "ten times" in what:
        settings["tuning"] = Tuning(prior_relative_std=0.1 * OFF)
    began = time.process_time()
    found = make_experiment_estimator(name, **settings).fit(experiment, base, prior)
    truth = base.values(model.theta)
    z = (found.beta - truth) / found.standard_errors
    if "friction" in what:  # what dry friction is has no single answer then
        z = z[[not n.startswith("F") for n in base.names]]
    return {
        "case": what, "filter": name, "log": seed, "result": found.result.name, "inside": int(np.sum(np.abs(z) < 1.96)),
        "count": len(z), "rms_z": float(np.sqrt(np.mean(z**2))),
        "start_error": error(base.values(prior.theta), truth), "error": error(found.beta, truth),
        "ratios": {k: round(v["ratio"], 3) for k, v in found.details["consistency_tests"].items()},
        "gain": found.details["log_likelihood_gain"], "seconds": time.process_time() - began,
        "notes": list(found.notes),
    }  # fmt: skip


def error(beta: Array, truth: Array) -> float:
    return float(np.abs(beta - truth).max() / np.abs(truth).max())


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| case | filter | CONVERGED | OVERCONFIDENT | DIVERGED | truths inside 95 %: of CONVERGED | of all | "
             "error of CONVERGED | time |", "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for what, names in CASES.items():
        for name in names:
            mine = [r for r in rows if (r["case"], r["filter"]) == (what, name)]
            if not mine:
                continue
            ends = Counter(r["result"] for r in mine)
            good = [r for r in mine if r["result"] == "CONVERGED"]
            worst = f"{100 * np.median([r['error'] for r in good]):.2g} %" if good else "–"
            lines.append(
                f"| {what} | `{name}` | {ends['CONVERGED']} | {ends['OVERCONFIDENT']} | {ends['DIVERGED']} | "
                f"{inside(good)} | {inside(mine)} | {worst} | {np.median([r['seconds'] for r in mine]):.1f} s |"
            )
    return lines


def inside(rows: list[dict[str, Any]]) -> str:
    return f"{100 * sum(r['inside'] for r in rows) / sum(r['count'] for r in rows):.1f} %" if rows else "–"


# Cases in which a filter is told something wrong, and must say so; the others are as they should be.
_WRONG = ("torque noise told a tenth", "start told ten times too good", "friction that the model lacks")
# Of the truths inside 95 %: what twenty logs of 58 parameters, which err together, can tell from 95.
_HONEST = (0.92, 0.98)


def missed(rows: list[dict[str, Any]]) -> list[str]:
    """Which bounds do not hold: no filter that was misled says CONVERGED, one that says it has honest error bars, and
    particles, of which 58 parameters would need too many, make nothing worse."""
    out = []
    for what, names in CASES.items():
        for name in names:
            mine = [r for r in rows if (r["case"], r["filter"]) == (what, name)]
            good = [r for r in mine if r["result"] == "CONVERGED"]
            if good and (what in _WRONG or name == "pf"):
                out.append(f"{what}, {name}: {len(good)} of {len(mine)} say CONVERGED")
            elif len(good) >= 10:
                share = sum(r["inside"] for r in good) / sum(r["count"] for r in good)
                if not _HONEST[0] <= share <= _HONEST[1]:
                    out.append(f"{what}, {name}: {share:.1%} of truths inside 95 %")
            if name == "pf":
                out += [f"{name}, log {r['log']}: worse than its start" for r in mine if r["error"] > r["start_error"]]
    return out


@cache
def sources() -> str:
    """The first digits of a hash over the package: results of other sources are not gone on with."""
    digest = hashlib.sha256()
    for path in sorted(Path(sy.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--logs", type=int, default=20)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--cases", default=",".join(CASES))
    options.add_argument("--filters", default=",".join(FILTERS))
    given = options.parse_args()
    kept = Path(__file__).parent / "results" / "filters.json"
    before = json.loads(kept.read_text()) if kept.exists() else {}
    rows = before["runs"] if before.get("sources") == sources() else []
    done = {(r["case"], r["filter"], r["log"]) for r in rows}
    jobs = [
        (what, name, seed)
        for seed in range(given.first, given.first + given.logs)
        for what in given.cases.split(",")
        for name in CASES[what]
        if name in given.filters.split(",") and (what, name, seed) not in done
    ]
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        for run in as_completed([pool.submit(fit, *job) for job in jobs]):
            rows.append(run.result())
            save(
                "filters",
                {
                    "sources": sources(),
                    "runs": sorted(rows, key=lambda r: (r["log"], list(CASES).index(r["case"]), r["filter"])),
                },
            )
    print("\n".join(table(rows)))
    return ended(missed(rows))


if __name__ == "__main__":
    raise SystemExit(main())
