"""Files of a matched robot: descriptions with its drives, parameters, draws and JSON.

In an MJCF, each matched joint gets a position drive, which replaces the joint's actuator.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.dynamics import Model
from steelyard.export import ModelExport
from steelyard.export._xml_text import Document, number, numbers, tag
from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Content
from steelyard.matching.joint_drives import Drives
from steelyard.matching.match_coordinates import GAIN_FACTORS, JOINT_BLOCKS
from steelyard.matching.rollout_score import MotionScore
from steelyard.matching.window_fit import WindowFit, fit_windows
from steelyard.matching.window_rollout import Physics

if TYPE_CHECKING:
    from steelyard.matching.match_result import Match, MatchedNumber


def match_files(match: Match) -> dict[str, Content]:
    """Return the files of a `match`: URDF, MJCF with drives, tables of parameters and draws."""
    source = Path(match.robot.source) if match.robot.source else None
    usable = source if source is not None and source.is_file() else None
    out: dict[str, Content] = dict(ModelExport(match.model, ("urdf",), source=usable).files())
    out |= mjcf_files(match, usable)
    out["parameters.csv"] = _parameters_csv(match)
    out["draws.csv"] = _draws_csv(match)
    return out


def mjcf_files(match: Match, source: Path | None) -> dict[str, Content]:
    """Return the MJCF with rotor inertias, friction and position drives.

    Args:
        match: Matched robot.
        source: Original description; an MJCF is edited in place.
    """
    fit = match.for_mujoco
    point = fit.point
    model = Model(match.robot, match.terms, fit.coordinates.theta(fit.z))
    plain = ModelExport(model, ("mjcf",), source=source).files()

    def writer(content: Content) -> Callable[[Path], object]:
        def write(path: Path) -> None:
            if callable(content):
                content(path)
            else:
                path.write_text(content, "utf-8")
            path.write_bytes(with_position_drives(path, match.robot.joint_names, point.drives, point.bias))

        return write

    return {name: writer(content) if name.endswith(".xml") else content for name, content in plain.items()}


def match_json(match: Match) -> dict[str, Any]:
    """Return a `match` as plain data."""
    from steelyard.matching.rollout_score import match_verdict

    verdict = match_verdict(match)
    fit, d = match.fit, match.drives
    return {
        "robot": match.robot.name,
        "joints": list(match.robot.joint_names),
        "verdict": {"kind": verdict.kind, "headline": verdict.headline, "points": list(verdict.points)},
        "drives": {
            "kp": d.kp.tolist(), "kd": d.kd.tolist(), "limit": [float(x) if np.isfinite(x) else None for x in d.limit],
            "delay_s": d.delay, "delayed": d.delayed,
        },
        "mjcf": _mjcf_json(match),
        "scores": {name: _score_json(s) for name, s in match.scores.items()},
        "joint_numbers": [_number_json(n) for n in match.joint_numbers],
        "base_parameters": [_number_json(n) for n in match.base_numbers],
        "links": [_number_json(n) for n in match.link_numbers],
        "at_description": list(match.at_description),
        "frequency": [
            {"joint": s.joint, "missed_hz": s.missed_hz, "missed_share": s.missed} for s in match.spectra
        ],
        "fit": {
            "windows": len(fit.windows), "window_s": fit.windows.duration, "steps_per_sample": match.steps,
            "rounds": fit.rounds, "converged": fit.converged, "diverged": list(fit.diverged),
            "noise": fit.noise.tolist(), "correlated_samples": fit.correlation_time.tolist(),
            "description_std": fit.coordinates.link_std, "inflation": match.posterior.inflation,
        },
        "why_null": {
            "drives/limit/*": "The limit of the drive is not stated.",
            "frequency/*/missed_hz": "The response is right at all excited frequencies.",
        },
    }  # fmt: skip


def _mjcf_json(match: Match) -> dict[str, Any]:
    """Drives of the MJCF, which delay only the goals, and the errors of its rollouts."""
    d = match.for_mujoco.point.drives
    return {"kp": d.kp.tolist(), "kd": d.kd.tolist(), "delay_s": d.delay, "score": _score_json(match.score_in_mujoco)}


def _score_json(s: MotionScore) -> dict[str, Any]:
    return {
        "window_s": s.window_s, "windows_rms": s.windows_rms.tolist(), "run_rms": s.run_rms.tolist(),
        "motion_std": s.size.tolist(), "diverged": s.diverged,
    }  # fmt: skip


def _number_json(n: MatchedNumber) -> dict[str, Any]:
    return {
        "name": n.name, "on": n.on, "unit": n.unit, "value": n.value, "standard_error": n.standard_error,
        "low": n.value - n.half_width, "high": n.value + n.half_width, "description": n.before,
        "informed": n.informed, "from_logs": n.from_logs,
    }  # fmt: skip


def _parameters_csv(match: Match) -> str:
    head = ("name", "on", "unit", "value", "low", "high", "description", "informed")
    rows = [
        (n.name, n.on, n.unit, n.value, n.value - n.half_width, n.value + n.half_width, n.before, n.informed)
        for n in (*match.joint_numbers, *match.base_numbers, *match.link_numbers)
    ]
    return _csv(head, rows)


def _draws_csv(match: Match) -> str:
    """One row per draw: the numbers for randomisation in a simulator, with their posterior correlations."""
    joints = match.robot.joint_names
    names = [p.name for p in match.model.dynamics.parameters]
    blocks = [name for name in ("bias", "kp", "kd", "limit") if name in match.fit.coordinates.fit]
    head = [*names, *(f"{name}:{j}" for name in blocks for j in joints), "delay"]
    rows = []
    for z in match.draws:
        p = match.fit.coordinates.point(z)
        own = {"bias": p.bias, "kp": p.drives.kp, "kd": p.drives.kd, "limit": p.drives.limit}
        theta = match.fit.coordinates.theta(z)
        rows.append((*theta, *(x for name in blocks for x in own[name]), p.drives.delay))
    return _csv(head, rows)


def _csv(head: Any, rows: Any) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([[float(x) if isinstance(x, np.floating | float) else x for x in row] for row in rows])
    return text.getvalue()


# Shortest supported step of a simulation [s]; the buffer of commands needs one sample per step of the delay.
_SHORTEST_STEP = 1e-4


def fit_for_mujoco(fit: WindowFit, physics: Physics) -> WindowFit:
    """Return a fit with a delay of the goals alone, since MuJoCo delays commands but not feedback.

    With q(t − T) ≈ q − T q̇, delayed feedback has the effect of a damping kd − kp T. Starting there, the function fits
    kd and the other numbers to the same windows again.

    Args:
        fit: Fit.
        physics: Robot.
    """
    drives = fit.point.drives
    if drives.delayed == "goal" or drives.delay == 0.0:
        return fit
    old = fit.coordinates
    less = np.maximum(drives.kd - drives.kp * drives.delay, 0.1 * drives.kd)
    # The encoder zeros stay fixed: they are properties of the robot and do not depend on the form of its drives.
    blocks = tuple(name for name in JOINT_BLOCKS if name in (*old.fit, "kd") and name != "bias")
    # Gains and limits start from their fitted values.
    own = replace(drives, kd=less, delayed="goal")
    first = {**old.first, "delay": np.array([drives.delay]), "bias": np.asarray(fit.point.bias)}
    new = replace(old, drives=own, fit=blocks, first=first)
    z = new.centre
    for name in ("links", *old.fit):
        if name not in (*GAIN_FACTORS, "bias"):
            z[new.blocks[name]] = fit.z[old.blocks[name]]
    return fit_windows(physics, new, z, fit.windows)


def with_position_drives(path: Path, joints: Sequence[str], drives: Drives, bias: Array) -> bytes:
    """Return an MJCF with τ = sat(kp (goal − q − bias) − kd q̇) on each joint; `ctrl` is the logged goal.

    The actuators keep their names and their order, so that sensors and key frames remain valid.

    Args:
        path: MJCF.
        joints: Names of the joints.
        drives: Drives without delayed feedback.
        bias: Measured minus true positions [rad, m].
    """
    document = Document(path)
    lines = {name: _attributes(name, k, drives, bias) for k, name in enumerate(joints)}
    with_drive = set()
    for section in document.root.all("actuator"):
        for element in section.children:
            joint = element.attributes.get("joint", "")
            if joint in lines and joint not in with_drive:
                name = element.attributes.get("name", f"{joint}_drive")
                document.replace(element, tag("general", {"name": name, **lines[joint]}))
                with_drive.add(joint)
            elif joint in lines:
                document.remove(element)
    rest = [tag("general", {"name": f"{j}_drive", **a}) for j, a in lines.items() if j not in with_drive]
    if rest:
        document.insert_first(document.root, ["<actuator>", *(f"  {line}" for line in rest), "</actuator>"])
    return document.edited()


def _attributes(joint: str, k: int, drives: Drives, bias: Array) -> dict[str, str]:
    kp, kd, limit = (float(x[k]) for x in (drives.kp, drives.kd, drives.limit))
    out = {
        "joint": joint, "gear": "1", "ctrllimited": "false", "gaintype": "fixed", "gainprm": number(kp),
        "biastype": "affine", "biasprm": numbers([-kp * float(bias[k]), -kp, -kd]), "dyntype": "none",
    }  # fmt: skip
    out |= {"forcerange": numbers([-limit, limit]), "forcelimited": "true"} if np.isfinite(limit) else {
        "forcelimited": "false"
    }  # fmt: skip
    if drives.delay > 0.0:
        samples = int(np.ceil(drives.delay / _SHORTEST_STEP)) + 1
        out |= {"delay": number(drives.delay), "nsample": str(samples), "interp": "zoh"}
    return out
