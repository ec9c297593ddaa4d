"""Simulated arms whose friction is not in the library in that form: how good the default is, and its error bars.

    python benchmarks/plants.py                        # all robots and plants, results/plants.json, docs/plants.md
    python benchmarks/plants.py --robots ur10 --plants lugre,load --no-page

The friction of the plants is written here in NumPy and uses nothing of the library's terms. Masses and sizes of the
links are some 15 % off the description that `identify` is given.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import save
from scipy.signal import butter, sosfiltfilt

ROOT = Path(__file__).parents[1]
RATE, SECONDS = 250.0, 40.0
# By Pinocchio's package of example robots; the others are built in.
PUBLIC = {
    "ur10": ("ur_description/urdf/ur10_robot.urdf", 6),
    "panda": ("panda_description/urdf/panda.urdf", 7),
    "z1": ("z1_description/urdf/z1.urdf", 6),
    "talos": ("talos_data/robots/talos_left_arm.urdf", 6),
    "tiago": ("tiago_description/robots/tiago_no_hand.urdf", 8),
}
ROBOTS = ("rotradi", "szabo3r", "prrrp", "irp6", "arm7", *PUBLIC)
PLANTS = {
    "coulomb": "a jump: sign(q̇)",
    "rounded": "tanh(q̇ / 0.05 rad/s)",
    "stribeck": "a jump and half of it more that fades as exp(−(q̇/0.08)²)",
    "lugre": "LuGre: bristles of 1.5 mrad, Stribeck level, damping",
    "maxwell": "Maxwell slip of 2, 6 and 45 mrad",
    "load": "a jump that grows with the load, 5 to 10 % of it",
    "ripple": "a jump, and 2 % of the torque at 4 Hz",
    "delay 1 ms": "a jump; the torque is written 1 ms late",
    "delay 2 ms": "2 ms",
    "delay 3 ms": "3 ms",
    "falling": "a jump, and viscous friction like |q̇|^0.6",
}

HEAD = """# Plants whose friction is not in the library

This page tests the default on friction whose form no term has: ten arms of three to eight axes (two of them with
prismatic joints), each with eleven kinds of friction, written in NumPy without code of the library. Masses and sizes of
the links are some 15 % off the description that `identify` gets; dry friction is 10 to 25 % of the joint's load torque,
viscous friction the same again. A log of 40 s at 250 Hz with four sines a joint, noise of the torque 2 %, of positions
1e-6 rad, of velocities 1e-4 rad/s. `benchmarks/plants.py` makes the page; every fit is in
`benchmarks/results/plants.json`.
"""
FOOT = """## How to read it
*Errors* are those of the torque on noise-free states of another motion, in per cent of its standard deviation, mean
over the joints; the plant's own torque is the truth (with its delay, without the ripple, whose phase is unknown). *The
script* is an expert's: zero-phase Butterworth at twenty times the band of the motion, rotor, viscous, offset and ramped
Coulomb columns, least squares with a weight per joint. *Worst*: the largest ratio of the default's error to the
script's over all fits. *Inside 95 %*: share of the base parameters of links and rotors with the truth within ±1.96
standard errors of the delivered, physically possible model; also for the free fit, and with `--plain`, whose bars
include noise only. *Torque bands*: share of samples of another noisy log, through the fit's filter, within ±1.96 of
√(A·cov·Aᵀ + σ²), with A the rows of that motion and σ the residual of the fit on each joint.

Two plants are nearly of a form that the search offers: the jump, and the jump that grows with the load. Rules and
constants of the error bars were chosen on a UR10 and on draws 0 to 5 of these plants; the tables are of draws 10 and
11, seen once. Bars of Maxwell slip, load and Stribeck friction are a little too wide (above 98 %).

The weakest case is a delayed torque. The lag in the search is that of links and rotors; friction is delayed as well,
and delayed viscous friction looks like a smaller rotor, by Td·Fv. Bars are widened by that
([structure](theory/structure.md)), the estimate is biased. Delayed jumps at reversals remain in the torque's error.
"""

Array = np.ndarray


@cache
def robot_of(name: str) -> Any:
    from steelyard.robot import load_robot

    if name not in PUBLIC:
        return load_robot(name)
    import pinocchio

    file, count = PUBLIC[name]
    folder = Path(pinocchio.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    robot = load_robot(folder / file)
    names = robot.joint_names
    if name == "tiago":
        names = [n for n in names if n == "torso_lift_joint" or n.startswith("arm_")]
    return robot.with_joints(list(names)[:count])


def different(robot: Any, rng: Any, spread: float = 0.15) -> Any:
    """The robot as it is: every link's mass and size a little other than described, bodies that can exist."""
    links = []
    for link in robot.links:
        mass, size = np.exp(spread * rng.normal(size=2))
        powers = np.array([0] + [1] * 3 + [2] * 6)
        other = None if link.inertia is None else link.inertia * mass * size ** (0.5 * powers)
        links.append(replace(link, inertia=other))
    return replace(robot, links=tuple(links))


