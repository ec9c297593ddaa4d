"""`IdentificationRun`: an identification as it is handed out: result, report, models, tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.export import model_to_mjcf, model_to_sidecar, model_to_urdf, parameters_to_csv
from steelyard.ground.outcome import Content, Outcome, file_name
from steelyard.identification._result import result_json
from steelyard.identification.identification import Identification

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, eq=False)
class IdentificationRun(Outcome):
    """What was found, and what it was found from.

    Args:
        found: the identification.
        inputs: files whose hashes are kept with the result.
        source: the robot's URDF or MJCF, of which the exported URDF keeps meshes and names.
    """

    found: Identification
    inputs: Sequence[Path] = ()
    source: Path | None = None

    def to_json(self) -> dict[str, Any]:
        return result_json(self.found, self.inputs)

    def files(self) -> dict[str, Content]:
        name, model = file_name(self.found.robot.name), self.found.model
        out: dict[str, Content] = {
            f"{name}.urdf": lambda path: model_to_urdf(model, path, self.source),
            f"{name}.steelyard.json": lambda path: model_to_sidecar(model, path),
            "parameters.csv": lambda path: parameters_to_csv(model, path),
        }
        if self.found.possible:
            out[f"{name}.xml"] = lambda path: model_to_mjcf(model, path)
        return out

    def page(self) -> str:
        from steelyard.identification.page import identification_report

        return identification_report(self.found)

    def tell(self, out: Console, folder: str = "") -> None:
        from steelyard.identification.page import print_identification

        print_identification(self.found, out, folder)
