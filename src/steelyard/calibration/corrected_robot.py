"""The corrected robot, and the files of a calibration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.calibration.chain import ALONG, SHIFT_U, SHIFT_V, TILT_U, TILT_V, Chain, exponential, rotation_vectors
from steelyard.errors import ExportError
from steelyard.export.dh_table import dh_table, is_serial
from steelyard.export.placements import description_format, placed_mjcf, placed_urdf, plain_urdf
from steelyard.ground.arrays import Array
from steelyard.ground.documents import read_document
from steelyard.ground.files import csv_text, write_whole
from steelyard.ground.outcome import Content, file_name
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import rotation_about

if TYPE_CHECKING:
    from steelyard.calibration.calibration import Calibration, StageFit

# Effects that a joint placement can state.
GEOMETRY = ("offsets", "axes")
# Suffixes of files with Denavit–Hartenberg tables.
_TABLES = (".yaml", ".yml", ".toml")
_DH_HEAD = """\
# Placements of the joints were calibrated by Steelyard; the small angles count: load this file with --snap 0.
# Nearly parallel axes meet far away, so their d are large; neighbouring rows cancel them.
# Frames of the links in between have other places on their axes than in the original table.
"""


def corrected_robot(chain: Chain, stage: StageFit) -> Robot:
    """Return the robot with the corrections of a stage in its joint placements.

    Args:
        chain: Chain with the nominal geometry.
        stage: Model whose offsets and axes are used.
    """
    robot, x = chain.robot, _constant(chain, stage)
    links = list(robot.links)
    for k, host in enumerate(robot.ancestors(chain.place.host)):
        link, (u, v) = links[host], chain.across[k]
        if not np.any(x[k]):
            continue
        translation, rotation = link.translation, link.rotation
        if link.kind == "revolute":
            translation = translation + rotation @ (x[k, SHIFT_U] * u + x[k, SHIFT_V] * v)
        rotation = rotation @ exponential(x[k, TILT_U] * u + x[k, TILT_V] * v)
        if link.kind == "revolute":
            rotation = rotation @ rotation_about(link.axis, float(x[k, ALONG]))
        else:
            translation = translation + x[k, ALONG] * (rotation @ link.axis)
        links[host] = replace(link, translation=translation, rotation=rotation)
    return replace(robot, links=tuple(links))


def _constant(chain: Chain, stage: StageFit) -> Array:
    """Corrections of all joints by geometry alone, shape (links, 5)."""
    deviations = stage.problem.deviations
    constant = np.array([[float(p.effect in GEOMETRY) for p in deviations.parameters]])
    return np.asarray(deviations.corrections(stage.fit.values, constant)[0])


def corrections_json(chain: Chain, stage: StageFit) -> list[dict[str, Any]]:
    """Return the change of every joint placement, in its nominal frame.

    Args:
        chain: Chain with the nominal geometry.
        stage: Model whose offsets and axes are used.
    """
    new = corrected_robot(chain, stage)
    out = []
    for host in chain.robot.ancestors(chain.place.host):
        old, link = chain.robot.links[host], new.links[host]
        translation = old.rotation.T @ (link.translation - old.translation)
        turn = rotation_vectors((old.rotation.T @ link.rotation)[None])[0]
        out.append({"joint": link.joint, "shift": translation.tolist(), "rotation_vector": turn.tolist()})
    return out


def written_files(calibration: Calibration) -> Mapping[str, Content]:
    """Return the files of a `calibration`: the corrected description, parameters, poses with errors."""
    robot = calibration.chain.robot
    name, source = file_name(robot.name), Path(robot.source) if robot.source else None
    out: dict[str, Content] = {f"{name}_calibrated.urdf": lambda path: write_urdf(calibration, path)}
    if source is not None and description_format(source) == "mjcf":
        out[f"{name}_calibrated.xml"] = lambda path: write_mjcf(calibration, path)
    if source is not None and source.suffix.lower() in _TABLES and is_serial(robot):
        out[f"{name}_calibrated.yaml"] = lambda path: write_dh(calibration, path)
    if calibration.gravity is not None:
        # Other file names, since poses.csv has the poses of the calibration.
        files = calibration.gravity.files()
        out |= {x: content for x, content in files.items() if not x.endswith(".csv")}
    rows = calibration.parameters()
    out["parameters.csv"] = csv_text([list(rows[0]), *(list(r.values()) for r in rows)]) if rows else "name\n"
    out["poses.csv"] = _poses_csv(calibration)
    if "offsets" in calibration.effects:
        out["offsets.toml"] = _offsets(calibration)
    return out


def write_urdf(calibration: Calibration, path: str | os.PathLike[str]) -> None:
    """Write the corrected robot as URDF, in place of an original one.

    Args:
        calibration: Calibration.
        path: Path of the file.
    """
    nominal, robot = calibration.chain.robot, calibration.robot
    source = Path(nominal.source) if nominal.source else None
    if source is not None and description_format(source) == "urdf" and source.is_file():
        _refuse_original(Path(path), source)
        write_whole(Path(path), placed_urdf(robot, nominal, source))
    else:
        write_whole(Path(path), plain_urdf(robot))


def write_mjcf(calibration: Calibration, path: str | os.PathLike[str]) -> None:
    """Write the corrected robot into its MJCF.

    Args:
        calibration: Calibration.
        path: Path of the file.
    """
    nominal = calibration.chain.robot
    _refuse_original(Path(path), Path(nominal.source))
    write_whole(Path(path), placed_mjcf(calibration.robot, nominal, Path(nominal.source)))


def write_dh(calibration: Calibration, path: str | os.PathLike[str]) -> None:
    """Write the corrected robot as a Denavit–Hartenberg table; other entries of the original file stay.

    Args:
        calibration: Calibration.
        path: Path of the file.
    """
    import yaml

    nominal = calibration.chain.robot
    _refuse_original(Path(path), Path(nominal.source))
    table = dh_table(calibration.robot, read_document(Path(nominal.source)))
    write_whole(Path(path), _DH_HEAD + yaml.safe_dump(table, sort_keys=False, allow_unicode=True, width=120))


def _refuse_original(target: Path, source: Path) -> None:
    if target.exists() and target.resolve() == source.resolve():
        raise ExportError(f"{target}: this is the robot's original description; write the model to another file.")


def _poses_csv(calibration: Calibration) -> str:
    """Row, joint positions and error of every pose, before and after."""
    from steelyard.calibration.weights import distances

    table = calibration.table
    sizes = {stage: distances(table.measurement, calibration.residuals(table, stage)) for stage in ("nominal", "full")}
    blocks = [channel for _, channel in table.measurement.blocks]
    head = ["row", *calibration.chain.robot.joint_names]
    head += [f"{stage}_{channel}_{k + 1}" for stage in sizes for k, channel in enumerate(blocks)]
    rows = [
        [int(n), *(f"{x:.10g}" for x in q), *(f"{x:.6g}" for stage in sizes for x in sizes[stage][i])]
        for i, (n, q) in enumerate(zip(table.row_numbers, table.q, strict=True))
    ]
    return csv_text([head, *rows])


def _offsets(calibration: Calibration) -> str:
    """Offsets alone, for the mapping of logs of a robot with an unchanged description."""
    small = calibration.offsets()
    values = ", ".join(f"{small.get(name, 0.0):.9g}" for name in calibration.chain.robot.joint_names)
    return (
        "# For the mapping of logs (key offset, rad or m), with the ORIGINAL description.\n"
        "# The calibrated description contains the offsets already.\n"
        f"offset = [{values}]\n"
    )
