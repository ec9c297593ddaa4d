"""`as_model`: the model that a caller means, whatever it is held in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from steelyard.dynamics.model import Model
from steelyard.export.sidecar import load_model, sidecar_path
from steelyard.robot.load import RobotLike, as_robot

# A model, what `identify` found, a run folder, or any robot with inertias.
ModelLike = Model | RobotLike


def as_model(given: ModelLike) -> Model:
    """The model that a caller means: every function that uses one asks here.

    Args:
        given: a `Model`, the result of `identify`, the folder of a run or an exported description with its sidecar, or
            a robot as `load_robot` takes it, whose nominal model it is.
    """
    held = given if isinstance(given, Model) else getattr(given, "model", None)
    if isinstance(held, Model):
        return held
    named: Any = given
    return load_model(named) if is_exported(named) else Model.nominal(as_robot(named))


def is_exported(given: Any) -> bool:
    """Whether `given` names a model that was exported: a run folder, or a description with its sidecar."""
    if not isinstance(given, str | os.PathLike) or str(given).lstrip().startswith("<"):
        return False
    described = Path(given).suffix.lower() in (".urdf", ".xml")
    return os.path.isdir(given) or (described and os.path.exists(sidecar_path(given)))
