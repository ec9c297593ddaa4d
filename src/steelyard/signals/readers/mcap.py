"""Read the joint states of an MCAP file."""

from __future__ import annotations

from pathlib import Path

from steelyard.errors import LogError
from steelyard.signals.readers.joint_state import read_joint_states
from steelyard.signals.table import Table

MAGIC = b"\x89MCAP0\r\n"


def read_mcap(path: Path, topic: str | None = None) -> Table:
    """The joint states of one topic. A recording that was cut off lacks the closing mark and is refused."""
    with path.open("rb") as file:
        opening = file.read(len(MAGIC))
        file.seek(0, 2)
        file.seek(max(0, file.tell() - len(MAGIC)))
        closing = file.read()
    if opening != MAGIC:
        raise LogError(f"{path}: is not an MCAP file.")
    if closing != MAGIC:
        raise LogError(f"{path}: the MCAP file is cut short; mend it with `mcap recover`, or copy it again.")
    return read_joint_states(path, topic)
