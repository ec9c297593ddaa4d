"""Loads on a wrist sensor: the paper's Table I on a body that exists, drift, and a motion made for the purpose.

Kozłowski & Dutkiewicz 1996, section 5.3: a steel cuboid of 1.91 kg on a JR3 sensor, 30 repeats of a move of 1.83 s.
    python benchmarks/payload.py [--fast]
"""

from __future__ import annotations

import argparse

import numpy as np

from steelyard.dynamics.frame_motion import FrameKinematics
from steelyard.parameters.inertial import INERTIAL_NAMES
from steelyard.payload import Payload, SensorModel, identify_payload_by_sensor, repeats
from steelyard.payload.excite import WRENCH_NOISE, excite_payload
from steelyard.payload.payload import cuboid
from steelyard.payload.sensor import wrench_regressor
from steelyard.robot import load_robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation

ROBOT = load_robot("irp6-wrist")
KINEMATICS = FrameKinematics(ROBOT, ROBOT.frame())
BODY = cuboid(1.91, np.array([0.10, 0.06, 0.04]), np.array([0.03, -0.011, 0.073]))
START, END = (np.deg2rad(x) for x in ([-40, 10, -30, 30, -150.0], [30, -20, 40, -10, -10.0]))
LENGTH, RATE = 1.83, 250.0
# A cut-off by hand: a single short move has no band that could be told from it.
PREPARATION = Preparation(cutoff_hz=15.0, velocity="differentiated")


def quintic(t: np.ndarray, duration: float) -> tuple[np.ndarray, ...]:
    """The paper's move, from rest to rest."""
    s, d = np.clip(t / duration, 0.0, 1.0)[:, None], END - START
    return (
        START + (10 * s**3 - 15 * s**4 + 6 * s**5) * d,
        (30 * s**2 - 60 * s**3 + 30 * s**4) / duration * d,
        (60 * s - 180 * s**2 + 120 * s**3) / duration**2 * d,
    )


def weighed(motion, duration: float, seed: int, model: SensorModel, drift: float = 0.0) -> Payload:
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, duration, 1.0 / RATE)
    q, dq, ddq = motion(t)
    wrench = wrench_regressor(KINEMATICS(q, dq, ddq)) @ BODY + np.array(WRENCH_NOISE) * rng.normal(size=(len(t), 6))
    # Drift of a sensor that warms up: noise-sized over the length of the move, in all axes alike.
    wrench += drift * np.array(WRENCH_NOISE) * (t / duration)[:, None]
    log = Log(ROBOT.joint_names, t, q + 2e-5 * rng.normal(size=q.shape), channels={"wrench": wrench})
    return identify_payload_by_sensor(ROBOT, log, model=model, physical=False, preparation=PREPARATION)


def table(name: str, motion, duration: float, experiments: int) -> np.ndarray:
    """One experiment of 30 repeats as the paper prints it, and how often both intervals hold over several."""
    held = np.zeros((2, 10))
    first = None
    for number in range(experiments):
        loads = [weighed(motion, duration, 1000 * number + k, SensorModel(bias=False)) for k in range(30)]
        found = repeats(loads)
        first = first or found
        off = np.abs(found.mean - BODY)
        held += np.array([off <= found.interval_as_printed(), off <= found.interval()])
    assert first is not None
    print(f"\n{name}: 30 repeats; 99 % intervals z/√(n−1) as printed and t/√n; held in {experiments} experiments")
    print(
        f"{'':5s} {'true':>9s} {'mean':>9s} {'std':>9s} {'std %':>6s} {'z':>8s} {'t':>8s} {'z held':>7s} {'t held':>7s}"
    )
    for k, label in enumerate(INERTIAL_NAMES):
        figures = BODY[k], first.mean[k], first.std[k], 100 * first.std[k] / abs(BODY[k])
        half = first.interval_as_printed()[k], first.interval()[k]
        shares = held[:, k] / experiments
        print(
            f"{label:5s} {figures[0]:9.5f} {figures[1]:9.5f} {figures[2]:9.5f} {figures[3]:6.1f} "
            f"{half[0]:8.5f} {half[1]:8.5f} {shares[0]:7.2f} {shares[1]:7.2f}"
        )
    return first.std


