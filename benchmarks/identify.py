"""The whole job beside a script: a UR10's log in Parquet, identified by `steelyard identify` and by Pinocchio + NumPy.

    python benchmarks/identify.py            # 1e5, 1e6 and 1e7 samples; the script up to 1e6
    python benchmarks/identify.py --quick    # 1e5

The log is synthetic (positions, velocities, torques at 1 kHz, friction, noise). The script is what a user writes in
forty lines: filter, differentiate, Pinocchio's regressor in a loop, normal equations in chunks; no physical
consistency, no error bars, no scores, no report, all of which are part of our time.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


SCRIPT = """
import sys, numpy as np, pinocchio as pin, pyarrow.parquet as pq
from scipy.signal import butter, filtfilt
model = pin.buildModelFromUrdf(sys.argv[1]); data = model.createData(); n = model.nv
d = pq.read_table(sys.argv[2]).to_pandas().to_numpy()
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


def timed(command: list[str]) -> tuple[float, float, float]:
    """Seconds, seconds of processor time (which others on the machine touch less), and the peak of memory in GB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)[:200]}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6


def cell(figures: tuple[float, float, float]) -> str:
    wall, processor, memory = figures
    return f"{wall:.1f} s ({processor:.1f} s of processor), {memory:.2f} GB"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="1e5 samples only")
    counts = [100_000] if arguments.parse_args().quick else [100_000, 1_000_000, 10_000_000]
    urdf = str(public_urdf("ur10"))
    rows, results = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for samples in counts:
            log = Path(folder) / "log.parquet"
            write_log(log, samples)
            program = [sys.executable, "-W", "ignore", "-m", "steelyard"]
            ours = timed([*program, "identify", urdf, str(log), "-o", f"{folder}/run{samples}"])
            script = {}
            if samples <= 1_000_000:
                for way in ("decimated", "whole"):
                    script[way] = timed([sys.executable, "-W", "ignore", "-c", SCRIPT, urdf, str(log), way])
            cells = [cell(ours), *([cell(figures) for figures in script.values()] or ["–", "–"])]
            rows.append([f"{samples:.0e}", *cells])
            results[f"{samples:.0e}"] = {"ours": ours, **script}
    header = ["samples", "steelyard identify, report and all", "script, every 20th row", "script, all rows"]
    show(f"UR10, Parquet to model ({machine()})", header, rows)
    save("identify", results)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
