"""`torque_band_of`: the band of a model, from the run of `identify` that the model comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from steelyard.assessment.torque_band import JointBand, TorqueBand
from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export.table import read_covariance
from steelyard.ground.outcome import RESULT
from steelyard.ground.schema import build
from steelyard.ground.untrusted import read_json
from steelyard.regression.base_parameters import base_parameters


def torque_band_of(given: Any, model: Model) -> TorqueBand | None:
    """Find the band of a `model`; None where there is none.

    Args:
        given: where the model comes from: what `identify` found, its run folder, or a file in that folder. A folder
            needs `result.json` and `covariance.csv`, whose base parameters must be those of the model.
        model: what predicts.
    """
    held = getattr(given, "torque_band", None)
    if isinstance(held, TorqueBand):
        return held
    if not isinstance(given, str | os.PathLike) or not Path(given).exists():
        return None
    folder = Path(given) if Path(given).is_dir() else Path(given).parent
    if not (folder / RESULT).is_file() or not (folder / "covariance.csv").is_file():
        return None
    root = read_json(folder / RESULT, ExportError, "identify anew")
    entry = root.value.get("torque_band") if isinstance(root.value, dict) else None
    if entry is None:
        return None
    keys = root.inside(entry, "torque_band").table(("level_percent", "cutoff_hz", "joints"))
    joints = tuple(build(JointBand, item) for item in keys["joints"].items("joint"))
    names, covariance = read_covariance(folder / "covariance.csv")
    base = base_parameters(model.robot, model.terms)
    used = [n for n, yes in zip(model.robot.joint_names, model.robot.torque_used, strict=True) if yes]
    # Friction that was known before is no base parameter of the run, but a term of its model.
    if tuple(base.names) != names or [j.joint for j in joints] != used:
        return None
    return TorqueBand(joints, keys["cutoff_hz"].number(), base, covariance, model)
