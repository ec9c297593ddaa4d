"""`Exported`: a model as the files that other programs load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError, UnknownNameError
from steelyard.export import model_to_c, model_to_mjcf, model_to_sidecar, model_to_urdf, parameters_to_csv
from steelyard.ground.outcome import Content, Outcome, file_name

if TYPE_CHECKING:
    from rich.console import Console

FORMATS = ("urdf", "mjcf", "c", "csv")


@dataclass(frozen=True, eq=False)
class Exported(Outcome):
    """A model and the forms in which it is wanted.

    Args:
        model: what is written.
        formats: some of `FORMATS`: a URDF with its sidecar, a MuJoCo model, C code with its header, a table.
        name: of the files, and of the functions in C; default: the robot's.
        source: a URDF or MJCF of the robot, of which the URDF keeps meshes and names.
    """

    model: Model
    formats: Sequence[str] = FORMATS
    name: str = ""
    source: Path | None = None

    def __post_init__(self) -> None:
        if not self.formats:
            raise ExportError(f"There is no format; give some of {', '.join(FORMATS)}.")
        for wanted in self.formats:
            if wanted not in FORMATS:
                raise UnknownNameError("format", wanted, FORMATS)

    @property
    def file(self) -> str:
        """What the files are called, without their ends."""
        return file_name(self.name or self.model.robot.name)

    def files(self) -> dict[str, Content]:
        made: dict[str, dict[str, Content]] = {
            "urdf": {
                f"{self.file}.urdf": lambda path: model_to_urdf(self.model, path, self.source),
                f"{self.file}.steelyard.json": lambda path: model_to_sidecar(self.model, path),
            },
            "mjcf": {f"{self.file}.xml": lambda path: model_to_mjcf(self.model, path)},
            "c": {f"{self.file}.c": lambda path: model_to_c(self.model, path, _c_name(self.file))},
            "csv": {"parameters.csv": lambda path: parameters_to_csv(self.model, path)},
        }
        return {name: content for wanted in self.formats for name, content in made[wanted].items()}

    def to_json(self) -> dict[str, Any]:
        beside = [f"{self.file}.h"] if "c" in self.formats else []
        return {"robot": self.model.robot.name, "possible": self.model.possible, "files": [*self.files(), *beside]}

    def tell(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say

        where = f"Written to {folder}" if folder else "Nothing was written (give -o FOLDER); it would be"
        say(out, f"{where}: {', '.join(self.to_json()['files'])}.")
        if not self.model.possible:
            say(out, "The model is not physically possible; simulators may refuse it.")


def _c_name(name: str) -> str:
    """The nearest name that a function in C may have."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    return plain if plain[:1].isalpha() else f"robot_{plain}"
