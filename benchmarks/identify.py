"""The whole job beside a script: a UR10's log, CSV and Parquet, identified by `steelyard identify` and by a script.

    python benchmarks/identify.py            # 1e4, 1e5, 1e6 in both formats, 1e7 in Parquet; the script up to 1e6
    python benchmarks/identify.py --quick    # 1e4 and 1e5
    python benchmarks/identify.py --phases   # where the time goes, each phase beside its own floor

The log is synthetic (positions, velocities, torques at 1 kHz, friction, noise); its last fifth is kept to judge by. Our
time is that of the whole command: error bars, the physically possible fit, check, hold-out score, report, URDF, MJCF;
machine code is in its cache, where the first run leaves it. The script is what a user writes in forty lines: filter,
differentiate, Pinocchio's regressor in a loop, normal equations in chunks; nothing else. The ratio is that of processor
time, system calls included: the script's large arrays are the system's work.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import arm, machine, public_urdf, save, show

RATE = 1000.0


def write_log(path: Path, samples: int) -> None:
    """A Fourier motion with friction and torque noise, written in row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from steelyard.dynamics import Model
    from steelyard.parameters import Coulomb, terms

    robot, _ = arm("ur10")
    n = robot.dof
    bound = terms(robot, "rotor", "viscous", Coulomb(smooth=0.01), "offset")
    rng = np.random.default_rng(0)
    theta = np.r_[
        robot.inertial_parameters, rng.uniform(0.3, 1, n), rng.uniform(1, 4, n), rng.uniform(2, 6, n), np.zeros(n)
    ]
    model = Model(robot, bound, theta)
    rates = 2 * np.pi * np.array([0.1, 0.23, 0.37, 0.51])
    size, phase = rng.uniform(0.1, 0.5, (4, n)), rng.uniform(0, 6, (4, n))
    names = ["t", *(f"{x}{k + 1}" for x in ("q", "dq", "tau") for k in range(n))]
    writer = None
    for start in range(0, samples, 200_000):
        t = np.arange(start, min(start + 200_000, samples)) / RATE
        angle = t[:, None, None] * rates[:, None] + phase
        q, dq = (size * np.sin(angle)).sum(1), (size * rates[:, None] * np.cos(angle)).sum(1)
        ddq = (-size * rates[:, None] ** 2 * np.sin(angle)).sum(1)
        tau = model.torque(q, dq, ddq) + rng.normal(size=q.shape)
        table = pa.table(dict(zip(names, [t, *q.T, *dq.T, *tau.T], strict=True)))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def as_csv(path: Path) -> Path:
    """The same log as text, every digit written."""
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    with pc.CSVWriter(path.with_suffix(".csv"), file.schema_arrow) as writer:
        for batch in file.iter_batches(100_000):
            writer.write_batch(batch)
    return path.with_suffix(".csv")


SCRIPT = """
import sys, numpy as np, pinocchio as pin, pyarrow.csv as pc, pyarrow.parquet as pq
from scipy.signal import butter, filtfilt
model = pin.buildModelFromUrdf(sys.argv[1]); data = model.createData(); n = model.nv
d = pc.read_csv(sys.argv[2]) if sys.argv[2].endswith("csv") else pq.read_table(sys.argv[2])
d = np.column_stack([c.to_numpy() for c in d.columns])
q, dq, tau = (d[:, 1 + k * n:1 + (k + 1) * n] for k in range(3))
b, a = butter(4, 2 * 10.0 / 1000.0)
q, dq, tau = (filtfilt(b, a, x, axis=0) for x in (q, dq, tau))
ddq = filtfilt(b, a, np.gradient(dq, 1e-3, axis=0), axis=0)
q, dq, ddq, tau = (x[::20] for x in (q, dq, ddq, tau)) if sys.argv[3] == "decimated" else (q, dq, ddq, tau)
i = np.arange(n); m = 14 * n; G = np.zeros((m, m)); g = np.zeros(m)
for s in range(0, len(q), 2000):
    W = np.zeros((len(q[s:s + 2000]), n, m))
    for k in range(len(W)):
        W[k, :, :10 * n] = pin.computeJointTorqueRegressor(model, data, q[s + k], dq[s + k], ddq[s + k])
    W[:, i, 10 * n + i], W[:, i, 11 * n + i] = ddq[s:s + 2000], dq[s:s + 2000]
    W[:, i, 12 * n + i], W[:, i, 13 * n + i] = np.tanh(dq[s:s + 2000] / 0.01), 1.0
    W = W.reshape(-1, m); G += W.T @ W; g += W.T @ tau[s:s + 2000].ravel()
theta = np.linalg.lstsq(G, g, rcond=1e-10)[0]
print(theta[:3])
"""


