"""What is lost between a drive and the file of a simulator: MuJoCo's rollouts of the written MJCF on real logs.

    STEELYARD_DATA=... python benchmarks/drive_files.py           # results/drive_files.json
    STEELYARD_DATA=... python benchmarks/drive_files.py --quick   # the first split of each servo

For each servo and each left-out group of runs: the drive is identified from the other runs, written for MuJoCo, loaded
there, and rolled out on the left-out runs from the goal alone. Beside it: the full model, and the goal as prediction.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import save

import steelyard as sy

# Servo, and the property of its runs that is left out.
SETS = {"bam_xl330": "kp", "bam_sts3250": "trajectory"}


def split(name: str, property_name: str, quick: bool) -> list[dict[str, Any]]:
    """Return a row for each left-out value of a property."""
    folder = Path(os.environ["STEELYARD_DATA"]) / "actuators" / name
    logs = sy.read_command_logs(folder / "grid200hz.parquet", settings=folder / "logs.parquet")
    values = list(dict.fromkeys(log.label(property_name) for log in logs))
    rows = []
    for value in values[:1] if quick else values:
        judges = [log for log in logs if log.label(property_name) == value]
        begun = time.process_time()
        drive = sy.identify_actuator([log for log in logs if log not in judges], holdout=judges, name=name)
        fitted = time.process_time()
        delivered = drive.for_simulators(joint="servo").delivered
        done = time.process_time()
        assert delivered is not None
        goal = np.mean([run.goal_error for run in drive.runs if run.role == "hold-out"])
        rows.append(
            {
                "set": name, "left_out": f"{property_name} {value}", "friction": drive.model.friction,
                "goal_mrad": 1e3 * float(goal), "full_mrad": 1e3 * drive.error("hold-out"),
                **{f"{r.format}_mrad": 1e3 * r.holdout for r in delivered.replays},
                "fit_cpu_s": fitted - begun, "files_cpu_s": done - fitted,
            }
        )  # fmt: skip
        print({k: round(v, 2) if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first split of each servo")
    quick = parser.parse_args().quick
    if "STEELYARD_DATA" not in os.environ:
        sys.exit("Set STEELYARD_DATA to the folder of the logs.")
    rows = [row for name, key in SETS.items() for row in split(name, key, quick)]
    if not quick:
        save("drive_files", {"rows": rows})


if __name__ == "__main__":
    main()
