"""A simulated fleet, from its logs on disk to what is told of its robots: what is found, how sure, how fast.

    python benchmarks/fleet.py                      # 200 robots x 20 logs x 30 s at 1 kHz: 1.2e8 samples, some 11 GB
    python benchmarks/fleet.py --robots 40 --logs 12 --seconds 10 --keep /data/fleet

`made_fleet.py` says what is planted: spreads of friction, offset and gain, three failing gears, two exchanged arms, one
recorder that mixes up two torques; and a twentieth more robots have one poor log each. Timed: the whole first run, a
second one after 1 % of logs came in, one worker and two on a part of the robots, and `identify`'s own pass over the
same files.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import save
from made_fleet import FAILS_FROM, FIRST, FleetPlan, own_of, robot_id, true_links, write_fleet, write_table

from steelyard.check.check import check_later_piece
from steelyard.fleet.fleet import FleetOutcome, identify_fleet
from steelyard.ground.arrays import one_blas_thread
from steelyard.signals.source import open_log

WEEK_S = 7 * 86400.0


def timed(*args: Any, **options: Any) -> tuple[FleetOutcome, float]:
    """A run with everything that its folder would hold, and its seconds."""
    begin = time.perf_counter()
    found = identify_fleet(*args, **options)
    found.robot_types  # noqa: B018  what is told of the robots is worked out when it is asked for
    return found, time.perf_counter() - begin


def coverage(plan: FleetPlan, found: FleetOutcome) -> dict[str, Any]:
    """How often truths lie inside 95 %, and how much smaller errors are than by each robot's own logs.

    Robots that are not what the table says are left out: they have no one truth.
    """
    inside: dict[str, list[float]] = {"own": [], "links": [], "gain": [], "own, one poor log": []}
    errors: dict[str, list[float]] = {"pooled": [], "alone": []}
    bars: dict[str, list[float]] = {"own": [], "links": [], "own, one poor log": []}
    for name, model in found.robot_types.items():
        base, fleet = found.factors.studies[name].study.base, model.pooled
        kinds, links = base.terms.per_parameter(lambda term, c: (term.kind, c.index)), true_links(name)
        for r in plan.numbers:
            if plan.model(r) != name or r in plan.faulty:
                continue
            own, theta = own_of(plan, r), np.zeros(len(base.parameters))
            theta[: len(links)] = links
            for k, (kind, joint) in enumerate(kinds):
                theta[len(links) + k] = getattr(own, kind)[joint] if hasattr(own, kind) else 0.0
            truth, robot, mine = base.matrix @ theta, fleet.by_name[robot_id(r)], fleet.design.own
            z = np.abs((robot.beta - truth) / robot.errors)
            poor = r >= plan.robots
            inside["own, one poor log" if poor else "own"] += (z[mine] < 1.96).tolist()
            inside["links"] += (z[~mine] < 1.96).tolist()
            inside["gain"] += (np.abs((robot.gain - own.gain + 1.0) / robot.gain_errors) < 1.96).tolist()
            scale = np.maximum(np.abs(truth), 1e-9)
            errors["pooled"] += ((robot.beta - truth) / scale).tolist()
            errors["alone"] += ((robot.own_beta - truth) / scale).tolist()
            bars["own, one poor log" if poor else "own"] += robot.sharper[mine].tolist()
            bars["links"] += robot.sharper[~mine].tolist()
    median = {k: float(np.median(np.abs(v))) for k, v in errors.items()}
    return {
        "inside 95 %": {k: float(np.mean(v)) for k, v in inside.items()},
        "error bars alone / pooled, median": {k: float(np.median(v)) for k, v in bars.items()},
        "errors alone / pooled, medians": median["alone"] / median["pooled"],
    }


def faults(plan: FleetPlan, found: FleetOutcome) -> dict[str, Any]:
    """Which planted faults were told, and what was told beside them."""
    told = [o for model in found.robot_types.values() for o in model.judged.outliers]
    planted: dict[tuple[str, str], str] = {("gear", robot_id(r)): f"joint {j + 1}" for r, j in plan.failing.items()}
    planted |= {("mapping", robot_id(r)): f"joints {a + 1}, {b + 1}" for r, (a, b) in plan.swapped.items()}
    planted |= {("exchange", robot_id(r)): "" for pair in plan.exchanged for r in pair}
    hit = {key: next((o for o in told if (o.kind, o.robot) == key), None) for key in planted}
    others = [o.sentence for o in told if o.robot not in {robot for _, robot in planted}]
    joints = {m: found.factors.studies[m].study.robot.joint_names for m in found.robot_types}
    drifts = [d for model in found.robot_types.values() for d in model.drift.drifts]
    failing = {robot_id(r): joints[plan.model(r)][j] for r, j in plan.failing.items()}
    late = [
        (d.since - FIRST.timestamp()) / WEEK_S - FAILS_FROM * plan.logs
        for d in drifts
        if failing.get(d.robot) == d.joint
    ]
    known = {robot for _, robot in planted}
    return {
        "planted": [{"kind": k, "robot": r, "where": planted[k, r], "told": o.sentence if o else ""}
                    for (k, r), o in hit.items()],
        "found": sum(o is not None for o in hit.values()),
        "invented": others,
        "drifts of robots without a fault": [d.sentence for d in drifts if d.robot not in known],
        "date of failing gears, weeks off": late,
        "asked": sum(model.drift.joints for model in found.robot_types.values()),
    }  # fmt: skip


def own_pass(table: Path, plan: FleetPlan, found: FleetOutcome, look: bool, robots: int = 8) -> float:
    """Samples a second of `identify`'s own pass on one core: a log is read, filtered, and its rows are reduced; `look`:
    its channels are looked at on the way, as `identify` does unless it is told not to.

    The physics is compiled, and the base parameters are found, before.
    """
    count = 0
    with one_blas_thread():
        for warm in (True, False):
            begin, count = time.process_time(), 0
            for r in range(2 if warm else robots):
                ready = found.factors.studies[plan.model(r)]
                for file in sorted((table.parent / robot_id(r)).glob("*.parquet"))[: 1 if warm else None]:
                    study = replace(
                        ready.study_of(open_log(file, ready.study.robot)), look=check_later_piece if look else None
                    )
                    study.rows.reduction()
                    if look:
                        check_later_piece(study.robot, study.beginnings[0])
                    count += sum(len(log) for log in study.beginnings)
    return count / (time.process_time() - begin)


def side_by_side(table: Path, plan: FleetPlan, found: FleetOutcome) -> float:
    """How much more than one two processes get done that share nothing, each with `identify`'s own pass over the same
    logs: what this machine's second core is worth."""
    make = multiprocessing.get_context("fork").Process
    spent = []
    for count in (1, 2):
        begin = time.perf_counter()
        each = [make(target=own_pass, args=(table, plan, found, True)) for _ in range(count)]
        for process in each:
            process.start()
        for process in each:
            process.join()
        spent.append(time.perf_counter() - begin)
    return 2.0 * spent[0] / spent[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    given = ("robots", 200), ("logs", 20), ("seconds", 30.0), ("rate", 1000.0), ("workers", 2), ("seed", 0)
    for name, value in given:
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--keep", type=Path, help="where the logs lie, or are made if they do not")
    asked = parser.parse_args()
    plan = FleetPlan.planted(asked.robots, asked.logs, asked.seconds, asked.rate, asked.seed)
    folder = asked.keep or Path(tempfile.mkdtemp(prefix="steelyard-fleet-"))
    try:
        save("fleet" if asked.seed == 0 else f"fleet-seed{asked.seed}", measured(plan, folder, asked.workers))
    finally:
        if asked.keep is None:
            shutil.rmtree(folder)


def measured(plan: FleetPlan, folder: Path, workers: int) -> dict[str, Any]:
    """Everything, printed as it comes."""
    out: dict[str, Any] = {"robots": len(plan.numbers), "samples": plan.samples}
    table = folder / "fleet.csv"
    if not table.exists():
        table = write_fleet(plan, folder, workers)
    stores = [folder / f"store-{k}" for k in ("all", "part")]
    for store in stores:
        shutil.rmtree(store, ignore_errors=True)
    late = [robot_id(r) for r in range(max(plan.robots * plan.logs // 100, 1))]  # whose last log is still to come: 1 %
    before = _shortened(table, late)
    found, seconds = timed(before, store=stores[0])
    out["first run, s"], out["peak, MB"] = seconds, {k: v / 1e6 for k, v in found.factors.tally.peak_bytes.items()}
    out["seconds"] = dict(found.factors.tally.seconds)
    rate = found.factors.tally.samples / found.factors.tally.cpu_seconds
    found, again = timed(table, store=stores[0])
    out["second run, s"], out["second / first"] = again, again / seconds
    out["new logs"], out["seconds of the second"] = found.factors.tally.mapped, dict(found.factors.tally.seconds)
    out |= {"faults": faults(plan, found), "coverage": coverage(plan, found)}
    part = write_table(plan, folder, range(min(plan.robots, 16)), "part")
    for r in range(min(plan.robots, 16)):  # from the disk for neither of the two
        for file in (folder / robot_id(r)).glob("*.parquet"):
            file.read_bytes()
    # The best of three, in turn: virtual machines are not always as fast as they were.
    spent, rates = {1: np.inf, 2: np.inf}, dict.fromkeys(("worker", "bare", "whole"), 0.0)
    for _ in range(3):
        for count in spent:
            shutil.rmtree(stores[1], ignore_errors=True)
            tally = identify_fleet(part, store=stores[1], workers=count, plain=True).factors.tally
            spent[count] = min(spent[count], tally.seconds["mapping"])
            if count == 1:
                rates["worker"] = max(rates["worker"], tally.samples / tally.cpu_seconds)
        for name, look in (("bare", False), ("whole", True)):
            rates[name] = max(rates[name], own_pass(table, plan, found, look))
    out["two workers / one"] = spent[1] / spent[2]
    out["two passes side by side / one"] = side_by_side(table, plan, found)
    worker, bare, whole = rates.values()
    # One process at work beside one: two on two cores slow each other down, whatever they do.
    out["samples a second of processor"] = {
        "fleet, all cores": rate,
        "fleet, one worker": worker,
        "identify's own pass": whole,
        "identify's own pass, channels not looked at": bare,
        "ratio": worker / whole,
        "ratio to the latter": worker / bare,
    }
    out["1e12 samples on 64 cores, h"] = 1e12 / rate / 64.0 / 3600.0
    told: dict[str, Any] = json.loads(json.dumps(out).replace(f"{folder}/", ""))  # wherever the logs lay
    for key, value in told.items():
        print(f"{key}: {value}")
    return told


def _shortened(table: Path, robots: list[str]) -> Path:
    """The table without the last log of some robots: what comes in over night."""
    head, *rows = table.read_text().splitlines()
    kept = []
    for robot in dict.fromkeys(row.partition(",")[0] for row in rows):
        own = [row for row in rows if row.startswith(f"{robot},")]
        kept += own[:-1] if robot in robots else own
    place = table.with_name("before.csv")
    place.write_text("\n".join([head, *kept]) + "\n")
    return place


if __name__ == "__main__":
    main()
