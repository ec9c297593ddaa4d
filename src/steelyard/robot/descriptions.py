"""Robots by their name in `robot_descriptions`, the package that knows where hundreds of descriptions are kept.

Only what is on this machine already is read: the package itself would fetch the rest from the network, unasked.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from steelyard.errors import RobotError

_PACKAGE = "robot_descriptions"


def described(name: str) -> Path | None:
    """The URDF or MJCF that `robot_descriptions` keeps under `name`; None where it knows no such robot.

    Args:
        name: as its module is called (panda_description, panda_mj_description), or its beginning (panda).
    """
    if not name.isidentifier():
        return None
    if find_spec(_PACKAGE) is None:
        if name.endswith("_description"):
            raise RobotError(
                f"'{name}' is a name of the package {_PACKAGE}, which is not installed; install it with "
                f"'pip install {_PACKAGE}', or give the path of a file."
            )
        return None
    for module in (name,) if name.endswith("_description") else (f"{name}_description", f"{name}_mj_description"):
        if find_spec(f"{_PACKAGE}.{module}") is not None:
            return _path(module)
    return None


def _path(module: str) -> Path:
    """Of a description whose files are here."""
    full = f"{_PACKAGE}.{module}"
    found = sys.modules.get(full) or _imported_offline(full, module)
    for kind in ("URDF_PATH", "MJCF_PATH"):
        if path := vars(found).get(kind):
            return Path(path)
    raise RobotError(f"{full} is neither URDF nor MJCF (xacro, perhaps); write it as URDF and give the path of that.")


def _imported_offline(full: str, module: str) -> Any:
    """The module of a description, imported while the package may fetch nothing."""
    cache: Any = importlib.import_module(f"{_PACKAGE}._cache")

    def here(url: str, target_dir: str, commit: str | None = None) -> SimpleNamespace:
        if not os.path.isdir(target_dir):
            raise RobotError(
                f"'{module}' of {_PACKAGE} is not on this machine; fetch it once with '{_PACKAGE} pull {module}' "
                f"(or 'python -c \"import {full}\"'), which asks the network."
            )
        return SimpleNamespace(working_dir=target_dir)

    fetches = cache.clone_to_directory
    cache.clone_to_directory = here
    try:
        return importlib.import_module(full)
    finally:
        cache.clone_to_directory = fetches
