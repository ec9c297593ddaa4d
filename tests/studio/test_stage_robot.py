"""The stage *Robot*: uploaded files become the project's robot or give an error; the 3D view reacts to controls."""

from __future__ import annotations

import base64
import gzip
import json
import re
import struct
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="the studio's packages are not installed")

from conftest_studio import EVIL, HOSTILE, Client, Served, all_files

from steelyard.errors import SteelyardError
from steelyard.regression.inspection import inspect_robot
from steelyard.robot.load import load_robot
from steelyard.studio import robot_files
from steelyard.studio.robot_files import take_files

URDF = """<robot name="arm"><link name="base"/>
<link name="upper"><visual><geometry><mesh filename="{mesh}"/></geometry></visual><inertial><mass value="2"/>
<origin xyz="0 0 0.2"/><inertia ixx="0.03" iyy="0.03" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"><inertial><mass value="1"/><origin xyz="0 0 0.1"/>
<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="1" velocity="3" effort="40"/></joint>
<joint name="bend" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.4"/>
<axis xyz="0 1 0"/><limit velocity="3" effort="20"/></joint></robot>"""
TRIANGLE = bytes(80) + struct.pack("<I12fH", 1, *(0, 0, 1), *(0, 0, 0), *(0.1, 0, 0), *(0, 0.1, 0), 0)


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("robot-stage") / "arm")
    served.start()
    yield served
    served.end()


@pytest.fixture
def client(studio: Served) -> Client:
    return Client(studio)


def drop(client: Client, **files: bytes) -> tuple[int, str]:
    """Upload files as a page does: one after the other, then one action for all."""
    paths = []
    for name, content in files.items():
        status, body, _ = client.ask("PUT", f"/upload/robot/{name}", content)
        assert status == 200
        paths.append(json.loads(body)["path"])
    status, body, _ = client.ask("POST", "/do/robot/files", urlencode([("file", p) for p in paths]).encode())
    return status, body.decode()


def project(studio: Served) -> dict[str, Any]:
    return tomllib.loads((studio.folder / "steelyard.toml").read_text("utf-8"))


def seen(client: Client) -> str:
    status, body, _ = client.ask("GET", "/data/robot/seen")
    assert status == 200
    return body.decode()


def scene(html: str) -> dict[str, Any]:
    packed = re.search(r'class="scene-data">([^<]*)<', html)[1]  # type: ignore[index]
    return json.loads(gzip.decompress(base64.b64decode(packed)))  # type: ignore[no-any-return]


def test_a_builtin_robot_is_shown_as_by_inspect(studio: Served, client: Client) -> None:
    assert client.do("robot/builtin", name="ns16")[0] == 200
    assert project(studio)["robot"] == "ns16"
    html = seen(client)
    inspection = inspect_robot("ns16")
    assert inspection.base_parameters is not None
    for row in inspection.base_parameters.parameters:
        assert f">{row.formula}</button>" in html
    assert len(re.findall('type="range"', html)) == len(inspection.joints)
    assert "steelyard inspect ns16" in html
    # The rail shows it, and a new page has it at once.
    assert "ns16: 6 joints" in client.ask("GET", "/rail/robot")[1].decode()
    assert inspection.base_parameters.parameters[0].formula in client.ask("GET", "/robot")[1].decode()
    assert client.do("robot/builtin", name="../ns16")[0] == 422


def test_meshes_are_placed_where_the_urdf_expects_them(studio: Served, client: Client) -> None:
    mesh = "package://arm_description/meshes/Upper.STL"
    status, _ = drop(client, **{"arm.urdf": URDF.format(mesh=mesh).encode(), "Upper.STL": TRIANGLE})
    assert status == 200
    robot = project(studio)["robot"]
    assert load_robot(studio.folder / robot).joint_names == ("turn", "bend")
    assert [s["kind"] for s in scene(seen(client))["shapes"]] == ["mesh"]
    assert [p.name for p in (studio.folder / "robot").iterdir() if p.is_file()] == []
    # A second upload makes a new folder and replaces nothing.
    drop(client, **{"arm.urdf": URDF.format(mesh=mesh).encode()})
    other = project(studio)["robot"]
    assert other != robot
    html = seen(client)
    assert "Missing meshes" in html
    assert mesh in html
    # Meshes alone are added to the current robot.
    drop(client, **{"Upper.STL": TRIANGLE})
    assert project(studio)["robot"] == other
    assert [s["kind"] for s in scene(seen(client))["shapes"]] == ["mesh"]