def motion(robot: Any, rng: Any, seconds: float) -> tuple[Array, Array, Array, Array]:
    """Four sines a joint, up to some 2 rad and 2 rad/s; a tenth of it on slides."""
    w = 2.0 * np.pi * np.array([0.1, 0.23, 0.37, 0.51])[:, None]
    size, phase = rng.uniform(0.1, 0.5, (4, robot.dof)) * unit(robot), rng.uniform(0.0, 6.0, (4, robot.dof))
    t = np.arange(int(seconds * RATE)) / RATE
    angle = t[:, None, None] * w + phase
    return t, (size * np.sin(angle)).sum(1), (size * w * np.cos(angle)).sum(1), (-size * w**2 * np.sin(angle)).sum(1)


def unit(robot: Any) -> Array:
    return np.array([1.0 if j.kind == "revolute" else 0.1 for j in robot.joints])


class Plant:
    """An arm with links and rotors as they are, and friction of a kind.

    Friction goes by the torque that a typical motion asks of the joint: 10 to 25 % dry, as much again viscous at the
    speed that is reached.
    """

    def __init__(self, robot: Any, kind: str, rng: Any) -> None:
        from steelyard.dynamics.model import Model
        from steelyard.parameters import terms

        self.kind, self.robot, self.unit = kind, robot, unit(robot)
        true, rotors = different(robot, rng), terms(robot, "rotor")
        bare = Model(true, rotors, np.concatenate([true.inertial_parameters, np.zeros(len(rotors))]))
        _, q, dq, ddq = motion(robot, np.random.default_rng(99), SECONDS)
        self.size = np.sqrt(np.mean(bare.torque(q, dq, ddq) ** 2, axis=0))
        self.size = np.maximum(self.size, 0.02 * self.size.max())
        inertia = np.mean([np.diag(m) for m in bare.mass_matrix(q[::100])], axis=0)
        value = {p.name: v for p, v in zip(bare.dynamics.parameters, bare.theta, strict=True)}
        moved = [p.name for p in rotors.parameters]
        for name, v in zip(moved, (rng.uniform(0.1, 0.4, robot.dof) * inertia)[: len(moved)], strict=True):
            value[name] = float(v)
        self.truth = value
        self.model = Model(true, rotors, np.array(list(value.values())))
        self.dry = rng.uniform(0.1, 0.25, robot.dof) * self.size
        self.viscous = rng.uniform(0.05, 0.2, robot.dof) * self.size / np.sqrt(np.mean(dq**2, axis=0))
        self.loaded = rng.uniform(0.05, 0.1, robot.dof)

    def torque(self, q: Array, dq: Array, ddq: Array, ripple: bool = True) -> Array:
        rigid = self.model.torque(q, dq, ddq)
        v, x = dq / self.unit, q / self.unit  # speeds of slides are a tenth, and so are widths
        jump = self.dry * np.sign(v)
        tau = rigid + self.viscous * dq
        if self.kind == "rounded":
            return tau + self.dry * np.tanh(v / 0.05)
        if self.kind == "stribeck":
            return tau + jump * (1.0 + 0.5 * np.exp(-((v / 0.08) ** 2)))
        if self.kind == "lugre":
            return tau + self.dry * lugre(v)
        if self.kind == "maxwell":
            return tau + self.dry * sum(w * slip(x, width) for w, width in ((0.5, 0.002), (0.3, 0.006), (0.2, 0.045)))
        if self.kind == "load":
            return tau + jump + self.loaded * np.abs(rigid) * np.sign(v)
        if self.kind == "falling":
            return rigid + jump + self.viscous * self.unit * np.sign(v) * np.abs(v) ** 0.6
        tau = tau + jump
        if self.kind == "ripple" and ripple:
            t = np.arange(len(q)) / RATE
            tau = tau + 0.02 * np.std(tau, axis=0) * np.sin(8.0 * np.pi * t)[:, None]
        if self.kind.startswith("delay"):
            k = np.arange(len(q))
            late = 1e-3 * float(self.kind.split()[1]) * RATE
            tau = np.column_stack([np.interp(k - late, k, c) for c in tau.T])
        return tau


