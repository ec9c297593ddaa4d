"""`Snapshots`: the state of a watch on disk, whole at every moment, so that it goes on after a kill."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.ground.archives import opened_archive
from steelyard.ground.files import named, write_whole
from steelyard.ground.places import abandoned, hold
from steelyard.watch.parts import PartState

_NOW, _BEFORE, _LOCK = "state.npz", "state-before.npz", ".steelyard-lock"
_MODEL, _FORMAT = "model", "steelyard-watch-1"


class SnapshotError(SteelyardError):
    """A folder of states that cannot be used: names it, and what would help."""


def model_mark(model: Model) -> str:
    """What tells a `model` from all others: its robot, terms and numbers."""
    digest = hashlib.sha256(_FORMAT.encode())
    digest.update(f"{model.robot.fingerprint} {model.robot.joint_names} {model.terms!r}".encode())
    digest.update(np.ascontiguousarray(model.theta, dtype="<f8").tobytes())
    return digest.hexdigest()[:32]


class Snapshots:
    """The states of one watch in a folder of its own, which this process holds alone.

    Args:
        folder: made if need be.
        model: that the robot is watched by; a state of another is refused.
    """

    def __init__(self, folder: str | os.PathLike[str], model: Model) -> None:
        self.folder, self._mark = Path(folder), model_mark(model)
        with named(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.folder / _LOCK, "a")  # noqa: SIM115
        if not hold(self._lock):
            raise SnapshotError(f"{folder} is in use by another watch; name another folder, or end that one.")
        for left in abandoned(self.folder):
            with contextlib.suppress(OSError):
                left.path.unlink()

    def read(self) -> PartState | None:
        """The last state that is whole; None where there is none yet."""
        damaged = None
        for name in (_NOW, _BEFORE):
            path = self.folder / name
            if not path.exists():
                continue
            try:
                with opened_archive(path, SnapshotError, "state of a watch") as archive:
                    arrays = archive.arrays()
            except SnapshotError as error:
                damaged = error
                continue
            if str(arrays.pop(_MODEL, "")) != self._mark:
                raise SnapshotError(f"{path} is the state of another model; name another folder for this one.")
            return arrays
        if damaged is not None:
            raise damaged
        return None

    def write(self, state: PartState) -> None:
        """Put a `state` in the place of the one before, which is kept until the next."""
        held = io.BytesIO()
        arrays: dict[str, Any] = {**state, _MODEL: np.array(self._mark)}
        np.savez(held, **arrays)
        now = self.folder / _NOW
        with contextlib.suppress(FileNotFoundError):
            os.replace(now, self.folder / _BEFORE)
        write_whole(now, held.getvalue())

    def close(self) -> None:
        """Let go of the folder."""
        self._lock.close()
