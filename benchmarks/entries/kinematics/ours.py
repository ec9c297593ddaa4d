"""`steelyard calibrate` without options: it sees the poses of the fit, and chooses the model itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from entries.problem import Array, PoseProblem


class Entry:
    name = "Steelyard"

    def fit(self, problem: PoseProblem) -> None:
        from steelyard import calibrate, load_robot

        self.robot = load_robot(problem.urdf, joints=list(problem.joints), snap=0.0)
        self.found, self.count = (
            calibrate(self.robot, self._table(problem.q, problem.before, problem.points)),
            (problem.points.shape[1]),
        )

    def predict(self, q: Array, before: Array) -> Array:
        nothing = np.zeros((len(q), self.count, 3))
        residuals = self.found.residuals(self._table(q, before, nothing))
        return np.asarray(residuals.reshape(len(q), -1, 3))

    def _table(self, q: Array, before: Array, points: Array) -> Any:
        from steelyard import read_poses

        columns = {name: q[:, k] for k, name in enumerate(self.robot.joint_names)}
        columns |= {f"p{k + 1}{x}_m": points[:, k, i] for k in range(points.shape[1]) for i, x in enumerate("xyz")}
        return replace(read_poses(columns, self.robot), approach=np.sign(q - before))
