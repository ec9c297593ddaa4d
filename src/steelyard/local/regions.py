"""Several regions of one robot: read from a file, checked against the robot and each other."""

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
# How many postures stand for a region where boxes of different coordinates are compared.
_SAMPLES = 60


def checked_regions(robot: Robot, regions: Sequence[Region]) -> tuple[Region, ...]:
    """The `regions`, if there are any, their names differ, and `robot` has what they are about."""
    if not regions:
        raise LocalError("There is no region; give at least one.")
    names = [region.name for region in regions]
    for name in names:
        if names.count(name) > 1:
            raise LocalError(f"Two regions are called '{name}'; give every region a name of its own.")
    for region in regions:
        region.check(robot)
    return tuple(regions)


def overlap(robot: Robot, one: Region, other: Region, seed: int = 0) -> float:
    """Which share of the smaller region of `robot`, `one` or the `other`, also belongs to the larger, 0 to 1. Exact for
    boxes of the same coordinates; else from postures drawn in both, by `seed`."""
    if one.comparable(other):
        return one.shared_volume(other) / min(one.volume, other.volume)
    rng = np.random.default_rng(seed)
    here = other.contains(robot, sample_postures(robot, one, _SAMPLES, rng))
    there = one.contains(robot, sample_postures(robot, other, _SAMPLES, rng))
    return float(max(here.mean(), there.mean()))


def read_regions(path: str | os.PathLike[str], robot: Robot) -> tuple[Region, ...]:
    """Regions of `robot` from the YAML, JSON or TOML file `path`.

    A table `regions` of names; each has `lower` and `upper` [x, y, z] (m), and may have `frame`, `offset`, `spread`; or
    it has `joints`, a table of joints with [lower, upper] (rad, m; the file may say `units: deg`).
    """
    source = Path(path)
    entries = Field(read_document(source, LocalError), str(source), error=LocalError).table(("regions",), ("units",))
    degrees = "units" in entries and entries["units"].choice(("deg", "rad")) == "deg"
    found = [_region(robot, name, entry, degrees) for name, entry in entries["regions"].entries().items()]
    return checked_regions(robot, found)


def _region(robot: Robot, name: str, entry: Field, degrees: bool) -> Region:
    if isinstance(entry.value, Mapping) and "joints" in entry.value:
        table = entry.table(("joints",))["joints"]
        bounds = table.table((), robot.joint_names)
        turn = {j.name: np.pi / 180.0 if degrees and j.kind == "revolute" else 1.0 for j in robot.joints}
        pairs = {joint: [turn[joint] * x for x in pair.vector(2)] for joint, pair in bounds.items()}
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
