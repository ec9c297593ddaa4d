"""Elastic joints: intervals and skews on plants of MuJoCo, and a real arm: python benchmarks/elasticity.py [seeds]

Plants: arms of 1, 2 and 6 axes with rotors and springs, 15 s at 500 Hz, encoder noise 1e-5 rad with ticks of 2e-5 rad,
torque noise of 2 and 5 %, skews of 2, -3 and 0 ms. Printed by arm: share of 95 % intervals that hold the true
compliance, median half width, worst error of the skew, processor time of one identification.
The real arm needs STEELYARD_DATA: KUKA KR 300, fit to logs A and B, validated on C.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import steelyard as sy

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "elasticity"))
from elastic_plants import ElasticArm, Recording, log_of


def plants(seeds: int) -> None:
    inside_of_all = count_of_all = 0
    for axes in (1, 2, 6):
        inside, widths, skews, seconds = [], [], [], 0.0
        for seed in range(seeds):
            arm = ElasticArm(axes, stiffness=(8e3, 3e4)[seed % 2], friction=(0.05, 0.1)[seed // 2 % 2])
            how = Recording(seed=2000 + seed, torque_noise=(0.02, 0.05)[seed % 2], skew=(2e-3, -3e-3, 0.0)[seed % 3])
            robot, log = arm.robot(), log_of(arm, how)
            start = time.process_time()
            found = sy.identify_elasticity(robot, log)
            seconds += time.process_time() - start
            for k, one in enumerate(found.joints):
                c = 1.0 / arm.numbers()["K"][k]
                inside.append(abs(one.compliance.value - c) < one.compliance.half_width)
                widths.append(one.compliance.half_width / c)
                assert one.skew is not None
                skews.append(abs(one.skew.value - how.skew))
        inside_of_all, count_of_all = inside_of_all + sum(inside), count_of_all + len(inside)
        print(
            f"{axes} axes: {100 * np.mean(inside):.1f} % of {len(inside)} intervals, half width "
            f"{100 * np.median(widths):.2f} %, worst skew {1e3 * max(skews):.3f} ms, {seconds / seeds:.2f} s",
            flush=True,
        )
    print(f"all: {100 * inside_of_all / count_of_all:.1f} % of {count_of_all} intervals")


def real_arm(folder: Path) -> None:
    A, B, C = (folder / f"trajectory_{x}.parquet" for x in "ABC")
    start = time.process_time()
    found = sy.identify_elasticity(folder / "robot.urdf", [A, B], C)
    print(f"KR 300, {time.process_time() - start:.1f} s: {found.headline().sentence}")
    for point in found.headline().points:
        print(f"  {point}")
    for one in found.joints:
        print(f"  {one.joint}: held out {100 * min(one.held_out.values()):.2f} %")


def main() -> None:
    plants(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
    data = Path(os.environ.get("STEELYARD_DATA", "")) / "kuka_kr300"
    if data.is_dir():
        real_arm(data)


if __name__ == "__main__":
    main()