def test_no_stage_draws_a_mesh_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Meshes outside the studio's folder are replaced by simple shapes, in every view of the robot."""
    import steelyard.excitation.motion_design as designed
    from steelyard.studio.mapping_editor import scene as scene_of_data
    from steelyard.studio.motion_facts import motion_view
    from steelyard.studio.robot_page import robot_view

    folder = tmp_path / "studio"
    folder.mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret.stl").write_bytes(TRIANGLE)
    (folder / "link.stl").symlink_to(tmp_path / "other" / "secret.stl")
    (folder / "inside.stl").write_bytes(TRIANGLE)
    (folder / "steelyard.toml").write_text('robot = "arm.urdf"\n')
    monkeypatch.chdir(folder)
    none = SimpleNamespace(trajectories=(), limits=None)
    monkeypatch.setattr(designed, "read_design", lambda run, robot: none)
    for mesh, expected in (("inside.stl", True), ("package://other/secret.stl", False), ("link.stl", False)):
        (folder / "arm.urdf").write_text(URDF.format(mesh=mesh))
        drawn = [json.loads(scene_of_data("none")), scene(motion_view("steelyard.toml", "none"))]
        drawn.append(scene(robot_view("steelyard.toml")["view"]))
        assert [any(s["kind"] == "mesh" for s in one["shapes"]) for one in drawn] == [expected] * 3, mesh


def test_meshes_are_found_in_package_folders(studio: Served, client: Client) -> None:
    drop(client, **{"far.urdf": URDF.format(mesh="package://far_description/upper.stl").encode()})
    assert "far_description" in seen(client)
    (studio.folder / "ros" / "far_description").mkdir(parents=True)
    (studio.folder / "ros" / "far_description" / "upper.stl").write_bytes(TRIANGLE)
    for wrong in ("..", "/opt", "nowhere", ".steelyard"):
        assert client.do("robot/packages", packages=wrong)[0] == 422
    assert client.do("robot/packages", packages="ros")[0] == 200
    assert project(studio)["packages"] == ["ros"]
    assert [s["kind"] for s in scene(seen(client))["shapes"]] == ["mesh"]


def test_a_broken_file_is_reported_and_removed(studio: Served, client: Client, tmp_path: Path) -> None:
    client.do("robot/builtin", name="ns16")
    before = all_files(studio.folder)
    (tmp_path / "robot" / "bad").mkdir(parents=True)
    broken = {
        "bad.urdf": URDF.format(mesh="a.stl").replace('<child link="upper"/>', '<child link="nobody"/>').encode(),
        "bad.yaml": b"joints: 7\n",
        "bad.xml": b"<mujoco",
        "bad.txt": b"no robot",
    }
    for name, content in broken.items():
        path = tmp_path / "robot" / "bad" / name
        path.write_bytes(content)
        with pytest.raises(SteelyardError) as error:
            load_robot(path)
        message = str(error.value).partition(name)[2]
        status, body = drop(client, **{name: content})
        assert status == 422
        assert 'class="callout bad"' in body
        assert message.partition("<")[0].partition("'")[0] in Text.of(body)
    assert project(studio)["robot"] == "ns16"
    assert all_files(studio.folder) == before


