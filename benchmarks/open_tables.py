"""Tables of the open scoreboard beside that of arms: kinematics from held poses, actuators from command logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import public_urdf
from entries.problem import DriveProblem, MissingError, PoseProblem, Run

Array = np.ndarray
Result = dict[str, Any]
# Columns of points on the tool, and the rows to use, of the public sets of held poses.
POSES = {
    "ABB IRB 120": ("abb_irb120_tracker", "robot.urdf", ("p1", "p2", "p3"), "flag_points_rigid flag_base_still"),
    "Franka FR3": ("franka_fr3_camera", "robot.urdf", ("cam_",), ""),
    "Motoman, left": ("motoman_2019", "robot_left.urdf", ("p1",), "subset=left2019"),
    "Motoman, right": ("motoman_2019", "robot_right.urdf", ("p1",), "subset=right2019"),
    "Meca500": ("meca500_right", "robot.urdf", ("p1",), ""),
    "TIAGo": ("tiago_mocap", "robot.urdf", ("p1", "p2", "p3"), ""),
}
DRIVES = {"Dynamixel XL330": ("bam_xl330", "kp"), "Feetech STS3250": ("bam_sts3250", "trajectory")}
# Random divisions of the poses; a third of each judges.
DIVISIONS = 3


def attempt(kind: Any, problem: Any, judge: Callable[[Any], list[float]]) -> Result:
    """Fit a method and score it; a failure is a result as well.

    Args:
        kind: Class of the method.
        problem: What it sees.
        judge: Errors of the fitted method.
    """
    start = time.perf_counter()
    try:
        method = kind()
        method.fit(problem)
        seconds = time.perf_counter() - start
        errors = judge(method)
        if not np.isfinite(errors).all():
            raise ValueError("the prediction holds NaN")
        return {"errors": errors, "seconds": seconds}
    except MissingError as missing:
        return {"missing": str(missing)}
    except Exception as error:  # a foreign method must not stop the others
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def kinematics(methods: list[Any], sets: dict[str, PoseProblem]) -> Iterator[tuple[str, Result]]:
    """Score methods by the mean distance of held-out points [mm], over random divisions.

    Args:
        methods: Classes of methods.
        sets: Poses by the name of their set.
    """
    for name, every in sets.items():
        row: Result = {}
        for kind in methods:
            parts = []
            for seed in range(DIVISIONS):
                order = np.random.default_rng(seed).permutation(len(every.q))
                cut = 2 * len(order) // 3
                parts.append(attempt(kind, _rows(every, order[:cut]), _distance(_rows(every, order[cut:]))))
                if "errors" not in parts[-1]:
                    break
            row[kind.name] = _joined(parts)
        yield name, row


def actuators(methods: list[Any], sets: dict[str, list[Run]]) -> Iterator[tuple[str, Result]]:
    """Score methods by the mean absolute position error of rollouts [mrad], each group of runs left out in turn.

    Args:
        methods: Classes of methods.
        sets: Runs by the name of their drive; the label "group" names the group that is left out together.
    """
    for name, runs in sets.items():
        row: Result = {}
        for kind in methods:
            parts = []
            for group in dict.fromkeys(run.labels["group"] for run in runs):
                rest = DriveProblem(tuple(run for run in runs if run.labels["group"] != group))
                judges = [run for run in runs if run.labels["group"] == group]
                parts.append(attempt(kind, rest, _rollout_error(judges)))
                if "errors" not in parts[-1]:
                    break
            row[kind.name] = _joined(parts)
        yield name, row


def pose_sets(data: Path) -> dict[str, PoseProblem]:
    """Read the public sets of held poses that are below `data`."""
    import pandas as pd
    import pinocchio as pin

    out = {}
    for name, (folder, file, points, condition) in POSES.items():
        path = data / "kinematics" / folder
        if not path.is_dir():
            continue
        table = pd.read_parquet(path / "poses.parquet")
        for word in condition.split():
            column, _, value = word.partition("=")
            table = table[table[column] == value] if value else table[table[column]]
        joints = tuple(pin.buildModelFromUrdf(str(path / file)).names[1:])
        columns = [c for c in table if c.startswith(("q", "d_")) and c.endswith(("_rad", "_m"))]
        q = table[columns].to_numpy(float)
        seen = np.stack([table[[f"{p}{x}_m" for x in ("x", "y", "z")]].to_numpy(float) for p in points], axis=1)
        out[name] = PoseProblem(path / file, joints, q, np.concatenate([q[:1], q[:-1]]), seen)
    return out


def drive_sets(data: Path) -> dict[str, list[Run]]:
    """Read the public runs of drives that are below `data`."""
    from steelyard import read_command_logs

    out = {}
    for name, (folder, key) in DRIVES.items():
        path = data / "actuators" / folder
        if not path.is_dir():
            continue
        logs = read_command_logs(path / "raw.parquet", settings=path / "logs.parquet")
        out[name] = [
            Run(log.time, log.goal, log.position, np.ones(len(log), bool) if log.torque_enable is None
                else log.torque_enable, log.kp, log.volts, log.load.inertia, log.load.gravity, log.duty, log.supply,
                {"group": str(log.label(key)), "trajectory": log.trajectory, "kp": f"{log.kp:g}"})
            for log in logs
        ]  # fmt: skip
    return out


def made_poses(folder: Path) -> dict[str, PoseProblem]:
    """Simulate held poses by Pinocchio: joints that are displaced, turned and offset, three points, a tracker's noise.

    Args:
        folder: Empty folder for the descriptions.
    """
    import pinocchio as pin

    rng = np.random.default_rng(0)
    path = folder / "ur10-poses.urdf"
    path.write_text(public_urdf("ur10").read_text("utf-8"), "utf-8")
    model = pin.buildModelFromUrdf(str(path))
    joints, q = tuple(model.names[1:]), rng.uniform(-1.8, 1.8, (90, model.nq))
    for k in range(1, model.njoints):
        error = pin.SE3(pin.exp3(1e-3 * rng.normal(size=3)), 5e-4 * rng.normal(size=3))
        model.jointPlacements[k] = model.jointPlacements[k] * error
    offsets, data = 3e-3 * rng.normal(size=model.nq), model.createData()
    base = pin.SE3(pin.exp3(np.array([0.1, -0.2, 2.0])), np.array([1.5, 0.4, -0.2]))
    spots = np.array([[0.12, 0.02, 0.05], [0.05, -0.1, 0.03], [0.1, 0.08, -0.06]])
    seen = np.empty((len(q), 3, 3))
    for k, row in enumerate(q):
        pin.forwardKinematics(model, data, row + offsets)
        seen[k] = [base.act(data.oMi[-1].act(spot)) for spot in spots]
    seen += 5e-5 * rng.normal(size=seen.shape)
    return {"UR10, simulated": PoseProblem(path, joints, q, np.concatenate([q[:1], q[:-1]]), seen)}


def made_runs() -> dict[str, list[Run]]:
    """Simulate a drive with a pendulum by MuJoCo: rotor, friction, a limit; two gains, three motions."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="0.0005" integrator="implicitfast"/><worldbody><body>'
        '<joint name="j" type="hinge" axis="0 1 0" armature="0.003" damping="0.05" frictionloss="0.02"/>'
        '<inertial pos="0 0 -0.1" mass="0.5" diaginertia="1e-6 1e-6 1e-6"/></body></worldbody>'
        '<actuator><position joint="j" kp="1" forcerange="-1.2 1.2"/></actuator></mujoco>'
    )
    out, t = [], np.arange(0.0, 4.0, 0.01)
    for gain in (5.0, 10.0):
        for f in (0.5, 0.8, 1.3):
            data, q = mujoco.MjData(model), np.empty(len(t))
            model.actuator_gainprm[0, 0], model.actuator_biasprm[0, 1] = gain, -gain
            goal = 0.8 * np.sin(2.0 * np.pi * f * t) + 0.3 * np.sin(2.0 * np.pi * 1.7 * f * t)
            for k in range(len(t)):
                q[k], data.ctrl[0] = data.qpos[0], goal[k]
                mujoco.mj_step(model, data, 20)
            out.append(Run(t, goal, q, np.ones(len(t), bool), gain, 12.0, 0.005002, 0.5 * 9.81 * 0.1,
                           labels={"group": f"{f:g} Hz", "kp": f"{gain:g}"}))  # fmt: skip
    return {"a servo, simulated": out}


