"""`steelyard actuator` without options: it chooses drive, friction and effects itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from entries.problem import Array, DriveProblem, Run


class Entry:
    name = "Steelyard"

    def fit(self, problem: DriveProblem) -> None:
        from steelyard import identify_actuator

        self.logs = [self._log(run, str(k)) for k, run in enumerate(problem.runs)]
        self.model = identify_actuator(self.logs).model

    def predict(self, run: Run) -> Array:
        from steelyard.actuators import DRIVE_EFFECTS
        from steelyard.actuators.drive_structure import DriveStructure
        from steelyard.actuators.rollout import Rollouts

        model = self.model
        effects = tuple(e for e in DRIVE_EFFECTS if e in model.parameters)
        structure = DriveStructure(model.kind, model.friction, effects, model.stribeck_exponent)
        log = self._log(replace(run, position=np.full(len(run.t), run.position[0])), "judge")
        volts = np.full(len(log), run.volts if model.kind == "voltage" else 1.0)
        return Rollouts([log], [volts]).simulate(structure, model.parameters)[0]

    def _log(self, run: Run, name: str) -> Any:
        from steelyard.actuators import CommandLog, Load

        return CommandLog(
            name, run.t, run.goal, run.position, Load(run.inertia, run.gravity), duty=run.duty, supply=run.supply,
            torque_enable=run.on, kp=run.gain, volts=run.volts, labels=dict(run.labels),
        )  # fmt: skip
