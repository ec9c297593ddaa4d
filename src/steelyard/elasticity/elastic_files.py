"""Files of a run of elastic joints: C code, and an MJCF with rotors and springs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.dynamics.model import Model
from steelyard.elasticity.elastic_c import elastic_c
from steelyard.elasticity.elastic_mjcf import elastic_to_mjcf
from steelyard.export._bodies import impossible_links
from steelyard.export._mjcf_edit import is_mjcf
from steelyard.ground.outcome import Content

if TYPE_CHECKING:
    from steelyard.elasticity.elasticity import Elasticity


def elastic_files(elasticity: Elasticity, name: str) -> dict[str, Content]:
    """Return the files of a run by name; an empty mapping if no stiffness is known.

    Args:
        elasticity: Elastic joints.
        name: Name of the robot, as a file name.
    """
    if not elasticity.known:
        return {}
    prefix = re.sub(r"[^A-Za-z0-9_]", "_", name)
    prefix = prefix if re.match(r"[A-Za-z]", prefix) else f"robot_{prefix}"
    header, source = elastic_c(elasticity, prefix)
    out: dict[str, Content] = {f"{prefix}_elastic.h": header, f"{prefix}_elastic.c": source}

    def write_mjcf(path: Path) -> None:
        elastic_to_mjcf(elasticity, path)

    if _can_be_mjcf(elasticity):
        out[f"{name}_elastic.xml"] = write_mjcf
    return out


def _can_be_mjcf(elasticity: Elasticity) -> bool:
    """Return whether MuJoCo accepts the robot's bodies."""
    if elasticity.source is not None and is_mjcf(elasticity.source):
        return True
    return bool(elasticity.robot.has_inertia) and not impossible_links(Model.nominal(elasticity.robot))