class Text(HTMLParser):
    """Collects the text and the tags of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: set[str] = set()

    @classmethod
    def of(cls, html: str) -> str:
        made = cls()
        made.feed(html)
        return "".join(made.words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_hostile_names_are_escaped(studio: Served, client: Client) -> None:
    assert drop(client, **{"evil.urdf": HOSTILE.urdf.encode()})[0] == 200
    html = seen(client) + client.ask("GET", "/robot")[1].decode()
    read = Text()
    read.feed(html)
    assert EVIL in "".join(read.words)
    assert "img" not in read.tags


def test_gravity_is_written_to_the_project_and_read_by_the_command(studio: Served, client: Client) -> None:
    client.do("robot/builtin", name="prrrp")
    status, tables = client.do("robot/gravity", x="0", y="9.81", z="0")
    assert status == 200
    assert "--gravity 0,9.81,0" in tables
    assert project(studio)["gravity"] == [0.0, 9.81, 0.0]
    inspect = subprocess.run(
        [sys.executable, "-m", "steelyard", "inspect", "--json"], cwd=studio.folder, capture_output=True, check=True
    )
    assert json.loads(inspect.stdout)["gravity"] == [0.0, 9.81, 0.0]
    for x in ("nan", "1e9", "down", ""):
        assert client.do("robot/gravity", x=x, y="0", z="0")[0] == 422
    assert project(studio)["gravity"] == [0.0, 9.81, 0.0]
    client.do("robot/builtin", name="ns16")
    assert "gravity" not in project(studio), "gravity holds for one robot only"


def test_only_selected_joints_move(studio: Served, client: Client) -> None:
    client.do("robot/builtin", name="ns16")
    fields = urlencode([("of", "6"), ("joint", "q1"), ("joint", "q2")])
    assert client.ask("POST", "/do/robot/joints", fields.encode())[0] == 200
    assert project(studio)["joints"] == ["q1", "q2"]
    assert len(re.findall('type="range"', seen(client))) == 2
    assert client.do("robot/joints", of="6")[0] == 422
    fields = urlencode([("of", "6"), *(("joint", f"q{k}") for k in range(1, 7))])
    client.ask("POST", "/do/robot/joints", fields.encode())
    assert "joints" not in project(studio)


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that writes an archive to the studio's folder."""
    monkeypatch.chdir(tmp_path)
    Path("robot").mkdir()

    def pack(**members: bytes) -> str:
        with zipfile.ZipFile("robot/a.zip", "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in members.items():
                file.writestr(name, content)
        return "robot/a.zip"

    return pack


def test_an_archive_keeps_its_folders(packed: Callable[..., str]) -> None:
    urdf = URDF.format(mesh="package://arm_description/meshes/upper.stl").encode()
    archive = packed(**{
        "arm_description/urdf/arm.urdf": urdf, "arm_description/meshes/upper.stl": TRIANGLE,
        "arm_description/package.xml": b"<package/>", "arm_description/evil.py": b"print()",
    })  # fmt: skip
    robot = take_files([archive], "")
    assert robot == "robot/a/arm_description/urdf/arm.urdf"
    assert robot_files.missing_meshes(Path(robot)) == []
    assert not Path(archive).exists()
    assert not list(Path("robot").rglob("*.py"))


def test_paths_of_an_archive_cannot_lead_out(packed: Callable[..., str], tmp_path: Path) -> None:
    urdf = URDF.format(mesh="upper.stl").encode()
    archive = packed(**{
        "../out.urdf": urdf, "/tmp/steelyard-out.urdf": urdf, "a/../../out.urdf": urdf, "..\\out.urdf": urdf,
        ".hidden/out.urdf": urdf, "C:/out.urdf": urdf, "arm.urdf": urdf,
    })  # fmt: skip
    link = zipfile.ZipInfo("passwd.xml")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(link, "/etc/passwd")
    assert take_files([archive], "") == "robot/a/arm.urdf"
    assert {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()} == {"robot/a/arm.urdf"}
    assert not Path("/tmp/steelyard-out.urdf").exists()


def test_an_archive_with_a_huge_content_is_refused(
    packed: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robot_files, "_MOST_BYTES", 10_000_000)
    archive = packed(**{"arm.urdf": URDF.format(mesh="a.stl").encode(), "a.stl": bytes(50_000_000)})
    with pytest.raises(SteelyardError, match="GB"):
        take_files([archive], "")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
    Path("robot/b.zip").write_bytes(b"PK\x03\x04 nothing more")
    with pytest.raises(SteelyardError, match="archive"):
        take_files(["robot/b.zip"], "")


def pixels(page: Any) -> np.ndarray:
    """Return the canvas of the robot when it no longer changes."""
    canvas, before = page.locator("figure.robot canvas"), b""
    for _ in range(20):
        page.wait_for_timeout(100)
        now = canvas.screenshot()
        if now == before:
            break
        before = now
    return np.frombuffer(now, dtype=np.uint8)


def test_sliders_formulas_and_the_gravity_arrow_change_the_view(studio: Served, client: Client, page: Any) -> None:
    client.do("robot/builtin", name="ns16")
    page.goto(f"{studio.base}/robot")
    page.wait_for_selector("figure.robot[data-drawn=yes]")
    still = pixels(page)
    slider = page.locator("input[data-coordinate='1']")
    slider.focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    q = float(slider.input_value())
    assert slider.get_attribute("aria-valuetext") == f"{q:.3f} rad ({np.degrees(q):.1f}°)"
    moved = pixels(page)
    assert not np.array_equal(still, moved)
    page.get_by_role("button", name="Reset posture").click()
    assert float(slider.input_value()) == 0.0
    # A formula highlights its bodies.
    formula = page.locator("button.bodies").first
    formula.click()
    assert formula.get_attribute("aria-pressed") == "true"
    chosen = pixels(page)
    formula.click()
    assert not np.array_equal(chosen, pixels(page))
    # A script can play a motion, with a second posture as a ghost.
    page.evaluate(
        "q => { const robot = document.querySelector('figure.robot').robot; robot.ghost(q); robot.set(q);"
        "robot.play({ t: [0, 1], q: [q, q.map(x => x + 1)] }, t => { document.body.dataset.t = t; }); }", [0.0] * 6
    )  # fmt: skip
    page.wait_for_selector("body[data-t^='0.']")
    page.evaluate("() => document.querySelector('figure.robot').robot.stop()")
    assert not np.array_equal(still, pixels(page))
    # Turn the arrow by keyboard: it snaps to an axis after 90°, and the project file is updated.
    page.locator("button.gravity").focus()
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    turned = [float(page.locator(f".gravity-form [name={axis}]").input_value()) for axis in "xyz"]
    assert sorted(map(abs, turned)) == [0.0, 0.0, 9.81]
    assert turned[2] == 0.0
    page.wait_for_selector(f".command code:has-text('--gravity {turned[0]:g},{turned[1]:g},0')")
    assert project(studio)["gravity"] == turned
    # Turn it freely by pointer, and back until it snaps to the z axis.
    box = page.locator("button.gravity").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 20, y + 30, steps=3)
    page.mouse.move(x + 1, y + 60, steps=3)
    page.mouse.up()
    page.wait_for_selector(".command code:has-text('--gravity 0,0,-9.81')")
    assert project(studio)["gravity"] == [0.0, 0.0, -9.81]


