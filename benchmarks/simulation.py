"""Simulation beside its peers: a Python loop over Pinocchio's aba, and MuJoCo's rollout.

A UR10 under PD control with viscous and Coulomb friction, Runge–Kutta 4 at 1 kHz: one robot for 10 s, and a batch
of 1000 robots with different parameters.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from typing import Any

import numpy as np
from common import arm, best_times, machine, one_core, save, show

from steelyard.dynamics import Model
from steelyard.parameters import terms
from steelyard.robot.spatial import inertia_matrix, skew
from steelyard.simulation import PD, effective_inertia, simulate

STEP, SMOOTHING = 1e-3, 0.05


class Bench:
    """The same robot, controller and motion for everybody."""

    def __init__(self) -> None:
        self.robot, self.model = arm("ur10")
        n = self.n = self.robot.dof
        bound = terms(self.robot, "viscous", "coulomb")
        plain = Model(self.robot, terms(self.robot), self.robot.inertial_parameters)
        inertia = effective_inertia(plain)
        self.viscous, self.coulomb = 2.0 * inertia, 4.0 * inertia
        self.truth = Model(self.robot, bound, np.r_[plain.theta, self.viscous, self.coulomb])
        self.kp, self.kd = 15.0**2 * inertia, 30.0 * inertia
        self.rates, self.size = 1.0 + 0.1 * np.arange(n), 0.5 * np.ones(n)

    def reference(self, steps: int) -> tuple[np.ndarray, ...]:
        t = STEP * np.arange(steps)[:, None]
        q = self.size * np.sin(self.rates * t)
        return q, self.rates * self.size * np.cos(self.rates * t), -(self.rates**2) * q

    def pinocchio_loop(self, steps: int) -> np.ndarray:
        """As a user writes it: RK4 around aba, torque held over the step."""
        import pinocchio as pin

        model, data, aba = self.model, self.model.createData(), pin.aba
        q, v = np.zeros(self.n), np.zeros(self.n)
        ref_q, ref_v, _ = self.reference(steps)
        fv, fc, h = self.viscous, self.coulomb, STEP

        def accelerate(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
            friction = fv * v + fc * v / np.sqrt(v * v + SMOOTHING**2)
            return aba(model, data, q, v, tau - friction).copy()

        for k in range(steps):
            tau = self.kp * (ref_q[k] - q) + self.kd * (ref_v[k] - v)
            a1 = accelerate(q, v, tau)
            v2 = v + 0.5 * h * a1
            a2 = accelerate(q + 0.5 * h * v, v2, tau)
            v3 = v + 0.5 * h * a2
            a3 = accelerate(q + 0.5 * h * v2, v3, tau)
            v4 = v + h * a3
            a4 = accelerate(q + h * v3, v4, tau)
            q = q + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4)
            v = v + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        return np.r_[q, v]

    def ours(self, robots: int, steps: int, threads: int = 1) -> Any:
        theta = None
        if robots > 1:
            rng = np.random.default_rng(0)
            theta = np.tile(self.truth.theta, (robots, 1))
            scale = rng.uniform(0.9, 1.1, (robots, self.n))  # whole links: they stay possible
            theta[:, : 10 * self.n] *= np.repeat(scale, 10, axis=1)
        reference = self.reference(steps)
        controller = PD(tuple(self.kp), tuple(self.kd))
        settings = {"duration": steps * STEP, "step": STEP, "smoothing": SMOOTHING, "record_every": 100}
        return simulate(self.truth, controller, reference=reference, theta=theta, threads=threads, **settings)

    def mujoco_rollout(self, robots: int, steps: int) -> Any:
        """MuJoCo's own rollout on one thread; viscous friction only (dry friction would cost it twice as much)."""
        import copy

        import mujoco
        from mujoco import rollout

        model = mujoco.MjModel.from_xml_string(self._mjcf())
        models = []
        for scale in np.random.default_rng(0).uniform(0.9, 1.1, (robots, self.n)):
            other = copy.copy(model)
            other.body_mass[1:] *= scale
            other.body_inertia[1:] *= scale[:, None]
            models.append(other)
        state = np.zeros((robots, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
        control = np.tile(self.reference(steps)[0], (robots, 1, 1))
        data = [mujoco.MjData(model)]
        return lambda: rollout.rollout(models, data, state, control)

    def _mjcf(self) -> str:
        def text(values: Any) -> str:
            return " ".join(repr(float(v)) for v in np.ravel(values))

        inside = ""
        for k in reversed(range(self.n)):
            link = self.robot.links[k]
            p = np.asarray(link.inertia)
            com = p[1:4] / p[0]
            i = inertia_matrix(p) + p[0] * skew(com) @ skew(com)
            full = [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]
            inside = (
                f'<body pos="{text(link.translation)}" xyaxes="{text(link.rotation[:, :2].T)}">'
                f'<joint name="j{k}" axis="{text(link.axis)}" damping="{self.viscous[k] + self.kd[k]}"/>'
                f'<inertial mass="{p[0]}" pos="{text(com)}" fullinertia="{text(full)}"/>{inside}</body>'
            )
        motors = "".join(f'<position joint="j{k}" kp="{self.kp[k]}"/>' for k in range(self.n))
        return (
            f'<mujoco><compiler angle="radian"/><option timestep="{STEP}" integrator="RK4"/>'
            f"<worldbody>{inside}</worldbody><actuator>{motors}</actuator></mujoco>"
        )


def measure(quick: bool = False) -> dict[str, float]:
    """ns per robot-step, one core; two threads where it says so."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    one_core()
    bench = Bench()
    single, batch, steps = (2_000 if quick else 10_000), 1000, (100 if quick else 1_000)
    rollout_steps = 20 if quick else 100
    check = bench.ours(1, 200)
    loop = bench.pinocchio_loop(200)
    assert np.max(np.abs(np.r_[check.q[-1], check.dq[-1]] - loop)) < 0.05, "the two simulate different robots"
    jobs = {
        "Pinocchio aba loop, one robot": lambda: bench.pinocchio_loop(single),
        "ours, one robot": lambda: bench.ours(1, single),
        "ours, 1000 robots": lambda: bench.ours(batch, steps),
        "MuJoCo rollout, 1000 robots": bench.mujoco_rollout(batch, rollout_steps),
    }
    work = [single, single, batch * steps, batch * rollout_steps]
    times = best_times(jobs, rounds=4, budget=60.0)
    out = {name: times[name] / w * 1e9 for name, w in zip(jobs, work, strict=True)}
    if cores:
        os.sched_setaffinity(0, cores)
    two = best_times({"two": lambda: bench.ours(batch, steps, threads=2)}, rounds=4)["two"]
    out["ours, 1000 robots, two threads"] = two / (batch * steps) * 1e9
    return out


def report(out: dict[str, float]) -> None:
    loop, rollout = out["Pinocchio aba loop, one robot"], out["MuJoCo rollout, 1000 robots"]
    rows = [[name, f"{ns:,.0f}", f"{loop / ns:.3g}×", f"{rollout / ns:.3g}×"] for name, ns in out.items()]
    show("UR10, RK4, PD and friction", ["", "ns per robot-step", "to the loop", "to MuJoCo"], rows)


if __name__ == "__main__":
    found = measure()
    print(machine())
    report(found)
    save("simulation", {"date": time.strftime("%Y-%m-%d"), "ns_per_robot_step": found})
