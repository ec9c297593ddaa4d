"""`ModelFormat`: a file format for models, and the registry of formats; `ModelExport`: a model as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export.c import model_to_c
from steelyard.export.capability import FITTED_AS
from steelyard.export.mjcf import model_to_mjcf
from steelyard.export.parameter_tables import parameters_to_csv
from steelyard.export.sidecar import SUFFIX, model_to_sidecar
from steelyard.export.urdf import model_to_urdf
from steelyard.ground.outcome import Content, Outcome, file_name
from steelyard.ground.registry import Registry
from steelyard.ground.short_repr import short_repr

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class ModelFormat:
    """A file format for models, registered in `MODEL_FORMATS`. Plug-ins use the entry-point group `steelyard.exports`.

    Args:
        description: Short description.
        files: Builds the files by name from a model, a file name, and the robot's original description or None.
        beside: Suffixes of files that are written in addition to these.
        lacking: Returns how to install missing requirements, or "".
    """

    description: str
    files: Callable[[Model, str, Path | None], dict[str, Content]]
    beside: tuple[str, ...] = ()
    lacking: Callable[[], str] = str


MODEL_FORMATS: Registry[ModelFormat] = Registry(
    "format",
    tuple(f"steelyard.export.{name}" for name in ("formats", "sdf", "xacro", "usd", "fmu", "observer_code")),
    group="steelyard.exports",
)


def c_name(name: str) -> str:
    """Convert a `name` to a valid name of a C function."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    return plain if plain[:1].isalpha() else f"robot_{plain}"


def _urdf(model: Model, name: str, source: Path | None) -> dict[str, Content]:
    return {
        f"{name}.urdf": lambda path: model_to_urdf(model, path, source),
        f"{name}.steelyard.json": lambda path: model_to_sidecar(model, path),
    }


def _mjcf(model: Model, name: str, source: Path | None) -> dict[str, Content]:
    return {f"{name}.xml": lambda path: model_to_mjcf(model, path, source)}


def _c(model: Model, name: str, source: Path | None) -> dict[str, Content]:
    return {f"{name}.c": lambda path: model_to_c(model, path, c_name(name))}


def _csv(model: Model, name: str, source: Path | None) -> dict[str, Content]:
    return {"parameters.csv": lambda path: parameters_to_csv(model, path)}


for _name, _format in {
    "urdf": ModelFormat("URDF with a sidecar for data that URDF does not support", _urdf),
    "mjcf": ModelFormat("MuJoCo's XML", _mjcf),
    "c": ModelFormat("C99 source and header", _c, beside=(".h",)),
    "csv": ModelFormat("table of all parameters", _csv),
}.items():
    MODEL_FORMATS.register(_name)(_format)


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
