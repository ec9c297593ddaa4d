"""Torque that is held, sampled or averaged between samples, and late torque, on arms that Pinocchio and MuJoCo move.

    python benchmarks/torque_between.py            # all, into results/torque_between.json; goes on where it was stopped
    python benchmarks/torque_between.py --quick    # one seed of each
    python benchmarks/torque_between.py --only 'rotradi.*ekf'

The plants are those of `tests/torque_plants.py`; nothing there is simulated by the library. *Found*: share of logs in
which the torque was recognised. *Error*: mean relative error of the base parameters with what was found, over that with
the right way stated. *Inside 95 %*: share of the true base parameters within the 95 % intervals.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np
from common import ended, save, show
from torque_plants import Plant

WAYS = ("held", "sampled", "averaged")
RATES = (250.0, 500.0, 1000.0)
# Of the torque, as a share of each joint's rms; positions have 10 µrad, as those of 19-bit encoders.
NOISE = 0.01
SCHEMES = ("dynamic", "power", "filtered-dynamic", "filtered-power", "momentum", "energy")
ESTIMATORS = ("ml", "ekf", "ekf:start=prior", "ukf")


@dataclass(frozen=True)
class Arm:
    """A kind of plant, the methods that are measured on it, and those that are measured on a few logs only."""

    plant: dict[str, Any]
    methods: tuple[str, ...]
    seldom: tuple[str, ...] = ()
    in_terms: bool = True  # whether terms of the library can be the friction, so that coverage is claimed


# Filters go through every sample: of seven axes that takes a minute, of three a second.
ARMS = {
    "rotradi": Arm({"name": "rotradi"}, (*SCHEMES, "ml"), ESTIMATORS[1:]),
    "panda": Arm({"name": "panda"}, (*SCHEMES, "ml")),
    "ur10": Arm({"name": "ur10", "engine": "mujoco"}, (*SCHEMES, "ml")),
    "ur10 soft": Arm({"name": "ur10", "engine": "mujoco", "soft": True}, (), ("dynamic",), in_terms=False),
}
# s; either way, shorter and longer than a sample.
DELAYS = (-0.2e-3, 0.2e-3, 0.7e-3, 1.3e-3, 3e-3)
SEEDS, FEW_SEEDS, DELAY_SEEDS = 8, 3, 3
# What is claimed: share of logs recognised, error over that of the right way, limits of the coverage, error of a delay.
LEAST_FOUND, MOST_ERROR, COVERAGE, DELAY_ERROR_S = 0.95, 1.5, (0.92, 0.98), 1e-4


class Store:
    """What has been measured, a line each, so that a run that was stopped goes on."""

    def __init__(self, path: Path) -> None:
        self.path, self.lines = path, {}
        for line in path.read_text("utf-8").splitlines() if path.exists() else ():
            try:
                one = json.loads(line)
            except ValueError:  # cut off by a kill
                continue
            self.lines[one["key"]] = one

    def get(self, key: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key not in self.lines:
            started = time.process_time()
            self.lines[key] = {"key": key, **measure(), "seconds": round(time.process_time() - started, 3)}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as out:
                out.write(json.dumps(self.lines[key]) + "\n")
        return self.lines[key]


def identified(plant: Plant, log: Any, method: str, between: str) -> Any:
    """`identify` with the plant's own terms; `method` is a scheme, or an estimator."""
    from steelyard.identification.identify import identify
    from steelyard.signals.prepare import Preparation

    what = {"scheme": method} if method in SCHEMES else {"estimator": method}
    prior = "nominal" if method.endswith("prior") else "none"
    settings = Preparation(torque_between=between)  # type: ignore[arg-type]
    return identify(plant.robot, log, terms=plant.terms, physical=False, check=False, files=False, prior=prior,
                    preparation=settings, **what)  # fmt: skip