def lugre(v: Array) -> Array:
    """dz/dt = v − |v| z/(width·g(v)), exactly for a speed that stands for a quarter of a sample; z/width + damping."""
    width, parts, z, out = 0.0015, 4, np.zeros(v.shape[1]), np.empty_like(v)
    z = width * np.sign(v[0])
    for k in range(len(v)):
        now = v[k]
        level = 1.0 + 0.4 * np.exp(-((np.abs(now) / 0.1) ** 2))
        before = v[max(k - 1, 0)]
        for p in range(parts):
            u = before + (now - before) * (p + 0.5) / parts
            end = width * level * np.sign(u)
            z = end + (z - end) * np.exp(-np.abs(u) / (width * level) / (RATE * parts))
        out[k] = z / width + 0.02 * (now - np.abs(now) * z / (width * level))
    return out


def slip(x: Array, width: float) -> Array:
    s, out = np.sign(x[min(len(x) - 1, 50)] - x[0]), np.empty_like(x)
    for k in range(len(x)):
        s = np.clip(s + (x[k] - x[max(k - 1, 0)]) / width, -1.0, 1.0)
        out[k] = s
    return out


def script(robot: Any, t: Array, q: Array, dq: Array, tau: Array) -> Any:
    """The expert's: zero-phase Butterworth at twenty times the motion's band, ramped signs, weighted least squares."""
    low = butter(4, 2.0 * 20.0 * 0.51 / RATE, output="sos")
    q, dq, tau = (sosfiltfilt(low, x, axis=0) for x in (q, dq, tau))
    ddq = sosfiltfilt(low, np.gradient(dq, 1.0 / RATE, axis=0), axis=0)
    n, units = robot.dof, unit(robot)

    def columns(q: Array, dq: Array, ddq: Array) -> Array:
        eye = np.eye(n)
        parts = [eye * x[:, :, None] for x in (ddq, dq, np.clip(dq / (0.01 * units), -1.0, 1.0), np.ones_like(dq))]
        return np.concatenate([robot.torque_regressor(q, dq, ddq), *parts], axis=2)

    inner = slice(int(RATE), -int(RATE), 2)
    W, y = columns(q[inner], dq[inner], ddq[inner]), tau[inner]
    width = W.shape[2]
    length = np.linalg.norm(W.reshape(-1, width), axis=0)
    length[length == 0.0] = 1.0
    _, values, V = np.linalg.svd(np.linalg.qr(W.reshape(-1, width) / length, mode="r"))
    B = V[values > 1e-6 * values[0]].T / length[:, None]
    weights = np.ones(n)
    for _ in range(8):
        A = (W * weights[:, None]).reshape(-1, width) @ B
        theta = B @ np.linalg.solve(A.T @ A, A.T @ (y * weights).ravel())
        weights = 1.0 / np.sqrt(np.mean((y - W @ theta) ** 2, axis=0))
    return lambda *m: columns(*m) @ theta


def coverage(found: Any, truth: dict[str, float], estimate: Any) -> Array:
    """z of the base parameters that are made of links and rotors alone."""
    base = found.base
    full = np.array([truth.get(p.name, 0.0) for p in base.parameters])
    known = np.array([p.name in truth for p in base.parameters])
    rigid = ~np.any(base.matrix[:, ~known] != 0.0, axis=1)
    away = estimate.beta - base.matrix @ full
    return np.asarray((away / estimate.standard_errors)[rigid])


def bands(found: Any, q: Array, dq: Array, ddq: Array, measured: Array) -> Array:
    """z of the filtered torque of an unseen log: parameters' covariance through its rows, and what the fit leaves."""
    model, estimate = found.model, found.estimate
    low = butter(4, 2.0 * found.cutoff_hz / RATE, output="sos")
    past = model.dynamics.history(q, dq, ddq, model.theta, 1.0 / RATE) if model.has_memory else None
    few = slice(int(RATE), -int(RATE), 10)
    away = sosfiltfilt(low, measured - model.torque(q, dq, ddq, 1.0 / RATE), axis=0)[few]
    Y = model.dynamics.torque_regressor(q[few], dq[few], ddq[few], history=None if past is None else past[few])
    A = found.base.regressor_columns(Y)
    variance = np.einsum("sjp,pr,sjr->sj", A, estimate.covariance, A) + estimate.residual_std**2
    return np.asarray(away / np.sqrt(variance))


