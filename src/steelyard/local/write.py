"""Run folders of local models beside the bank itself: designed motions, a validation."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LocalError, SteelyardError
from steelyard.export import load_model
from steelyard.ground.files import run_folder
from steelyard.local.bank import Bank, LocalModel
from steelyard.local.identify import GLOBAL
from steelyard.local.motions import MotionLike, motion_from_dict, motion_to_dict
from steelyard.local.region import Region
from steelyard.local.validate import Validation
from steelyard.robot.robot import Robot

SCHEMA = "steelyard.local-motions/1"
_RATE = 500.0


def motions_json(robot: Robot, regions: Sequence[Region], motions: Mapping[str, MotionLike]) -> dict[str, Any]:
    """What was designed, for machines."""
    return {
        "schema": SCHEMA,
        "robot": robot.name,
        "joints": list(robot.joint_names),
        "regions": [
            {
                "name": r.name,
                **r.to_dict(),
                "duration": motions[r.name].duration,
                "trajectory": motion_to_dict(motions[r.name]),
            }
            for r in regions
        ],
    }


def write_motions(
    robot: Robot, regions: Sequence[Region], motions: Mapping[str, MotionLike], folder: Path, *, overwrite: bool = False
) -> None:
    """result.json and a CSV of samples per region; the folder appears whole or not at all."""
    with run_folder(folder, overwrite) as aside:
        text = json.dumps(motions_json(robot, regions, motions), indent=1, ensure_ascii=False, allow_nan=False)
        (aside / "result.json").write_text(text + "\n", "utf-8")
        for region in regions:
            (aside / f"{region.name}.csv").write_text(_samples(robot, motions[region.name]), "utf-8")


def read_motions(folder: str | os.PathLike[str], robot: Robot) -> dict[str, MotionLike]:
    """The motions that `write_motions` wrote, by region."""
    path = Path(folder) / "result.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.get("schema") != SCHEMA:
            raise LocalError(f"{folder}: holds no designed motions; give a folder of `steelyard local design`.")
        if data["joints"] != list(robot.joint_names):
            raise LocalError(f"{folder}: its motions are for joints {', '.join(data['joints'])}, another robot's.")
        return {entry["name"]: motion_from_dict(entry["trajectory"], robot) for entry in data["regions"]}
    except FileNotFoundError:
        raise LocalError(f"{path}: there is no such file; give a folder of `steelyard local design`.") from None
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise LocalError(f"{path}: the motions cannot be read ({error!r}).") from None


def write_validation(found: Validation, page: str, folder: Path, *, overwrite: bool = False) -> None:
    """result.json and the page as report.html; the folder appears whole or not at all."""
    with run_folder(folder, overwrite) as aside:
        text = json.dumps(found.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        (aside / "result.json").write_text(text + "\n", "utf-8")
        (aside / "report.html").write_text(page, "utf-8")


def other_model(bank: Bank, run: str) -> dict[str, LocalModel]:
    """A model for the whole workspace from a run folder of `steelyard identify`, to be held against the bank's."""
    if not run:
        return {}
    inside = sorted(Path(run).glob("*.urdf"))
    if not inside:
        raise SteelyardError(f"{run}: there is no model (.urdf) in this folder; give a run of `steelyard identify`.")
    model = load_model(inside[0])
    if model.robot.joint_names != bank.robot.joint_names:
        raise LocalError(
            f"{run}: the model is that of another robot, with joints {', '.join(model.robot.joint_names)}."
        )
    return {GLOBAL: replace(bank.models[0], model=Model(model.robot, model.terms, model.theta))}


def _samples(robot: Robot, motion: MotionLike) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["t", *(f"{x}_{name}" for x in ("q", "dq", "ddq") for name in robot.joint_names)])
    t = np.arange(int(motion.duration * _RATE) + 1) / _RATE
    writer.writerows(np.column_stack([t, *motion.sample(t)]).tolist())
    return out.getvalue()
