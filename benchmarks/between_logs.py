"""Several logs of one arm, with and without something planted in one of them: is it found, named, and is silence right?

    python benchmarks/between_logs.py                  # results/between_logs.json, and the table of docs/theory/logs.md
    python benchmarks/between_logs.py --robots ur10 --plants coulomb,lugre --draws 2

Arms and friction are those of `plants.py`: friction of which the library has some forms and not others.
"""

from __future__ import annotations

import argparse
import copy
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from common import save
from plants import PLANTS, ROBOTS, Plant, motion, robot_of

SECONDS = 20.0
# What is planted in the last log, and the word that must be in what is told of it.
FAULTS = {
    "": "nothing",
    "offset": "5 % of the torque's deviation added to the torque of the middle joint",
    "scale": "the torque of joint 2 × 1.05",
    "warm": "viscous friction of joint 2 × 0.7",
    "payload": "a tenth of a mean link's mass at the last link",
}


def changed(plant: Plant, fault: str) -> Plant:
    """The plant with what is planted in it, if that is the robot's."""
    other = copy.copy(plant)
    if fault == "warm":
        other.viscous = plant.viscous * np.where(np.arange(plant.robot.dof) == 1, 0.7, 1.0)
    if fault == "payload":
        theta, links = np.array(plant.model.theta), plant.robot.inertial_count
        mass, x = 0.1 * theta[:links:10].sum() / plant.robot.dof, np.array([0.02, 0.01, 0.08])
        about = mass * (x @ x * np.eye(3) - np.outer(x, x))
        theta[links - 10 : links] += [mass, *mass * x, *about[(0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)]]
        other.model = replace(plant.model, theta=theta)
    return other


def run(name: str, kind: str, fault: str, count: int, draw: int) -> dict[str, Any]:
    from steelyard.identification.identify import identify
    from steelyard.signals.log import Log

    robot = robot_of(name)
    rng = np.random.default_rng([draw, 77, ROBOTS.index(name)])
    plant, logs = Plant(robot, kind, rng), []
    for k in range(count):
        t, *states = motion(robot, rng, SECONDS)
        q, dq, ddq = (x * (1.0 - 0.15 * (k % 3)) for x in states)
        last = k == count - 1
        tau = (changed(plant, fault) if last else plant).torque(q, dq, ddq)
        middle = robot.dof // 2
        if last and fault == "offset":
            tau[:, middle] += 0.05 * np.std(tau[:, middle])
        if last and fault == "scale":
            tau[:, 1] *= 1.05
        tau += 0.02 * np.std(tau, axis=0) * rng.normal(size=q.shape)
        seen = q + 1e-6 * plant.unit * rng.normal(size=q.shape)
        logs.append(Log(robot.joint_names, t, seen, dq=dq + 1e-4 * plant.unit * rng.normal(size=q.shape), tau=tau))
    told = identify(robot, logs, check=False).agreement
    assert told is not None
    out: dict[str, Any] = {"robot": name, "plant": kind, "fault": fault, "logs": count, "draw": draw}
    out["found"] = [f"{d.log}: {d.sentence}" for d in told.disagreements]
    first = told.disagreements[0] if told.disagreements else None
    out["log"] = first is not None and first.log == told.logs[-1]
    joint = {"offset": robot.dof // 2 + 1, "warm": 2}.get(fault, 0)
    names = {
        "offset": {f"F0{joint}"},
        "warm": {f"Fv{joint}"},
        "scale": {"scale"},
        "payload": {p.name for p in told.parameters if p.name.endswith(str(len(robot.links))) and p.unit[:2] == "kg"},
    }
    out["named"] = bool(first and fault and names[fault] & set(first.parameters))
    out["away"] = [p.away for p in told.parameters if p.away is not None]
    return out


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| planted in the last log | runs | a log is said to disagree | that log, first | by its name |"]
    lines.append("|---|---|---|---|---|")
    for fault, what in FAULTS.items():
        mine = [r for r in rows if r["fault"] == fault]
        if mine:
            told, right, named = (sum(bool(r[k]) for r in mine) for k in ("found", "log", "named"))
            more = f"{right} | {named}" if fault else "– | –"
            lines.append(f"| {what} | {len(mine)} | {told} | {more} |")
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--robots", default="rotradi,szabo3r,irp6,arm7,ur10,panda,z1")
    options.add_argument("--plants", default=",".join(PLANTS))
    options.add_argument("--faults", default=",".join(FAULTS))
    options.add_argument("--logs", type=int, default=3)
    options.add_argument("--draws", type=int, default=2)
    options.add_argument("--first", type=int, default=100)
    options.add_argument("--jobs", type=int, default=2)
    given = options.parse_args()
    jobs = [
        (robot, plant, fault, given.logs, draw)
        for draw in range(given.first, given.first + given.draws)
        for robot in given.robots.split(",")
        for fault in given.faults.split(",")
        for plant in given.plants.split(",")
    ]
    rows = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for r in pool.map(run, *zip(*jobs, strict=True)):
            rows.append(r)
            print(r["robot"], r["plant"], r["fault"] or "-", "; ".join(r["found"]) or "agree", flush=True)
    print("\n".join(table(rows)))
    save("between_logs", {"rows": [{k: v for k, v in r.items() if k != "away"} for r in rows]})


if __name__ == "__main__":
    sys.exit(main())
