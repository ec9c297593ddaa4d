"""`Snapshots`: the state of a watch on disk, complete at every moment, so that a watch continues after a kill.

A snapshot may be damaged or belong to another watch. Its head names the robot, the model and the source. Its arrays are
compared with those of a new watch (`RobotWatch.check_state`) before use.
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
from steelyard.ground.untrusted_files import parse_json
from steelyard.watch.monitor_base import StateArrays

_NOW, _BEFORE, _OLD, _LOCK = "state.npz", "state-before.npz", "state-old.npz", ".steelyard-lock"
# Files of the first format have an array with the digest of the model instead of a head.
_HEAD, _MODEL, _FORMAT = "head", "model", "steelyard-watch-1"
REMEDY = "give another folder with --state, or start from scratch with --fresh"


class SnapshotError(SteelyardError):
    """A state that cannot be used; the message names the file and a remedy."""


class ForeignSnapshotError(SnapshotError):
    """An intact state of another robot, model or source."""


def model_digest(model: Model) -> str:
    """Return a digest of a `model`: its robot, terms and parameters."""
    digest = hashlib.sha256(_FORMAT.encode())
    digest.update(f"{model.robot.fingerprint} {model.robot.joint_names} {model.terms.terms!r}".encode())
    digest.update(np.ascontiguousarray(model.theta, dtype="<f8").tobytes())
    return digest.hexdigest()[:32]


class Snapshots:
    """Stores the states of one watch in a folder, which this process locks.

    Args:
        folder: The folder; created if necessary.
        model: Model of the watch; a state of another model is refused.
        source: Name of the source, such as "tcp:5005"; a state of another source is refused. "" for any.
        fresh: Whether to start from scratch and rename an existing state to `state-old.npz`.
    """

    def __init__(
        self, folder: str | os.PathLike[str], model: Model, source: str = "", fresh: bool = False
    ) -> None:  # fmt: skip
        self.folder = Path(folder)
        robot = f"{model.robot.name} {model.robot.fingerprint[:16]}"
        self._owner = {"robot": robot, "model": model_digest(model), "source": source}
        with name_in_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.folder / _LOCK, "a")  # noqa: SIM115
        if not lock_file(self._lock):
            raise SnapshotError(f"{folder} is in use by another watch; give another folder, or end that watch.")
        for leftover in leftovers(self.folder):
            with contextlib.suppress(OSError):
                leftover.path.unlink()
        if fresh:
            self._rename_old()

    def _rename_old(self) -> None:
        with name_in_errors(self.folder):
            # The older one first, so that the newer one remains.
            for name in (_BEFORE, _NOW):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(self.folder / name, self.folder / _OLD)

    def read(self, use: Callable[[StateArrays], None] = lambda state: None) -> StateArrays | None:
        """Return the last intact state, or None without files.

        Args:
            use: Restores a state. If it raises `SnapshotError`, the state is damaged, and the previous one is tried.
        """
        damaged = None
        for name in (_NOW, _BEFORE):
            path = self.folder / name
            if not os.path.lexists(path):
                continue
            try:
                state = self._read(path)
            except ForeignSnapshotError:
                raise
            except SnapshotError as error:
                damaged = damaged or error
                continue
            try:
                use(state)
            except ForeignSnapshotError as error:
                raise ForeignSnapshotError(f"{path}: {error}") from None
            except SnapshotError as error:
                damaged = damaged or SnapshotError(f"{path}: {error}")
                continue
            return state
        if damaged is not None:
            raise SnapshotError(f"{str(damaged).rstrip('.')}; {REMEDY}.")
        return None

    def _read(self, path: Path) -> StateArrays:
        with opened_archive(path, SnapshotError, "state of a watch") as archive:
            arrays = archive.arrays()
        digest = arrays.pop(_MODEL, None)
        head: Any = None if digest is None else {"model": str(digest)}
        if _HEAD in arrays:
            head = parse_json(str(arrays.pop(_HEAD)), f"{path}: head", SnapshotError, REMEDY)
        if not isinstance(head, dict) or not isinstance(head.get("model"), str):
            raise SnapshotError(f"{path}: is not the state of a watch.")
        for key, what in (("robot", "another robot"), ("model", "another model"), ("source", "another source")):
            saved, own = head.get(key), self._owner[key]
            if saved is not None and own and saved != own:
                names = f" ('{shortened(str(saved), 60)}', not '{shortened(own, 60)}')" if key != "model" else ""
                raise ForeignSnapshotError(f"{path} is the state of {what}{names}; {REMEDY}.")
        return arrays

    def write(self, state: StateArrays) -> None:
        """Write a `state`; the previous file stays until the next write."""
        data = io.BytesIO()
        arrays: dict[str, Any] = {**state, _HEAD: np.array(json.dumps(self._owner))}
        np.savez(data, **arrays)
        now = self.folder / _NOW
        with contextlib.suppress(FileNotFoundError):
            os.replace(now, self.folder / _BEFORE)
        write_whole(now, data.getvalue())

    def close(self) -> None:
        """Unlock the folder."""
        self._lock.close()
