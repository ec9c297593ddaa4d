"""Speed of floating bases: rows of a quadruped beside a loop over Pinocchio, and the whole job of `identify`.

    python benchmarks/floating.py               # results/floating.json
    python benchmarks/floating.py --samples 1e5 # a shorter log for the whole job

The quadruped is Solo12. It sways on four resting feet whose forces are not measured, so that every sample has 18
equations, of which the projection leaves six. The peer computes the same rows with Pinocchio, one sample at a time: the
regressor, four Jacobians of the feet, a QR decomposition and the product.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pinocchio as pin
import pyarrow as pa
from common import one_core, save, show
from pyarrow import parquet

from steelyard.floating import identify_floating
from steelyard.floating.motion import Preparer
from steelyard.floating.null_space import fixed_basis, precise
from steelyard.floating.setup import FloatingMapping
from steelyard.robot import load_robot

FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
SOLO = Path(pin.__file__).parents[4] / "share/example-robot-data/robots/solo_description/robots/solo12.urdf"
RATE, PERIOD = 1000.0, 20.0
CHUNK = 2000
POSE = ("px", "py", "pz", "qw", "qx", "qy", "qz")


def swaying(model: pin.Model) -> tuple[np.ndarray, np.ndarray]:
    """One period of a trunk that sways on resting feet: positions of Pinocchio and torques of the joints."""
    data = model.createData()
    feet = [model.getFrameId(name) for name in FEET]
    legs = np.tile([0.0, 0.8, -1.6], 4)
    start = np.concatenate([[0, 0, 0, 0, 0, 0, 1.0], legs])
    pin.framesForwardKinematics(model, data, start)
    places = [data.oMf[f].translation.copy() for f in feet]
    t = np.arange(0.0, PERIOD, 1.0 / RATE)
    turns = 2 * np.pi * np.outer(t, np.arange(2, 14) / PERIOD)
    rng = np.random.default_rng(0)
    sway = (
        np.sin(turns + rng.uniform(0, 6.28, 12)) @ rng.uniform(-1, 1, (12, 6)) * [0.01, 0.01, 0.006, 0.04, 0.04, 0.04]
    )
    q = np.empty((len(t), model.nq))
    joints = legs.copy()
    for k, x in enumerate(sway):
        pose = pin.SE3(pin.rpy.rpyToMatrix(x[3:]), x[:3])
        base = pin.SE3ToXYZQUAT(pose)
        for _ in range(4):
            q[k] = np.concatenate([base, joints])
            pin.computeJointJacobians(model, data, q[k])
            pin.updateFramePlacements(model, data)
            for leg, (foot, place) in enumerate(zip(feet, places, strict=True)):
                J = pin.getFrameJacobian(model, data, foot, pin.LOCAL_WORLD_ALIGNED)[:3, 6 + 3 * leg : 9 + 3 * leg]
                joints[3 * leg : 3 * leg + 3] -= np.linalg.solve(J, data.oMf[foot].translation - place)
    period = 1.0 / RATE
    ahead = [pin.difference(model, q[k], q[(k + 1) % len(q)]) / period for k in range(len(q))]
    v = 0.5 * (np.array(ahead) + np.roll(ahead, 1, axis=0))
    a = (np.array(ahead) - np.roll(ahead, 1, axis=0)) / period
    torques = np.empty((len(q), 12))
    for k in range(len(q)):
        force = pin.rnea(model, data, q[k], v[k], a[k])
        J = np.concatenate([pin.computeFrameJacobian(model, data, q[k], f, pin.LOCAL_WORLD_ALIGNED)[:3] for f in feet])
        contact = np.linalg.lstsq(J[:, :6].T, force[:6], rcond=None)[0]
        torques[k] = force[6:] - J[:, 6:].T @ contact
    return q, torques


def mapping_of(names: list[str]) -> dict[str, object]:
    return {
        "time": "t", "joints": names, "position": [f"q_{n}" for n in names], "torque": [f"tau_{n}" for n in names],
        "base": {"position": list(POSE[:3]), "orientation": list(POSE[3:])},
        "contacts": {foot: {} for foot in FEET},
    }  # fmt: skip


def compare_rows(model: pin.Model, q: np.ndarray) -> dict[str, float]:
    """Time per sample of projected rows, ours and by a loop over Pinocchio [µs]."""
    robot = load_robot(SOLO, floating=True)
    names = list(model.names)[2:]
    preparer = Preparer(robot, FloatingMapping.of(mapping_of(names), robot))
    rng = np.random.default_rng(1)
    four = q[:, 3:7] * np.where(q[:, 6:7] < 0.0, -1.0, 1.0)
    ours = np.concatenate([q[:, :3], four[:, :3], q[:, 7:]], axis=1)
    dq, ddq = rng.standard_normal((2, len(q), 18))
    data = model.createData()
    feet = [model.getFrameId(name) for name in FEET]

    regressor, force = preparer.projected_regressor(robot.dynamics), np.zeros_like(ours)
    every, closed, ones = range(robot.inertial_count), preparer.jacobian_rows(range(4)), np.ones(18)

    def rows() -> None:
        for first in range(0, len(ours), CHUNK):  # chunks, as the fit does it
            q, dv, a = (x[first : first + CHUNK] for x in (ours, dq, ddq))
            basis = fixed_basis(preparer.closed_rows(range(4), q[len(q) // 2][None])[0])
            _, pivots, turned = regressor(q, dv, a, force[: len(q)], every, closed, [], basis, ones)
            assert precise(pivots, turned).all()

    few = range(0, len(q), max(1, len(q) // 500))

    def loop() -> None:
        for k in few:
            Y = pin.computeJointTorqueRegressor(model, data, q[k], dq[k], ddq[k])
            J = np.concatenate([pin.computeFrameJacobian(model, data, q[k], f, pin.LOCAL)[:3] for f in feet])
            np.linalg.qr(J.T, mode="complete")[0][:, 12:].T @ Y

    def regressor_loop() -> None:
        for k in few:
            pin.computeJointTorqueRegressor(model, data, q[k], dq[k], ddq[k])

    jobs = {
        "ours": (rows, len(q)), "pinocchio": (loop, len(few)), "pinocchio, regressor": (regressor_loop, len(few)),
        "ours, regressor": (lambda: robot.torque_regressor(ours, dq, ddq), len(q)),
    }  # fmt: skip
    return {name: 1e6 * _least_time(job) / count for name, (job, count) in jobs.items()}


def _least_time(job: Callable[[], object], rounds: int = 3) -> float:
    """Least processor time of a job [s]; other work on the machine hardly changes it."""
    job()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)


def whole_job(model: pin.Model, q: np.ndarray, torques: np.ndarray, samples: int) -> dict[str, float]:
    """Processor time of `identify_floating` on a Parquet log [s]."""
    rng = np.random.default_rng(2)
    names = list(model.names)[2:]
    rounds = -(-samples // len(q))
    columns = {"t": np.arange(samples) / RATE}
    for k, name in enumerate((*POSE[:3], "qx", "qy", "qz", "qw", *(f"q_{n}" for n in names))):
        columns[name] = np.tile(q[:, k], rounds)[:samples] + 1e-5 * rng.standard_normal(samples)
    for k, name in enumerate(names):
        columns[f"tau_{name}"] = np.tile(torques[:, k], rounds)[:samples] + 1e-3 * rng.standard_normal(samples)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        parquet.write_table(pa.table(columns), path)
        start, wall = time.process_time(), time.perf_counter()
        result = identify_floating(load_robot(SOLO, floating=True), path, mapping=mapping_of(names), holdout=0.2)
        return {
            "samples": samples, "cpu_s": time.process_time() - start, "wall_s": time.perf_counter() - wall,
            "holdout_error_percent": result.scores[0].error,
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=float, default=1e6)
    options = parser.parse_args()
    one_core()
    model = pin.buildModelFromUrdf(str(SOLO), pin.JointModelFreeFlyer())
    q, torques = swaying(model)
    rows = compare_rows(model, q[:20_000])
    jobs = [whole_job(model, q, torques, int(n)) for n in (1e4, 1e5, 1e6) if n <= options.samples]
    show(
        "Rows of Solo12 on four feet, projected",
        ["", "µs per sample", "Pinocchio loop", "ratio"],
        [
            [
                name,
                f"{rows['ours' + key]:.1f}",
                f"{rows['pinocchio' + key]:.1f}",
                f"{rows['pinocchio' + key] / rows['ours' + key]:.1f}",
            ]
            for name, key in (("regressor", ", regressor"), ("projected rows", ""))
        ],
    )
    show(
        "identify_floating, Parquet log",
        ["samples", "processor s", "wall s", "hold-out error, %"],
        [
            [f"{j['samples']:.0e}", f"{j['cpu_s']:.1f}", f"{j['wall_s']:.1f}", f"{j['holdout_error_percent']:.2g}"]
            for j in jobs
        ],
    )
    save("floating", {"rows": rows, "jobs": jobs})


if __name__ == "__main__":
    main()
