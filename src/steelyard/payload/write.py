"""Write a weighed load as a run folder: figures, tool data, and the robot that carries it."""

from __future__ import annotations

import json
from pathlib import Path

from steelyard.dynamics.model import Model
from steelyard.export import model_to_urdf
from steelyard.ground.files import run_folder
from steelyard.payload.load import Load
from steelyard.robot.robot import Robot


def write_load(load: Load, robot: Robot, folder: Path, *, overwrite: bool = False, source: Path | None = None) -> None:
    """result.json, load.csv and load.yaml; a URDF with the load merged in, where the robot's inertias are known."""
    with run_folder(folder, overwrite) as aside:
        text = json.dumps(load.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        (aside / "result.json").write_text(text + "\n", "utf-8")
        (aside / "load.csv").write_text(load.to_csv(), "utf-8")
        (aside / "load.yaml").write_text(load.to_yaml(), "utf-8")
        if robot.has_inertia and load.physically_consistent:
            name = "".join(c if c.isalnum() or c in "-_" else "_" for c in robot.name) or "robot"
            model_to_urdf(Model.nominal(load.attached(robot)), aside / f"{name}_with_load.urdf", source)
