"""How many samples of hold-outs lie inside the 95 % torque band, robot by robot.

    STEELYARD_DATA=... python benchmarks/bands.py

The default command identifies on the splits of the scoreboard; the band is that of the report.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scoreboard import ours
from scoreboard_sets import CASES

from steelyard.errors import SteelyardError
from steelyard.identification.identification import Identification
from steelyard.identification.torque_parts import prediction_band


def inside(found: Identification) -> np.ndarray:
    """The share of samples inside the band, joint by joint, over all logs that judge."""
    shares, counts = [], []
    for score in found.validation:
        band = prediction_band(found, score)
        assert band is not None
        shares.append(np.mean(np.abs(score.measured - score.predicted) <= band, axis=0))
        counts.append(len(score.t))
    return np.average(shares, axis=0, weights=counts)


def main() -> None:
    data, means, least = Path(os.environ["STEELYARD_DATA"]), [], []
    for name, case in CASES.items():
        try:
            # The score's cut-off is that of the fit, as the default command has it.
            found, _ = ours(case, data, check=False, score_cutoff_hz=None)
        except SteelyardError as error:
            print(f"{name:18} {error}")
            continue
        shares = inside(found)
        means.append(shares.mean())
        least.append(shares.min())
        print(f"{name:18} mean {100 * means[-1]:5.1f} %, worst joint {100 * least[-1]:5.1f} %", flush=True)
    print(f"{'all':18} mean {100 * np.mean(means):5.1f} %, worst joint {100 * min(least):5.1f} %")


if __name__ == "__main__":
    main()
