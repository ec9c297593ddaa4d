"""Files of a studio's folder as targets: the project file, job files, results and manifests of runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fuzz import mutators as change
from steelyard.studio.foreign_jobs import foreign_jobs, foreign_jobs_html
from steelyard.studio.jobs import Jobs
from steelyard.studio.roles import listed_logs
from steelyard.studio.run_entries import run_entries
from steelyard.studio.studio_folder import StudioFolder

PROJECT = b"""robot = "robot/a.urdf"
packages = ["meshes"]
joints = "q1, q2"
snap = 0.1
gravity = [0, 0, -9.81]
mapping = "mapping.toml"
terms = ["viscous", "coulomb"]
model = "runs/a"
runs = "runs"
[lock]
q3 = 0.5
[limits]
dq = [1, 2]
q = [[-1, 1], [-2, 2]]
[logs]
identify = ["logs/a.csv", "logs/*.csv"]
payload = {tool = "logs/a.csv"}
"""
JOB = {"stage": "check", "title": "x", "words": ["check", "-o", "runs/check-1"], "output": "runs/check-1"}
_SCORE = {"log": "b", "joints": [{"joint": "q1", "nrmse_percent": 3.0, "moving": {"nrmse_percent": 2.0}}]}
RESULTS: tuple[dict[str, Any], ...] = (
    {
        "verdict": {"grade": "good", "sentence": "x", "reasons": ["y"]}, "validation": [_SCORE], "estimation": {},
        "identification": [_SCORE], "base_parameters": {"count": 3}, "robot": {"name": "a", "joints": ["q1"]},
    },
    {"criterion": {"value": 3.0, "history": [[0, 9.0], [1, 3.0]]}, "plans": [{}], "verdict": {"grade": "good"}},
    {"grade": "usable", "entries": [{"severity": "problem"}], "excitation": {"condition": 3.0}},
    {"trials": [{"error": 1.0}], "passed": True, "against": "x"},
    {"mass": {"value": 1.0, "standard_error": 0.1}, "center_of_gravity": [0.0, 0.0, 0.1]},
)  # fmt: skip
MANIFEST = {"format": "steelyard-run-1", "command": "steelyard identify a.urdf -o runs/a", "growing": [], "files": {}}


def studio_targets(root: Path) -> Iterator[tuple[Any, ...]]:
    """Give name, ending, seeds, mutator and reader of each target.

    Args:
        root: a folder for the studio; it is made.
    """
    os.environ.setdefault("STEELYARD_STATE", str(root / "state"))
    folder = root / "arm"
    for name in ("logs", "robot", "runs/a", ".steelyard/jobs/1"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "logs" / "a.csv").write_text("t,q1\n0,0\n")
    studio = StudioFolder(folder)
    jobs = Jobs(studio)

    def put(name: str, read: Callable[[], Any]) -> Callable[[Path], Any]:
        def reader(path: Path) -> Any:
            target = folder / name
            target.write_bytes(path.read_bytes())
            try:
                return read()
            finally:
                target.write_bytes(b"")

        return reader

    def runs() -> None:
        for run in run_entries(studio):
            _ = run.summary, run.files()

    # Not ".json": such a file is shown as damaged, not refused.
    texts = tuple(json.dumps(one).encode() for one in RESULTS)
    yield "project", ".toml", (PROJECT,), change.change_text, put("steelyard.toml", lambda: listed_logs(studio))
    words = json.dumps(JOB).encode()
    yield (
        "job-file",
        ".document",
        (words,),
        change.change_json,
        put(".steelyard/jobs/1/job.json", lambda: foreign_jobs_html(foreign_jobs(jobs))),
    )
    (folder / "runs/a/manifest.json").write_text(json.dumps(MANIFEST))
    yield "run-result", ".document", texts, change.change_json, put("runs/a/result.json", runs)
    manifest = json.dumps(MANIFEST).encode()
    yield "run-manifest", ".document", (manifest,), change.change_json, put("runs/a/manifest.json", runs)
