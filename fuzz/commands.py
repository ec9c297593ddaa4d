"""Command logs as targets: BAM's JSON, SAGE's folders and tables of one drive."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fuzz import mutators as change
from steelyard.actuators.read_commands import read_command_logs

Target = tuple[str, str, tuple[bytes, ...], change.Mutator, Callable[[Path], Any]]

_TIMES = [0.01 * k for k in range(30)]
_BAM = {
    "mass": 0.5, "length": 0.1, "kp": 400, "vin": 7.4, "motor": "xl330", "trajectory": "sin_sin",
    "entries": [
        {"position": math.sin(t), "speed": math.cos(t), "load": 65_500 + k, "input_volts": 7.4, "timestamp": t,
         "goal_position": math.sin(t) + 0.1, "torque_enable": k < 20}
        for k, t in enumerate(_TIMES)
    ],
}  # fmt: skip


def command_targets(folder: Path) -> Iterator[Target]:
    """Readers of command logs; of SAGE's folder, one of its files is changed at a time.

    Args:
        folder: Place for the files that an input stands beside.
    """
    options: dict[str, Any] = {"mass": 0.5, "length": 0.1}
    yield ("bam-log", ".json", (json.dumps(_BAM).encode(),), change.change_json, lambda p: read_command_logs(p))
    rows = "\n".join(f"{t:.2f},{math.sin(t):.6f},{math.sin(t + 0.1):.6f},{7400},400,true" for t in _TIMES)
    table = f"time_s,q_rad,goal_rad,supply_mV,kp,enabled\n{rows}\n".encode()
    yield ("command-table", ".csv", (table,), change.change_csv, lambda p: read_command_logs(p, **options))
    files = {
        "control.csv": "\n".join(f'CONTROL,{t:.2f},"[{math.sin(t):.6f}, 0.0]"' for t in _TIMES),
        "state_motor.csv": "\n".join(f'STATE_MOTOR,{t:.2f},"[{math.sin(t):.6f}, 0.0]"' for t in _TIMES),
    }
    for changed in files:
        place = folder / f"sage-{changed}"
        place.mkdir()
        (place / "joint_list.txt").write_text("hip\nknee\n")
        for name, text in files.items():
            (place / name).write_text(f"type,timestamp,positions\n{text}\n")

        def changed_file(path: Path, target: Path = place / changed) -> None:
            shutil.copyfile(path, target)
            read_command_logs(target.parent, joint="hip", **options)

        seed = (place / changed).read_bytes()
        yield (f"sage-{changed.split('.')[0]}", ".csv", (seed,), change.change_csv, changed_file)
