"""Tables of held poses on the stage Robot: from a dropped table to a calibrated robot that Identify uses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from calibration.pose_plants import Errors, arm, poses
from run_cases import Visitor

from steelyard import load_robot
from steelyard.project import Project
from steelyard.robot.kinematics.poses import link_poses


def write_table(path: Path, **columns: np.ndarray) -> Path:
    """Write columns as CSV."""
    text = ",".join(columns) + "\n"
    text += "".join(",".join(f"{x:.9g}" for x in row) + "\n" for row in np.column_stack(list(columns.values())))
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    """A folder with the arm, a table of 40 poses, and its calibration."""
    folder = tmp_path_factory.mktemp("calibration")
    for name in ("robot", "poses"):
        (folder / name).mkdir()
    (folder / "robot/arm.xml").write_text(arm())
    write_table(folder / "poses/tracker.csv", **poses(_ERRORS, 40, 3))
    (folder / "poses/wrong.csv").write_text("a,b\n1,2\n")
    (folder / "steelyard.toml").write_text('robot = "robot/arm.xml"\nruns = "runs"\n')
    visitor = Visitor(folder)
    visitor.do("robot/calibrate", table="poses/tracker.csv", holdout="0.3", sigma="0.05")
    visitor.wait()
    return visitor


_ERRORS = Errors(
    np.random.default_rng(5).normal(size=(6, 3)) * 5e-4, np.zeros((6, 3)),
    np.random.default_rng(6).normal(size=6) * 3e-3, np.zeros(6), np.zeros(6),
)  # fmt: skip


def test_a_table_shows_its_facts_or_its_error(calibrated: Visitor) -> None:
    page = calibrated.see("/data/robot/poses?table=poses/tracker.csv")
    assert "40 poses" in page
    assert "points" in page
    wrong = calibrated.see("/data/robot/poses?table=poses/wrong.csv")
    assert "wrong.csv" in wrong
    assert 'role="alert"' in wrong
    assert "Hold-out share" in calibrated.do("robot/calibrate", status=422, table="poses/tracker.csv", holdout="1.5")
    assert "not a table" in calibrated.do("robot/calibrate", status=422, table="../x.csv")


def test_the_result_shows_errors_before_and_after(calibrated: Visitor) -> None:
    page = calibrated.see("/data/robot/seen")
    assert "Use the calibrated robot" in page
    assert "with all effects" in page
    assert "report.html" in page
    result = json.loads((calibrated.folder.root / "runs/calibrate-1/result.json").read_text())
    before, after = (result["errors"]["holdout"][s]["position"]["mean"] for s in ("nominal", "geometry"))
    assert after < 0.5 * before
    assert "calibrate-1" in calibrated.see("/library")


def test_identify_takes_the_calibrated_robot(calibrated: Visitor) -> None:
    """Its hand is where MuJoCo has that of the real arm, up to the free frames of sensor and tool."""
    folder = calibrated.folder.root
    calibrated.do("robot/calibrated", run="runs/calibrate-1")
    project = Project.load(folder / "steelyard.toml")
    assert Path(project.robot).parent == Path("robot")  # beside the original, where its meshes are
    assert project.robot.endswith(".xml")
    assert project.snap == 0.0
    assert "In use" in calibrated.see("/data/robot/seen")
    q = np.random.default_rng(1).uniform(-1.5, 1.5, (60, 6))
    truth = _hands(q)
    described = load_robot(folder / "robot/arm.xml", snap=0.0)
    new, old = (_misfit(*link_poses(robot, q), truth) for robot in (project.load_robot(), described))
    assert new < 0.2 * old
    calibrated.do("robot/described")
    assert Project.load(folder / "steelyard.toml").robot == "robot/arm.xml"


def _hands(q: np.ndarray) -> np.ndarray:
    from calibration.pose_plants import PLACES

    places = tuple(
        " ".join(repr(float(x)) for x in np.array(p.split(), float) + s)
        for p, s in zip(PLACES, _ERRORS.shifts, strict=True)
    )
    model = mujoco.MjModel.from_xml_string(arm(places, _ERRORS.turns))
    data, out = mujoco.MjData(model), []
    for row in q:
        data.qpos[:] = row + _ERRORS.offsets
        mujoco.mj_kinematics(model, data)
        out.append(data.xpos[-1].copy())
    return np.array(out)


def _misfit(rotations: np.ndarray, origins: np.ndarray, truth: np.ndarray) -> float:
    """Mean distance of predicted and true hands, with the best places of the base and of the point on the last link."""

    def residuals(x: np.ndarray) -> np.ndarray:
        hands = origins[:, -1] + rotations[:, -1] @ x[6:]
        return hands @ Rotation.from_rotvec(x[:3]).as_matrix().T + x[3:6] - truth

    best = least_squares(lambda x: residuals(x).ravel(), np.zeros(9), xtol=1e-12)
    return float(np.linalg.norm(residuals(best.x), axis=1).mean())


def test_a_dropped_table_that_is_no_table_is_not_kept(calibrated: Visitor) -> None:
    path = calibrated.folder.root / "poses/broken.csv"
    path.write_text("t,q1\n0\n1,2,3\n")
    assert "broken.csv" in calibrated.do("robot/poses", status=422, file="poses/broken.csv")
    assert not path.exists()
    shutil.copy(calibrated.folder.root / "poses/tracker.csv", calibrated.folder.root / "poses/second.csv")
    assert "second.csv" in calibrated.see("/data/robot/poses?table=poses/second.csv")
    calibrated.do("robot/forget", table="poses/second.csv")
    assert not (calibrated.folder.root / "poses/second.csv").exists()


def test_the_section_is_accessible_and_fits(calibrated: Visitor, chromium: Any) -> None:
    from conftest_studio import Served
    from test_studio_whole_way import serious

    served = Served(calibrated.folder.root, own_process=False)
    served.start()
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    try:
        page = context.new_page()
        page.goto(served.address)
        page.goto(served.base + "/robot")
        page.locator("select[name=table]").select_option("poses/tracker.csv")  # the newest table is a wrong one
        page.get_by_role("button", name="Calibrate", exact=True).wait_for()
        page.get_by_role("button", name="Use the calibrated robot").wait_for()
        assert not serious(page)
        for width in (1400, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        # By keyboard from the field to the button, which starts nothing with a wrong share.
        page.focus("[name=holdout]")
        page.keyboard.press("Control+A")
        page.keyboard.type("7")
        page.keyboard.press("Enter")
        page.locator(".trouble.refusal", has_text="Hold-out share").wait_for()
    finally:
        context.close()
        served.end()
