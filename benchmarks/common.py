"""What the benchmarks share: robots, data, honest timing, and a table."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

console = Console(width=110)
# How a script ends that wants what this machine has not: a GPU. As test drivers understand it.
NOT_HERE = 77


def public_urdf(name: str) -> Path:
    """URDFs of example-robot-data (pip install 'steelyard[oracle]')."""
    import pinocchio

    folder = Path(pinocchio.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    files = {"ur10": "ur_description/urdf/ur10_robot.urdf", "panda": "panda_description/urdf/panda.urdf"}
    return folder / files[name]


def arm(name: str) -> tuple[Any, Any]:
    """A robot and its Pinocchio model, fingers locked."""
    import pinocchio as pin

    from steelyard.robot import load_robot

    path = public_urdf(name)
    model = pin.buildModelFromUrdf(str(path))
    robot = load_robot(path)
    fingers = [n for n in model.names if "finger" in n]
    if fingers:
        model = pin.buildReducedModel(model, [model.getJointId(n) for n in fingers], pin.neutral(model))
        robot = robot.with_joints([n for n in robot.joint_names if "finger" not in n])
    return robot, model


def samples(joints: int, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.uniform(-x, x, (count, joints)) for x in (3.0, 2.0, 5.0))


def one_core() -> None:
    """Stay on one core, so that neither BLAS nor anybody else can spread."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})


def best_times(jobs: dict[str, Callable[[], Any]], rounds: int = 5, budget: float = 20.0) -> dict[str, float]:
    """The shortest time of each job over interleaved rounds: what else the machine did then hits all alike."""
    for job in jobs.values():
        job()
    times: dict[str, float] = dict.fromkeys(jobs, np.inf)
    spent = 0.0
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            taken = time.perf_counter() - start
            times[name] = min(times[name], taken)
            spent += taken
        if spent > budget:
            break
    return times


def machine() -> str:
    cpu = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
    return f"{cpu or platform.processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def ended(missed: list[str]) -> int:
    """How a script ends whose figures have bounds: which of them are `missed`, a line each, and its exit status."""
    for line in missed:
        print(f"MISSED: {line}")
    return 1 if missed else 0


def show(title: str, header: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left")
    for k, name in enumerate(header):
        table.add_column(name, justify="left" if k == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def save(name: str, results: dict[str, Any]) -> None:
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"machine": machine(), **results}, indent=1) + "\n")
