"""Saved states of recursive least squares: arrays and one JSON text in an .npz file, refused where they do not fit."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.archives import opened_archive
from steelyard.ground.array_rules import ArrayRule, check_arrays
from steelyard.ground.arrays import Array
from steelyard.ground.files import write_whole
from steelyard.ground.untrusted import parse_json
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.robot import Robot

_FORMAT = "steelyard-recursive-1"
# What must be the same for a state to go on, and how a person calls it.
_NAMES = {
    "robot": "robot",
    "parameters": "terms and base parameters",
    "scheme": "scheme",
    "forgetting": "forgetting",
    "settings": "settings (noise, reset, history or window)",
}


class StateError(SteelyardError):
    """A saved state that cannot be read, or that belongs to something else."""


def identity(robot: Robot, base: BaseParameters, scheme: Any, forgetting: Any, settings: Any) -> dict[str, str]:
    """What a state belongs to, in words: `robot` (hash of structure), `base`, `scheme`, `forgetting`, `settings`."""
    return {
        "robot": f"{robot.name} {'/'.join(robot.joint_names)} {robot.fingerprint[:16]} {robot.torque_used}",
        "parameters": f"{len(base.parameters)} {', '.join(base.names)} {_digest(base.matrix)} {base.terms.terms!r}",
        "scheme": repr(scheme),
        "forgetting": repr(forgetting),
        "settings": repr(settings),
    }


def _digest(array: Array) -> str:
    """A hash of the structure: where the matrix has entries. Their last digits may differ between machines."""
    return hashlib.sha256((np.abs(array) > 1e-9).tobytes()).hexdigest()[:16]


def write_state(path: str | os.PathLike[str], owner: Mapping[str, str], arrays: Mapping[str, Array]) -> None:
    """Write `arrays`, by name, and the `owner` they belong to, to `path` (.npz)."""
    buffer = io.BytesIO()
    head = np.array(json.dumps({"format": _FORMAT, **owner}))
    np.savez(buffer, head=head, **arrays)  # type: ignore[arg-type]
    write_whole(path, buffer.getvalue())


def read_state(path: str | os.PathLike[str], owner: Mapping[str, str]) -> dict[str, Array]:
    """The arrays of a state at `path` that belongs to `owner`."""
    source = Path(path)
    with opened_archive(source, StateError, "saved state of recursive least squares") as archive:
        arrays = archive.arrays()
    head = parse_json(str(arrays.pop("head", "null")), f"{source}: head", StateError)
    if not isinstance(head, dict) or head.get("format") != _FORMAT:
        raise StateError(f"{source}: not a saved state of recursive least squares that this version reads.")
    for key, what in _NAMES.items():
        if head.get(key) != owner[key]:
            raise StateError(
                f"{source}: this state belongs to another {what}: it has {_short(head.get(key))}, here it is "
                f"{_short(owner[key])}; resume it with what it was begun with, or begin anew."
            )
    return arrays


def rules_of(parts: Mapping[str, Any]) -> dict[str, ArrayRule]:
    """Where the saved states of `parts`, by name, may differ from those of new ones."""
    # What the rows of a scheme keep follows the interval of the samples; the scheme compares it.
    rules = {f"rows.{key}": ArrayRule(any_shape=True, unknown=True) for key in parts["rows"].state()}
    for name, part in parts.items():
        rules |= {f"{name}.{key}": rule for key, rule in getattr(part, "state_rules", {}).items()}
    return rules


def read_checked(
    path: str | os.PathLike[str], owner: Mapping[str, str], new: Mapping[str, Array], rules: Mapping[str, ArrayRule]
) -> dict[str, Array]:
    """The arrays of a state at `path` that belongs to `owner`, checked against those of a `new` one by `rules`."""
    return check_arrays(new, read_state(path, owner), rules, str(path), StateError)


@contextmanager
def contradictions_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """In here arrays that fit one by one, and contradict each other, are a sentence about the file at `path`."""
    try:
        yield
    except StateError:
        raise
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, SteelyardError) as why:
        raise StateError(f"{path}: the state contradicts itself ({why}); begin anew.") from None


def _short(text: Any, most: int = 120) -> str:
    words = str(text)
    return f"'{words if len(words) <= most else words[:most] + '…'}'"
