"""Files of a gravity model: compensation in C, residuals of the poses, and the next poses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.export.c import model_to_c
from steelyard.gravity.next_poses import next_poses
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content

if TYPE_CHECKING:
    from steelyard.gravity.gravity_model import GravityModel


def gravity_files(gravity: GravityModel, name: str) -> dict[str, Content]:
    """Return the files of a gravity model.

    Args:
        gravity: Gravity model.
        name: Name of the robot, as a file name.
    """
    prefix = re.sub(r"[^A-Za-z0-9_]", "_", name)
    prefix = prefix if re.match(r"[A-Za-z]", prefix) else f"robot_{prefix}"

    def write_c(path: Path) -> None:
        model_to_c(gravity.model, path, prefix, only=("gravity",))

    def write_header(path: Path) -> None:
        """Check the header: the writer of the source creates both files."""
        if not path.exists():
            write_c(path.with_suffix(".c"))

    joints = gravity.robot.joint_names
    return {
        f"{prefix}.c": write_c,
        f"{prefix}.h": write_header,
        "poses.csv": csv_text(_pose_rows(gravity)),
        "next_poses.csv": csv_text([joints, *([f"{x:.6g}" for x in row] for row in next_poses(gravity)[0])]),
    }


def _pose_rows(gravity: GravityModel) -> list[list[str]]:
    """Rows of all poses: place in the logs, positions, torque, error when left out."""
    poses, names = gravity.poses, gravity.robot.joint_names
    head = ["log", "row", *(f"{x}_{name}" for x in ("q", "tau", "side", "left_out_error") for name in names)]
    values = np.hstack([poses.q, poses.tau, poses.side, gravity.errors])
    each = zip(poses.log, poses.row, values, strict=True)
    return [head, *([str(a + 1), str(b), *(f"{x:.6g}" for x in row)] for a, b, row in each)]
