"""`ModelExport`: a model as files for other programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export.capability import FITTED_AS
from steelyard.export.formats import MODEL_FORMATS
from steelyard.export.sidecar import SUFFIX, model_to_sidecar
from steelyard.ground.outcome import Content, Outcome, file_name
from steelyard.ground.short_repr import short_repr

if TYPE_CHECKING:
    from rich.console import Console

# Default formats.
FORMATS = ("urdf", "mjcf", "c", "csv")


@short_repr
@dataclass(frozen=True, eq=False)
class ModelExport(Outcome):
    """A model with the formats to write.

    Args:
        model: Model to write.
        formats: Names in `MODEL_FORMATS`; default: URDF with sidecar, MuJoCo model, C code, table.
        name: Name of the files and of the functions in C; default: the robot's.
        source: URDF or MJCF of the robot; the file of the same format keeps everything except the parameters.
        fitted: Models fitted for formats that cannot represent `model`, by name, from `load_format_models`. Without
            one, such a format contains the representable part of `model`.
    """

    model: Model
    formats: Sequence[str] = FORMATS
    name: str = ""
    source: Path | None = None
    fitted: Mapping[str, Model] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.formats:
            raise ExportError(f"There is no format; give some of {', '.join(MODEL_FORMATS)}.")
        for name in self.formats:
            MODEL_FORMATS[name]

    @property
    def file(self) -> str:
        """Name of the files without suffix."""
        return file_name(self.name or self.model.robot.name)

    def files(self) -> dict[str, Content]:
        out: dict[str, Content] = {}
        for name in self.formats:
            model = self.fitted.get(FITTED_AS.get(name, ""), self.model)
            out |= MODEL_FORMATS[name].files(model, self.file, self.source)
        if "urdf" in self.formats and self.fitted:
            out[f"{self.file}{SUFFIX}"] = lambda path: model_to_sidecar(self.model, path, self.fitted)
        return out

    def to_json(self) -> dict[str, Any]:
        more = [f"{self.file}{suffix}" for name in self.formats for suffix in MODEL_FORMATS[name].beside]
        return {"robot": self.model.robot.name, "possible": self.model.possible, "files": [*self.files(), *more]}

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say

        where = f"Written to {folder}" if folder else "Nothing was written; with -o FOLDER the files are"
        say(out, f"{where}: {', '.join(self.to_json()['files'])}.")
        if not self.model.possible:
            say(out, "The model is physically impossible; simulators may refuse it.")
