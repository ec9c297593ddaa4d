"""Small robots and small log files for the tests of the readers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from steelyard.robot.robot import Joint, Link, Robot


def chain(*names: str, slides: tuple[str, ...] = ()) -> Robot:
    """A serial robot; only the names and kinds of its joints matter."""
    kinds = ["prismatic" if name in slides else "revolute" for name in names]
    links = [
        Link(f"link{k}", name, kind, k - 1, np.eye(3), np.zeros(3), np.array([0.0, 0.0, 1.0]), k)
        for k, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    joints = [Joint(name, kind) for name, kind in zip(names, kinds, strict=True)]
    return Robot("chain", tuple(joints), tuple(links))


# One joint; the mesh is never fetched.
URDF = """<robot name="arm"><link name="base"/><link name="upper"><visual><geometry>
<mesh filename="http://127.0.0.1:1/never-fetched.stl"/></geometry></visual>
<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="9" velocity="3"/></joint></robot>
"""


def motion(joints: int = 2, samples: int = 50, period: float = 0.01) -> dict[str, np.ndarray]:
    """t, q, dq, tau of a plausible motion."""
    t = np.arange(samples) * period
    phase = 0.7 * np.arange(1, joints + 1)
    q = np.sin(3.0 * t[:, None] + phase)
    return {"t": t, "q": q, "dq": 3.0 * np.cos(3.0 * t[:, None] + phase), "tau": 5.0 * q + 1.0}


def columns(signals: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns t, q1, q2, …"""
    out: dict[str, np.ndarray] = {}
    for name, x in signals.items():
        out |= {name: x} if x.ndim == 1 else {f"{name}{k + 1}": x[:, k] for k in range(x.shape[1])}
    return out


def write_csv(path: Path, table: dict[str, np.ndarray], delimiter: str = ",") -> Path:
    rows = [delimiter.join(table)]
    rows += [delimiter.join(repr(float(x)) for x in row) for row in zip(*table.values(), strict=True)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def write_parquet(path: Path, table: dict[str, np.ndarray], **options: object) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(table), path, **options)
    return path


def real_logs(folder: str) -> Path:
    """The folder of a real robot's logs; without them the test is skipped."""
    root = os.environ.get("STEELYARD_DATA")
    if not root or not (Path(root) / folder).is_dir():
        pytest.skip(f"STEELYARD_DATA does not lead to the logs of {folder}")
    return Path(root) / folder
