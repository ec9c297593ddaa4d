"""Write a comparison as a run folder: its figures and its page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.ground.files import run_folder


def write_comparison(result: Mapping[str, Any], page: str, folder: Path, *, overwrite: bool = False) -> None:
    """result.json and report.html; the folder appears whole or not at all."""
    with run_folder(folder, overwrite) as aside:
        text = json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False)
        (aside / "result.json").write_text(text + "\n", "utf-8")
        (aside / "report.html").write_text(page, "utf-8")
