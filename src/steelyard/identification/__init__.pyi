"""Identification of a model from logs: the function, its result, the structure search, the report and the files."""

from .identification import Identification
from .identification_run import IdentificationRun
from .identify import identify
from .identify_files import identify_files
from .identify_options import IdentifyOptions
from .page import structure_table
from .parameters_page import base_table
from .score_page import error_level
from .structure import StructureStep

__all__ = [
    "Identification", "IdentificationRun", "IdentifyOptions", "StructureStep", "base_table", "error_level",
    "identify", "identify_files", "structure_table",
]  # fmt: skip
