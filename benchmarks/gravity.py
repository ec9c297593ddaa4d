"""Gravity from poses at rest: real robots, and how often intervals contain the truth.

Run: STEELYARD_DATA=… python benchmarks/gravity.py [--coverage]. Torques of the coverage are Pinocchio's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / part) for part in ("", "gravity")]

import steelyard as sy
from steelyard.errors import SteelyardError
from steelyard.signals.log import Log

SEEDS = 25


def kuka(folder: Path) -> None:
    """Fit to the first 200 poses, score on the other 104; then weigh the known loads."""
    robot = sy.load_robot(folder / "robot.urdf")
    log = sy.read_log(folder / "poses.parquet", robot)

    def part(start: int, stop: int) -> Log:
        return Log(log.joints, log.t[start:stop], log.q[start:stop], dq=log.dq[start:stop], tau=log.tau[start:stop])

    score = sy.identify_gravity(robot, part(0, 200), part(200, 304)).scores["validation"]
    print("KUKA iiwa 7, % of std:", np.round(score.percent, 2), "with friction:",
          np.round(100.0 * score.rms_with_friction / score.std, 2))  # fmt: skip
    logs = {x: sy.read_log(folder / f"load_{x}.parquet", robot) for x in ("0kg", "1250g", "2500g")}
    # The third difference shows whether the weights or a scale are off: a scale makes all errors of one sign.
    for name, without in (("1250g", "0kg"), ("2500g", "0kg"), ("2500g", "1250g")):
        load = sy.identify_payload(robot, logs[name], logs[without]).load
        print(f"  {name} less {without}: {load.mass:.3f} kg, 95 % interval {np.round(load.interval(), 3)}")


def ur10e(folder: Path) -> None:
    """Weigh 2.805 kg by the stops of loaded motions, with all bare logs."""
    robot = sy.load_robot(folder / "robot.urdf")
    mapping = {"torque_constants": [11.976, 11.976, 9.839, 10.763, 10.763, 10.763]}
    loaded = [sy.read_log(folder / f"ident__20_02_19_{n}harm50secLoad.parquet", robot, mapping) for n in (14, 15)]
    for n, log in zip((14, 15), loaded, strict=True):
        empty = sy.read_log(folder / f"ident__20_02_19_{n}harm50sec.parquet", robot, mapping)
        load = sy.identify_payload(robot, log, empty).load
        print(f"UR10e in motion, {n} harmonics: {load.mass:.2f} kg, 95 % interval {np.round(load.interval(), 2)}")
    paths = sorted(p for p in folder.glob("*.parquet") if not p.stem.lower().endswith(("-load", "secload", "2600")))
    bare = [sy.read_log(p, robot, mapping) for p in paths if "collision" not in p.stem]
    for name, logs in (("all bare logs", bare), ("the bare logs of the same day", bare[10:12])):
        try:
            load = sy.identify_payload(robot, loaded, logs, at_rest=True).load
            print(f"UR10e at rest, {name}: {load.mass:.2f} kg, 95 % interval {np.round(load.interval(), 2)}")
        except SteelyardError as error:
            print(f"UR10e at rest, {name}: {error}")


def coverage() -> None:
    """Count how often 95 % intervals of base parameters contain the truth."""
    from standing_plants import public_robot, table

    for name in ("ur10", "z1"):
        robot = public_robot(name)
        for count in (15, 40):
            for friction in ("none", "side", "tube", "edge"):
                inside = []
                for seed in range(SEEDS):
                    found = sy.identify_gravity(robot, table(name, count, seed, friction))
                    theta = np.zeros(len(found.columns.columns))
                    theta[: 4 * len(robot.links)] = np.concatenate([link.inertia[:4] for link in robot.links])
                    gravity = np.array(found.columns.independent) < 4 * len(robot.links)
                    error = np.abs(found.beta - found.columns.groups @ theta)
                    inside += list((error < found.half_widths)[gravity])
                print(f"{name}, {count} poses, {friction}: {100.0 * np.mean(inside):.1f} %")


if __name__ == "__main__":
    if "--coverage" in sys.argv:
        coverage()
    else:
        data = Path(os.environ["STEELYARD_DATA"])
        kuka(data / "kuka_iiwa7_static")
        ur10e(data / "ur10e")
