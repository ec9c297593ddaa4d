"""A method in any language: a program that is run once to fit and once to predict. Copy this file and set COMMAND.

`PROGRAM fit FOLDER` finds `robot.urdf` and `problem.json` there, and each log as `log0.csv`, …; it may write files.
`PROGRAM predict FOLDER` finds `motion.csv` without torques, and writes `torque.csv`: one row per sample, no header.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from entries.problem import Array, MissingError, Problem

COMMAND = os.environ.get("SCOREBOARD_COMMAND", "")
_SECONDS = 3600.0


class Entry:
    name = "command"

    def fit(self, problem: Problem) -> None:
        if not COMMAND:
            raise MissingError("set SCOREBOARD_COMMAND")
        self._held = tempfile.TemporaryDirectory()
        self.folder = Path(self._held.name)
        shutil.copy(problem.urdf, self.folder / "robot.urdf")
        about = {"joints": problem.joints, "gravity": problem.gravity, "rate": problem.rate,
                 "cutoff_hz": problem.cutoff_hz, "rotor": problem.rotor, "ramp": problem.ramp}  # fmt: skip
        (self.folder / "problem.json").write_text(json.dumps(about))
        for k, log in enumerate(problem.logs):
            self._write(f"log{k}.csv", log.t, log.q, log.dq, log.ddq, log.tau)
        self._run("fit")

    def predict(self, t: Array, q: Array, dq: Array, ddq: Array) -> Array:
        self._write("motion.csv", t, q, dq, ddq)
        self._run("predict")
        torque = np.loadtxt(self.folder / "torque.csv", delimiter=",", ndmin=2)
        if torque.shape != q.shape:
            raise ValueError(f"torque.csv has shape {torque.shape} instead of {q.shape}")
        return torque

    def _write(self, name: str, t: Array, *signals: Array) -> None:
        letters = ("q", "dq", "ddq", "tau")
        heads = [f"{letters[k]}{j + 1}" for k, x in enumerate(signals) for j in range(x.shape[1])]
        np.savetxt(
            self.folder / name,
            np.column_stack([t, *signals]),
            delimiter=",",
            header=",".join(["t", *heads]),
            comments="",
        )

    def _run(self, what: str) -> None:
        subprocess.run([*shlex.split(COMMAND), what, str(self.folder)], check=True, timeout=_SECONDS)
