"""Estimators that simulate: time of each on the same log, growth with samples and joints, and one iteration beside
what a user would write with Pinocchio and SciPy.

A UR10 with viscous and Coulomb friction and offsets under PD control at 1 kHz, noise on positions and torques. The
peer's iteration does the same work: Runge–Kutta 4 around `aba`, `computeJointTorqueRegressor`, a zero-phase filter and
`lstsq` for DIDIM; simulations with one parameter moved each for CLOE. Results are checked against one another first.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("STEELYARD_THREADS", "1")

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
from common import arm, best_times, machine, one_core, save, show

from steelyard.dynamics import Model
from steelyard.estimation import (
    Experiment,
    WeightedLeastSquares,
    estimator_names,
    make_experiment_estimator,
)
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.simulation_error._closed_loop import ClosedLoop, block_means
from steelyard.estimation.simulation_error._start import fit_with_weights
from steelyard.parameters import terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.library import builtin
from steelyard.signals.prepare import Preparation
from steelyard.simulation import PD, Sensors, effective_inertia, simulate

STEP, SMOOTHING, CUTOFF, DECIMATION = 1e-3, 0.05, 20.0, 10


class Sines:
    def __init__(self, joints: int) -> None:
        self.rates, self.size = 2.0 + 0.5 * np.arange(joints), 0.6 * np.ones(joints)

    def sample(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        p = np.asarray(t)[:, None] * self.rates
        s, w = self.size, self.rates
        slow = 0.3 * np.sin(0.37 * p)
        return (
            s * np.sin(p) + slow,
            s * w * np.cos(p) + 0.111 * w * np.cos(0.37 * p),
            -s * w**2 * np.sin(p) - 0.04107 * w**2 * np.sin(0.37 * p),
        )


class Bench:
    """One robot, its log and its experiment."""

    def __init__(self, robot: Any, seconds: float) -> None:
        bound = terms(robot, "viscous", "coulomb", "offset")
        plain = Model(robot, terms(robot), robot.inertial_parameters)
        inertia = effective_inertia(plain)
        self.viscous, self.coulomb, self.offset = 2.0 * inertia, 2.0 * inertia, 0.5 * inertia
        self.truth = Model(robot, bound, np.r_[plain.theta, self.viscous, self.coulomb, self.offset])
        self.kp, self.kd = 40.0**2 * inertia, 80.0 * inertia
        self.reference, self.base = Sines(robot.dof), base_parameters(robot, bound)
        self.t = np.arange(round(seconds / STEP)) * STEP
        q, dq, _ = self.reference.sample(self.t[:1])
        self.q0, self.dq0 = q[0], dq[0]
        controller = PD(self.kp, self.kd)
        run = simulate(self.truth, controller, times=self.t, step=STEP, q0=self.q0, dq0=self.dq0,
                       reference=self.reference, smoothing=SMOOTHING)  # fmt: skip
        noise = tuple((0.02 * np.std(run.tau, axis=0)).tolist())
        log = run.log(sensors=Sensors(position_noise=1e-5, torque_noise=noise))
        self.experiment = Experiment.from_logs(
            robot, bound, log, controller=controller, references=self.reference, smoothing=SMOOTHING,
            preparation=Preparation(cutoff_hz=CUTOFF, decimation=DECIMATION), step=STEP,
        )  # fmt: skip
        self.loop = ClosedLoop.of(self.experiment, self.base, self.truth.theta, 0.25)

    def wls(self) -> Any:
        return WeightedLeastSquares().fit(self.experiment.regression(self.base), self.base)

    def didim_iteration(self, settled: bool = True) -> np.ndarray:
        """One round; weights settle over the rounds, or at once to compare numbers."""

        (motion,) = self.loop.motions(self.truth.theta)
        rows = self.loop.regression([replace(motion, tau=self.experiment.runs[0].tau)])
        fit = fit_with_weights(LeastSquaresProblem.of(rows, self.base), np.ones(self.experiment.robot.dof))
        for _ in range(1 if settled else 10):
            fit = fit_with_weights(fit.problem, 1.0 / fit.residual_std)
        return fit.beta

    def sensitivities(self) -> np.ndarray:
        """∂q/∂β averaged over the rows' period, as a CLOE iteration uses them, `(rows, joints, parameters)`."""
        ((_, slopes),) = self.loop.sensitivities(self.truth.theta, "q")
        return block_means(np.moveaxis(slopes, 0, -1), self.loop.runs[0].keep)


