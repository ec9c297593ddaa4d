"""Exports of an identified model: URDF with a sidecar, MJCF, C code, tables and others."""

import steelyard.errors

from .c import model_to_c, regrouped
from .coerce import ModelLike, as_model, is_exported
from .fmu import model_to_fmu
from .formats import FORMATS, MODEL_FORMATS, ModelExport, ModelFormat
from .loop_files import loops_to_table
from .mjcf import model_to_mjcf
from .objects import LeftOutWarning, model_to_mujoco, model_to_pinocchio
from .observer_code import observer_to_c
from .parameter_tables import covariance_to_csv, parameters_to_csv, read_covariance
from .sdf import model_to_sdf
from .sidecar import Sidecar, load_format_models, load_model, model_to_sidecar, read_sidecar, sidecar_path
from .urdf import model_to_urdf
from .usd import model_to_usd
from .xacro import model_to_xacro

ExportError = steelyard.errors.ExportError

__all__ = [
    "FORMATS", "MODEL_FORMATS", "ExportError", "LeftOutWarning", "ModelExport", "ModelFormat", "ModelLike", "Sidecar",
    "as_model", "covariance_to_csv", "is_exported", "load_format_models", "load_model", "loops_to_table", "model_to_c",
    "model_to_fmu",
    "model_to_mjcf", "model_to_mujoco", "model_to_pinocchio", "model_to_sdf", "model_to_sidecar", "model_to_urdf",
    "model_to_usd", "model_to_xacro", "observer_to_c", "parameters_to_csv", "read_covariance", "read_sidecar",
    "regrouped", "sidecar_path",
]  # fmt: skip
