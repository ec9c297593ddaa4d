"""Saved states of recursive least squares: arrays and a JSON text in an .npz file, with checks that they match."""

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
from steelyard.ground.untrusted_files import parse_json
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.robot import Robot

_FORMAT = "steelyard-recursive-1"
# Properties that a state and its continuation share, with their names in messages.
_NAMES = {
    "robot": "robot",
    "parameters": "terms and base parameters",
    "scheme": "scheme",
    "forgetting": "forgetting",
    "settings": "settings (noise, reset, history or window)",
}


class StateError(SteelyardError):
    """A saved state is unreadable, or belongs to another robot, scheme or setting."""


def identity(robot: Robot, base: BaseParameters, scheme: Any, forgetting: Any, settings: Any) -> dict[str, str]:
    """Describe what a state belongs to.

    Args:
        robot: The robot; a hash of its structure is used.
        base: Base parameters.
        scheme: Scheme of the rows.
        forgetting: The forgetting.
        settings: Other settings.
    """
    return {
        "robot": f"{robot.name} {'/'.join(robot.joint_names)} {robot.fingerprint[:16]} {robot.torque_used}",
        "parameters": f"{len(base.parameters)} {', '.join(base.names)} {_digest(base.matrix)} {base.terms.terms!r}",
        "scheme": repr(scheme),
        "forgetting": repr(forgetting),
        "settings": repr(settings),
    }


def _digest(array: Array) -> str:
    """Hash of the nonzero pattern; the last digits of the values may differ between machines."""
    return hashlib.sha256((np.abs(array) > 1e-9).tobytes()).hexdigest()[:16]


def write_state(path: str | os.PathLike[str], owner: Mapping[str, str], arrays: Mapping[str, Array]) -> None:
    """Write a state.

    Args:
        path: File (.npz).
        owner: Description of the estimator and robot of this state, by name.
        arrays: Arrays by name.
    """
    buffer = io.BytesIO()
    head = np.array(json.dumps({"format": _FORMAT, **owner}))
    np.savez(buffer, head=head, **arrays)  # type: ignore[arg-type]
    write_whole(path, buffer.getvalue())


def read_state(path: str | os.PathLike[str], owner: Mapping[str, str]) -> dict[str, Array]:
    """Read the arrays of a state and check what it belongs to.

    Args:
        path: File (.npz).
        owner: Description of what the state must belong to.
    """
    source = Path(path)
    with opened_archive(source, StateError, "saved state of recursive least squares") as archive:
        arrays = archive.arrays()
    head = parse_json(str(arrays.pop("head", "null")), f"{source}: head", StateError)
    if not isinstance(head, dict) or head.get("format") != _FORMAT:
        raise StateError(
            f"{source}: this is not a saved state of recursive least squares, or it is from an incompatible version."
        )
    for key, label in _NAMES.items():
        if head.get(key) != owner[key]:
            raise StateError(
                f"{source}: this state belongs to another {label}: {_short(head.get(key))} instead of "
                f"{_short(owner[key])}. Resume with the original {label}, or start again without this state."
            )
    return arrays


def rules_of(parts: Mapping[str, Any]) -> dict[str, ArrayRule]:
    """Return the allowed differences of saved states from new ones, for all `parts` by name."""
    # The size of a scheme's state depends on the sampling interval; the scheme checks it.
    rules = {f"rows.{key}": ArrayRule(any_shape=True, unknown=True) for key in parts["rows"].state()}
    for name, part in parts.items():
        rules |= {f"{name}.{key}": rule for key, rule in getattr(part, "state_rules", {}).items()}
    return rules


def read_checked(
    path: str | os.PathLike[str], owner: Mapping[str, str], new: Mapping[str, Array], rules: Mapping[str, ArrayRule]
) -> dict[str, Array]:
    """Read the arrays of a state and check them against a new one.

    Args:
        path: File (.npz).
        owner: Description of what the state must belong to.
        new: Arrays of a new state.
        rules: Allowed differences.
    """
    return check_arrays(new, read_state(path, owner), rules, str(path), StateError)


@contextmanager
def report_contradictions(path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert errors from inconsistent arrays to a `StateError` that names the file at `path`."""
    try:
        yield
    except StateError:
        raise
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, SteelyardError) as why:
        raise StateError(f"{path}: the state contradicts itself ({why}); start again without it.") from None


def _short(text: Any, most: int = 120) -> str:
    full = str(text)
    return f"'{full if len(full) <= most else full[:most] + '…'}'"
