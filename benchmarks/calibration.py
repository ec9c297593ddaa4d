"""Held-out errors of `steelyard calibrate` on five public sets of held poses, and its times.

    python benchmarks/calibration.py [seeds]        errors
    python benchmarks/calibration.py --times        times of a fit and of a design, CPU seconds

Needs STEELYARD_DATA. Each set is divided at random: two thirds for everything, the last third judges. Printed: mean
errors of the description, of the corrected description, and of the full model; the effects that were chosen.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import steelyard as sy

DATA = Path(os.environ.get("STEELYARD_DATA", "")) / "kinematics"
SETS = {
    "abb_irb120_tracker": ("robot.urdf", {"only": ("flag_points_rigid", "flag_base_still")}),
    "franka_fr3_camera": ("robot.urdf", {"points": ("cam",)}),
    "motoman_2019 left": ("robot_left.urdf", {"only": ("subset=left2019",)}),
    "motoman_2019 right": ("robot_right.urdf", {"only": ("subset=right2019",)}),
    "meca500_right": ("robot.urdf", {}),
    "tiago_mocap": ("robot.urdf", {}),
}


def times() -> None:
    """Fit 1000 poses with 3 points on 6 axes; design 40 poses with collisions."""
    sys.path[:0] = ["tests", "tests/calibration"]
    from oracles import public_robot_path
    from pin_arms import TrueArm, drawn_values, point_table, urdf

    text = urdf(1)
    robot = sy.load_robot(text, snap=0.0)
    rng = np.random.default_rng(0)
    arm = TrueArm(text, drawn_values(robot, 1))
    columns = point_table(arm, rng.uniform(-1.8, 1.8, (1000, 6)), 3, 5e-5, rng)
    table = sy.read_poses(columns, robot)
    path = public_robot_path("ur10")
    for name, task in (
        ("calibrate, 1000 poses x 3 points, model chosen", lambda: sy.calibrate(robot, table)),
        ("design of 40 poses, UR10 with its meshes", lambda: sy.design_poses(path, 40, collision=True)),
    ):
        task()  # imports
        start = time.process_time()
        task()
        print(f"{name}: {time.process_time() - start:.2f} s")


def main() -> None:
    if "--times" in sys.argv:
        times()
        return
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
    for name, (file, options) in SETS.items():
        folder = DATA / name.split()[0]
        robot = sy.load_robot(folder / file, snap=0.0)
        table = sy.read_poses(folder / "poses.parquet", robot, **options)
        for seed in seeds:
            order = np.random.default_rng(seed).permutation(len(table))
            cut = 2 * len(table) // 3
            start = time.process_time()
            found = sy.calibrate(robot, table.rows(order[:cut]), holdout=table.rows(order[cut:]))
            seconds = time.process_time() - start
            assert found.holdout is not None
            means = []
            for stage in ("nominal", "geometry", "full"):
                errors = found.errors(found.holdout, stage)
                turned = f" {np.degrees(errors['rotation'].mean):.4f}°" if "rotation" in errors else ""
                means.append(f"{1e3 * errors['position'].mean:.4f} mm{turned}")
            print(f"{name:20s} {seed} {' → '.join(means)}  {seconds:.1f} s  {', '.join(found.effects)}", flush=True)


if __name__ == "__main__":
    main()