def judged(plant: Plant, found: Any) -> dict[str, Any]:
    """Relative error of the base parameters, and how many true ones lie within the 95 % intervals."""
    from steelyard.estimation.linear.covariance import confidence_intervals

    estimate, truth = found.estimate, found.base.values(plant.truth)
    off = estimate.beta - truth
    low, high = confidence_intervals(estimate, 0.95).T
    inside = (low <= truth) & (truth <= high)
    z = off / estimate.standard_errors
    return {
        "error": float(np.linalg.norm(off) / np.linalg.norm(truth)), "inside": int(inside.sum()),
        "of": len(off), "z": float(np.sqrt(np.mean(z**2))), "result": estimate.result.value,
    }  # fmt: skip


def measure(plant: Plant, log: Any, way: str, method: str) -> dict[str, Any]:
    found = identified(plant, log, method, "auto")
    chosen = found.between
    out = {"found": chosen.name, "sure": chosen.sure, **judged(plant, found)}
    # With the same way found or stated, everything is the same.
    right = out if chosen.name == way else judged(plant, identified(plant, log, method, way))
    return {**out, "stated_error": right["error"], "stated_inside": right["inside"]}


def measure_delay(plant: Plant, delay: float) -> dict[str, Any]:
    from steelyard.regression.torque_between import delay_of
    from steelyard.signals.prepare import Preparation
    from steelyard.study import Study

    study = Study.of(plant.robot, plant.sampled(delay), plant.terms, Preparation().for_rows(True, True))
    found = delay_of(study.base, tuple(study.motions()))
    assert found is not None
    return {"off_s": found.delay_s - delay, "error_s": found.error_s}


def all_logs(store: Store, seeds: int, few_seeds: int, only: str) -> list[dict[str, Any]]:
    out = []
    for name, arm in ARMS.items():
        for seed in range(seeds):
            for rate in RATES:
                for way in WAYS:
                    own = 9 * seed + 3 * RATES.index(rate) + WAYS.index(way)  # no two logs share motion or noise
                    plant = Plant(rate, 1000 + own, torque_noise=NOISE, **arm.plant)
                    methods = arm.methods + (arm.seldom if seed < few_seeds else ())
                    keys = {m: f"{name} {rate:g} {way} {seed} {m}" for m in methods}
                    keys = {m: key for m, key in keys.items() if re.search(only, key)}
                    log = getattr(plant, way)() if any(key not in store.lines for key in keys.values()) else None
                    for m, key in keys.items():
                        got = store.get(key, lambda p=plant, g=log, w=way, m=m: measure(p, g, w, m))
                        out.append({"arm": name, "rate": rate, "way": way, "seed": seed, "method": m, **got})
    return out


def all_delays(store: Store, seeds: int, only: str) -> list[dict[str, Any]]:
    out = []
    for name, arm in ARMS.items():
        for rate in RATES:
            for delay in DELAYS:
                for seed in range(seeds):
                    key = f"{name} {rate:g} delay {delay:g} {seed}"
                    if re.search(only, key):
                        own = 15 * seed + 5 * RATES.index(rate) + DELAYS.index(delay)
                        plant = Plant(rate, 2000 + own, torque_noise=NOISE, **arm.plant)
                        got = store.get(key, lambda p=plant, d=delay: measure_delay(p, d))
                        out.append({"arm": name, "rate": rate, "delay_s": delay, "seed": seed, **got})
    return out