def test_a_chosen_folder_is_sent_as_an_archive(studio: Served, client: Client, page: Any, tmp_path: Path) -> None:
    home = tmp_path / "arm_description"
    (home / "meshes").mkdir(parents=True)
    (home / "urdf").mkdir()
    (home / "meshes" / "upper.stl").write_bytes(TRIANGLE)
    (home / "urdf" / "two.urdf").write_text(URDF.format(mesh="package://arm_description/meshes/upper.stl"), "utf-8")
    page.goto(f"{studio.base}/robot")
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    page.locator("input[webkitdirectory]").set_input_files(home)
    page.wait_for_selector("h2.words:has-text('arm')")
    assert project(studio)["robot"].endswith("arm_description/urdf/two.urdf")
    assert [s["kind"] for s in scene(seen(client))["shapes"]] == ["mesh"]


def test_sliders_work_if_the_robot_is_drawn_before_their_script(studio: Served, client: Client, page: Any) -> None:
    """A slow server sends the script of the controls after the robot stands on the page."""
    client.do("robot/builtin", name="rotradi")
    seen(client)  # the view is saved, so that the page contains it at once

    def late(route: Any) -> None:
        time.sleep(1.5)  # the browser draws meanwhile
        route.continue_()

    page.route("**/assets/posture.js", late)
    page.goto(f"{studio.base}/robot", wait_until="commit")
    page.wait_for_function("() => (document.querySelector('.sliders output') || {}).textContent?.includes('rad')")
