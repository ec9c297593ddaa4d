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
    place = folder / "sage"
    place.mkdir()
    files = {
        "control.csv": "\n".join(f'CONTROL,{t:.2f},"[{math.sin(t):.6f}, 0.0]"' for t in _TIMES),
        "state_motor.csv": "\n".join(f'STATE_MOTOR,{t:.2f},"[{math.sin(t):.6f}, 0.0]"' for t in _TIMES),
    }
    for name, text in files.items():
        (place / name).write_text(f"type,timestamp,positions\n{text}\n")
    (place / "joint_list.txt").write_text("hip\nknee\n")
    for name in files:
        yield (f"sage-{name.split('.')[0]}", ".csv", ((place / name).read_bytes(),), change.change_csv,
               lambda p, name=name: read_command_logs(_beside(p, place, name), joint="hip", **options))  # fmt: skip


def _beside(path: Path, place: Path, name: str) -> Path:
    """A copy of SAGE's folder with another file."""
    folder = path.with_suffix(".sage")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(place, folder)
    shutil.copyfile(path, folder / name)
    return folder
