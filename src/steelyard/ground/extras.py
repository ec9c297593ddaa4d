"""Packages that only some need: how to say which one is missing, and what brings it.

What an extra is made of stands in pyproject.toml, and is read from the installed package's own data. So the advice
works wherever Steelyard came from: it names the packages, and not `steelyard[…]`, which an index may not have.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

from steelyard.errors import SteelyardError


def import_extra(module: str, extra: str, purpose: str, error: type[SteelyardError] = SteelyardError) -> Any:
    """The module, imported; or one sentence that says what cannot be done without it and how to get it.

    Args:
        module: its name in `import`, e.g. "pinocchio".
        extra: the extra of pyproject.toml that brings it.
        purpose: what needs it, as the beginning of a sentence: "Collision", "run.bag: reading ROS bags".
        error: the kind of error to raise.
    """
    try:
        return import_module(module)
    except ImportError:
        raise error(f"{purpose} needs the package {module.partition('.')[0]}: {how_to_install(extra)}.") from None


def how_to_install(extra: str) -> str:
    """The command that installs an extra's packages, and the one for a checkout: "pip install 'pin>=3' (…)".

    Args:
        extra: its name in pyproject.toml.
    """
    packages = " ".join(f"'{requirement}'" for requirement in extra_requirements(extra))
    checkout = f"pip install -e '.[{extra}]'"
    return f"pip install {packages} (in a checkout: {checkout})" if packages else f"in a checkout, {checkout}"


def extra_requirements(extra: str) -> list[str]:
    """What an extra asks for, as pip takes it; nothing where the package is not installed but only on the path.

    Args:
        extra: its name in pyproject.toml.
    """
    try:
        stated = metadata.requires("steelyard") or []
    except metadata.PackageNotFoundError:
        return []
    found = []
    for line in stated:
        requirement, _, condition = line.partition(";")
        if f'extra == "{extra}"' in condition.replace("'", '"'):
            found.append(requirement.strip().replace(" ", ""))
    return found
