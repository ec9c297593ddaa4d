"""Reads the torque band and the torque delay of a model from its run of `identify`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from steelyard.assessment.torque_band import JointBand, TorqueBand
from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export.parameter_tables import read_covariance
from steelyard.ground.outcome import RESULT
from steelyard.ground.schema import build
from steelyard.ground.untrusted_files import read_json
from steelyard.regression.base_parameters import base_parameters


def torque_band_of(source: Any, model: Model) -> TorqueBand | None:
    """Find the torque band of a model; None without one.

    Args:
        source: Source of the model: result of `identify`, its run folder, or a file in that folder. A folder needs
            `result.json` and `covariance.csv` with the base parameters of the model.
        model: The model.
    """
    band = getattr(source, "torque_band", None)
    if isinstance(band, TorqueBand):
        return band
    folder = _run_of(source)
    if folder is None or not (folder / "covariance.csv").is_file():
        return None
    root = read_json(folder / RESULT, ExportError, "run identify again")
    entry = root.value.get("torque_band") if isinstance(root.value, dict) else None
    if entry is None:
        return None
    keys = root.inside(entry, "torque_band").table(("level_percent", "cutoff_hz", "joints"))
    joints = tuple(build(JointBand, item) for item in keys["joints"].items("joint"))
    names, covariance = read_covariance(folder / "covariance.csv")
    base = base_parameters(model.robot, model.terms)
    used = [n for n, yes in zip(model.robot.joint_names, model.robot.torque_used, strict=True) if yes]
    # A run with known friction has fewer base parameters than its model.
    if tuple(base.names) != names or [j.joint for j in joints] != used:
        return None
    return TorqueBand(joints, keys["cutoff_hz"].number(), base, covariance, model)


def torque_delay_of(source: Any) -> float:
    """Find the delay of torques behind positions [s] in a model's logs; 0 if unknown.

    Args:
        source: Source of the model, as in `torque_band_of`.
    """
    settings = getattr(source, "settings", None)
    if settings is not None:
        return float(getattr(settings.preparation, "delay", None) or 0.0)
    folder = _run_of(source)
    if folder is None:
        return 0.0
    field = read_json(folder / RESULT, ExportError, "run identify again")
    for key in ("settings", "preparation", "delay"):
        if not isinstance(field.value, dict) or field.value.get(key) is None:
            return 0.0
        field = field.inside(field.value[key], key)
    return field.number(low=-1e6, high=1e6)


def _run_of(source: Any) -> Path | None:
    """The run folder of a path: the folder itself or its parent."""
    if not isinstance(source, str | os.PathLike) or not Path(source).exists():
        return None
    folder = Path(source) if Path(source).is_dir() else Path(source).parent
    return folder if (folder / RESULT).is_file() else None
