"""Completions for the shell's Tab key.

Completion must be fast, so the names are listed in a table: the registries would import most of the package. A test
compares the table with the registries. Plug-ins are added by name, without importing them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from glob import escape, glob
from pathlib import Path

COMPLETIONS = {
    "terms": (
        "viscous", "viscous-asymmetric", "viscous-saturating", "quadratic", "coulomb", "coulomb-asymmetric", "stribeck",
        "stribeck-atan", "friction-table", "stop", "stop-loaded", "coulomb-loaded", "lag", "rotor", "offset", "spring",
        "ripple", "counterbalance",
    ),
    "schemes": ("dynamic", "power", "filtered-dynamic", "filtered-power", "momentum", "energy"),
    "estimators": (
        "wls", "ols", "ridge", "bisquare", "huber", "tls", "rtls", "physical", "rls", "didim", "iv", "ml", "clie",
        "cloe", "srekf", "ekf", "srcdkf", "cdkf", "srckf", "ckf", "srukf", "ukf", "pf", "adaline", "hopfield",
        "hopfield-tank",
    ),
    "papers": ("rotradi", "irp6", "szabo3r", "prrrp", "ns16", "all"),
    "families": ("fourier", "bspline", "quintic", "acceleration"),
    "criteria": ("cond", "information", "frobenius", "d", "a", "e", "sigma"),
    "optimisers": ("gradient", "ga", "cma"),
}  # fmt: skip
_ROBOT_FILES = (".urdf", ".xml", ".yaml", ".yml", ".toml")


def one_of(kind: str) -> Callable[[str], list[str]]:
    """Return a function that completes one name of a `kind` of `COMPLETIONS`."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in _names(kind) if name.startswith(incomplete)]

    return complete


def some_of(kind: str) -> Callable[[str], list[str]]:
    """Return a function that completes the last of several comma-separated names of a `kind` of `COMPLETIONS`."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        used = before.split(",")
        return [f"{before}{comma}{name}" for name in _names(kind) if name.startswith(last) and name not in used]

    return complete


def robots(incomplete: str) -> list[str]:
    """Return built-in robots, robot files and folders whose names start with `incomplete`."""
    library = Path(__file__).parents[1] / "robot" / "library"
    builtin = sorted(path.stem for path in library.glob("*.yaml"))
    paths = sorted(glob(f"{escape(incomplete)}*"))
    files = [f"{p}{os.sep}" if os.path.isdir(p) else p for p in paths if os.path.isdir(p) or p.endswith(_ROBOT_FILES)]
    return [name for name in builtin if name.startswith(incomplete)] + files


def _names(kind: str) -> list[str]:
    from importlib.metadata import entry_points

    return list(dict.fromkeys([*COMPLETIONS[kind], *(point.name for point in entry_points(group=f"steelyard.{kind}"))]))