def timed(command: list[str]) -> dict[str, float]:
    """Seconds by the clock, seconds of processor time in the program itself (user), and the peak of memory in GB."""
    start = time.perf_counter()
    # An installed package has its modules compiled.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)[:200]}")
    wall = time.perf_counter() - start
    return {"wall": wall, "user": usage.ru_utime, "system": usage.ru_stime, "memory": usage.ru_maxrss / 1e6}


def processor(f: dict[str, float]) -> float:
    return f["user"] + f["system"]


def best(command: list[str], rounds: int) -> dict[str, float]:
    """The run with the least processor time: what else the machine did then disturbed it least."""
    return min((timed(command) for _ in range(rounds)), key=processor)


def written(path: Path, samples: int) -> list[Path]:
    """The log as files, made by a process of its own: the memory of one that is started counts as that of its child."""
    from multiprocessing import get_context

    process = get_context("spawn").Process(target=_write_both, args=(path, samples))
    process.start()
    process.join()
    return [path] if samples > 1_000_000 else [path.with_suffix(".csv"), path]


def _write_both(path: Path, samples: int) -> None:
    write_log(path, samples)
    if samples <= 1_000_000:
        as_csv(path)


def cell(f: dict[str, float] | None) -> str:
    return "–" if f is None else f"{f['user']:.2f} + {f['system']:.2f} s, {f['memory']:.2f} GB"


def whole_job(counts: list[int]) -> None:
    urdf = str(public_urdf("ur10"))
    rows, results = [], {}
    program = [sys.executable, "-W", "ignore", "-m", "steelyard"]
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first.parquet"
        written(first, 20_000)
        timed(
            [*program, "identify", urdf, str(first), "--holdout", "0.2", "-o", f"{folder}/first"]
        )  # fills the cache of machine code
        for samples in counts:
            log = Path(folder) / "log.parquet"
            for file in written(log, samples):
                run = f"{folder}/run-{samples}-{file.suffix[1:]}"
                command = [*program, "identify", urdf, str(file), "--holdout", "0.2", "-o", run, "--overwrite"]
                ours = best(command, 1 if samples > 1_000_000 else 3)
                script = None
                if samples <= 1_000_000:
                    script = best([sys.executable, "-W", "ignore", "-c", SCRIPT, urdf, str(file), "whole"], 2)
                ratio = "–" if script is None else f"{processor(ours) / processor(script):.2f}"
                rows.append([f"{samples:.0e}", file.suffix[1:], cell(ours), cell(script), ratio])
                results[f"{samples:.0e} {file.suffix[1:]}"] = {"ours": ours, "script": script}
    show(
        f"UR10, log to model ({machine()})",
        ["samples", "format", "steelyard identify (user + system)", "script", "ratio"],
        rows,
    )
    save("identify", results)


# Where the time goes: the functions of each phase, and the least that its work could take.
PHASES = {
    "read": [("steelyard.signals.source", "LogFile.pieces"), ("steelyard.identification.identify_files", "open_log")],
    "prepare": [("steelyard.study", "Study._prepare")],
    "rows, filtered": [("steelyard.regression.observe", "_blocks")],
    "triangles and spectra": [("steelyard.regression.data", "_Triangles.add"), ("steelyard.regression.spectra",
                              "Spectra.add")],
    "base parameters": [("steelyard.study", "base_parameters")],
    "error bars": [("steelyard.estimation.linear._free", "covariance")],
    "physical fit": [("steelyard.estimation.possible.physical", "solve_interior"),
                     ("steelyard.estimation.possible.physical", "_boundary_shares")],
    "check": [("steelyard.identification.identify", "check_study"), ("steelyard.identification.identify",
              "checked_judges")],
    "delay": [("steelyard.study", "Study.with_torque_between")],
    "band": [("steelyard.identification.identify", "choose_cutoff")],
    "search": [("steelyard.identification._search", "search")],
    "scores": [("steelyard.identification.identify", "judge")],
    "files": [("steelyard.identification.file_scores", "with_files")],
    "report": [("steelyard.identification.page", "identification_report")],
}  # fmt: skip


