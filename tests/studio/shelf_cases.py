"""Runs on a disk, and a studio of them without a browser."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.ground.folders import run_folder
from steelyard.ground.repeat import run_by


def made_run(folder: Path, name: str, command: str, result: Any, files: Mapping[str, str] | None = None) -> Path:
    """A run as commands write it: `result.json`, `files`, and the manifest that says the `command`."""
    words = shlex.split(command)
    with run_by(words, words), run_folder(folder / name) as aside:
        (aside / "result.json").write_text(json.dumps(result), "utf-8")
        for file, content in (files or {}).items():
            (aside / file).write_text(content, "utf-8")
    return folder / name


def identified_result(errors: tuple[float, ...] = (2.0, 5.0), grade: str = "good", robot: str = "arm") -> Any:
    """The result of an identification, as far as summaries need it."""
    score = {"log": "b", "joints": [{"joint": f"q{k}", "nrmse_percent": e} for k, e in enumerate(errors, 1)]}
    verdict = {"grade": grade, "sentence": f"The model is {grade}.", "reasons": ["All links are possible."]}
    return {
        "robot": {"name": robot, "joints": ["q1", "q2"]}, "verdict": verdict, "validation": [score],
        "identification": [score], "nominal": [], "base_parameters": {"count": 3}, "estimation": {},
        "settings": {"estimator": "wls", "cutoff_hz": 20.0},
    }  # fmt: skip


class Visitor:
    """A browser without a screen, which has opened the studio of a `folder`."""

    def __init__(self, folder: Path) -> None:
        from starlette.testclient import TestClient

        from steelyard.studio.place import StudioFolder
        from steelyard.studio.server import ServeOptions, make_app

        self.place = StudioFolder(folder)
        app, address = make_app(self.place, ServeOptions(), 8421)
        self.client = TestClient(app, base_url="http://127.0.0.1:8421", headers={"x-steelyard": "1"})
        self.client.get(address)

    def see(self, address: str, status: int = 200) -> str:
        """The page at an `address`."""
        answer = self.client.get(address)
        assert answer.status_code == status, answer.text
        return str(answer.text)

    def do(self, action: str, status: int = 200, **fields: Any) -> str:
        """Send a form."""
        answer = self.client.post(f"/do/{action}", data=fields)
        assert answer.status_code == status, answer.text
        return str(answer.text)
