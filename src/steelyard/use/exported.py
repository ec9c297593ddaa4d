"""`Exported`: a model as the files that other programs load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export import MODEL_FORMATS, model_to_sidecar
from steelyard.export.capability import FITTED_AS
from steelyard.export.sidecar import SUFFIX
from steelyard.ground.outcome import Content, Outcome, file_name

if TYPE_CHECKING:
    from rich.console import Console

# What is written where nobody says what.
FORMATS = ("urdf", "mjcf", "c", "csv")


@dataclass(frozen=True, eq=False)
class Exported(Outcome):
    """A model and the forms in which it is wanted.

    Args:
        model: what is written.
        formats: names in `MODEL_FORMATS`; default: a URDF with its sidecar, a MuJoCo model, C code, a table.
        name: of the files, and of the functions in C; default: the robot's.
        source: a URDF or MJCF of the robot, of which the file of the same format keeps all but numbers.
        fitted: models that were fitted for formats which cannot hold all of `model`, by name, as `load_format_models`
            gives them; other such formats hold as much of `model` as they can.
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
        """What the files are called, without their ends."""
        return file_name(self.name or self.model.robot.name)

    def files(self) -> dict[str, Content]:
        out: dict[str, Content] = {}
        for wanted in self.formats:
            held = self.fitted.get(FITTED_AS.get(wanted, ""), self.model)
            out |= MODEL_FORMATS[wanted].files(held, self.file, self.source)
        if "urdf" in self.formats and self.fitted:
            out[f"{self.file}{SUFFIX}"] = lambda path: model_to_sidecar(self.model, path, self.fitted)
        return out

    def to_json(self) -> dict[str, Any]:
        beside = [f"{self.file}{end}" for wanted in self.formats for end in MODEL_FORMATS[wanted].beside]
        return {"robot": self.model.robot.name, "possible": self.model.possible, "files": [*self.files(), *beside]}

    def tell(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say

        where = f"Written to {folder}" if folder else "Nothing was written (give -o FOLDER); it would be"
        say(out, f"{where}: {', '.join(self.to_json()['files'])}.")
        if not self.model.possible:
            say(out, "The model is not physically possible; simulators may refuse it.")
