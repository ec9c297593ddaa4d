"""Every method of `entries/` on every set of logs that is there, by the same score: one command, three tables.

    STEELYARD_DATA=... python benchmarks/open_scoreboard.py              # all tables, real logs
    python benchmarks/open_scoreboard.py --table kinematics              # arms, kinematics or actuators
    python benchmarks/open_scoreboard.py --made                          # simulated; no logs needed
    python benchmarks/open_scoreboard.py --made --table arms --entry my_method.py     # with a method of yours

`entries/README.md` says how to enter. Arms: root mean square torque error on the hold-out, measured and predicted
through the score's filter, % of the torque's standard deviation, mean over joints. Kinematics: mean distance of points
on the tool on held-out thirds of the poses, mm. Actuators: mean absolute position error of rollouts of left-out runs,
mrad. In brackets the worst joint, division or run group, and the seconds of a fit.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import open_tables
from common import public_urdf, save, show
from entries.problem import MissingError, Motion, Problem
from scoreboard_baseline import Baseline, Recipe, Signals
from scoreboard_sets import CASES, Case

Array = np.ndarray
HERE = Path(__file__).parent
MADE = Recipe(cutoff_hz=10.0, rate=200.0, trim=0.2)
# Masses and inertias of the simulated plants: those of the description times a factor in this range.
FACTORS = (0.7, 1.4)


def entries(more: list[str], table: str = "arms") -> list[Any]:
    """Load the methods of a `table` in `entries/`, and of further files."""
    folder = HERE / "entries" / ("" if table == "arms" else table)
    files = [p for p in sorted(folder.glob("*.py")) if p.stem not in ("__init__", "problem")]
    out = []
    for file in [*files, *map(Path, more)]:
        spec = importlib.util.spec_from_file_location(f"entry_{table}_{file.stem}", file)
        if spec is None or spec.loader is None:
            raise SystemExit(f"{file}: not a Python file.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        out.append(module.Entry)
    return out


def make_sets(folder: Path) -> dict[str, Case]:
    """Simulate two public arms by Pinocchio: other masses than described, rotors, dry and viscous friction, noise."""
    import pinocchio as pin
    import pyarrow as pa
    import pyarrow.parquet as pq

    cases = {}
    for number, name in enumerate(("ur10", "panda")):
        rng = np.random.default_rng(number)
        text = public_urdf(name).read_text("utf-8")
        (folder / name).mkdir(parents=True)
        (folder / name / "robot.urdf").write_text(text, "utf-8")
        (folder / name / "meta.json").write_text(json.dumps({"gravity": [0.0, 0.0, -9.81]}))
        whole = pin.buildModelFromUrdf(str(folder / name / "robot.urdf"))
        joints = tuple(n for n in whole.names[1:] if "finger" not in n)
        fingers = [whole.getJointId(n) for n in whole.names[1:] if n not in joints]
        model = pin.buildReducedModel(whole, fingers, pin.neutral(whole)) if fingers else whole
        for k in range(1, model.njoints):
            model.inertias[k] = pin.Inertia.FromDynamicParameters(
                model.inertias[k].toDynamicParameters() * rng.uniform(*FACTORS)
            )
        data, n = model.createData(), model.nv
        middle = 0.5 * (model.lowerPositionLimit + model.upperPositionLimit)
        room = np.minimum(0.4 * (model.upperPositionLimit - model.lowerPositionLimit), 1.0)
        rotor, dry, viscous = rng.uniform(0.05, 0.5, n), rng.uniform(0.2, 3.0, n), rng.uniform(0.2, 2.0, n)
        for log in ("train", "test"):
            t = np.arange(0.0, 30.0, 1.0 / MADE.rate)
            w = 2.0 * np.pi * np.arange(1, 6) / 10.0
            phase, size = rng.uniform(0.0, 6.3, (5, n)), rng.uniform(0.3, 1.0, (5, n)) / np.arange(1, 6)[:, None]
            size *= room / size.sum(axis=0)
            angle = t[:, None, None] * w[:, None] + phase
            q, dq = middle + (size * np.sin(angle)).sum(1), (size * w[:, None] * np.cos(angle)).sum(1)
            ddq = -(size * w[:, None] ** 2 * np.sin(angle)).sum(1)
            tau = np.array([pin.rnea(model, data, *row).copy() for row in zip(q, dq, ddq, strict=True)])
            tau += rotor * ddq + dry * np.tanh(dq / 0.01) + viscous * dq
            noisy = {"q": q + 1e-5 * rng.normal(size=q.shape), "dq": dq + 1e-3 * rng.normal(size=q.shape),
                     "tau": tau + 0.02 * tau.std(axis=0) * rng.normal(size=q.shape)}  # fmt: skip
            columns = {"t": t} | {f"{s}{k + 1}": x[:, k] for s, x in noisy.items() for k in range(n)}
            pq.write_table(pa.table(columns), folder / name / f"{log}.parquet")
        cases[f"{name}, simulated"] = Case(name, MADE, ("train",), ("test",), joints=joints)
    return cases


def tasks(case: Case, data: Path) -> tuple[Problem, Baseline, list[tuple[Signals, Array]]]:
    """Return the task of a set, what filters its logs, and each hold-out with the rows that count."""
    reader = Baseline(data / case.folder, case.recipe, case.joints)
    train = [reader.read(name) for name in case.train]
    held = None if case.split is None else case.split(train[0].t)
    tests = [(s, np.ones(len(s.t), bool)) for s in map(reader.read, case.test)] if held is None else [(train[0], held)]
    logs = []
    for s in train:
        rows = slice(None) if held is None else ~held
        q, dq, ddq, tau = (x[s.rows][rows] for x in s.every)
        logs.append(Motion(s.t[rows], q, dq, ddq, tau))
    recipe, folder = case.recipe, data / case.folder
    problem = Problem(
        folder / "robot.urdf", tuple(reader.model.names[1:]), tuple(map(float, reader.meta["gravity"])), recipe.rate,
        recipe.cutoff_hz, recipe.rotor, recipe.ramp, tuple(logs), tuple(folder / f"{x}.parquet" for x in case.train),
        str(HERE / "maps" / case.mapping) if case.mapping else "", case.holdout,
    )  # fmt: skip
    return problem, reader, tests


def judged(problem: Problem) -> Array:
    """Return the indices of joints whose torque was measured well, as the mapping of the set says; default: all."""
    names = tomllib.loads(Path(problem.mapping).read_text("utf-8")).get("torque_used") if problem.mapping else None
    return np.array([k for k, name in enumerate(problem.joints) if names is None or name in names])


def score(method: Any, reader: Baseline, tests: list[tuple[Signals, Array]], joints: Array) -> Array:
    """Return the error of `joints`, % of the torque's standard deviation, root mean square over hold-outs."""
    squares, size = 0.0, 0.0
    for s, rows in tests:
        q, dq, ddq, tau = s.every
        t = np.arange(len(q)) / reader.recipe.rate
        predicted = np.asarray(method.predict(t, q, dq, ddq), float)
        if predicted.shape != tau.shape or not np.isfinite(predicted).all():
            raise ValueError(f"the prediction has shape {predicted.shape} or holds NaN")
        error = (tau - reader.recipe.low_pass(predicted))[s.rows][rows][:, joints]
        squares = squares + np.sum(error**2, axis=0) / np.var(tau[s.rows][rows][:, joints], axis=0)
        size += len(error)
    return 100.0 * np.sqrt(squares / size)