class Peer:
    """The same with Pinocchio's functions, in Python."""

    def __init__(self, bench: Bench, model: Any) -> None:
        self.bench, self.model, self.data = bench, model, model.createData()

    def simulate(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        import pinocchio as pin

        b, model, data, h = self.bench, self.model, self.data, STEP
        ref_q, ref_v, _ = b.reference.sample(b.t)
        fv, fc, f0, kp, kd, aba = b.viscous, b.coulomb, b.offset, b.kp, b.kd, pin.aba
        motion = b.experiment.runs[0].motion
        q, v = motion.q[0].copy(), motion.dq[0].copy()
        out = [np.empty((len(b.t), len(q))) for _ in range(4)]

        def accelerate(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
            x = np.minimum(np.maximum(v * (1.0 / SMOOTHING), -1.0), 1.0)
            z = x * x
            return aba(model, data, q, v, tau - (fv * v + fc * (x * (1.875 + z * (0.375 * z - 1.25))) + f0)).copy()

        for k in range(len(b.t)):
            tau = kp * (ref_q[k] - q) + kd * (ref_v[k] - v)
            a1 = accelerate(q, v, tau)
            for store, x in zip(out, (q, v, a1, tau), strict=True):
                store[k] = x
            v2 = v + 0.5 * h * a1
            a2 = accelerate(q + 0.5 * h * v, v2, tau)
            v3 = v + 0.5 * h * a2
            a3 = accelerate(q + 0.5 * h * v2, v3, tau)
            v4 = v + h * a3
            a4 = accelerate(q + h * v3, v4, tau)
            q = q + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4)
            v = v + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        return out[0], out[1], out[2], out[3]

    def didim_iteration(self, rounds: int = 1) -> np.ndarray:
        import pinocchio as pin
        from scipy.signal import butter, sosfiltfilt

        q, v, a, _ = self.simulate()
        n, keep = q.shape[1], self.bench.loop.runs[0].keep
        x = np.clip(v / SMOOTHING, -1.0, 1.0)
        sign = x * (1.875 + x**2 * (0.375 * x**2 - 1.25))
        W = np.zeros((len(q), n, len(self.bench.base.parameters)))
        for k in range(len(q)):
            W[k, :, : 10 * n] = pin.computeJointTorqueRegressor(self.model, self.data, q[k], v[k], a[k])
        for j in range(n):
            W[:, j, 10 * n + j], W[:, j, 11 * n + j], W[:, j, 12 * n + j] = v[:, j], sign[:, j], 1.0
        chosen, tau = list(self.bench.base.independent), self.bench.experiment.runs[0].tau
        both = np.concatenate([W[:, :, chosen], tau[:, :, None]], axis=2)
        rows = sosfiltfilt(butter(4, 2.0 * CUTOFF * STEP, output="sos"), both, axis=0)[keep]
        A, y = rows[..., :-1], rows[..., -1]
        normal = [(A[:, j].T @ A[:, j], A[:, j].T @ y[:, j]) for j in range(n)]
        w = np.ones(n)
        for _ in range(rounds + 1):
            beta = np.linalg.solve(sum(s * G for s, (G, _) in zip(w, normal, strict=True)),
                                   sum(s * g for s, (_, g) in zip(w, normal, strict=True)))  # fmt: skip
            w = 1.0 / np.mean((y - A @ beta) ** 2, axis=0)
        return np.asarray(beta)

    def sensitivities(self) -> np.ndarray:
        """Forward differences: one simulation per base parameter and one more."""
        import pinocchio as pin

        b, n = self.bench, self.model.nv
        q = self.simulate()[0]
        kept, out = [pin.Inertia(x) for x in self.model.inertias], []
        for k in b.base.independent:
            h = 1e-5
            if k < 10 * n:
                link = k // 10
                changed = kept[link + 1].toDynamicParameters()
                changed[k % 10] += h
                self.model.inertias[link + 1] = pin.Inertia.FromDynamicParameters(changed)
                moved = self.simulate()[0]
                self.model.inertias[link + 1] = pin.Inertia(kept[link + 1])
            else:
                group = (b.viscous, b.coulomb, b.offset)[(k - 10 * n) // n]
                group[(k - 10 * n) % n] += h
                moved = self.simulate()[0]
                group[(k - 10 * n) % n] -= h
            out.append(block_means((moved - q) / h, b.loop.runs[0].keep))
        return np.stack(out, axis=-1)


def beside_pinocchio(quick: bool) -> dict[str, float]:
    robot, model = arm("ur10")
    short, bench = Bench(robot, 2.0), Bench(robot, 4.0 if quick else 10.0)
    slow, peer = Peer(short, model), Peer(bench, model)
    theirs = slow.sensitivities()
    ours = short.sensitivities()
    scale = np.abs(ours).max(axis=(0, 1))
    gap = np.max(np.abs(ours - theirs), axis=(0, 1))[scale > 0.0] / scale[scale > 0.0]
    assert np.median(gap) < 1e-3, "the two differentiate different robots"
    errors = bench.wls().standard_errors
    gaps = np.abs(bench.didim_iteration(settled=False) - peer.didim_iteration(10)) / errors
    assert np.max(gaps) < 0.5, "different iterations"
    out = best_times(
        {
            "DIDIM iteration, ours": bench.didim_iteration,
            "DIDIM iteration, Pinocchio": peer.didim_iteration,
            "CLOE sensitivities, ours": short.sensitivities,
        },
        rounds=5,
        budget=40.0,
    )
    out |= best_times({"CLOE sensitivities, Pinocchio": slow.sensitivities}, rounds=1)
    return out


def by_estimator(quick: bool) -> dict[str, float]:
    robot, _ = arm("ur10")
    bench = Bench(robot, 4.0 if quick else 10.0)
    jobs: dict[str, Any] = {"wls": bench.wls}
    for name in (*estimator_names(family="loop"), "ml"):
        jobs[name] = lambda name=name: make_experiment_estimator(name).fit(bench.experiment, bench.base)
    return best_times(jobs, rounds=2, budget=60.0)


def growth(quick: bool) -> dict[str, tuple[float, float]]:
    """ms of a DIDIM iteration and of CLOE's sensitivities, by samples and by joints."""
    out = {}
    arms = {"UR10": arm("ur10")[0], "szabo3r": builtin("szabo3r"), "Panda": arm("panda")[0]}
    cases = [("UR10", 2.0), ("UR10", 4.0), ("UR10", 8.0), ("szabo3r", 4.0), ("Panda", 4.0)]
    for name, seconds in cases[:2] if quick else cases:
        bench = Bench(arms[name], seconds)
        found = best_times({"d": bench.didim_iteration, "c": bench.sensitivities}, rounds=3)
        label = f"{name}, {arms[name].dof} joints, {bench.base.rank} parameters, {len(bench.t)} samples"
        out[label] = (1e3 * found["d"], 1e3 * found["c"])
    return out


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--quick", action="store_true")
    quick = options.parse_args().quick
    one_core()
    print(machine())
    peers = beside_pinocchio(quick)
    for kind in ("DIDIM iteration", "CLOE sensitivities"):
        ours, theirs = peers[f"{kind}, ours"], peers[f"{kind}, Pinocchio"]
        show(kind, ["", "ms", ""], [["ours", f"{1e3 * ours:.1f}", f"{theirs / ours:.0f}×"],
                                    ["Pinocchio + SciPy", f"{1e3 * theirs:.0f}", "1×"]])  # fmt: skip
    fits = by_estimator(quick)
    show("A whole fit, UR10", ["", "s"], [[name, f"{s:.3f}"] for name, s in fits.items()])
    grown = growth(quick)
    show(
        "Growth, ms per iteration", ["", "DIDIM", "CLOE"], [[k, f"{d:.1f}", f"{c:.0f}"] for k, (d, c) in grown.items()]
    )
    if not quick:
        save("estimators", {"date": time.strftime("%Y-%m-%d"), "peers_s": peers, "fits_s": fits, "growth_ms": grown})


if __name__ == "__main__":
    main()
