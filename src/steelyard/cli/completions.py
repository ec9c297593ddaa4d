"""What a shell offers when Tab is pressed.

A shell waits for it at every key, so that the names stand here as a table: asking the registries would import most of
the package. A test holds the table to them; what other packages announce is added by name, and not imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from glob import escape, glob
from pathlib import Path

OFFERED = {
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
    """Completes one name of a `kind` of `OFFERED`."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in _names(kind) if name.startswith(incomplete)]

    return complete


def some_of(kind: str) -> Callable[[str], list[str]]:
    """Completes the last of several names of a `kind` of `OFFERED`, commas between, by one that is not there yet."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        return [f"{before}{comma}{name}" for name in _names(kind) if name.startswith(last) and name not in given]

    return complete


def robots(incomplete: str) -> list[str]:
    """Built-in robots whose names begin like `incomplete`, and files of robots and folders that do."""
    library = Path(__file__).parents[1] / "robot" / "library"
    builtin = sorted(path.stem for path in library.glob("*.yaml"))
    there = sorted(glob(f"{escape(incomplete)}*"))
    files = [f"{p}{os.sep}" if os.path.isdir(p) else p for p in there if os.path.isdir(p) or p.endswith(_ROBOT_FILES)]
    return [name for name in builtin if name.startswith(incomplete)] + files


def _names(kind: str) -> list[str]:
    from importlib.metadata import entry_points

    return list(dict.fromkeys([*OFFERED[kind], *(point.name for point in entry_points(group=f"steelyard.{kind}"))]))
