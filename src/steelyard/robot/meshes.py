"""Read meshes of robot descriptions: STL and OBJ here, other formats with trimesh if installed; and coarsen them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.ground.untrusted_files import read_bytes

# Indices of the three corners of each triangle.
Triangles = NDArray[np.int64]
Mesh = tuple[Array, Triangles]
# Limit for one picture; it adds about 100 kB to a page.
MOST_TRIANGLES = 12_000
_MOST_BYTES = 64 << 20
# Binary STL: bytes before the triangles, and the record of a triangle.
_HEAD, _TRIANGLE = 84, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("colour", "<u2")])
# Grid cells along the longest edge of a mesh for coarsening, finest first.
_CELLS = (160, 112, 80, 56, 40, 28, 20, 14, 10, 7, 5)
# Number of folders above the robot's file that are searched for packages.
FOLDERS_ABOVE = 6


def mesh_path(name: str, urdf: Path, packages: Sequence[str | Path] = ()) -> Path | None:
    """Find the file of a mesh; None if it does not exist.

    Args:
        name: Path, absolute or relative to the description, `file://…` or `package://…`.
        urdf: Path of the description.
        packages: Folders with packages, searched before those above the description.
    """
    scheme, separator, rest = name.replace("\\", "/").rpartition("://")
    rest = unquote(rest) if separator else rest
    if separator and scheme in ("package", "model"):
        above = list(urdf.resolve().parents)[:FOLDERS_ABOVE]
        package, _, inside = rest.partition("/")
        found = [Path(folder) / rest for folder in (*packages, *above)]
        found += [folder / inside for folder in above if folder.name == package]
    else:
        found = [urdf.parent / rest if not rest.startswith("/") else Path(rest)]
    return next((path for path in found if path.is_file()), None)


def read_mesh(path: Path) -> Mesh:
    """Read corners `(n, 3)` and triangles `(m, 3)` of the mesh at `path`, in its own unit.

    Raises:
        RobotError: If the mesh is not readable.
    """
    data = read_bytes(path, _MOST_BYTES)
    kind = path.suffix.lower()
    try:
        if kind == ".stl":
            return _index_corners(_stl(data))
        if kind == ".obj":
            return _obj(data.decode("utf-8", "replace"))
        return _by_trimesh(path)
    except (ValueError, IndexError) as error:
        raise RobotError(f"{path}: this mesh is not readable ({error}); export it again as binary STL.") from None


def _stl(data: bytes) -> Array:
    """Read triangles `(m, 3, 3)` from binary or text STL."""
    count = int.from_bytes(data[_HEAD - 4 : _HEAD], "little") if len(data) >= _HEAD else -1
    if len(data) == _HEAD + count * _TRIANGLE.itemsize:
        corners = np.frombuffer(data, _TRIANGLE, count, _HEAD)["corners"]
    else:
        lines = [
            line.split()[1:4] for line in data.decode("ascii", "replace").splitlines() if line.split()[:1] == ["vertex"]
        ]
        corners = np.array(lines, dtype=float).reshape(-1, 3, 3)
    if not len(corners) or not np.all(np.isfinite(corners)):
        raise ValueError("it has no triangles, or corners that are not finite")
    return corners.astype(float)


def _index_corners(corners: Array) -> Mesh:
    """Merge equal corners and refer to them by index."""
    vertices, triangles = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    return vertices, triangles.reshape(-1, 3).astype(np.int64)


def _obj(text: str) -> Mesh:
    vertices: list[list[float]] = []
    triangles: list[tuple[int, int, int]] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["v"]:
            vertices.append([float(x) for x in words[1:4]])
        elif words[:1] == ["f"]:
            at = [int(word.split("/")[0]) for word in words[1:]]
            at = [k - 1 if k > 0 else len(vertices) + k for k in at]
            triangles += [(at[0], at[k], at[k + 1]) for k in range(1, len(at) - 1)]
    points, faces = np.array(vertices, dtype=float), np.array(triangles, dtype=np.int64).reshape(-1, 3)
    if not len(faces) or points.shape[1:] != (3,) or faces.min() < 0 or faces.max() >= len(points):
        raise ValueError("it has no triangles, or refers to missing corners")
    if not np.all(np.isfinite(points)):
        raise ValueError("it has corners that are not finite")
    return points, faces


def _by_trimesh(path: Path) -> Mesh:
    try:
        trimesh = import_module("trimesh")  # an optional dependency
    except ImportError:
        raise RobotError(f"{path}: reading {path.suffix} needs trimesh; install it, or name an STL.") from None
    try:
        made = trimesh.load(path, force="mesh")
    except Exception as error:  # trimesh raises the errors of other libraries
        raise ValueError(str(error).split("\n")[0]) from None
    return np.asarray(made.vertices, dtype=float), np.asarray(made.faces, dtype=np.int64)


def coarsen(vertices: Array, triangles: Triangles, max_triangles: int) -> Mesh:
    """Coarsen a mesh by vertex clustering; triangles that lose their area are removed.

    Rossignac & Borrel 1993, "Multi-resolution 3D approximations for rendering complex scenes".

    Args:
        vertices: Corners, shape (n, 3).
        triangles: Corner indices, shape (m, 3).
        max_triangles: Limit for the result.
    """
    low = vertices.min(axis=0)
    extent = max(float((vertices.max(axis=0) - low).max()), 1e-12)
    for cells in _CELLS:
        if len(triangles) <= max_triangles:
            break
        cell = np.floor((vertices - low) * (cells / extent)).astype(np.int64)
        _, group = np.unique(cell, axis=0, return_inverse=True)
        group = group.reshape(-1)
        counts = np.bincount(group)
        points = np.column_stack([np.bincount(group, vertices[:, k]) / counts for k in range(3)])
        faces = group[triangles]
        flat = (faces[:, 0] == faces[:, 1]) | (faces[:, 1] == faces[:, 2]) | (faces[:, 2] == faces[:, 0])
        faces = faces[~flat]
        faces = faces[np.unique(np.sort(faces, axis=1), axis=0, return_index=True)[1]]
        if len(faces) <= max_triangles or cells == _CELLS[-1]:
            return points, faces[:max_triangles]
    return vertices, triangles
