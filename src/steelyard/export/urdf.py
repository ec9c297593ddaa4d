"""`model_to_urdf`: the identified model as a URDF, by editing the one it came from or by writing a new one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from steelyard.dynamics.model import Model
from steelyard.export.bodies import impossible_links
from steelyard.export.error import ExportError
from steelyard.export.simple_terms import DAMPING, FRICTION, simple_terms
from steelyard.export.urdf_edit import edit_urdf
from steelyard.export.urdf_new import new_urdf
from steelyard.files import write_whole
from steelyard.robot.xml import parse_xml


def model_to_urdf(
    model: Model,
    path: str | os.PathLike[str],
    source: str | os.PathLike[str] | None = None,
    *,
    locked: Mapping[str, float] | None = None,
) -> tuple[str, ...]:
    """Write a model as URDF; returns, one sentence each, what the file leaves out or only approximates.

    With a URDF as `source` that file is kept as it is (meshes, fixed links, comments, layout), but for the
    inertials of the links that move and of what is welded to them, the joints' <dynamics>, and the placements of
    joints where the model's differ. Without one, or where the robot came from another format, the robot is written
    anew. Joints that the model's robot has locked become fixed; `locked` (rad, m) says where they stand, which
    matters for the looks alone: the joints that move are placed as the model has them in any case.

    What URDF cannot say at all (rotors, coupled friction, gravity) goes into a sidecar: `model_to_sidecar`.
    """
    target = Path(path)
    terms = simple_terms(model, (DAMPING, FRICTION))
    notes = list(terms.missing)
    impossible = impossible_links(model)
    if impossible:
        notes.append(f"The inertia of {', '.join(impossible)} is not physically possible; MuJoCo will refuse it.")
    if source is not None and _is_urdf(Path(source)):
        origin = Path(source)
        if target.exists() and target.resolve() == origin.resolve():
            raise ExportError(f"{target}: this is the robot's own description; write the model to another file.")
        data, more = edit_urdf(model, terms, origin, target, locked or {}, notes)
        write_whole(target, data)
        return (*notes, *more)
    write_whole(target, new_urdf(model, terms, notes))
    return tuple(notes)


def _is_urdf(source: Path) -> bool:
    suffix = source.suffix.lower()
    if suffix == ".xml":
        return source.exists() and parse_xml(source).tag == "robot"
    return suffix == ".urdf"
