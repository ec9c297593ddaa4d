"""What the run of `identify` says of its model beside the numbers: the torque band, and the delay of the logs."""

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
    folder = _run_of(given)
    if folder is None or not (folder / "covariance.csv").is_file():
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


def torque_delay_of(given: Any) -> float:
    """Find how far the torques of the logs that a model comes from lag behind the positions [s]; 0 where unknown.

    Args:
        given: Where the model comes from, as in `torque_band_of`.
    """
    settings = getattr(given, "settings", None)
    if settings is not None:
        return float(getattr(settings.preparation, "delay", None) or 0.0)
    folder = _run_of(given)
    if folder is None:
        return 0.0
    field = read_json(folder / RESULT, ExportError, "identify anew")
    for key in ("settings", "preparation", "delay"):
        if not isinstance(field.value, dict) or field.value.get(key) is None:
            return 0.0
        field = field.inside(field.value[key], key)
    return field.number(low=-1e6, high=1e6)


def _run_of(given: Any) -> Path | None:
    """The folder with the result of the run that a path belongs to."""
    if not isinstance(given, str | os.PathLike) or not Path(given).exists():
        return None
    folder = Path(given) if Path(given).is_dir() else Path(given).parent
    return folder if (folder / RESULT).is_file() else None
