"""The identified model for other programs: URDF with a sidecar, MJCF, C code, tables."""

import steelyard.errors

from .c import model_to_c
from .mjcf import model_to_mjcf
from .sidecar import Sidecar, load_model, model_to_sidecar, read_sidecar, sidecar_path
from .table import parameters_to_csv
from .urdf import model_to_urdf

ExportError = steelyard.errors.ExportError

__all__ = [
    "ExportError", "Sidecar", "load_model", "model_to_c", "model_to_mjcf", "model_to_sidecar", "model_to_urdf",
    "parameters_to_csv", "read_sidecar", "sidecar_path",
]  # fmt: skip