def forms(repeats_: int) -> None:
    """Differential and integral forms on the paper's move, with and without drift of the sensor."""
    print("\nroot mean square error, % of the truth (mass; first moments; inertias about the sensor), fast move")
    ways = {
        "differential": SensorModel(bias=False),
        "short windows (0.1 s)": SensorModel("integral", 0.1, bias=False),
        "long windows (growing)": SensorModel("integral", None, bias=False),
    }
    scale = np.array([BODY[0], *[np.linalg.norm(BODY[1:4])] * 3, *[np.abs(BODY[[4, 6, 9]]).max()] * 6])
    for drift in (0.0, 3.0):
        for name, model in ways.items():
            runs = [weighed(lambda t: quintic(t, LENGTH), LENGTH, k, model, drift) for k in range(repeats_)]
            errors = np.array([(x.parameters - BODY) / scale for x in runs])
            parts = [100 * np.sqrt(np.mean(errors[:, p] ** 2)) for p in (slice(0, 1), slice(1, 4), slice(4, 10))]
            print(f"drift {drift:3.0f} σ  {name:24s} {parts[0]:7.2f} {parts[1]:7.2f} {parts[2]:7.1f}")


def information(motion) -> tuple[float, np.ndarray]:
    """cond(KᵀK), and standard deviations from 58 samples of Δt = 32 ms."""
    K = wrench_regressor(KINEMATICS(*motion(np.arange(0.0, LENGTH + 1e-9, 0.032))))
    gram = np.einsum("nij,nik->jk", K, K)
    weighted = np.einsum("nij,nik,i->jk", K, K, 1.0 / np.array(WRENCH_NOISE) ** 2)
    return float(np.linalg.cond(gram)), np.sqrt(np.diag(np.linalg.inv(weighted)))


def designed() -> dict[str, object]:
    """Motions of the same length, made for the purpose."""
    _, dq, ddq = quintic(np.linspace(0.0, LENGTH, 400), LENGTH)
    limits = {
        "same peak velocity and acceleration": {"dq": np.abs(dq).max(0), "ddq": np.abs(ddq).max(0)},
        "the arm's limits": None,
    }
    condition, before = information(lambda t: quintic(t, LENGTH))
    print(f"\nthe paper's quintic: cond(KᵀK) {condition:.0f}")
    plans = {}
    for name, given in limits.items():
        for criterion in ("information", "a"):
            plan = excite_payload(ROBOT, duration=LENGTH, rate=31.25, limits=given, criterion=criterion)
            value, after = information(plan.trajectory.sample)
            falls = ", ".join(f"{n} {f:.1f}" for n, f in zip(INERTIAL_NAMES[4:], (before / after)[4:], strict=True))
            print(f"{name}, {plan.criterion}: cond(KᵀK) {value:.1f}, violation {plan.violation:g}; falls by {falls}")
            plans[f"{name}, {criterion}"] = plan.trajectory
    return plans


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="few repeats")
    few = parser.parse_args().fast
    count = 2 if few else 20
    fast = table("fast, 1.83 s", lambda t: quintic(t, LENGTH), LENGTH, count)
    table("slow, 10 s", lambda t: quintic(t, 10.0), 10.0, 1 if few else 5)
    plans = designed()
    best = table("designed at the arm's limits, 1.83 s", plans["the arm's limits, a"].sample, LENGTH, 1 if few else 5)  # type: ignore[attr-defined]
    print("measured fall of the inertias' standard deviation:", np.round(fast[4:] / best[4:], 1))
    forms(10 if few else 60)


if __name__ == "__main__":
    main()
