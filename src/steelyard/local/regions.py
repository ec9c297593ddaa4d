"""Reads the regions of a robot from a file and checks them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import LocalError
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.local.motions import sample_postures
from steelyard.local.region import CartesianRegion, JointRegion, Region
from steelyard.robot.robot import Robot

_CARTESIAN = ("frame", "lower", "upper", "offset", "spread")
# Number of random postures that represent a region when boxes of different kinds are compared.
_SAMPLES = 60


def check_regions(robot: Robot, regions: Sequence[Region]) -> tuple[Region, ...]:
    """Check that there are regions, that their names differ and that they fit the robot.

    Args:
        robot: The robot.
        regions: The regions, which are returned.
    """
    if not regions:
        raise LocalError("No region is given; at least one is needed.")
    names = [region.name for region in regions]
    for name in names:
        if names.count(name) > 1:
            raise LocalError(f"Two regions are called '{name}'; give each region a different name.")
    for region in regions:
        region.check(robot)
    return tuple(regions)


def overlap(robot: Robot, one: Region, other: Region, seed: int = 0) -> float:
    """Compute which share of the smaller of two regions also belongs to the other one, 0 to 1.

    The share is exact for boxes of the same coordinates, else it is estimated from random postures.

    Args:
        robot: The robot.
        one: First region.
        other: Second region.
        seed: Seed of the random postures.
    """
    if one.comparable(other):
        return one.shared_volume(other) / min(one.volume, other.volume)
    rng = np.random.default_rng(seed)
    in_other = other.contains(robot, sample_postures(robot, one, _SAMPLES, rng))
    in_one = one.contains(robot, sample_postures(robot, other, _SAMPLES, rng))
    return float(max(in_other.mean(), in_one.mean()))


def read_regions(path: str | os.PathLike[str], robot: Robot) -> tuple[Region, ...]:
    """Read regions from a YAML, JSON or TOML file.

    The file has a table `regions` with one entry per region: `lower` and `upper` (x, y, z in m), optionally `frame`,
    `offset` and `spread`; or `joints`, a table of joints with (lower, upper) in rad or m (`units: deg` in the file:
    degrees).

    Args:
        path: The file.
        robot: Robot of the regions.
    """
    source = Path(path)
    entries = Field(read_document(source, LocalError), str(source), error=LocalError).table(("regions",), ("units",))
    degrees = "units" in entries and entries["units"].choice(("deg", "rad")) == "deg"
    regions = [_region(robot, name, entry, degrees) for name, entry in entries["regions"].entries().items()]
    return check_regions(robot, regions)


def _region(robot: Robot, name: str, entry: Field, degrees: bool) -> Region:
    if isinstance(entry.value, Mapping) and "joints" in entry.value:
        table = entry.table(("joints",))["joints"]
        bounds = table.table((), robot.joint_names)
        scale = {j.name: np.pi / 180.0 if degrees and j.kind == "revolute" else 1.0 for j in robot.joints}
        pairs = {joint: [scale[joint] * x for x in pair.vector(2)] for joint, pair in bounds.items()}
        return JointRegion.of(robot, name, {joint: (low, high) for joint, (low, high) in pairs.items()})
    keys = entry.table(("lower", "upper"), _CARTESIAN)
    more: dict[str, Any] = {}
    if "frame" in keys:
        more["frame"] = keys["frame"].text()
    if "offset" in keys:
        more["offset"] = tuple(keys["offset"].vector(3))
    if "spread" in keys:
        more["half_width"] = keys["spread"].positive()
    return CartesianRegion(name, np.array(keys["lower"].vector(3)), np.array(keys["upper"].vector(3)), **more)
