"""Folders that are logs: dropped into a real browser, chosen by the keyboard's way, and refused by the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from bags import write_bag
from conftest_studio import Client, Served
from signals.lerobot_sets import write_lerobot

from steelyard import load_robot, read_log
from steelyard.studio.log_folders import is_log_folder
from steelyard.studio.roles import listed_logs
from steelyard.studio.studio_folder import StudioFolder

JOINTS = ["q1", "q2", "q3"]


def motion(samples: int = 200) -> dict[str, np.ndarray]:
    t = np.arange(samples) / 100.0
    phase = np.arange(3.0)
    q, dq = np.sin(t[:, None] + phase), np.cos(t[:, None] + phase)
    return {"t": t, "q": q, "dq": dq, "tau": 3.0 * q}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bag, a data set with a video, and a folder that is no log."""
    folder, m = tmp_path_factory.mktemp("sources"), motion()
    messages = [
        {"stamp": 10**18 + int(1e9 * t), "name": JOINTS, "position": q, "velocity": v, "effort": e}
        for t, q, v, e in zip(m["t"], m["q"], m["dq"], m["tau"], strict=True)
    ]
    write_bag(folder / "my bag", {"/joint_states": messages})
    write_lerobot(folder / "dataset", JOINTS, m, episodes=2)
    (folder / "dataset/videos").mkdir()
    (folder / "dataset/videos/cam.mp4").write_bytes(b"0" * 100)
    (folder / "papers").mkdir()
    (folder / "papers/notes.txt").write_text("nothing")
    return folder


def drop(page: Any, *paths: Path) -> None:
    """Drop files or folders of the disk onto the first zone, as the browser's own protocol does."""
    zone = page.locator(".drop").first
    zone.scroll_into_view_if_needed()
    box = zone.bounding_box()
    place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + 10}
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **place, "data": data})
        page.wait_for_timeout(100)  # the browser drops only where the page has answered that it takes files
    session.detach()


@pytest.fixture(scope="module")
def data(shared_page: Any, shared_studio: Served) -> Any:
    (shared_studio.folder / "steelyard.toml").write_text('robot = "rotradi"\n')
    shared_page.goto(shared_studio.base + "/data")
    return shared_page


def test_a_bag_and_a_data_set_are_dropped_as_folders(data: Any, shared_studio: Served, sources: Path) -> None:
    drop(data, sources / "my bag", sources / "dataset")
    data.locator("a", has_text="logs/dataset").wait_for()
    logs = listed_logs(StudioFolder(shared_studio.folder))
    assert set(logs) == {"logs/my bag", "logs/dataset"}
    assert sorted(role for log in logs.values() for role in log.roles) == ["identify", "validate"]
    assert not list(shared_studio.folder.glob("logs/dataset/videos/*"))
    # What was sent is what is read.
    robot, m = load_robot("rotradi"), motion()
    mapping = shared_studio.folder / "columns.toml"
    bag = read_log(shared_studio.folder / "logs/my bag", robot, mapping if mapping.exists() else None)
    assert np.allclose(bag.q, m["q"])
    assert np.allclose(bag.tau, m["tau"])
    assert not list((shared_studio.folder / ".steelyard/uploads").iterdir())


def test_a_robot_with_its_meshes_is_dropped_as_a_folder(data: Any, shared_studio: Served, tmp_path: Path) -> None:
    from robot.test_mjcf_shapes import MJCF
    from robot.test_shapes import ball, binary_stl

    (tmp_path / "two/assets").mkdir(parents=True)
    (tmp_path / "two/two.xml").write_text(MJCF)
    binary_stl(tmp_path / "two/assets/ball.stl", ball(8))
    data.goto(shared_studio.base + "/robot")
    data.locator("#another").evaluate("box => { box.open = true; }")
    drop(data, tmp_path / "two")
    data.locator("h2", has_text="two: 2 joints").wait_for()
    assert data.locator("text=Missing meshes").count() == 0
    assert list(shared_studio.folder.glob("robot/*/two/assets/ball.stl"))
    (shared_studio.folder / "steelyard.toml").write_text('robot = "rotradi"\n')
    data.goto(shared_studio.base + "/data")


def test_a_folder_is_chosen_without_a_mouse(data: Any, shared_studio: Served, sources: Path) -> None:
    data.set_input_files(".drop input[webkitdirectory]", str(sources / "my bag"))
    data.locator("a", has_text="logs/my bag-2").wait_for()
    assert is_log_folder(shared_studio.folder / "logs/my bag-2")


@pytest.mark.parametrize("width", [1400, 390])
def test_another_folder_is_refused_and_not_kept(data: Any, shared_studio: Served, sources: Path, width: int) -> None:
    data.set_viewport_size({"width": width, "height": 900})
    data.reload()
    drop(data, sources / "papers")
    message = data.locator(".trouble", has_text="this folder is no log")
    message.wait_for()
    box = message.bounding_box()
    assert box["width"] > 150
    assert box["height"] > 20
    assert 0 <= box["x"] <= width - box["width"]
    assert not (shared_studio.folder / "logs/papers").exists()
    data.set_viewport_size({"width": 1400, "height": 900})


def test_paths_of_a_sent_folder_cannot_leave_it(shared_studio: Served, shared_page: Any) -> None:
    client, key = Client(shared_studio), "0123456789abcdef"
    before = {path for path in shared_studio.folder.rglob("*") if path.is_file()}
    for path in ("../x.csv", "/etc/x.csv", "a/../../x.csv", ".hidden/x.csv", "a//x.csv", "a/" * 20 + "x", "x\\y.csv"):
        status, body, _ = client.ask("PUT", f"/upload/logs/part?key={key}&path={path}", b"1,2\n")
        assert status == 422, path
        assert b"rename it" in body
    assert client.ask("PUT", "/upload/logs/part?key=../../x&path=a.csv", b"1")[0] == 422
    assert {path for path in shared_studio.folder.rglob("*") if path.is_file()} == before
    assert client.do("data/add", folder=f"{key}:name")[0] == 422


def test_folders_with_links_or_foreign_paths_are_no_logs(sources: Path, tmp_path: Path) -> None:
    bag = tmp_path / "bag"
    bag.mkdir()
    (bag / "metadata.yaml").write_text((sources / "my bag/metadata.yaml").read_text())
    assert is_log_folder(bag)
    (bag / "data.db3").symlink_to(sources / "my bag/metadata.yaml")
    assert not is_log_folder(bag)
    (bag / "data.db3").unlink()
    (bag / "metadata.yaml").write_text("relative_file_paths:\n  - ../../secret.db3\n")
    assert not is_log_folder(bag)


def test_interrupted_folders_are_removed_at_the_next_start(tmp_path: Path) -> None:
    folder = StudioFolder(tmp_path)
    place = folder.hidden_path("uploads", "0123456789abcdef", "meta", "info.json")
    place.write_text("{}")
    folder.sweep_uploads()
    assert not (tmp_path / ".steelyard/uploads/0123456789abcdef").exists()
