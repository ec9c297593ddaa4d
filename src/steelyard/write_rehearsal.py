"""Write a rehearsal as a run folder."""

from __future__ import annotations

import json
from pathlib import Path

from steelyard.ground.files import run_folder
from steelyard.rehearse import Rehearsal
from steelyard.report.designed import rehearsal_report


def write_rehearsal(found: Rehearsal, folder: str | Path, *, overwrite: bool = False) -> Path:
    """result.json, report.html and the simulated logs; the folder appears whole or not at all."""
    with run_folder(folder, overwrite) as aside:
        text = json.dumps(found.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        (aside / "result.json").write_text(text + "\n", "utf-8")
        (aside / "report.html").write_text(rehearsal_report(found), "utf-8")
        for k, log in enumerate(found.logs):
            log.save(aside / ("log.npz" if k == 0 else f"log-{k + 1}.npz"))
    return Path(folder)
