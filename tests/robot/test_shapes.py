"""Shapes for the scene: the file's bodies if readable, otherwise simple shapes, within a limit of triangles."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from steelyard.errors import RobotError
from steelyard.report.scene import Body, Ellipsoid
from steelyard.robot import load_robot
from steelyard.robot.library import builtin
from steelyard.robot.meshes import coarsen, mesh_path, read_mesh
from steelyard.robot.shapes import described_shapes, named_meshes, scene_of, skeleton_shapes

URDF = """<robot name="two">
<link name="base"><visual><geometry><box size="0.2 0.2 0.1"/></geometry></visual></link>
<link name="arm"><visual><origin xyz="0 0 0.2" rpy="0 0 1.5707963267948966"/>
  <geometry><mesh filename="{mesh}" scale="0.001 0.001 0.001"/></geometry></visual></link>
<link name="hand"><collision><geometry><sphere radius="0.05"/></geometry></collision></link>
<joint name="q1" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="grip" type="fixed"><parent link="arm"/><child link="hand"/><origin xyz="0 0 0.5"/></joint>
</robot>"""


def ball(rings: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners of triangles `(m, 3, 3)` on a sphere of radius 100, and the same as numbered ones."""
    a, b = np.meshgrid(np.linspace(0.0, np.pi, rings), np.linspace(0.0, 2.0 * np.pi, 2 * rings), indexing="ij")
    points = 100.0 * np.stack([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)], axis=-1)
    p, q, r, s = points[:-1, :-1], points[1:, :-1], points[:-1, 1:], points[1:, 1:]
    return np.concatenate(
        [np.stack([p, q, r], axis=-2).reshape(-1, 3, 3), np.stack([r, q, s], axis=-2).reshape(-1, 3, 3)]
    )


def binary_stl(path: Path, corners: np.ndarray) -> None:
    with path.open("wb") as file:
        file.write(bytes(80) + struct.pack("<I", len(corners)))
        for triangle in corners:
            file.write(struct.pack("<12fH", 0.0, 0.0, 1.0, *triangle.ravel(), 0))


def test_bodies_of_a_urdf_have_its_poses(tmp_path):
    corners = ball(20)
    binary_stl(tmp_path / "arm.stl", corners)
    (tmp_path / "two.urdf").write_text(URDF.format(mesh="arm.stl"))
    base, arm, hand = described_shapes(load_robot(tmp_path / "two.urdf"))
    assert (base.link, base.kind, base.size) == (-1, "box", (0.2, 0.2, 0.1))
    assert (arm.link, arm.kind) == (0, "mesh")
    assert np.allclose(arm.translation, [0.0, 0.0, 0.2])
    assert np.allclose(arm.rotation, [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], atol=1e-12)
    assert np.allclose(np.linalg.norm(arm.vertices, axis=1), 0.1, atol=1e-6)  # millimetres
    assert len(arm.triangles) == len(corners)
    assert (hand.link, hand.kind, hand.size) == (0, "sphere", (0.05,))  # for collisions, since nothing else is there
    assert np.allclose(hand.translation, [0.0, 0.0, 0.5])


def test_meshes_in_words_and_of_other_formats_are_the_same(tmp_path):
    corners = ball(5)
    binary_stl(tmp_path / "a.stl", corners)
    words = "".join(
        "facet normal 0 0 1\nouter loop\n" + "".join(f"vertex {x} {y} {z}\n" for x, y, z in t) + "endloop\nendfacet\n"
        for t in corners
    )
    (tmp_path / "b.stl").write_text(f"solid ball\n{words}endsolid")
    lines = "".join(f"v {x} {y} {z}\n" for x, y, z in corners.reshape(-1, 3))
    faces = "".join(f"f {3 * k + 1}/1 {3 * k + 2} {3 * k + 3}\n" for k in range(len(corners)))
    (tmp_path / "c.obj").write_text(lines + faces)
    for name in ("a.stl", "b.stl", "c.obj"):
        vertices, triangles = read_mesh(tmp_path / name)
        assert np.allclose(vertices[triangles], corners, atol=1e-5)


@pytest.mark.parametrize("content", [b"", b"solid nothing\nendsolid", bytes(84) + b"x", b"solid\nvertex a b c\n"])
def test_a_broken_mesh_is_named_and_left_out_of_the_picture(tmp_path, content):
    (tmp_path / "arm.stl").write_bytes(content)
    with pytest.raises(RobotError, match=r"arm\.stl"):
        read_mesh(tmp_path / "arm.stl")
    (tmp_path / "two.urdf").write_text(URDF.format(mesh="arm.stl"))
    assert [s.kind for s in described_shapes(load_robot(tmp_path / "two.urdf"))] == ["box", "sphere"]