def phases(samples: int) -> None:
    """Processor time of each phase in one process, by thread; nested phases are taken off the outer ones."""
    from importlib import import_module

    spent: dict[str, float] = dict.fromkeys(PHASES, 0.0)
    inner: list[float] = []

    def timer(label: str, start: float) -> None:
        took = time.thread_time() - start
        own = took - (inner.pop() if inner else 0.0)
        spent[label] += own
        if inner:
            inner[-1] += took

    def wrapped(label: str, function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            inner.append(0.0)
            start = time.thread_time()
            made = function(*arguments, **options)
            timer(label, start)
            return stepped(label, made) if isinstance(made, Iterator) else made

        return call

    def stepped(label: str, items: Any) -> Any:
        while True:
            inner.append(0.0)
            start = time.thread_time()
            item = next(items, None)
            timer(label, start)
            if item is None:
                return
            yield item

    start = time.process_time()
    for label, places in PHASES.items():
        for module, name in places:
            owner: Any = import_module(module)
            *path, last = name.split(".")
            for part in path:
                owner = getattr(owner, part)
            setattr(owner, last, wrapped(label, getattr(owner, last)))
    imports = time.process_time() - start
    import steelyard.study as study_module

    study_module.ahead = lambda items: items  # one thread, so that phases nest
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.parquet"
        write_log(log, samples)
        text = as_csv(log)
        from steelyard.identification import page as report_module
        from steelyard.identification.identify_files import identify_files
        from steelyard.robot import load_robot

        robot = load_robot(public_urdf("ur10"))
        start = time.process_time()
        found = identify_files(robot, [text])
        report_module.identification_report(found)
        total = time.process_time() - start
        floors = phase_floors(text, samples, robot, found)
    rows = [["imports", f"{imports:.2f} s", "–", ""]]
    for label, seconds in spent.items():
        floor, what = floors.get(label, (None, ""))
        rows.append([label, f"{seconds:.2f} s", "–" if floor is None else f"{floor:.2f} s", what])
    rows.append(["all of the call", f"{total:.2f} s", "–", ""])
    show(f"{samples:.0e} samples of a UR10, CSV, one thread", ["phase", "processor time", "floor", "of what"], rows)
    save("identify-phases", {"samples": samples, "imports": imports, "phases": spent, "floors": floors})


def phase_floors(text: Path, samples: int, robot: Any, found: Any) -> dict[str, tuple[float, str]]:
    """The least that each phase's work could take here: a bare parse, one pass of the filter, the core's peak."""
    import pyarrow.csv as pc

    from steelyard.dynamics.engine import Dynamics
    from steelyard.regression.rows import Rows
    from steelyard.signals.filters import LowPass

    def took(job: Callable[[], Any]) -> float:
        job()
        start = time.process_time()
        job()
        return time.process_time() - start

    out = {"read": (took(lambda: pc.read_csv(text)), "Arrow parses the file, nothing else")}
    n = robot.dof
    low_pass = LowPass(found.cutoff_hz, 1.0 / RATE)
    signal = np.random.default_rng(0).normal(size=(100_000, 4 * n)).cumsum(axis=0)
    once = took(lambda: low_pass(signal)) * samples / len(signal)
    out["prepare"] = (once, "one pass of the filter over q, dq, and their derivatives")
    rows = Rows(Dynamics(robot, found.base.terms), found.base.independent)
    width = len(rows.function.outputs)
    step = max(1, int(0.2 * RATE / found.cutoff_hz))
    a = np.random.default_rng(0).normal(size=(500, 500))
    peak = 2 * 500**3 * 20 / took(lambda: [a @ a for _ in range(20)])
    # Per sample: the regressor, and eight states and one output row in `step` of the filter for every column.
    work = rows.operations + 2.0 * width * (8.0 + 6.0)
    out["rows, filtered"] = (
        work * samples / peak,
        f"{work:.0f} operations a sample at {peak / 1e9:.0f} GFLOP/s (BLAS)",
    )
    kept = samples / step
    squares = sum(e.width**2 for e in rows.equations)
    out["triangles and spectra"] = (4.0 * squares * kept / peak, "QR and Gram matrices of the kept rows at that rate")
    return out


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="1e4 and 1e5 samples only")
    arguments.add_argument("--phases", action="store_true", help="where the time goes at 1e6 samples")
    given = arguments.parse_args()
    if given.phases:
        phases(100_000 if given.quick else 1_000_000)
        return
    whole_job([10_000, 100_000] if given.quick else [10_000, 100_000, 1_000_000, 10_000_000])


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
