"""Read the joint states of a rosbag2: a folder with metadata.yaml, or a bare .db3 file."""

from __future__ import annotations

from pathlib import Path

from steelyard.errors import LogError
from steelyard.signals.readers.joint_state import read_joint_states
from steelyard.signals.table import Table


def read_rosbag2(path: Path, topic: str | None = None) -> Table:
    if path.is_dir() and not (path / "metadata.yaml").exists():
        raise LogError(f"{path}: is a folder without metadata.yaml, so not a rosbag2; name the log file itself.")
    return read_joint_states(path, topic)
