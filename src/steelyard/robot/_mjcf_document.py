"""The document of an MJCF file without its bodies: included files, compiler settings, default classes, inertias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.xml import MAX_DEPTH, Element, parse_xml, shorten
from steelyard.robot.spatial import (
    inertia_matrix,
    move_parameters,
    parameters_from_com,
    rotation_about,
    rotation_from_quaternion,
    rotation_from_z,
)

# The inertia of an MJCF body comes from its <inertial> or from its geoms.


WATER = 1000.0  # kg/m³, MuJoCo's default density


def body_inertia(body: Element, geoms: Sequence[tuple[Element, Array, Array]], compiler: Compiler) -> Array | None:
    """Compute the ten parameters of a body in its own frame; None if the file does not state them.

    Args:
        body: Element of the body.
        geoms: Geoms of the body, with rotation and origin of their <frame> in the body [m].
        compiler: Settings of the file.
    """
    inertial = body.find("inertial")
    if inertial is not None and (compiler.inertiafromgeom != "true" or not geoms):
        return _apply_bounds(_explicit_inertia(inertial, compiler), compiler)
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
    return None if total is None else _apply_bounds(total, compiler)


def _explicit_inertia(inertial: Element, compiler: Compiler) -> Array:
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


def _apply_bounds(parameters: Array, compiler: Compiler) -> Array:
    """Apply the compiler's boundmass, boundinertia and balanceinertia to a body."""
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
    """Compute the ten parameters of one geom in its <frame>; None without mass."""
    kind = geom.attributes.get("type", "sphere")
    if kind in ("plane", "hfield") or geom.number("mass", 1.0) == 0.0:
        return None
    if "mass" not in geom.attributes and geom.number("density", WATER) == 0.0:
        return None
    if kind not in ("sphere", "box", "capsule", "cylinder", "ellipsoid") or "mesh" in geom.attributes:
        raise geom.error(
            f"is of type '{shorten(kind)}', for which no inertia is computed; state the <inertial> of its body, "
            f'or write <compiler inertiafromgeom="false"/> to leave it unknown.'
        )
    if geom.attributes.get("shellinertia", "false") == "true":
        raise geom.error("asks for the inertia of a shell, which is not computed; state the <inertial> of its body.")
    size, rotation, centre = _placement(geom, kind, compiler)
    volume, moments = solid(kind, size)
    mass = geom.number("mass", geom.number("density", WATER) * volume)
    if mass < 0.0:
        raise geom.error(f"has a negative mass ({mass:g} kg); write the true mass, or 0.")
    return parameters_from_com(mass, centre, mass * rotation @ np.diag(moments) @ rotation.T)


def _placement(geom: Element, kind: str, compiler: Compiler) -> tuple[list[float], Array, Array]:
    """Return the sizes, orientation and centre of a geom, also if `fromto` states its ends."""
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
    """Compute the volume [m³] and the principal moments per kilogram [m²] of a solid.

    Args:
        kind: MuJoCo's name of the shape.
        size: MuJoCo's sizes: radii and half lengths [m].
    """
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


def expand_includes(root: Element) -> Element:
    """Replace every <include> of the document `root` by the elements of its file, which must be in the same folder.

    As in MuJoCo, paths are relative to the folder of the main file, and a file can be included once.
    """
    folder = Path(root.file).parent
    return _expand(root, folder, {Path(root.file).resolve()}, 0)


def _expand(element: Element, folder: Path, visited: set[Path], depth: int) -> Element:
    if depth > MAX_DEPTH:
        raise element.error(f"is nested deeper than {MAX_DEPTH} levels; flatten the description.")
    children: list[Element] = []
    for child in element.children:
        if child.tag != "include":
            children.append(_expand(child, folder, visited, depth + 1))
            continue
        name = child.string("file")
        try:
            path = (folder / name).resolve()
            there = path.is_file()
        except (OSError, ValueError):  # a name too long, or with a NUL
            raise child.error(f"asks for '{shorten(name)}', which is no valid file name; check the path.") from None
        if PurePosixPath(name).is_absolute() or not path.is_relative_to(folder.resolve()):
            raise child.error(f"asks for '{shorten(name)}', which is outside the file's folder; move it inside.")
        if not there:
            raise child.error(f"asks for '{shorten(name)}', which does not exist; check the path.")
        if path in visited:
            raise child.error(f"asks for '{shorten(name)}' a second time; include every file once.")
        visited.add(path)
        children.extend(_expand(parse_xml(folder / name), folder, visited, depth + 1).children)
    return replace(element, children=children)