def row_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Found, error over that of the right way, and coverage of some runs."""
    hits = [one["found"] == one["way"] for one in runs]
    errors, right = (np.mean([one[key] for one in runs]) for key in ("error", "stated_error"))
    inside, of = (sum(one[key] for one in runs) for key in ("inside", "of"))
    return {"runs": len(runs), "found": float(np.mean(hits)), "ratio": float(errors / right), "error": float(errors),
            "coverage": inside / of, "parameters": of}  # fmt: skip


def groups(runs: list[dict[str, Any]], *keys: str) -> Iterable[tuple[tuple[Any, ...], list[dict[str, Any]]]]:
    for value in dict.fromkeys(tuple(one[key] for key in keys) for one in runs):
        yield value, [one for one in runs if tuple(one[key] for key in keys) == value]


def tables(runs: list[dict[str, Any]], delays: list[dict[str, Any]]) -> dict[str, Any]:
    by_method, by_way, late = [], [], []
    for (arm, method), part in groups(runs, "arm", "method"):
        by_method.append({"arm": arm, "method": method, **row_of(part)})
    for (way, rate), part in groups(runs, "way", "rate"):
        by_way.append({"way": way, "rate": rate, **row_of(part)})
    for (arm, rate), part in groups(delays, "arm", "rate"):
        off, bar = (np.array([one[key] for one in part]) for key in ("off_s", "error_s"))
        late.append({
            "arm": arm, "rate": rate, "logs": len(part), "worst_s": float(np.abs(off).max()),
            "within": float(np.mean(np.abs(off) <= DELAY_ERROR_S)), "z": float(np.sqrt(np.mean((off / bar) ** 2))),
            "coverage": float(np.mean(np.abs(off) <= 1.96 * bar)),
        })  # fmt: skip
    return {"by_method": by_method, "by_way": by_way, "delays": late}


def missed(found: dict[str, Any]) -> list[str]:
    """Which of the claims do not hold, a line each."""
    out = []
    for row in found["by_method"]:
        name = f"{row['arm']} {row['method']}"
        if row["found"] < LEAST_FOUND:
            out.append(f"{name}: found in {100 * row['found']:.0f} % of the logs")
        if row["ratio"] > MOST_ERROR:
            out.append(f"{name}: {row['ratio']:.2f} times the error of the right way")
        if ARMS[row["arm"]].in_terms and not COVERAGE[0] <= row["coverage"] <= COVERAGE[1]:
            out.append(f"{name}: {100 * row['coverage']:.1f} % inside 95 %")
    for row in found["delays"]:
        if row["within"] < LEAST_FOUND:
            out.append(f"{row['arm']} {row['rate']:g} Hz: a delay {1e3 * row['worst_s']:.2f} ms off")
    return out


def print_tables(found: dict[str, Any]) -> None:
    head = ["", "logs", "found", "error / right", "error", "inside 95 %"]

    def line(name: str, row: dict[str, Any]) -> list[str]:
        return [name, str(row["runs"]), f"{100 * row['found']:.0f} %", f"{row['ratio']:.2f}",
                f"{100 * row['error']:.3f} %", f"{100 * row['coverage']:.1f} %"]  # fmt: skip

    show("Schemes and estimators", head, [line(f"{r['arm']} {r['method']}", r) for r in found["by_method"]])
    show("Ways and rates", head, [line(f"{r['way']} {r['rate']:g} Hz", r) for r in found["by_way"]])
    show("Delays", ["", "logs", "worst", "within 0.1 ms", "rms of error / bar", "inside 95 %"], [
        [f"{r['arm']} {r['rate']:g} Hz", str(r["logs"]), f"{1e3 * r['worst_s']:.3f} ms", f"{100 * r['within']:.0f} %",
         f"{r['z']:.2f}", f"{100 * r['coverage']:.0f} %"] for r in found["delays"]
    ])  # fmt: skip


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="one seed of each; nothing is saved")
    options.add_argument("--only", default="", help="cases whose name matches this expression; nothing is saved")
    options.add_argument("--store", type=Path, default=ROOT / "build" / "torque_between.jsonl")
    options.add_argument("--fresh", action="store_true", help="forget what was measured before")
    given = options.parse_args()
    if given.fresh:
        given.store.unlink(missing_ok=True)
    store = Store(given.store)
    seeds, few_seeds, delay_seeds = (1, 1, 1) if given.quick else (SEEDS, FEW_SEEDS, DELAY_SEEDS)
    runs = all_logs(store, seeds, few_seeds, given.only)
    delays = all_delays(store, delay_seeds, given.only)
    found = tables(runs, delays)
    print_tables(found)
    seconds = sum(one["seconds"] for one in (*runs, *delays))
    print(f"{len(runs)} fits and {len(delays)} delays, {seconds / 60:.1f} processor minutes")
    if not given.quick and not given.only:
        save("torque_between", {"date": time.strftime("%Y-%m-%d"), "processor_s": round(seconds), **found})
    return ended(missed(found))


if __name__ == "__main__":
    raise SystemExit(main())
