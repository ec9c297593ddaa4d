"""The appearance of a robot: bodies and meshes of its URDF, or simple shapes along its kinematics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.xml import Element, parse_xml
from steelyard.report.scene import Ellipsoid, Scene, Shape
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.meshes import FOLDERS_ABOVE, MOST_TRIANGLES, coarsen, mesh_path, read_mesh
from steelyard.robot.mjcf_shapes import mjcf_mesh_files, mjcf_shapes
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import LinkFrame, pseudo_inertia, rotation_from_rpy

# Radius of a simple shape relative to the robot's reach, and of joints relative to that.
_THIN, _JOINT = 0.045, 1.35
_MJCF = (".xml", ".mjcf")


def scene_of(
    robot: Robot,
    motions: Sequence[tuple[str, Array, Array]] = (),
    packages: Sequence[str | Path] = (),
    max_triangles: int = MOST_TRIANGLES,
    folders: Sequence[Path] = (),
) -> Scene:
    """Build the 3-D scene of a robot and its motions.

    Args:
        robot: Robot; its bodies come from its source if that is a URDF or MJCF.
        motions: Name, times [s] and positions `(samples, joints)` of each motion that can be played.
        packages: Folders to search for `package://` meshes before those above the robot's file.
        max_triangles: Limit for all meshes together; larger meshes are coarsened.
        folders: Only meshes inside these folders are read; default: the folder of the robot's file, the ROS package
            (with package.xml) around it, and `packages`.
    """
    shapes = described_shapes(robot, packages, max_triangles, folders) or skeleton_shapes(robot)
    rest = np.concatenate([q for _, _, q in motions])[:1] if motions else np.zeros((1, robot.dof))
    sampled = np.concatenate([rest, *(q[:: max(1, len(q) // 50)] for _, _, q in motions)])
    origins = np.concatenate([np.zeros((1, 3)), link_poses(robot, sampled)[1].reshape(-1, 3)])
    low, high = origins.min(axis=0), origins.max(axis=0)
    links = tuple(
        {
            "name": link.name,
            "joint": robot.joints[link.coordinate].name,
            "parent": link.parent,
            "rotation": np.round(link.rotation, 7).ravel().tolist(),
            "translation": np.round(link.translation, 6).tolist(),
            "axis": np.round(link.axis, 7).tolist(),
            "slides": link.kind == "prismatic",
            "coordinate": link.coordinate,
            "ratio": link.ratio,
            "offset": link.offset,
        }
        for link in robot.links
    )
    size = max(float(np.linalg.norm(high - low)), 1.2 * _reach(robot), 1e-3)
    return Scene(links, tuple(shapes), 0.5 * size, 0.5 * (low + high), rest[0], (), tuple(motions))


def _reach(robot: Robot) -> float:
    """Estimate the reach [m] as the sum of all offsets between joints."""
    return sum(float(np.linalg.norm(link.translation)) for link in robot.links)


def inertia_ellipsoid(parameters: Array | None, rotation: Array, translation: Array) -> Ellipsoid | None:
    """Compute the inertia ellipsoid of a body in the joint frame of its link; None without mass.

    Args:
        parameters: Ten parameters about the body's own frame; None if unknown.
        rotation: Rotation of the body's frame in the joint frame.
        translation: Origin of the body's frame in the joint frame [m].
    """
    if parameters is None:
        return None
    P, R = pseudo_inertia(parameters), np.asarray(rotation)
    mass = float(P[3, 3])
    if not mass > 1e-9:
        return None
    centre = P[:3, 3] / mass
    about = P[:3, :3] - mass * np.outer(centre, centre)
    return Ellipsoid.of(mass, R @ centre + translation, R @ about @ R.T)


def skeleton_shapes(robot: Robot) -> list[Shape]:
    """Build capsules between the joints of a `robot` and a short cylinder on every revolute axis."""
    radius = _THIN * max(_reach(robot), 1e-3)
    ends: dict[int, list[Array]] = {k: [] for k in range(-1, len(robot.links))}
    for link in robot.links:
        ends[link.parent].append(np.asarray(link.translation))
    for k in range(len(robot.links)):
        # A last link ends at its farthest frame, or a little ahead of its joint.
        if not ends[k]:
            tips = [p.translation for p in robot.frames.values() if p.host == k]
            farthest = max(tips, key=lambda x: float(np.linalg.norm(x)), default=np.zeros(3))
            ends[k] = [
                farthest if np.linalg.norm(farthest) > radius else 2.0 * radius * np.asarray(robot.links[k].axis)
            ]
    out = [
        Shape(k, "capsule", _rotation_to(end), size=(radius, float(np.linalg.norm(end))))
        for k, some in ends.items()
        for end in some
        if np.linalg.norm(end) > 0.2 * radius
    ]
    for k, link in enumerate(robot.links):
        kind = "cylinder" if link.kind == "revolute" else "box"
        size = (_JOINT * radius, 3.0 * radius) if kind == "cylinder" else (2.6 * radius,) * 3
        out.append(Shape(k, kind, _rotation_to(np.asarray(link.axis)), size=size))  # type: ignore[arg-type]
    return out


def _rotation_to(direction: Array) -> Array:
    """Compute a rotation whose third column points along `direction`."""
    z = direction / np.linalg.norm(direction)
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def named_meshes(urdf: Path) -> list[str]:
    """List the mesh file names in a `urdf` or MJCF, without duplicates; empty if the file is neither."""
    try:
        root = parse_xml(urdf)
    except SteelyardError:
        return []
    if root.tag == "mujoco":
        return list(dict.fromkeys(mjcf_mesh_files(root).values()))
    shapes = [shape for link in root.all("link") for kind in ("visual", "collision") for shape in link.all(kind)]
    meshes = [mesh for shape in shapes for geometry in shape.all("geometry") for mesh in geometry.all("mesh")]
    return list(dict.fromkeys(name for mesh in meshes if (name := mesh.attributes.get("filename"))))


def described_shapes(
    robot: Robot, packages: Sequence[str | Path] = (), max_triangles: int = MOST_TRIANGLES, folders: Sequence[Path] = ()
) -> list[Shape]:
    """Read the bodies in a robot's URDF or MJCF, visual or else collision; empty if no moving link has a readable one.

    Args:
        robot: Robot with the path of its description as source.
        packages: As in `scene_of`.
        max_triangles: As in `scene_of`.
        folders: As in `scene_of`.
    """
    path = Path(robot.source)
    if path.suffix.lower() not in (".urdf", *_MJCF) or not path.is_file():
        return []
    try:
        root = parse_xml(path)
    except SteelyardError:
        return []
    # The description may be untrusted, and a page with its meshes may be shared.
    folders = folders or [*own_folders(path), *map(Path, packages)]
    shapes: list[Shape] = []
    if root.tag == "mujoco":
        try:
            shapes = mjcf_shapes(robot, root, packages, folders)
        except SteelyardError:
            return []
    for link in root.all("link"):
        name = link.attributes.get("name", "")
        place = _place(robot, name, root)
        if place is None:
            continue
        for kind in ("visual", "collision"):
            found = [s for s in (_shape(e, place, path, packages, folders) for e in link.all(kind)) if s is not None]
            if found:
                shapes += found
                break
    return _limit_triangles(shapes, max_triangles) if any(s.link >= 0 for s in shapes) else []


def own_folders(path: Path) -> list[Path]:
    """Return the folder of a robot's file at `path`, and the ROS package that contains it, if any."""
    above = list(path.resolve().parents)[:FOLDERS_ABOVE]
    return [path.parent, *[folder for folder in above if (folder / "package.xml").is_file()][:1]]


