"""Imports optional packages, and explains how to install a missing one.

The requirements of an extra come from the metadata of the installed package. The advice names these packages, because
an index may not have `steelyard[…]`.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

from steelyard.errors import SteelyardError


def import_extra(module: str, extra: str, purpose: str, error: type[SteelyardError] = SteelyardError) -> Any:
    """Import a module of an optional package.

    Args:
        module: Name in `import`, e.g. "pinocchio".
        extra: Extra of pyproject.toml that includes the package.
        purpose: Feature that needs it, as the subject of a sentence: "Collision", "run.bag: reading ROS bags".
        error: Error class if the package is missing; its message explains the installation.
    """
    try:
        return import_module(module)
    except ImportError:
        raise error(f"{purpose} needs the package {module.partition('.')[0]}: {how_to_install(extra)}.") from None


def how_to_install(extra: str) -> str:
    """Return the command that installs the packages of an `extra`, and the one for a checkout."""
    packages = " ".join(f"'{requirement}'" for requirement in extra_requirements(extra))
    checkout = f"pip install -e '.[{extra}]'"
    return f"pip install {packages} (in a checkout: {checkout})" if packages else f"in a checkout, {checkout}"


def extra_requirements(extra: str) -> list[str]:
    """Return the requirements of an `extra` in pip's syntax; an empty list if Steelyard is only on the path."""
    try:
        lines = metadata.requires("steelyard") or []
    except metadata.PackageNotFoundError:
        return []
    requirements = []
    for line in lines:
        requirement, _, condition = line.partition(";")
        if f'extra == "{extra}"' in condition.replace("'", '"'):
            requirements.append(requirement.strip().replace(" ", ""))
    return requirements
