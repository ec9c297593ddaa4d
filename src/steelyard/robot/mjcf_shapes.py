"""The appearance of an MJCF robot: geoms and meshes of its bodies."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.xml import Element
from steelyard.report.scene import Shape
from steelyard.robot._mjcf_document import Compiler, Defaults, expand_includes, read_compiler
from steelyard.robot.meshes import Triangles, mesh_path, read_mesh
from steelyard.robot.mjcf import mjcf_elements
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import LinkFrame, rotation_from_quaternion, rotation_from_z

# Groups that MuJoCo's viewer shows by default; higher ones are collision geometry.
_MOST_GROUP = 2.0
_ZERO, _UNIT = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
# Points along a meridian and around the axis of an ellipsoid.
_MERIDIAN, _AROUND = 9, 16


def mjcf_mesh_files(root: Element) -> dict[str, str]:
    """Return the path of each mesh of the document `root` by its name, relative to its folder; without files: none."""
    folder, strip = "", False
    for compiler in root.all("compiler"):
        folder = compiler.attributes.get("meshdir", compiler.attributes.get("assetdir", folder))
        strip = compiler.attributes.get("strippath", "true" if strip else "false") == "true"
    files = {}
    for asset in root.all("asset"):
        for mesh in asset.all("mesh"):
            file = mesh.attributes.get("file", "").replace("\\", "/")
            if file:
                name = mesh.attributes.get("name") or posixpath.splitext(posixpath.basename(file))[0]
                files[name] = posixpath.join(folder, posixpath.basename(file) if strip else file)
    return files


def mjcf_shapes(
    robot: Robot, document: Element, packages: Sequence[str | Path], folders: Sequence[Path]
) -> list[Shape]:
    """Read the visible geoms of a robot's bodies; those of higher groups for bodies that have no other.

    Args:
        robot: Robot of the document.
        document: Parsed MJCF.
        packages: Folders that are searched for meshes.
        folders: Only meshes inside these folders are read.
    """
    root = expand_includes(document)
    reader = _GeomReader(root, read_compiler(root), Defaults(root), mjcf_mesh_files(root), packages, folders)
    elements = mjcf_elements(root)
    anchors = {elements.carriers[joint]: anchor for joint, anchor in elements.anchors.items()}
    classes = _child_classes(root)
    shapes: list[Shape] = []
    for name, body in elements.bodies.items():
        if name not in robot.frames and name not in robot.link_names:
            continue
        # The frame of a link is at the anchor of its joint.
        place = robot.frame(name).at(np.eye(3), -anchors.get(name, np.zeros(3)))
        shapes += reader.of_body(body, place, classes.get(id(body)))
    return shapes


def _child_classes(root: Element) -> dict[int, str | None]:
    """Return the default class of each body, which its elements inherit."""
    out: dict[int, str | None] = {}

    def walk(element: Element, own: str | None) -> None:
        for child in element.children:
            inner = child.attributes.get("childclass", own)
            out[id(child)] = inner
            walk(child, inner)

    for world in root.all("worldbody"):
        walk(world, world.attributes.get("childclass"))
    return out


@dataclass(frozen=True, eq=False)
class _GeomReader:
    """Reads geoms of one document."""

    root: Element
    compiler: Compiler
    defaults: Defaults
    files: dict[str, str]
    packages: Sequence[str | Path]
    folders: Sequence[Path]

    def of_body(self, body: Element, place: LinkFrame, childclass: str | None) -> list[Shape]:
        """Read the geoms of one body at a place."""
        found: dict[bool, list[Shape]] = {True: [], False: []}
        for geom, rotation, translation in self._geoms(body, np.eye(3), np.zeros(3), childclass):
            try:
                shape = self._shape(geom, place.at(rotation, translation))
            except SteelyardError:
                continue  # a missing picture is not an error
            if shape is not None:
                found[geom.number("group", 0.0) <= _MOST_GROUP].append(shape)
        return found[True] or found[False]

    def _geoms(
        self, element: Element, rotation: Array, translation: Array, childclass: str | None
    ) -> Iterator[tuple[Element, Array, Array]]:
        for child in element.children:
            if child.tag == "geom":
                yield self.defaults.apply(child, childclass), rotation, translation
            elif child.tag == "frame":
                turn, shift = self.compiler.rotation(child), child.vector("pos", 3, _ZERO)
                inner = child.attributes.get("childclass", childclass)
                yield from self._geoms(child, rotation @ turn, translation + rotation @ shift, inner)

    def _shape(self, geom: Element, place: LinkFrame) -> Shape | None:
        kind = geom.attributes.get("type", "sphere")
        size = geom.numbers("size") if "size" in geom.attributes else []
        if "fromto" in geom.attributes and kind != "mesh":
            ends = geom.vector("fromto", 6)
            along, middle = ends[3:] - ends[:3], 0.5 * (ends[:3] + ends[3:])
            length = float(np.linalg.norm(along))
            turn, size = rotation_from_z(along / max(length, 1e-12)), [*size[:1], 0.5 * length]
            if kind in ("box", "ellipsoid"):
                size = [size[0], size[0], 0.5 * length]
        else:
            turn, middle = self.compiler.rotation(geom), geom.vector("pos", 3, _ZERO)
        at = place.at(turn, middle)
        if kind == "mesh":
            return self._mesh(geom, at)
        if "mesh" in geom.attributes:  # a primitive that MuJoCo fits to a mesh
            return None
        if kind == "sphere":
            return Shape(at.host, "sphere", at.rotation, at.translation, (size[0],)) if size else None
        if kind == "box" and len(size) >= 3:
            return Shape(at.host, "box", at.rotation, at.translation, (2 * size[0], 2 * size[1], 2 * size[2]))
        if kind == "cylinder" and len(size) >= 2:
            return Shape(at.host, "cylinder", at.rotation, at.translation, (size[0], 2.0 * size[1]))
        if kind == "capsule" and len(size) >= 2:  # drawn from one end
            start = at.translation - size[1] * at.rotation[:, 2]
            return Shape(at.host, "capsule", at.rotation, start, (size[0], 2.0 * size[1]))
        if kind == "ellipsoid" and len(size) >= 3:
            vertices, triangles = _unit_sphere()
            return Shape(at.host, "mesh", at.rotation, at.translation, (), vertices * size[:3], triangles)
        return None

    def _mesh(self, geom: Element, at: LinkFrame) -> Shape | None:
        name = geom.attributes.get("mesh", "")
        asset = next((m for a in self.root.all("asset") for m in a.all("mesh") if _named(m) == name), None)
        if asset is None or name not in self.files:
            return None
        file = mesh_path(self.files[name], Path(self.root.file), self.packages)
        if file is None or not any(file.resolve().is_relative_to(f.resolve()) for f in self.folders):
            return None
        complete = self.defaults.apply(asset, None)
        vertices, triangles = read_mesh(file)
        vertices = vertices * complete.vector("scale", 3, (1.0, 1.0, 1.0))
        turn = rotation_from_quaternion(*complete.vector("refquat", 4, _UNIT))
        vertices = (vertices - complete.vector("refpos", 3, _ZERO)) @ turn
        return Shape(at.host, "mesh", at.rotation, at.translation, vertices=vertices, triangles=triangles)


def _named(mesh: Element) -> str:
    file = mesh.attributes.get("file", "").replace("\\", "/")
    return mesh.attributes.get("name") or posixpath.splitext(posixpath.basename(file))[0]


def _unit_sphere() -> tuple[Array, Triangles]:
    """Vertices and triangles of a sphere of radius 1."""
    polar, around = np.linspace(0.0, np.pi, _MERIDIAN), 2.0 * np.pi * np.arange(_AROUND) / _AROUND
    ring = np.column_stack([np.cos(around), np.sin(around)])
    vertices = np.concatenate([np.column_stack([np.sin(p) * ring, np.full(_AROUND, np.cos(p))]) for p in polar])
    k, j = (x.ravel() for x in np.meshgrid(np.arange(_MERIDIAN - 1), np.arange(_AROUND), indexing="ij"))
    a, b = k * _AROUND + j, k * _AROUND + (j + 1) % _AROUND
    triangles = np.concatenate([np.column_stack([a, a + _AROUND, b]), np.column_stack([b, a + _AROUND, b + _AROUND])])
    return vertices, triangles.astype(np.int64)
