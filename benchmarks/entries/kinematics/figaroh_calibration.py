"""FIGAROH's calibration (1.0.2) with all placements of the joints and its structural choice of parameters."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from entries.problem import Array, MissingError, PoseProblem


class Entry:
    name = "FIGAROH"

    def fit(self, problem: PoseProblem) -> None:
        warnings.simplefilter("ignore")
        try:
            from figaroh.calibration.base_calibration import BaseCalibration
            from figaroh.calibration.calibration_tools import calc_updated_fkm
        except ImportError as error:
            raise MissingError("pip install figaroh") from error
        self.predicted = calc_updated_fkm

        class Calibration(BaseCalibration):
            def cost_function(self, var: Array) -> Array:
                estimate = calc_updated_fkm(self.model, self.data, var, self.q_measured, self.calib_config)
                return self.apply_measurement_weighting(self.PEE_measured - estimate)

        logging.disable(logging.WARNING)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            calibration: Any = Calibration(self._robot(problem), self._written(problem, Path(folder)))
            calibration.calib_config |= {"known_baseframe": False, "known_tipframe": False}
            calibration.initialize()
            calibration.solve(enable_logging=False)
        logging.disable(logging.NOTSET)
        self.calibration, self.count = calibration, problem.points.shape[1]

    def predict(self, q: Array, before: Array) -> Array:
        own = self.calibration
        config = own.calib_config | {"NbSample": len(q)}
        flat = self.predicted(own.model, own.data, own.LM_result.x, q, config)
        return np.asarray(flat).reshape(self.count, 3, len(q)).transpose(2, 0, 1)

    def _robot(self, problem: PoseProblem) -> Any:
        model = problem.pinocchio()

        class Wrapper:
            def __init__(self) -> None:
                self.model, self.data = model, model.createData()
                self.q0 = np.zeros(model.nq)

        return Wrapper()

    def _written(self, problem: PoseProblem, folder: Path) -> str:
        points = problem.points
        names = [f"{x}{k + 1}" for k in range(points.shape[1]) for x in "xyz"]
        whole = np.isfinite(points).all(axis=(1, 2))
        rows = np.column_stack([problem.q, points.reshape(len(points), -1)])[whole]
        header = ",".join([*problem.joints, *names])
        np.savetxt(folder / "poses.csv", rows, delimiter=",", header=header, comments="")
        marker = {"ref_joint": problem.joints[-1], "measurable_dof": [True] * 3 + [False] * 3}
        config = {"robot": {"name": "robot"}, "tasks": {"calibration": {
            "enabled": True, "joints": {"active_joints": list(problem.joints)},
            "kinematics": {"base_frame": "universe", "tool_frame": problem.pinocchio().frames[-1].name},
            "parameters": {"calibration_level": "full_params", "estimation": {"method": "structural"}},
            "measurements": {"markers": [marker] * points.shape[1],
                             "poses": {"base_pose": [0] * 6, "tool_pose": [0] * 6}},
            "data": {"number_of_samples": len(rows), "source_file": str(folder / "poses.csv")}}}}  # fmt: skip
        (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
        return str(folder / "config.yaml")
