"""The identified model for other programs: URDF with a sidecar, MJCF, C code, tables."""

from steelyard.errors import ExportError
from steelyard.export.c import model_to_c
from steelyard.export.mjcf import model_to_mjcf
from steelyard.export.read_sidecar import load_model, read_sidecar
from steelyard.export.sidecar import Sidecar, model_to_sidecar, sidecar_path
from steelyard.export.table import parameters_to_csv
from steelyard.export.urdf import model_to_urdf

__all__ = [
    "ExportError",
    "Sidecar",
    "load_model",
    "model_to_c",
    "model_to_mjcf",
    "model_to_sidecar",
    "model_to_urdf",
    "parameters_to_csv",
    "read_sidecar",
    "sidecar_path",
]
