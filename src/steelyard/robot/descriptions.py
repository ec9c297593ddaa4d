"""Find robots by name in the package `robot_descriptions`.

Only files on this machine are read; the package itself would download missing ones without asking.
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


def description_path(name: str) -> Path | None:
    """Return the URDF or MJCF of a robot in `robot_descriptions`; None if the package does not have it.

    Args:
        name: Module name (panda_description, panda_mj_description) or its beginning (panda).
    """
    if not name.isidentifier():
        return None
    if find_spec(_PACKAGE) is None:
        if name.endswith("_description"):
            raise RobotError(
                f"'{name}' is a robot of the package {_PACKAGE}, which is not installed; install it with "
                f"'pip install {_PACKAGE}', or give the path of a file."
            )
        return None
    for module in (name,) if name.endswith("_description") else (f"{name}_description", f"{name}_mj_description"):
        if find_spec(f"{_PACKAGE}.{module}") is not None:
            return _path(module)
    return None


def _path(module: str) -> Path:
    """Return the path of a description whose files are on this machine."""
    full = f"{_PACKAGE}.{module}"
    description = sys.modules.get(full) or _import_offline(full, module)
    for kind in ("URDF_PATH", "MJCF_PATH"):
        if path := vars(description).get(kind):
            return Path(path)
    raise RobotError(f"{full} is neither URDF nor MJCF (xacro, perhaps); convert it to URDF and give its path.")


def _import_offline(full: str, module: str) -> Any:
    """Import the module of a description while the package's downloads are disabled."""
    cache: Any = importlib.import_module(f"{_PACKAGE}._cache")

    def local_folder(url: str, target_dir: str, commit: str | None = None) -> SimpleNamespace:
        if not os.path.isdir(target_dir):
            raise RobotError(
                f"'{module}' of {_PACKAGE} is not on this machine; download it once with '{_PACKAGE} pull {module}' "
                f"(or 'python -c \"import {full}\"')."
            )
        return SimpleNamespace(working_dir=target_dir)

    download = cache.clone_to_directory
    cache.clone_to_directory = local_folder
    try:
        return importlib.import_module(full)
    finally:
        cache.clone_to_directory = download