def run(name: str, kind: str, seed: int) -> dict[str, Any]:
    from steelyard.identification.identify import identify
    from steelyard.signals.log import Log

    robot = robot_of(name)
    rng = np.random.default_rng([seed, list(PLANTS).index(kind), ROBOTS.index(name)])
    plant = Plant(robot, kind, rng)
    t, q, dq, ddq = motion(robot, rng, SECONDS)
    tau = plant.torque(q, dq, ddq)
    noisy = tau + 0.02 * np.std(tau, axis=0) * rng.normal(size=q.shape)
    seen = q + 1e-6 * plant.unit * rng.normal(size=q.shape)
    speed = dq + 1e-4 * plant.unit * rng.normal(size=q.shape)
    log = Log(robot.joint_names, t, seen, dq=speed, tau=noisy)
    _, *other = motion(robot, rng, 20.0)
    true = plant.torque(*other, ripple=False)
    second = plant.torque(*other) + 0.02 * np.std(true, axis=0) * rng.normal(size=true.shape)

    def error(predicted: Array) -> list[float]:
        each = 100.0 * np.sqrt(np.mean((predicted - true) ** 2, axis=0)) / np.std(true, axis=0)
        return [round(float(x), 4) for x in each]

    out: dict[str, Any] = {"robot": name, "plant": kind, "seed": seed}
    for label, options in (("default", {}), ("plain", {"plain": True})):
        start = time.process_time()
        found = identify(robot, log, check=False, **options)  # type: ignore[arg-type]
        out[f"{label} s"] = time.process_time() - start
        out[f"{label} error"] = error(found.model.torque(*other, 1.0 / RATE))
        out[f"{label} inside"] = inside(coverage(found, plant.truth, found.estimate))
        out[f"{label} free inside"] = inside(coverage(found, plant.truth, found.free))
        out[f"{label} bands"] = inside(bands(found, *other, second))
        if label == "default":
            out["terms"] = " ".join(t.kind for t in found.model.terms.terms)
    out["script error"] = error(script(robot, t, seen, speed, noisy)(*other))
    return out


def inside(z: Array) -> list[int]:
    """How many lie within ±1.96, and of how many."""
    return [int(np.sum(np.abs(z) < 1.96)), int(z.size)]


def share(rows: list[dict[str, Any]], key: str) -> float:
    return float(100.0 * np.divide(*np.sum([r[key] for r in rows], axis=0)))


def table(rows: list[dict[str, Any]], by: str) -> list[str]:
    """Mean error of the torque and coverage, by robot or by plant."""
    lines = [
        f"| {by} | default | `--plain` | script | default : script, worst | inside 95 %: default | free fit | "
        "`--plain` | torque bands |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    names = [n for n in (ROBOTS if by == "robot" else PLANTS) if any(r[by] == n for r in rows)]
    for name in [*names, "all"]:
        mine = [r for r in rows if name in (r[by], "all")]
        errors = {k: np.array([np.mean(r[f"{k} error"]) for r in mine]) for k in ("default", "plain", "script")}
        cells = [f"{np.mean(e):.2f} %" for e in errors.values()]
        cells.append(f"{np.max(errors['default'] / errors['script']):.2f}")
        cells += [f"{share(mine, k):.1f} %" for k in ("default inside", "default free inside", "plain inside")]
        cells.append(f"{share(mine, 'default bands'):.1f} %")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def page(rows: list[dict[str, Any]]) -> str:
    kinds = [f"- *{k}*: {what}" for k, what in PLANTS.items()]
    parts = [HEAD, "\n".join(kinds), "## By plant\n" + "\n".join(table(rows, "plant")),
             "## By robot\n" + "\n".join(table(rows, "robot")), FOOT]  # fmt: skip
    return "\n\n".join(p.strip() for p in parts) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--robots", default=",".join(ROBOTS))
    options.add_argument("--plants", default=",".join(PLANTS))
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--first", type=int, default=10)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--no-page", action="store_true")
    given = options.parse_args()
    jobs = [
        (robot, plant, seed)
        for seed in range(given.first, given.first + given.seeds)
        for robot in given.robots.split(",")
        for plant in given.plants.split(",")
    ]
    rows = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for r in pool.map(run, *zip(*jobs, strict=True)):
            rows.append(r)
            errors = " ".join(f"{np.mean(r[k + ' error']):6.2f}" for k in ("default", "plain", "script"))
            print(
                f"{r['robot']:8s} {r['plant']:10s} {errors}  inside {share([r], 'default inside'):5.1f} "
                f"free {share([r], 'default free inside'):5.1f} plain {share([r], 'plain inside'):5.1f} "
                f"bands {share([r], 'default bands'):5.1f}  {r['default s']:.1f} s, {r['plain s']:.1f} s",
                flush=True,
            )
    for by in ("plant", "robot"):
        print("\n".join(table(rows, by)))
    if not given.no_page:
        save("plants", {"rows": rows})
        (ROOT / "docs" / "plants.md").write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