def _place(robot: Robot, name: str, root: Element) -> LinkFrame | None:
    """Return the frame of a link of the file; None if the robot does not have it."""
    if name in robot.frames or name in robot.link_names:
        return robot.frame(name)
    children = {e.attributes.get("link") for joint in root.all("joint") for e in joint.all("child")}
    return LinkFrame() if name not in children else None


def _shape(
    element: Element, place: LinkFrame, path: Path, packages: Sequence[str | Path], folders: Sequence[Path]
) -> Shape | None:
    """Read one <visual> or <collision>; None if it is not readable."""
    origin, geometry = element.find("origin"), element.find("geometry")
    inside = geometry.children[0] if geometry is not None and geometry.children else None
    if inside is None:
        return None
    try:
        turn, shift = np.eye(3), np.zeros(3)
        if origin is not None:
            roll, pitch, yaw = origin.vector("rpy", 3, (0.0, 0.0, 0.0))
            turn, shift = (
                rotation_from_rpy(float(roll), float(pitch), float(yaw)),
                origin.vector("xyz", 3, (0.0, 0.0, 0.0)),
            )
        rotation, translation = place.rotation @ turn, place.translation + place.rotation @ shift
        if inside.tag == "mesh":
            scale = inside.vector("scale", 3, (1.0, 1.0, 1.0))
            file = mesh_path(inside.string("filename"), path, packages)
            if file is None or not any(file.resolve().is_relative_to(f.resolve()) for f in folders):
                return None
            vertices, triangles = read_mesh(file)
            return Shape(place.host, "mesh", rotation, translation, vertices=vertices * scale, triangles=triangles)
        if inside.tag == "box":
            return Shape(place.host, "box", rotation, translation, tuple(map(float, inside.vector("size", 3))))
        if inside.tag == "cylinder":
            size = inside.number("radius"), inside.number("length")
            return Shape(place.host, "cylinder", rotation, translation, size)
        if inside.tag == "sphere":
            return Shape(place.host, "sphere", rotation, translation, (inside.number("radius"),))
    except SteelyardError:
        return None  # a missing picture is not an error
    return None


def _limit_triangles(shapes: list[Shape], max_triangles: int) -> list[Shape]:
    """Coarsen meshes to a common limit of triangles, in proportion to their size."""
    counts = [len(s.triangles) for s in shapes]
    total = max(sum(counts), 1)
    out = []
    for shape, count in zip(shapes, counts, strict=True):
        if shape.kind == "mesh" and total > max_triangles:
            part = max(200, int(max_triangles * count / total))
            vertices, triangles = coarsen(shape.vertices, shape.triangles, part)
            shape = Shape(shape.link, "mesh", shape.rotation, shape.translation, (), vertices, triangles)
        if shape.kind != "mesh" or len(shape.triangles):
            out.append(shape)
    return out