def _rows(problem: PoseProblem, rows: Array) -> PoseProblem:
    return replace(problem, q=problem.q[rows], before=problem.before[rows], points=problem.points[rows])


def _distance(judge: PoseProblem) -> Callable[[Any], list[float]]:
    def error(method: Any) -> list[float]:
        predicted = np.asarray(method.predict(judge.q, judge.before), float)
        if predicted.shape != judge.points.shape:
            raise ValueError(f"the prediction has shape {predicted.shape}")
        return [1e3 * float(np.nanmean(np.linalg.norm(predicted - judge.points, axis=2)))]

    return error


def _rollout_error(judges: list[Run]) -> Callable[[Any], list[float]]:
    def error(method: Any) -> list[float]:
        sizes = []
        for run in judges:
            hidden = np.full(len(run.t), np.nan)
            hidden[0] = run.position[0]
            predicted = np.asarray(method.predict(replace(run, position=hidden, duty=None, supply=None)), float)
            if predicted.shape != run.t.shape:
                raise ValueError(f"the prediction has shape {predicted.shape}")
            sizes.append(np.abs(predicted - run.position))
        return [1e3 * float(np.mean(np.concatenate(sizes)))]

    return error


def _joined(parts: list[Result]) -> Result:
    failed = [part for part in parts if "errors" not in part]
    if failed:
        return failed[0]
    errors = [e for part in parts for e in part["errors"]]
    return {"errors": errors, "seconds": float(np.mean([part["seconds"] for part in parts]))}
