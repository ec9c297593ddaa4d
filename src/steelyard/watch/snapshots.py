"""`Snapshots`: the state of a watch on disk, whole at every moment, so that it goes on after a kill.

A snapshot is a file like any other: it may be damaged, or belong to another watch. Its head names the robot, the model
and the source; its arrays are compared with those of a new watch (`RobotWatch.check_state`) before anything uses them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError, shortened
from steelyard.ground.archives import opened_archive
from steelyard.ground.atomic_files import leftovers, lock_file
from steelyard.ground.files import name_in_errors, write_whole
from steelyard.ground.untrusted import parse_json
from steelyard.watch.parts import PartState

_NOW, _BEFORE, _OLD, _LOCK = "state.npz", "state-before.npz", "state-old.npz", ".steelyard-lock"
# Files of the first format have the mark of the model alone, as an array of their own.
_HEAD, _MODEL, _FORMAT = "head", "model", "steelyard-watch-1"
REMEDY = "name another folder with --state, or begin anew with --fresh"


class SnapshotError(SteelyardError):
    """A folder of states that cannot be used: names it, and what would help."""


class OtherWatchError(SnapshotError):
    """A state that is whole and belongs to another robot, model or source."""


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
        source: what the samples come from, such as "tcp:5005"; a state of another is refused. "" for any.
        fresh: begin anew; a state that is there is set aside as `state-old.npz`.
    """

    def __init__(
        self, folder: str | os.PathLike[str], model: Model, source: str = "", fresh: bool = False
    ) -> None:  # fmt: skip
        self.folder = Path(folder)
        robot = f"{model.robot.name} {model.robot.fingerprint[:16]}"
        self._owner = {"robot": robot, "model": model_mark(model), "source": source}
        with name_in_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.folder / _LOCK, "a")  # noqa: SIM115
        if not lock_file(self._lock):
            raise SnapshotError(f"{folder} is in use by another watch; name another folder, or end that one.")
        for left in leftovers(self.folder):
            with contextlib.suppress(OSError):
                left.path.unlink()
        if fresh:
            self._set_aside()

    def _set_aside(self) -> None:
        with name_in_errors(self.folder):
            # The older one first: what stays in the end is the newer one.
            for name in (_BEFORE, _NOW):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(self.folder / name, self.folder / _OLD)

    def read(self, use: Callable[[PartState], None] = lambda state: None) -> PartState | None:
        """The last state that is whole; None where there is none yet.

        Args:
            use: takes a state and goes on from it; a `SnapshotError` means that it is damaged, and the one before is
                tried.
        """
        damaged = None
        for name in (_NOW, _BEFORE):
            path = self.folder / name
            if not os.path.lexists(path):
                continue
            try:
                state = self._read(path)
            except OtherWatchError:
                raise
            except SnapshotError as error:
                damaged = damaged or error
                continue
            try:
                use(state)
            except OtherWatchError as error:
                raise OtherWatchError(f"{path}: {error}") from None
            except SnapshotError as error:
                damaged = damaged or SnapshotError(f"{path}: {error}")
                continue
            return state
        if damaged is not None:
            raise SnapshotError(f"{str(damaged).rstrip('.')}; {REMEDY}.")
        return None

    def _read(self, path: Path) -> PartState:
        with opened_archive(path, SnapshotError, "state of a watch") as archive:
            arrays = archive.arrays()
        mark = arrays.pop(_MODEL, None)
        head: Any = None if mark is None else {"model": str(mark)}
        if _HEAD in arrays:
            head = parse_json(str(arrays.pop(_HEAD)), f"{path}: head", SnapshotError, REMEDY)
        if not isinstance(head, dict) or not isinstance(head.get("model"), str):
            raise SnapshotError(f"{path}: is not the state of a watch.")
        for key, what in (("robot", "another robot"), ("model", "another model"), ("source", "another source")):
            found, here = head.get(key), self._owner[key]
            if found is not None and here and found != here:
                names = f" ('{shortened(str(found), 60)}', not '{shortened(here, 60)}')" if key != "model" else ""
                raise OtherWatchError(f"{path} is the state of {what}{names}; {REMEDY}.")
        return arrays

    def write(self, state: PartState) -> None:
        """Put a `state` in the place of the one before, which is kept until the next."""
        held = io.BytesIO()
        arrays: dict[str, Any] = {**state, _HEAD: np.array(json.dumps(self._owner))}
        np.savez(held, **arrays)
        now = self.folder / _NOW
        with contextlib.suppress(FileNotFoundError):
            os.replace(now, self.folder / _BEFORE)
        write_whole(now, held.getvalue())

    def close(self) -> None:
        """Let go of the folder."""
        self._lock.close()
