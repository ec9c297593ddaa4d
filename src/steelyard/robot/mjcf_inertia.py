"""The inertia of an MJCF body: what its <inertial> states, or what its geoms weigh."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.robot.mjcf_document import Compiler, rotation_from_z
from steelyard.robot.spatial import (
    Array,
    inertia_matrix,
    move_parameters,
    parameters_from_com,
)
from steelyard.robot.xml import Element, shorten

WATER = 1000.0  # kg/m³, MuJoCo's default density


def body_inertia(body: Element, geoms: Sequence[tuple[Element, Array, Array]], compiler: Compiler) -> Array | None:
    """The ten parameters of a body in its own frame, None where the file says nothing.

    `geoms` come with the rotation and the origin, in the body, of the <frame> they are written in.
    """
    inertial = body.find("inertial")
    if inertial is not None and (compiler.inertiafromgeom != "true" or not geoms):
        return _bounded(_stated(inertial, compiler), compiler)
    if compiler.inertiafromgeom == "false":
        return None
    low, high = compiler.inertia_groups
    total: Array | None = None
    for geom, rotation, translation in geoms:
        if low <= geom.number("group", 0.0) <= high:
            weight = _geom(geom, compiler)
            if weight is not None:
                moved = move_parameters(weight, rotation, translation)
                total = moved if total is None else total + moved
    return None if total is None else _bounded(total, compiler)


def _stated(inertial: Element, compiler: Compiler) -> Array:
    mass = inertial.number("mass")
    if mass < 0.0:
        raise inertial.error(f"has a negative mass ({mass:g} kg); write the true mass, or 0.")
    if "fullinertia" in inertial.attributes:
        xx, yy, zz, xy, xz, yz = inertial.vector("fullinertia", 6)
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if {"quat", "axisangle", "euler", "xyaxes", "zaxis"} & set(inertial.attributes):
            raise inertial.error("has both fullinertia and an orientation; write diaginertia with it, or drop it.")
    else:
        rotation = compiler.rotation(inertial)
        tensor = rotation @ np.diag(inertial.vector("diaginertia", 3, (0.0, 0.0, 0.0))) @ rotation.T
    return parameters_from_com(mass, inertial.vector("pos", 3), tensor)


def _bounded(parameters: Array, compiler: Compiler) -> Array:
    """What the compiler's boundmass, boundinertia and balanceinertia make of a body; untouched without them."""
    if not (compiler.least_mass or compiler.least_inertia or compiler.balance):
        return parameters
    mass, com = max(parameters[0], compiler.least_mass), np.zeros(3)
    if parameters[0] > 0.0:
        com = parameters[1:4] / parameters[0]
    about_com = inertia_matrix(move_parameters(parameters, np.eye(3), -com))
    moments, axes = np.linalg.eigh(about_com)
    moments = np.maximum(moments, compiler.least_inertia)
    if compiler.balance and 2.0 * moments.max() > moments.sum():
        moments[:] = moments.mean()
    return parameters_from_com(mass, com, axes @ np.diag(moments) @ axes.T)


def _geom(geom: Element, compiler: Compiler) -> Array | None:
    """The ten parameters of one geom in the frame it is written in; None for what has no mass."""
    kind = geom.attributes.get("type", "sphere")
    if kind in ("plane", "hfield") or geom.number("mass", 1.0) == 0.0:
        return None
    if "mass" not in geom.attributes and geom.number("density", WATER) == 0.0:
        return None
    if kind not in ("sphere", "box", "capsule", "cylinder", "ellipsoid") or "mesh" in geom.attributes:
        raise geom.error(
            f"is of type '{shorten(kind)}', whose inertia is not computed; state the <inertial> of its body, "
            f'or write <compiler inertiafromgeom="false"/> to leave it unknown.'
        )
    if geom.attributes.get("shellinertia", "false") == "true":
        raise geom.error("has the inertia of a shell, which is not computed; state the <inertial> of its body.")
    size, rotation, centre = _placed(geom, kind, compiler)
    volume, moments = solid(kind, size)
    mass = geom.number("mass", geom.number("density", WATER) * volume)
    if mass < 0.0:
        raise geom.error(f"has a negative mass ({mass:g} kg); write the true mass, or 0.")
    return parameters_from_com(mass, centre, mass * rotation @ np.diag(moments) @ rotation.T)


def _placed(geom: Element, kind: str, compiler: Compiler) -> tuple[list[float], Array, Array]:
    """The sizes of a geom with its orientation and centre, also where `fromto` gives the ends instead."""
    size = geom.numbers("size")
    ends = geom.vector("fromto", 6) if "fromto" in geom.attributes else None
    if ends is not None and kind == "sphere":
        raise geom.error("is a sphere with fromto, which has no meaning; write its pos, or another type.")
    needed = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}[kind] if ends is None else 1
    if len(size) < needed or any(value <= 0.0 for value in size[:needed]):
        raise geom.error(f"of type '{kind}' needs {needed} positive numbers in 'size'; write them in metres.")
    if ends is None:
        return size[:needed], compiler.rotation(geom), geom.vector("pos", 3, (0.0, 0.0, 0.0))
    along = ends[:3] - ends[3:]
    length = float(np.linalg.norm(along))
    if length < 1e-9:
        raise geom.error("has a fromto whose two ends coincide; move them apart.")
    across = [size[0]] if kind in ("capsule", "cylinder") else [size[0], size[0]]
    return [*across, length / 2], rotation_from_z(along / length), (ends[:3] + ends[3:]) / 2


def solid(kind: str, size: Sequence[float]) -> tuple[float, Array]:
    """Volume, and principal moments of one kilogram, of a solid with MuJoCo's sizes (radii and half lengths)."""
    if kind == "sphere":
        kind, size = "ellipsoid", [size[0]] * 3
    if kind in ("box", "ellipsoid"):
        a, b, c = (s * s for s in size)
        factor, volume = (1.0 / 3.0, 8.0) if kind == "box" else (1.0 / 5.0, 4.0 / 3.0 * np.pi)
        return volume * float(np.prod(size)), factor * np.array([b + c, a + c, a + b])
    r, h = size[0], 2.0 * size[1]
    cylinder = np.pi * r * r * h
    along, across = r * r / 2.0, (3.0 * r * r + h * h) / 12.0
    if kind == "cylinder":
        return cylinder, np.array([across, across, along])
    # A capsule adds two half balls: each has its centre of mass 3r/8 above its flat side, at h/2 from the middle.
    balls = 4.0 / 3.0 * np.pi * r**3
    volume = cylinder + balls
    along = (cylinder * along + balls * 0.4 * r * r) / volume
    across = (cylinder * across + balls * (0.4 * r * r + h * h / 4.0 + 3.0 * h * r / 8.0)) / volume
    return volume, np.array([across, across, along])
