"""Examples for an empty folder: a robot with logs, and the command logs of a servo; written in the helper process."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

EXAMPLE_ROBOT = "arm7"
EXAMPLE_LOGS = {"identify": "example-1.csv", "validate": "example-2.csv"}
EXAMPLE_RUNS = ("example-servo.csv", "example-runs.csv")
# The servo on a pendulum: armature [kg m²], Coulomb [N m] and viscous friction [N m s/rad], delay of the goal [s],
# velocity gain [N m s/rad], largest torque [N m], and the pendulum's length [m].
_ARMATURE, _COULOMB, _VISCOUS, _DELAY, _KD, _LIMIT, _LENGTH = 0.008, 0.06, 0.02, 0.012, 0.15, 2.5, 0.12
_GAINS, _MASSES = (6.0, 15.0), (0.3, 0.8)
# Steps of the simulation and of the log [s], duration of a run [s], counts of the encoder per turn.
_STEP, _PERIOD, _DURATION, _COUNTS = 2e-4, 5e-3, 6.0, 4096


def write_example(paths: Sequence[str]) -> None:
    """Simulate two motions of the example robot, and write their logs.

    Args:
        paths: Files to write, one per motion.
    """
    from steelyard.demo import write_example_logs  # imported here to keep the server small

    write_example_logs(EXAMPLE_ROBOT, paths)


def write_example_runs(log: str, runs: str) -> None:
    """Simulate runs of a servo with two gains and two masses, and write them.

    Args:
        log: File for the samples of all runs.
        runs: File for the table with a row per run.
    """
    from pathlib import Path

    from steelyard.ground.files import csv_text, write_whole

    settings = [(kp, mass) for kp in _GAINS for mass in _MASSES]
    samples = [
        [f"run{k}", f"{t:.4f}", f"{goal:.6f}", f"{q:.6f}"]
        for k, (kp, mass) in enumerate(settings, 1)
        for t, goal, q in _servo(kp, mass)
    ]
    write_whole(Path(log), csv_text([["log", "t_s", "q_goal_rad", "q_rad"], *samples]))
    table = [[f"run{k}", mass, _LENGTH, kp, _KD] for k, (kp, mass) in enumerate(settings, 1)]
    write_whole(Path(runs), csv_text([["log", "mass", "length", "kp", "kd"], *table]))


def _goal(t: float) -> float:
    """Return the goal [rad] at time `t`: two sines, and a jump in the middle."""
    return 0.8 * math.sin(1.7 * t) + 0.3 * math.sin(6.1 * t) + (0.5 if t > 0.5 * _DURATION else 0.0)


def _servo(kp: float, mass: float) -> Iterator[tuple[float, float, float]]:
    """Yield time, goal and encoder position of one run; friction holds the joint while it can."""
    inertia, gravity = mass * _LENGTH**2 + _ARMATURE, 9.81 * mass * _LENGTH
    q = dq = 0.0
    every = round(_PERIOD / _STEP)
    for k in range(round(_DURATION / _STEP)):
        t = k * _STEP
        if k % every == 0:
            yield t, _goal(t), round(q * _COUNTS / math.tau) * math.tau / _COUNTS
        held = math.floor((t - _DELAY) / _PERIOD + 1e-9) * _PERIOD  # the goal of a step holds until the next
        motor = max(-_LIMIT, min(_LIMIT, kp * (_goal(max(held, 0.0)) - q) - _KD * dq))
        free = dq + _STEP * (motor - gravity * math.sin(q) - _VISCOUS * dq) / inertia
        stop = _STEP * _COULOMB / inertia  # friction takes at most this speed in a step
        dq = 0.0 if abs(free) <= stop else free - math.copysign(stop, free)
        q += _STEP * dq