def run(methods: list[Any], cases: dict[str, Case], data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Fit and score every method on every set."""
    for name, case in cases.items():
        problem, reader, tests = tasks(case, data)
        row: dict[str, Any] = {}
        for kind in methods:
            method, start = kind(), time.perf_counter()
            try:
                method.fit(problem)
                seconds = time.perf_counter() - start
                errors = score(method, reader, tests, judged(problem))
                row[kind.name] = {"percent": errors.tolist(), "seconds": seconds}
            except MissingError as missing:
                row[kind.name] = {"missing": str(missing)}
            except Exception as error:  # a foreign method must not stop the others
                row[kind.name] = {"error": f"{type(error).__name__}: {error}"[:200]}
        yield name, row


def cell(result: dict[str, Any], digits: int = 1) -> str:
    """Write one result of a table.

    Args:
        result: Result of a method on a set.
        digits: Digits after the point.
    """
    errors = result.get("percent", result.get("errors"))
    if errors is None:
        return "not installed" if "missing" in result else f"failed: {result['error']}"[:40]
    return f"{np.mean(errors):.{digits}f} ({np.max(errors):.{digits}f}; {result['seconds']:.1f} s)"


TITLES = {
    "arms": "Torque error on the hold-out, % of the torque's standard deviation (worst joint; fit)",
    "kinematics": "Distance of held-out points, mm, mean of three divisions (worst division; fit)",
    "actuators": "Position error of rollouts of left-out runs, mrad, mean of groups (worst group; fit)",
}


def table(name: str, methods: list[Any], made: bool, wanted: list[str], folder: Path) -> dict[str, Any]:
    """Run all methods of a table.

    Args:
        name: "arms", "kinematics" or "actuators".
        methods: Classes of the methods.
        made: Whether to simulate the sets.
        wanted: Names of sets; empty: all.
        folder: Empty folder for simulated sets.
    """
    data = Path(os.environ.get("STEELYARD_DATA", ""))
    if name == "arms":
        cases = make_sets(folder) if made else {n: c for n, c in CASES.items() if (data / c.folder).is_dir()}
        chosen = {n: c for n, c in cases.items() if not wanted or n in wanted}
        return dict(run(methods, chosen, folder if made else data))
    if name == "kinematics":
        sets = open_tables.made_poses(folder) if made else open_tables.pose_sets(data)
        return dict(open_tables.kinematics(methods, {n: s for n, s in sets.items() if not wanted or n in wanted}))
    runs = open_tables.made_runs() if made else open_tables.drive_sets(data)
    return dict(open_tables.actuators(methods, {n: s for n, s in runs.items() if not wanted or n in wanted}))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--table", choices=list(TITLES), help="one table; default: all")
    arguments.add_argument("--made", action="store_true", help="simulated sets instead of real logs")
    arguments.add_argument("--only", default="", help="sets, separated by semicolons")
    arguments.add_argument("--entry", action="append", default=[], help="a file with a method; may be repeated")
    chosen = arguments.parse_args()
    if chosen.entry and chosen.table is None:
        raise SystemExit("State the table of the method: --table arms, kinematics or actuators.")
    sys.path.insert(0, str(HERE))
    wanted, found = [name.strip() for name in chosen.only.split(";") if name.strip()], False
    for name in [chosen.table] if chosen.table else TITLES:
        methods = entries(chosen.entry, name)
        with tempfile.TemporaryDirectory() as folder:
            results = table(name, methods, chosen.made, wanted, Path(folder))
        if not results:
            continue
        found, names = True, [kind.name for kind in methods]
        digits = 3 if name == "kinematics" else 1
        rows = [[case, *(cell(row[n], digits) for n in names)] for case, row in results.items()]
        show(TITLES[name], ["set", *names], rows)
        kept = "open_scoreboard" + ("" if name == "arms" else f"_{name}")
        save(f"{kept}_made" if chosen.made else kept, results)
    if not found:
        raise SystemExit("No set is there: set STEELYARD_DATA to the folder of the logs, or use --made.")


if __name__ == "__main__":
    main()
