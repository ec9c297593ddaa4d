"""Identified models that commands take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.dynamics.model import Model


def model_from(path: str) -> Model | None:
    """The model of a run folder, or of an exported URDF with its sidecar; none where nothing is named."""
    if not path:
        return None
    from pathlib import Path

    from steelyard.export import load_model

    inside = sorted(Path(path).glob("*.urdf")) if Path(path).is_dir() else [Path(path)]
    if not inside:
        raise SteelyardError(f"{path}: there is no model (.urdf) in this folder; give a run of `steelyard identify`.")
    return load_model(inside[0])