@dataclass(frozen=True)
class Compiler:
    """The settings of <compiler> that change the meaning of the numbers in a file."""

    degrees: bool = True
    eulerseq: str = "xyz"
    inertiafromgeom: str = "auto"
    inertia_groups: tuple[float, float] = (0.0, 5.0)
    autolimits: bool = True
    least_mass: float = 0.0
    least_inertia: float = 0.0
    balance: bool = False

    def angle(self, value: float) -> float:
        """Convert an angle `value` of the file to radians."""
        return float(np.deg2rad(value)) if self.degrees else value

    def rotation(self, element: Element) -> Array:
        """Read the orientation of a body, geom, inertial or frame `element` in any of MuJoCo's five notations."""
        name = element.attributes
        if "axisangle" in name:
            x, y, z, angle = element.vector("axisangle", 4)
            return rotation_about(_unit(element, "axisangle", [x, y, z]), self.angle(angle))
        if "euler" in name:
            return self._from_euler(element.vector("euler", 3))
        if "xyaxes" in name:
            values = element.vector("xyaxes", 6)
            x = _unit(element, "xyaxes", values[:3])
            y = _unit(element, "xyaxes", values[3:] - (values[3:] @ x) * x)
            return np.column_stack([x, y, np.cross(x, y)])
        if "zaxis" in name:
            return rotation_from_z(_unit(element, "zaxis", element.vector("zaxis", 3)))
        quaternion = element.vector("quat", 4, (1.0, 0.0, 0.0, 0.0))
        if not np.any(quaternion):
            raise element.error("has a zero quat; write a unit quaternion w x y z.")
        return rotation_from_quaternion(*quaternion)

    def _from_euler(self, angles: Array) -> Array:
        """Multiply rotations: lower-case letters turn about moved axes, capitals about those of the parent."""
        out = np.eye(3)
        for letter, angle in zip(self.eulerseq, angles, strict=True):
            turn = rotation_about(np.eye(3)["xyz".index(letter.lower())], self.angle(float(angle)))
            out = out @ turn if letter.islower() else turn @ out
        return out


def _unit(element: Element, attribute: str, vector: Array | list[float]) -> Array:
    v = np.asarray(vector, dtype=float)
    length = float(np.linalg.norm(v))
    if length < 1e-9:
        raise element.error(f"has a direction of zero length in '{attribute}'; write a nonzero vector.")
    return v / length


def read_compiler(root: Element) -> Compiler:
    """Read the settings of all <compiler> elements below `root`; later ones override earlier ones."""
    merged = Element("compiler", {}, root.file, root.line)
    for element in root.all("compiler"):
        merged = replace(element, attributes={**merged.attributes, **element.attributes})
    angle = choice(merged, "angle", "degree", ("degree", "radian"))
    if merged.attributes.get("coordinate", "local") != "local":
        raise merged.error(
            "has global coordinates, which MuJoCo no longer supports; save the model with local coordinates."
        )
    if merged.number("settotalmass", -1.0) > 0.0:
        raise merged.error("has settotalmass, which is not supported; scale the masses in the file instead.")
    sequence = merged.attributes.get("eulerseq", "xyz")
    if len(sequence) != 3 or any(letter not in "xyzXYZ" for letter in sequence):
        raise merged.error(f"has the eulerseq '{shorten(sequence)}'; write three letters out of xyzXYZ.")
    low, high = merged.vector("inertiagrouprange", 2, (0.0, 5.0))
    return Compiler(
        degrees=angle == "degree",
        eulerseq=sequence,
        inertiafromgeom=choice(merged, "inertiafromgeom", "auto", ("true", "false", "auto")),
        inertia_groups=(float(low), float(high)),
        autolimits=choice(merged, "autolimits", "true", ("true", "false")) == "true",
        least_mass=merged.number("boundmass", 0.0),
        least_inertia=merged.number("boundinertia", 0.0),
        balance=choice(merged, "balanceinertia", "false", ("true", "false")) == "true",
    )


def choice(element: Element, attribute: str, default: str, allowed: tuple[str, ...]) -> str:
    """Read an attribute with a fixed set of values.

    Args:
        element: Element with the attribute.
        attribute: Name of the attribute.
        default: Value if the attribute is missing.
        allowed: Possible values.
    """
    value = element.attributes.get(attribute, default).strip()
    if value not in allowed:
        raise element.error(f"has {attribute}='{shorten(value)}'; write one of {', '.join(allowed)}.")
    return value


class Defaults:
    """The default classes of a document: attribute values that elements inherit."""

    def __init__(self, root: Element) -> None:
        self._classes: dict[str, dict[str, dict[str, str]]] = {"main": {}}
        for element in root.all("default"):
            self._read(element, "main", self._classes["main"])

    def _read(self, element: Element, name: str, inherited: Mapping[str, Mapping[str, str]]) -> None:
        own = {tag: dict(attributes) for tag, attributes in inherited.items()}
        for child in element.children:
            if child.tag != "default":
                own[child.tag] = {**own.get(child.tag, {}), **child.attributes}
        self._classes[name] = own
        for child in element.all("default"):
            self._read(child, child.string("class"), own)

    def apply(self, element: Element, childclass: str | None) -> Element:
        """Fill in missing attributes from the element's class.

        Args:
            element: Element to complete.
            childclass: Class of the body around it, used if the element names none.
        """
        name = element.attributes.get("class", childclass or "main")
        if name not in self._classes:
            known = ", ".join(sorted(self._classes))
            raise element.error(f"is of class '{shorten(name)}', which no <default> defines; use one of: {known}.")
        inherited = self._classes[name].get(element.tag, {})
        return replace(element, attributes={**inherited, **element.attributes})
