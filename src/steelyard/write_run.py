"""Write an identification as a run folder: result, report, models, tables."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from steelyard.export import model_to_mjcf, model_to_sidecar, model_to_urdf, parameters_to_csv
from steelyard.ground.files import run_folder
from steelyard.identification.identification import Identification
from steelyard.identification.result import result_json


def write_run(
    found: Identification,
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    inputs: Sequence[Path] = (),
    source: Path | None = None,
) -> Path:
    """Everything a user takes away; the folder appears whole or not at all."""
    from steelyard.report.identification import identification_report

    name = "".join(c if c.isalnum() or c in "-_" else "_" for c in found.robot.name) or "robot"
    with run_folder(folder, overwrite) as aside:
        (aside / "result.json").write_text(
            json.dumps(result_json(found, inputs), indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8"
        )
        (aside / "report.html").write_text(identification_report(found), "utf-8")
        model_to_urdf(found.model, aside / f"{name}.urdf", source)
        model_to_sidecar(found.model, aside / f"{name}.steelyard.json")
        parameters_to_csv(found.model, aside / "parameters.csv")
        if found.physically_consistent:
            model_to_mjcf(found.model, aside / f"{name}.xml")
    return Path(folder)
