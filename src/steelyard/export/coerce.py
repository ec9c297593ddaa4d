"""`as_model`: converts runs, files, results and robots to a model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from steelyard.dynamics.model import Model
from steelyard.export.sidecar import load_model, sidecar_path
from steelyard.robot.load import RobotLike, as_robot

# A model, a result of `identify`, a run folder, or a robot with inertias.
ModelLike = Model | RobotLike


def as_model(model_like: ModelLike) -> Model:
    """Convert to a model.

    Args:
        model_like: `Model`, result of `identify`, run folder, exported description with sidecar, or robot, as in
            `load_robot`, which gives its nominal model.
    """
    model = model_like if isinstance(model_like, Model) else getattr(model_like, "model", None)
    if isinstance(model, Model):
        return model
    source: Any = model_like
    return load_model(source) if is_exported(source) else Model.nominal(as_robot(source))


def is_exported(source: Any) -> bool:
    """Whether `source` is the path of an exported model: a run folder, or a description with sidecar."""
    if not isinstance(source, str | os.PathLike) or str(source).lstrip().startswith("<"):
        return False
    is_description = Path(source).suffix.lower() in (".urdf", ".xml")
    return os.path.isdir(source) or (is_description and os.path.exists(sidecar_path(source)))
