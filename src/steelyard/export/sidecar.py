"""The sidecar of an exported robot: JSON with what URDF cannot hold (schema: docs/using-the-model.md)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.ground.arrays import Array
from steelyard.ground.files import write_whole
from steelyard.parameters.term import TERMS
from steelyard.robot.robot import Joint, Robot
from steelyard.robot.transmission import BallScrew, ConstantRatio, Ratio, Transmission

SCHEMA = "steelyard.sidecar/1"
SUFFIX = ".steelyard.json"


@dataclass(frozen=True, eq=False)
class SidecarLink:
    """A link with the frame, in its joint frame, that its ten parameters are about."""

    name: str
    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))


@dataclass(frozen=True)
class SidecarTerm:
    """A joint term as plain data: `values` run over the coordinates, then over the term's own parameters."""

    kind: str
    on: str
    where: tuple[str, ...] | None
    options: Mapping[str, Any]
    values: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Sidecar:
    """All that a model is beside the kinematics and inertias of its description."""

    robot: str
    gravity: tuple[float, ...]
    joints: tuple[Joint, ...]
    torque_used: tuple[bool, ...]
    links: tuple[SidecarLink, ...]
    lengths: Mapping[str, float]
    transmission: Transmission | None
    terms: tuple[SidecarTerm, ...]


def sidecar_path(description: str | os.PathLike[str]) -> Path:
    """Where the sidecar of a description stands: `arm.urdf` has `arm.steelyard.json`."""
    path = Path(description)
    return path.with_name(path.stem + SUFFIX)


def model_to_sidecar(model: Model, path: str | os.PathLike[str]) -> None:
    """Write the sidecar of a model, whose inertias and kinematics go into a URDF or MJCF beside it."""
    robot = model.robot
    data = {
        "schema": SCHEMA,
        "robot": robot.name,
        "gravity": [float(g) for g in robot.gravity],
        "joints": [_joint(robot, k) for k in range(robot.dof)],
        "links": [_link(robot, k) for k in range(len(robot.links))],
        "lengths": {name: float(x) for name, x in robot.lengths.items()},
        "transmission": None if robot.transmission is None else _transmission(robot.transmission),
        "terms": _terms(model),
    }
    write_whole(path, json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _joint(robot: Robot, k: int) -> dict[str, Any]:
    joint = robot.joints[k]
    limits = {name: getattr(joint, name) for name in ("lower", "upper", "velocity", "effort")}
    finite = {name: float(x) for name, x in limits.items() if math.isfinite(x)}
    return {"name": joint.name, "kind": joint.kind, "torque_used": bool(robot.torque_used[k]), **finite}


def _link(robot: Robot, k: int) -> dict[str, Any]:
    link = robot.links[k]
    if not link.own_frame:
        return {"name": link.name}
    frame = {"rotation": link.frame_rotation.tolist(), "translation": link.frame_translation.tolist()}
    return {"name": link.name, "frame": frame}


def _transmission(transmission: Transmission) -> dict[str, Any]:
    return {
        "motors": list(transmission.motors),
        "motor_from_joint": transmission.matrix.tolist(),
        "ratios": [_ratio(ratio, motor) for ratio, motor in zip(transmission.ratios, transmission.motors, strict=True)],
    }


def _ratio(ratio: Ratio, motor: str) -> Any:
    if isinstance(ratio, ConstantRatio):
        return float(ratio.ratio)
    if isinstance(ratio, BallScrew):
        return {"ball_screw": {f.name: float(getattr(ratio, f.name)) for f in fields(ratio)}}
    raise ExportError(f"The ratio of motor '{motor}' is a {type(ratio).__name__}, which a sidecar cannot hold.")


def _terms(model: Model) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    first = model.robot.inertial_count
    parameters = model.dynamics.parameters
    for term in model.terms.terms:
        count = len(term.columns) * sum(1 for other, _ in model.terms.placed if other is term)
        block = slice(first, first + count)
        out.append(
            {
                "kind": term.name,
                "on": term.on,
                "where": None if term.where is None else list(term.where),
                # A term of your own is Python, which no file holds.
                "options": term.options if term.kind in TERMS else {},
                "parameters": [
                    {"name": p.name, "unit": p.unit, "value": float(value)}
                    for p, value in zip(parameters[block], model.theta[block], strict=True)
                ],
            }
        )
        first += count
    return out