def test_packages_are_found_above_the_file(tmp_path):
    (tmp_path / "pkg" / "meshes").mkdir(parents=True)
    (tmp_path / "pkg" / "urdf").mkdir()
    mesh = tmp_path / "pkg" / "meshes" / "a.stl"
    mesh.touch()
    urdf = tmp_path / "pkg" / "urdf" / "a.urdf"
    assert mesh_path("package://pkg/meshes/a.stl", urdf) == mesh
    assert mesh_path("../meshes/a.stl", urdf).samefile(mesh)
    assert mesh_path("package://other/meshes/a.stl", urdf) is None


def test_a_coarser_ball_is_a_ball_within_its_budget():
    vertices, triangles = np.unique(ball(120).reshape(-1, 3), axis=0, return_inverse=True)
    small, faces = coarsen(vertices, triangles.reshape(-1, 3), 1000)
    assert 300 < len(faces) <= 1000
    assert np.all(np.abs(np.linalg.norm(small[faces].reshape(-1, 3), axis=1) - 100.0) < 10.0)
    assert np.ptp(small, axis=0) == pytest.approx([200.0] * 3, rel=0.1)


def test_skeleton_shapes_reach_from_joint_to_joint():
    robot = builtin("ns16")
    shapes = skeleton_shapes(robot)
    assert sum(s.kind == "cylinder" for s in shapes) == robot.dof
    for k, link in enumerate(robot.links[1:], start=1):
        if np.linalg.norm(link.translation) > 0.2:
            ends = [
                s.translation + s.rotation[:, 2] * s.size[1] for s in shapes if s.link == k - 1 and s.kind == "capsule"
            ]
            assert any(np.allclose(end, link.translation) for end in ends)


def test_an_ellipsoid_has_the_inertia_of_its_body():
    """A box of 12 kg and 0.2 m × 0.4 m × 0.6 m has m (b² + c²)/12; the ellipsoid m (b² + c²)/5 of its semi-axes."""
    edges, turn = np.array([0.2, 0.4, 0.6]), np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    made = Ellipsoid.of(12.0, np.zeros(3), turn @ np.diag(12.0 * edges**2 / 12.0) @ turn.T)
    assert made is not None
    assert np.sum(made.axes[1:] ** 2) * 12.0 / 5.0 == pytest.approx(12.0 * (0.4**2 + 0.6**2) / 12.0)
    assert np.linalg.det(made.rotation) == pytest.approx(1.0)
    assert Ellipsoid.of(0.0, np.zeros(3), np.eye(3)) is None
    assert Body(0, made, error=0.02).level[1] == "to 3 %"
    assert Body(0, made, error=5.0).level[1] == "worse"


def test_a_scene_is_small_and_plain():
    robot, t = builtin("ns16"), np.linspace(0.0, 100.0, 20_000)
    made = json.loads(scene_of(robot, [("a log", t, np.sin(t[:, None] * np.arange(1, 7)))]).to_json())
    (motion,) = made["motions"]
    assert len(motion["t"]) == len(motion["q"]) <= 600
    assert (motion["t"][0], motion["t"][-1]) == (0.0, 100.0)
    assert [link["parent"] for link in made["links"]] == [-1, 0, 1, 2, 3, 4]


def test_no_mesh_outside_the_allowed_folders_is_read(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    binary_stl(outside / "arm.stl", ball(6))
    (inside / "two.urdf").write_text(URDF.format(mesh="package://outside/arm.stl"))
    (inside / "link.urdf").write_text(URDF.format(mesh="link.stl"))
    (inside / "link.stl").symlink_to(outside / "arm.stl")
    for name in ("two.urdf", "link.urdf"):
        robot = load_robot(inside / name)
        kinds = [{s.kind for s in described_shapes(robot, folders=w)} for w in ((), (inside,), (inside, outside))]
        assert ["mesh" in found for found in kinds] == [False, False, True]
    assert named_meshes(inside / "two.urdf") == ["package://outside/arm.stl"]


def test_a_report_embeds_meshes_of_the_robot_s_own_folder_package_or_named_packages_only(tmp_path):
    package, outside = tmp_path / "arm_description", tmp_path / "outside"
    for folder in (package / "urdf", package / "meshes", outside):
        folder.mkdir(parents=True)
        binary_stl(folder / "arm.stl", ball(6))

    def embeds(mesh, packages=()):
        (package / "urdf" / "two.urdf").write_text(URDF.format(mesh=mesh))
        scene = scene_of(load_robot(package / "urdf" / "two.urdf"), packages=packages)
        return any(shape.kind == "mesh" for shape in scene.shapes)

    assert embeds("arm.stl")
    for name in (f"{outside}/arm.stl", f"file://{outside}/arm.stl", "package://outside/arm.stl"):
        assert not embeds(name), name
    assert embeds("package://outside/arm.stl", packages=[tmp_path])
    assert not embeds("package://arm_description/meshes/arm.stl")  # a parent folder without package.xml
    (package / "package.xml").write_text("<package/>")
    assert embeds("package://arm_description/meshes/arm.stl")
    assert not embeds("package://outside/arm.stl")
