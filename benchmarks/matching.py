"""`match_robot` against searches over rollouts: python benchmarks/matching.py [leg|arm|solo …] [--seeds 1] [--times 20]

Plants are simulated by MuJoCo with its own position actuators: masses ±20 %, rotors, friction, encoder zeros, torque
limits, delayed goals (0 to 8 ms), 200 to 1000 Hz, positions rounded to 14 bits. Competitors fit the parameters of PACE
(armature, damping, dry friction, zeros, delay) to rollouts of the whole log in MuJoCo: CMA-ES (`cmaes`), and the
bounded Gauss–Newton with finite differences of `mujoco.minimize`, on which `mujoco.sysid` builds. They stop after
`--times` times the CPU time of `match_robot`. All models are judged by MuJoCo, on a second log: root mean square of the
positions over the whole run. Real logs (STEELYARD_DATA): python benchmarks/matching.py real
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco
import numpy as np
from common import public_urdf
from mujoco import rollout

import steelyard as sy
from steelyard.export import model_to_mjcf
from steelyard.matching import Drives, Match
from steelyard.matching.match_files import with_position_drives
from steelyard.signals import part_of

QUANTUM = 2 * np.pi / 2**14
STEP = 5e-4
LEG = ["FL_hip_joint", "FL_thigh_joint", "FL_calf_joint"]
CASES = {
    "leg": ("go2_description/urdf/go2.urdf", LEG, [40.0] * 3, [1.0] * 3, [0.01] * 3, [0.0, 0.8, -1.5]),
    "arm": (
        "ur_description/urdf/ur5_robot.urdf", None, [800.0, 800, 600, 200, 200, 100], [40.0, 40, 30, 8, 8, 5],
        [0.3, 0.3, 0.2, 0.1, 0.1, 0.1], [0.0, -1.2, 1.2, -0.5, 0.5, 0.0],
    ),
    "solo": (
        "solo_description/robots/solo12.urdf", None, [6.0] * 12, [0.15] * 12, [0.002] * 12, [0.0, 0.8, -1.6] * 4,
    ),
}  # fmt: skip


class Plant:
    """A robot in MuJoCo with position actuators, and what it really is."""

    def __init__(self, name: str, seed: int, folder: Path) -> None:
        file, joints, kp, kd, size, rest = CASES[name]
        path = public_urdf("ur10").parents[2] / file
        rng = np.random.default_rng(seed)
        self.robot = sy.load_robot(path, joints=joints)
        n = self.robot.dof
        self.rest, self.rng = np.array(rest), rng
        self.rate = float(rng.choice([200.0, 500.0, 1000.0]))
        links = self.robot.inertial_parameters.copy().reshape(-1, 10) * rng.uniform(
            0.8, 1.25, (len(self.robot.links), 1)
        )
        self.truth = {
            "armature": np.array(size) * rng.uniform(0.2, 1.0, n), "viscous": np.array(kd) * rng.uniform(0.05, 0.3, n),
            "dry": np.array(kp) * rng.uniform(0.003, 0.015, n), "bias": rng.normal(0.0, 0.01, n),
            "delay": float(rng.integers(0, 17)) * STEP,
        }  # fmt: skip
        self.links = links.ravel()
        self.drives = Drives(np.array(kp), np.array(kd), 0.35 * np.array(kp), self.truth["delay"], "goal")
        t = self.truth
        self.path = folder / f"{name}{seed}.xml"
        theta = np.concatenate([self.links, t["armature"], t["viscous"], t["dry"]])
        self.write(theta, self.drives, t["bias"], self.path)

    def write(self, theta: np.ndarray, drives: Drives, bias: np.ndarray, path: Path) -> None:
        terms = sy.terms(self.robot, "rotor", "viscous", "coulomb")
        model_to_mjcf(sy.Model(self.robot, terms, theta), path)
        path.write_bytes(with_position_drives(path, self.robot.joint_names, drives, bias))

    def log(self, duration: float) -> sy.Log:
        n, rng = self.robot.dof, self.rng
        hz = np.unique(np.round(np.geomspace(1.0, 4.0 * duration, 10))) / duration
        size = rng.uniform(0.5, 1.0, (len(hz), n)) / np.sqrt(hz)[:, None]
        size *= 0.6 / size.sum(axis=0)
        phase = rng.uniform(0, 2 * np.pi, (len(hz), n))
        t = np.arange(round(duration * self.rate)) / self.rate
        goal = self.rest + np.sum(size * np.sin(2 * np.pi * hz[:, None] * t[:, None, None] + phase), axis=1)
        true = simulate(
            mujoco.MjModel.from_xml_path(str(self.path)), self.robot, goal, goal[0], self.rate, self.truth["bias"]
        )
        q = np.round((true + 1e-5 * rng.standard_normal(true.shape)) / QUANTUM) * QUANTUM
        return sy.Log(self.robot.joint_names, t, q, channels={"goal": goal})


def simulate(
    model: mujoco.MjModel, robot: sy.Robot, goal: np.ndarray, start: np.ndarray, rate: float, bias: np.ndarray
) -> np.ndarray:
    """Positions as the encoders show them, at the samples; the robot stands at `start` before."""
    model.opt.timestep = STEP
    data = mujoco.MjData(model)
    order = [model.joint(j).qposadr[0] for j in robot.joint_names]
    drive = [int(np.flatnonzero(model.actuator_trnid[:, 0] == model.joint(j).id)[0]) for j in robot.joint_names]
    data.qpos[order] = start - bias
    for j, k in enumerate(drive):
        count = int(model.actuator_history[k, 0])
        if count:
            mujoco.mj_initCtrlHistory(model, data, k, None, np.full((count, 1), goal[0, j]))
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    hold = round(1.0 / (rate * STEP))
    control = np.empty((1, len(goal) * hold, model.nu))
    control[0][:, drive] = np.repeat(goal, hold, axis=0)
    states, _ = rollout.rollout(model, data, state[None], control)
    q = states[0][:, [1 + k for k in order]]
    return np.vstack([start - bias, q[hold - 1 :: hold][:-1]]) + bias


class PaceProblem:
    """Residuals of a whole log over armature, damping, dry friction, zeros and delay; links as described."""

    def __init__(self, plant: Plant, log: sy.Log, folder: Path) -> None:
        self.plant, self.log = plant, log
        n = plant.robot.dof
        _, _, kp, kd, size, _ = CASES[plant.path.stem.rstrip("0123456789")]
        self.low = np.concatenate([np.zeros(3 * n), np.full(n, -0.05), [0.0]])
        self.high = np.concatenate([2 * np.array(size), np.array(kd), 0.05 * np.array(kp), np.full(n, 0.05), [0.02]])
        path = folder / "pace.xml"
        theta = np.concatenate([plant.robot.inertial_parameters, np.full(3 * n, 1e-3)])
        drives = Drives(plant.drives.kp, plant.drives.kd, plant.drives.limit, 0.02, "goal")
        plant.write(theta, drives, np.zeros(n), path)
        self.model = mujoco.MjModel.from_xml_path(str(path))
        joints = [self.model.joint(j) for j in plant.robot.joint_names]
        self.dofs = [j.dofadr[0] for j in joints]
        self.drive = [int(np.flatnonzero(self.model.actuator_trnid[:, 0] == j.id)[0]) for j in joints]
        self.count = 0

    def set(self, x: np.ndarray) -> tuple[mujoco.MjModel, np.ndarray]:
        n, m = len(self.dofs), self.model
        m.dof_armature[self.dofs], m.dof_damping[self.dofs] = x[:n], x[n : 2 * n]
        m.dof_frictionloss[self.dofs] = x[2 * n : 3 * n]
        bias = x[3 * n : 4 * n]
        m.actuator_biasprm[self.drive, 0] = -self.plant.drives.kp * bias
        m.actuator_delay[self.drive] = x[-1]
        return m, bias

    def residual(self, x: np.ndarray, log: sy.Log | None = None) -> np.ndarray:
        self.count += 1
        log = log or self.log
        model, bias = self.set(np.clip(x, self.low, self.high))
        q = simulate(model, self.plant.robot, log.channels["goal"], log.q[0], self.plant.rate, bias)
        return np.nan_to_num(log.q - q, nan=1.0, posinf=1.0, neginf=-1.0)


class OutOfTimeError(Exception):
    """The budget is used up."""


def limited(problem: PaceProblem, seconds: float) -> tuple[Callable[[np.ndarray], np.ndarray], dict[str, object]]:
    """Residuals that remember the best point and stop after `seconds` of CPU."""
    best: dict[str, object] = {"cost": np.inf, "x": None, "cpu": 0.0}
    start = time.process_time()

    def call(x: np.ndarray) -> np.ndarray:
        if time.process_time() - start > seconds:
            raise OutOfTimeError
        r = problem.residual(x)
        cost = float(np.mean(r**2))
        if cost < best["cost"]:  # type: ignore[operator]
            best.update(cost=cost, x=x.copy(), cpu=time.process_time() - start)
        return r

    return call, best


def by_cmaes(problem: PaceProblem, seconds: float) -> dict[str, object]:
    from cmaes import CMA

    call, best = limited(problem, seconds)
    span = problem.high - problem.low
    box = np.column_stack([np.zeros(len(span)), np.ones(len(span))])
    search = CMA(mean=np.full(len(span), 0.5), sigma=0.25, bounds=box, seed=0)
    try:
        while True:
            pairs = []
            for _ in range(search.population_size):
                u = search.ask()
                pairs.append((u, float(np.mean(call(problem.low + span * u) ** 2))))
            search.tell(pairs)
    except OutOfTimeError:
        return best


def by_minimize(problem: PaceProblem, seconds: float) -> dict[str, object]:
    from mujoco import minimize

    call, best = limited(problem, seconds)
    span = problem.high - problem.low

    def residual(u: np.ndarray) -> np.ndarray:
        return np.column_stack([call(problem.low + span * column).ravel() for column in u.T])

    ones = np.ones((len(span), 1))
    with contextlib.suppress(OutOfTimeError):
        minimize.least_squares(0.3 * ones, residual, bounds=[0 * ones, ones], verbose=0, max_iter=100)
    return best


def mrad(r: np.ndarray) -> float:
    return 1e3 * float(np.sqrt(np.mean(r**2)))


def in_mujoco(match: Match, plant: Plant, log: sy.Log, folder: Path) -> float:
    """Error of the written file."""
    run = match.save(folder / "run", overwrite=True, report=False)
    model = mujoco.MjModel.from_xml_path(str(next(run.glob("*.xml"))))
    bias = np.asarray(match.point.bias)
    return mrad(log.q - simulate(model, plant.robot, log.channels["goal"], log.q[0], plant.rate, bias))


def inside(match: Match, plant: Plant) -> tuple[int, int]:
    """Number of true values within their 95 % intervals, and of all."""
    names, out = plant.robot.joint_names, []
    for n in match.joint_numbers:
        true = plant.truth["delay"] if n.name == "delay" else plant.truth[n.name][names.index(n.on)]
        out.append(abs(n.value - true) <= n.half_width)
    beta = match.fit.coordinates.base.matrix @ plant.links
    out += [abs(n.value - b) <= n.half_width for n, b in zip(match.base_numbers, beta, strict=True)]
    return int(sum(out)), len(out)


def compare(name: str, seed: int, times: float) -> None:
    with TemporaryDirectory() as text:
        folder = Path(text)
        plant = Plant(name, seed, folder)
        train, test = plant.log(10.0), plant.log(10.0)
        start = time.process_time()
        match = sy.match_robot(
            plant.robot, train, validate=[test], kp=plant.drives.kp, kd=plant.drives.kd, limit=plant.drives.limit,
            delayed="goal",
        )  # fmt: skip
        cpu = time.process_time() - start
        ours = in_mujoco(match, plant, test, folder)
        good, count = inside(match, plant)
        problem = PaceProblem(plant, train, folder)
        described = np.concatenate([np.zeros(4 * plant.robot.dof), [0.0]])
        print(
            f"{name} {seed}: {plant.rate:g} Hz, delay {1e3 * plant.truth['delay']:g} ms (found "
            f"{1e3 * match.drives.delay:.2f}); description {mrad(problem.residual(described, test)):.2f} mrad; "
            f"match_robot {ours:.3f} mrad in {cpu:.1f} s; {good} of {count} intervals hold", flush=True,
        )  # fmt: skip
        for label, search in (("CMA-ES", by_cmaes), ("mujoco.minimize", by_minimize)):
            problem.count, start = 0, time.process_time()
            best = search(problem, times * cpu)
            error = mrad(problem.residual(best["x"], test)) if best["x"] is not None else np.nan
            used = time.process_time() - start
            print(
                f"  {label:16s} {error:.3f} mrad, the best of {problem.count} rollouts in {used:.0f} s (after "
                f"{best['cpu']:.0f} s)", flush=True,
            )  # fmt: skip


def real() -> None:
    """Logs of a Unitree Z1 and of the legs of an Aliengo, with commands only: rollouts, and halves of the log."""
    data = Path(os.environ.get("STEELYARD_DATA", ""))
    for name in ("unitree_z1", "unitree_aliengo_legs"):
        folder = data / name
        meta = json.loads((folder / "meta.json").read_text("utf-8"))
        robot = sy.load_robot(folder / "robot.urdf")
        options = {"kp": meta["kp"], "kd": meta["kd"], "goal": "qref{}"}
        for delayed in ("", "torque", "goal"):
            start = time.process_time()
            match = sy.match_robot(robot, folder / "chirp.parquet", delayed=delayed, **options)
            cpu = time.process_time() - start
            errors = {k: 1e3 * np.sqrt(np.mean(s.windows_rms**2)) for k, s in match.scores.items()}
            run = 1e3 * np.sqrt(np.mean(match.scores["hold-out"].run_rms ** 2))
            missed = ", ".join(f"{s.joint} {s.missed_hz:.1f} Hz" for s in match.missed) or "none"
            form = f"{match.drives.delayed} ({'stated' if delayed else 'chosen'})"
            print(
                f"{name}, {form} late by {1e3 * match.drives.delay:.1f} ms, {cpu:.1f} s: windows of 1 s of the last "
                f"30 %: {errors['hold-out']:.2f} mrad (fit {errors['fit']:.2f}, "
                f"description {errors['description']:.1f}), whole run {run:.2f}; missed: {missed}", flush=True,
            )  # fmt: skip
            log = match_log(robot, folder, options)
            halves = [
                sy.match_robot(
                    robot, part_of(log, [cut]), delayed=match.drives.delayed, kp=meta["kp"], kd=meta["kd"], holdout=0.0
                )
                for cut in ((0, len(log) // 2), (len(log) // 2, len(log)))
            ]
            pairs = [
                list(zip(getattr(halves[0], kind), getattr(halves[1], kind), strict=True))
                for kind in ("joint_numbers", "base_numbers")
            ]
            agree = [abs(a.value - b.value) <= np.hypot(a.half_width, b.half_width) for p in pairs for a, b in p]
            print(f"  halves of the log: {sum(agree)} of {len(agree)} numbers agree within their intervals", flush=True)


def match_log(robot: sy.Robot, folder: Path, options: dict[str, object]) -> sy.Log:
    from steelyard.matching.command_logs import command_logs

    return command_logs(folder / "chirp.parquet", robot, None, str(options["goal"]))[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=[*CASES])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--times", type=float, default=20.0)
    given = parser.parse_args()
    for name in given.cases:
        if name == "real":
            real()
            continue
        for seed in range(given.seeds):
            compare(name, seed, given.times)


if __name__ == "__main__":
    main()
