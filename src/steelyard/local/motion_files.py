"""The motions of regions as a run folder: what `steelyard local design` writes, and read back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import LocalError
from steelyard.excitation.trajectories.trajectory import motion_rows
from steelyard.ground.files import csv_text, read_json
from steelyard.ground.outcome import Content, Outcome
from steelyard.local.motions import MotionLike, motion_from_dict, motion_to_dict
from steelyard.local.region import Region
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from rich.console import Console

_SCHEMA = "steelyard.local-motions/1"
_RATE = 500.0


@dataclass(frozen=True, eq=False)
class RegionMotions(Outcome):
    """A motion for each region, by name, to be played on the robot."""

    robot: Robot
    regions: Sequence[Region]
    motions: Mapping[str, MotionLike]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": _SCHEMA,
            "robot": self.robot.name,
            "joints": list(self.robot.joint_names),
            "regions": [
                {
                    "name": r.name,
                    **r.to_dict(),
                    "duration": self.motions[r.name].duration,
                    "trajectory": motion_to_dict(self.motions[r.name]),
                }
                for r in self.regions
            ],
        }

    def files(self) -> dict[str, Content]:
        """A table of samples per region."""
        return {f"{r.name}.csv": _samples(self.robot, self.motions[r.name]) for r in self.regions}

    def tell(self, out: Console, folder: str = "") -> None:
        lines = [f"{region.name}: {self.motions[region.name].duration:.2f} s" for region in self.regions]
        if folder:
            lines.append(f"Written to {folder}: result.json, a trajectory (JSON, CSV) per region")
        out.print("\n".join(lines), markup=False, soft_wrap=True)


def read_motions(folder: str | os.PathLike[str], robot: Robot) -> dict[str, MotionLike]:
    """The motions of `robot` that `RegionMotions.save` wrote into `folder`, by region."""
    path = Path(folder) / "result.json"
    data = read_json(path, LocalError, "give a folder of `steelyard local design`")
    try:
        if data.get("schema") != _SCHEMA:
            raise LocalError(f"{folder}: holds no designed motions; give a folder of `steelyard local design`.")
        if data["joints"] != list(robot.joint_names):
            raise LocalError(f"{folder}: its motions are for joints {', '.join(data['joints'])}, another robot's.")
        return {entry["name"]: motion_from_dict(entry["trajectory"], robot) for entry in data["regions"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise LocalError(f"{path}: the motions cannot be read ({error!r}).") from None


def _samples(robot: Robot, motion: MotionLike) -> str:
    t = np.arange(int(motion.duration * _RATE) + 1) / _RATE
    return csv_text(motion_rows(robot.joint_names, t, *motion.sample(t)))
