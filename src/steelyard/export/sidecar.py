"""Writes and reads the sidecar of an exported robot: JSON with all data that its file does not support.

Schema: docs/using-the-model.md.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError, SteelyardError
from steelyard.export.loop_files import loop_table_path
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.ground.files import write_whole
from steelyard.ground.short_repr import short_repr
from steelyard.ground.untrusted_files import read_json
from steelyard.parameters.term import SIDES, TERMS, Term, make_term
from steelyard.parameters.terms import Terms
from steelyard.robot.dh import read_transmission
from steelyard.robot.load import load_robot
from steelyard.robot.lock import lock_joints
from steelyard.robot.loop_constraints import moved_loops
from steelyard.robot.robot import Joint, Link, NominalTerm, Robot
from steelyard.robot.spatial import LinkFrame, move_parameters
from steelyard.robot.transmission import BallScrew, ConstantRatio, Ratio, Transmission

_SCHEMA = "steelyard.sidecar/1"
# Version 2 has the inertias of the full model, because the files contain models that were fitted for their formats.
_SCHEMA_WITH_FORMATS = "steelyard.sidecar/2"
SUFFIX = ".steelyard.json"


@dataclass(frozen=True, eq=False)
class SidecarLink:
    """A link.

    Attributes:
        name: Name of the link.
        rotation: Rotation of the frame of its ten parameters, in the joint frame.
        translation: Translation of that frame [m].
        inertia: The ten parameters; None: they are in the description.
    """

    name: str
    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array | None = None


@dataclass(frozen=True)
class SidecarTerm:
    """A joint term as plain data; `values` has all parameters of the first coordinate, then those of the second, …"""

    kind: str
    on: str
    where: tuple[str, ...] | None
    options: Mapping[str, Any]
    values: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class SidecarFormat:
    """A model fitted for a file format: ten parameters per link, and terms."""

    inertias: Array
    terms: tuple[SidecarTerm, ...]


@short_repr
@dataclass(frozen=True, eq=False)
class Sidecar:
    """A model without the kinematics, and mostly without the inertias, which are in its description."""

    robot: str
    gravity: tuple[float, ...]
    joints: tuple[Joint, ...]
    torque_used: tuple[bool, ...]
    links: tuple[SidecarLink, ...]
    lengths: Mapping[str, float]
    transmission: Transmission | None
    terms: tuple[SidecarTerm, ...]
    formats: Mapping[str, SidecarFormat] = field(default_factory=dict)
    loops: tuple[str, ...] = ()


def sidecar_path(description: str | os.PathLike[str]) -> Path:
    """Return the path of the sidecar of a `description`: `arm.urdf` has `arm.steelyard.json`."""
    path = Path(description)
    return path.with_name(path.stem + SUFFIX)


def model_to_sidecar(model: Model, path: str | os.PathLike[str], formats: Mapping[str, Model] | None = None) -> None:
    """Write the sidecar of a model, whose kinematics are in a URDF or MJCF.

    Args:
        model: The full model.
        path: Path of the sidecar.
        formats: Models fitted for file formats, by format. With them the sidecar also contains the inertias of
            `model`; otherwise these are in the URDF or MJCF.
    """
    robot = model.robot
    data: dict[str, Any] = {
        "schema": _SCHEMA_WITH_FORMATS if formats else _SCHEMA,
        "robot": robot.name,
        "gravity": [float(g) for g in robot.gravity],
        "joints": [_joint(robot, k) for k in range(robot.dof)],
        "links": [_link(robot, k) for k in range(len(robot.links))],
        "lengths": {name: float(x) for name, x in robot.lengths.items()},
        "transmission": None if robot.transmission is None else _transmission(robot.transmission),
        "terms": _terms(model),
    }
    if robot.loops:
        data["loops"] = [loop.name for loop in robot.loops]
    if formats:
        for entry, block in zip(data["links"], _blocks(model), strict=True):
            entry["inertia"] = block
        data["formats"] = {name: {"inertias": _blocks(one), "terms": _terms(one)} for name, one in formats.items()}
    write_whole(path, json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _blocks(model: Model) -> list[list[float]]:
    """Ten parameters of every link."""
    blocks: list[list[float]] = model.theta[: model.robot.inertial_count].reshape(-1, 10).tolist()
    return blocks


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
    raise ExportError(f"The ratio of motor '{motor}' is a {type(ratio).__name__}, which a sidecar does not support.")


def _terms(model: Model) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    first = model.robot.inertial_count
    parameters = model.dynamics.parameters
    for term in model.terms.terms:
        count = len(term.columns) * sum(1 for other, _ in model.terms.with_coordinates if other is term)
        block = slice(first, first + count)
        out.append(
            {
                "kind": term.name,
                "on": term.on,
                "where": None if term.where is None else list(term.where),
                # The formula of a custom term is Python code, which a file cannot contain.
                "options": term.options if term.kind in TERMS else {},
                "parameters": [
                    {"name": p.name, "unit": p.unit, "value": float(value)}
                    for p, value in zip(parameters[block], model.theta[block], strict=True)
                ],
            }
        )
        first += count
    return out


_KEYS = ("schema", "robot", "gravity", "joints", "links", "terms")
_LIMITS = {"lower": -np.inf, "upper": np.inf, "velocity": np.inf, "effort": np.inf}


def load_model(
    description: str | os.PathLike[str],
    sidecar: str | os.PathLike[str] | None = None,
    custom: Mapping[str, Term] | None = None,
) -> Model:
    """Load an exported model.

    The kinematics come from the description, and the inertias too unless the sidecar has them. Everything else comes
    from the sidecar, even if the description has friction.

    Args:
        description: URDF or MJCF, or folder of a run of `steelyard identify`, which contains a URDF.
        sidecar: Path of the sidecar; None: the `.steelyard.json` next to the description.
        custom: Terms from outside of the package, by their name in the sidecar.
    """
    robot, side, path = _open(description, sidecar)
    return _model(robot, side.terms, robot.inertial_parameters, custom or {}, path)


def load_format_models(
    description: str | os.PathLike[str], custom: Mapping[str, Term] | None = None
) -> dict[str, Model]:
    """Load the models fitted for file formats from a sidecar, by format; {} without such models.

    Args:
        description: URDF, MJCF or run folder, as in `load_model`.
        custom: Terms from outside of the package, as in `load_model`.
    """
    robot, side, path = _open(description, None)
    return {
        name: _model(
            robot.with_inertial_parameters(entry.inertias), entry.terms, entry.inertias.ravel(), custom or {}, path
        )
        for name, entry in side.formats.items()
    }


def _open(description: str | os.PathLike[str], sidecar: str | os.PathLike[str] | None) -> tuple[Robot, Sidecar, Path]:
    """Robot with the inertias of the full model, sidecar, and path of the description."""
    if os.path.isdir(description):
        files = sorted(Path(description).glob("*.urdf"))
        if not files:
            raise ExportError(
                f"{description}: there is no model (.urdf) in this folder; give a run of `steelyard identify` whose "
                "result.json has no missing_files."
            )
        description = files[0]
    side = read_sidecar(sidecar_path(description) if sidecar is None else sidecar)
    path = Path(description)
    table = loop_table_path(path)
    read = load_robot(path, loops=table if side.loops and table.is_file() else bool(side.loops))
    if missing := sorted(set(side.loops) - {loop.name for loop in read.loops}):
        raise ExportError(f"{path}: its closed loop '{missing[0]}' is missing; put {table.name} beside it.")
    return _robot(read, side, path), side, path


def _model(
    robot: Robot, plain: tuple[SidecarTerm, ...], inertias: Array, custom: Mapping[str, Term], description: Path
) -> Model:
    try:
        converted = [_term(term, custom) for term in plain]
    except ExportError:
        raise
    except SteelyardError as error:
        raise ExportError(f"{description}: its sidecar is invalid: {error}") from None
    terms = Terms(robot, tuple(converted))
    values = np.array([value for term in plain for value in term.values])
    if len(values) != len(terms):
        raise ExportError(f"{description}: its sidecar has {len(values)} values for {len(terms)} parameters of terms.")
    complete = replace(robot, nominal_terms=_nominal(plain, converted))
    return Model(complete, Terms(complete, tuple(converted)), np.concatenate([inertias, values]))


def read_sidecar(path: str | os.PathLike[str]) -> Sidecar:
    """Read and check the sidecar at `path`."""
    source = Path(path)
    return _sidecar(read_json(source, ExportError, "write it with model_to_sidecar"))


def _sidecar(root: Field) -> Sidecar:
    if not isinstance(root.value, dict) or root.value.get("schema") not in (_SCHEMA, _SCHEMA_WITH_FORMATS):
        root.fail(f'does not have "schema": "{_SCHEMA}"; it is not a sidecar, or is of another version of Steelyard.')
    entries = root.table(_KEYS, ("lengths", "transmission", "formats", "loops"))
    formats = entries["formats"].entries() if "formats" in entries else {}
    pairs = [_read_joint(item) for item in entries["joints"].items("joint")]
    joints = tuple(joint for joint, _ in pairs)
    names = [joint.name for joint in joints]
    lengths = entries["lengths"].value if "lengths" in entries else {}
    if not isinstance(lengths, dict):
        entries["lengths"].fail("must be a table of names and numbers.")
    return Sidecar(
        robot=entries["robot"].text(),
        gravity=tuple(entries["gravity"].vector(3)),
        joints=joints,
        torque_used=tuple(used for _, used in pairs),
        links=tuple(_read_link(item) for item in entries["links"].items("link")),
        lengths={str(name): entries["lengths"].inside(x, str(name)).number() for name, x in lengths.items()},
        transmission=read_transmission(entries["transmission"], names) if "transmission" in entries else None,
        terms=tuple(_plain_term(item) for item in entries["terms"].items("term")),
        formats={name: _read_format(item) for name, item in formats.items()},
        loops=tuple(entries["loops"].texts()) if "loops" in entries else (),
    )


def _read_format(entry: Field) -> SidecarFormat:
    keys = entry.table(("inertias", "terms"))
    inertias = np.array(keys["inertias"].matrix(10))
    return SidecarFormat(inertias, tuple(_plain_term(item) for item in keys["terms"].items("term")))


def _read_joint(entry: Field) -> tuple[Joint, bool]:
    keys = entry.table(("name", "kind", "torque_used"), tuple(_LIMITS))
    limits = {name: keys[name].number() if name in keys else unknown for name, unknown in _LIMITS.items()}
    kind = keys["kind"].choice(("revolute", "prismatic"))
    used = keys["torque_used"].value
    if not isinstance(used, bool):
        keys["torque_used"].fail("must be true or false.")
    return Joint(keys["name"].text(), kind, **limits), used  # type: ignore[arg-type]


def _read_link(entry: Field) -> SidecarLink:
    keys = entry.table(("name",), ("frame", "inertia"))
    inertia = np.array(keys["inertia"].vector(10)) if "inertia" in keys else None
    if "frame" not in keys:
        return SidecarLink(keys["name"].text(), inertia=inertia)
    frame = keys["frame"].table(("rotation", "translation"))
    rotation = np.array(frame["rotation"].matrix(3))
    if rotation.shape != (3, 3) or np.max(np.abs(rotation @ rotation.T - np.eye(3))) > 1e-9:
        frame["rotation"].fail("is not a rotation; write three rows of three numbers of a rotation matrix.")
    return SidecarLink(keys["name"].text(), rotation, np.array(frame["translation"].vector(3)), inertia)


def _plain_term(entry: Field) -> SidecarTerm:
    keys = entry.table(("kind", "on", "parameters"), ("where", "options"))
    values = []
    for item in keys["parameters"].items("parameter"):
        values.append(item.table(("name", "unit", "value"))["value"].number())
    options: Any = keys["options"].value if "options" in keys else {}
    if not isinstance(options, dict):
        keys["options"].fail("must be a table of option names and values.")
    where = tuple(keys["where"].texts()) if "where" in keys else None
    return SidecarTerm(keys["kind"].text(), keys["on"].choice(SIDES), where, options, tuple(values))


def _term(plain: SidecarTerm, custom: Mapping[str, Term]) -> Term:
    if plain.kind in TERMS and plain.kind not in custom:
        return make_term(plain.kind, **{**plain.options, "on": plain.on, "where": plain.where})
    if plain.kind not in custom:
        raise ExportError(
            f"The sidecar has the custom term '{plain.kind}', whose formula is not in a file; "
            f"declare it as an entry point of the group steelyard.terms (in Python: custom={{'{plain.kind}': …}})."
        )
    return replace(custom[plain.kind], on=plain.on, where=plain.where)  # type: ignore[arg-type]


def _robot(read: Robot, side: Sidecar, description: Path) -> Robot:
    """The robot of a description with joints and links in the order and frames of the model."""
    names = [joint.name for joint in side.joints]
    links = [link.name for link in side.links]
    for kind, ours, theirs in (("joint", read.joint_names, names), ("link", read.link_names, links)):
        other = sorted(set(ours) ^ set(theirs))
        if other:
            raise ExportError(f"{description}: {kind} '{other[0]}' is only in one of description and sidecar.")
    ordered = lock_joints(read, names)
    order = [ordered.link_names.index(name) for name in links]
    try:
        return replace(
            ordered,
            name=side.robot,
            joints=side.joints,
            links=tuple(_placed(ordered.links[k], order, frame) for k, frame in zip(order, side.links, strict=True)),
            gravity=np.array(side.gravity),
            transmission=side.transmission,
            torque_used=side.torque_used,
            lengths=side.lengths,
            nominal_terms=(),
            loops=moved_loops(ordered.loops, [LinkFrame(order.index(k)) for k in range(len(order))], {}),
        )
    except SteelyardError as error:
        raise ExportError(f"{description}: does not fit its sidecar: {error}") from None


def _placed(link: Link, order: list[int], frame: SidecarLink) -> Link:
    """A link with the new index of its parent and its inertia in the frame of the sidecar."""
    parent = order.index(link.parent) if link.parent >= 0 else -1
    if link.inertia is None:
        raise ExportError(f"Link '{link.name}' has no inertia in the description; export the model again.")
    back = frame.rotation.T
    moved = move_parameters(link.inertia, back, -back @ frame.translation) if frame.inertia is None else frame.inertia
    frames = {"frame_rotation": frame.rotation, "frame_translation": frame.translation}
    return replace(link, parent=parent, inertia=moved, **frames)  # type: ignore[arg-type]


def _nominal(plain_terms: tuple[SidecarTerm, ...], terms: list[Term]) -> tuple[NominalTerm, ...]:
    """The nominal terms of the robot: terms of the package on all coordinates."""
    out = []
    for plain, term in zip(plain_terms, terms, strict=True):
        if plain.where is None and plain.kind in TERMS:
            rows = np.reshape(plain.values, (-1, len(term.columns))).T
            values = tuple(tuple(float(x) for x in row) for row in rows)
            out.append(NominalTerm(plain.kind, values, plain.on, tuple(plain.options.items())))
    return tuple(out)
