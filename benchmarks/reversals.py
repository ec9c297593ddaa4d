"""How well reversals of a real UR10e are predicted: only held-out samples at which the joint is slower than 0.05 rad/s.

    STEELYARD_DATA=… python benchmarks/reversals.py

Identified from the 30 s run, judged on four other exciting runs, all filtered at 5 Hz; smoothing and cut-off come from
the identification run alone, the delay was noticed on the others first. Figures are changes against the model with a
bare sign.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import steelyard as sy
from steelyard.signals.prepare import Preparation

SLOW, SCORE = 0.05, 5.0
SAMPLE = 0.0107  # s, the log's period
IDENT = "ident__20_02_10-30sec_12harm"
JUDGED = ("20_02_12-50sec_12harm", "20_02_12-40sec_12harm", "20_02_05-20sec_8harm", "20_02_19_14harm50sec")
SIGN = ("rotor", "viscous", "coulomb:smooth=0", "offset")
STRIBECK = ("rotor", "viscous", "coulomb", "stribeck", "offset")
LATE = Preparation(delay=SAMPLE)
MODELS: dict[str, dict[str, Any]] = {
    "sign": {"terms": SIGN},
    "sign, reversals=0.02": {"terms": SIGN, "scheme": "dynamic:reversals=0.02"},
    "smoothed (default)": {},
    "tuned": {"tune": True},
    "default, one sample late": {"preparation": LATE},
    "tuned, one sample late": {"tune": True, "preparation": LATE},
    "Stribeck shapes, one sample late": {"terms": STRIBECK, "fit_shapes": True, "preparation": LATE},
}


def main() -> None:
    folder = Path(os.environ["STEELYARD_DATA"]) / "ur10e"
    robot = sy.load_robot(folder / "robot.urdf")
    mapping = str(Path(__file__).parent / "maps" / "ur10e.toml")

    def read(name: str) -> sy.Log:
        return sy.read_log(folder / f"{name}.parquet", robot, mapping)

    ident, judged = read(IDENT), [read(f"ident__{name}") for name in JUDGED]
    first: np.ndarray | None = None
    for name, options in MODELS.items():
        found = sy.identify(robot, ident, judged, score_cutoff=SCORE, **options)
        rest = [(s.measured - s.predicted, np.abs(s.dq) < SLOW) for s in found.validation]
        both = [np.concatenate([e[slow[:, k], k] for e, slow in rest]) for k in range(robot.dof)]
        figures = np.array([np.sqrt(np.mean(e**2)) for e in both])
        first = figures if first is None else first
        inside = np.mean([j.nrmse_percent for j in found.identification[0].joints])
        changes = " ".join(f"{100 * (x - 1):+4.0f} %" for x in figures / first)
        print(f"{name:34s} identification {inside:5.2f} %   {changes}   ({', '.join(f'{x:.2f}' for x in figures)} N m)")


if __name__ == "__main__":
    main()
