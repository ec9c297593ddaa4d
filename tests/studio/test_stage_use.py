"""The stage Use: choice of the model, its limits, exports, payloads, friction and tests."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the studio's packages are not installed")

from run_cases import PAYLOAD_KG, Visitor, identified_result, made_run, payload_arm
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.export import load_format_models, load_model
from steelyard.studio.jobs import Jobs

DATA = os.environ.get("STEELYARD_DATA")


@pytest.fixture(scope="module")
def identified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with logs and a run of identify, created once."""
    folder = payload_arm(tmp_path_factory.mktemp("used") / "arm")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(app, ["identify", "-o", "runs/identify-1"])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def arm(identified: Path, tmp_path: Path) -> Visitor:
    shutil.copytree(identified, tmp_path / "arm", copy_function=shutil.copy2)
    return Visitor(tmp_path / "arm")


def _words(visitor: Visitor) -> list[str]:
    return list(visitor.jobs.all()[0].words)


def _status(visitor: Visitor) -> tuple[str, str]:
    """Return kind and words on the rail."""
    found = re.search(r'<li class="(\w+)"><a href="/use".*?: </span>([^<]*)</span>', visitor.see("/rail/use"))
    assert found is not None
    return found[1], html.unescape(found[2])


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are queued but not started."""
    monkeypatch.setattr(Jobs, "step", lambda self: None)


# ------------------------------------------------------------ model


def test_the_newest_good_model_is_proposed_and_saved_when_chosen(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path)
    assert _status(visitor) == ("empty", "needs a model")
    assert "no model yet" in visitor.see("/use")
    for k, grade in enumerate(("good", "good", "poor")):
        run = made_run(
            tmp_path, f"runs/identify-{k}", "steelyard identify arm.urdf a.csv", identified_result((2.0,), grade)
        )
        os.utime(run / "manifest.json", (1e9 + k, 1e9 + k))
    assert _status(visitor) == ("empty", "ready: runs/identify-1")
    assert 'value="runs/identify-1" selected' in visitor.see("/use")
    assert visitor.folder.project().model == ""  # opening a page writes nothing
    visitor.do("use/take", model="runs/identify-2")
    assert visitor.folder.project().model == "runs/identify-2"
    assert _status(visitor) == ("bad", "runs/identify-2")
    visitor.do("library/delete", run="runs/identify-2")
    assert _status(visitor) == ("bad", "runs/identify-2 is missing")
    assert "restore it from the trash" in visitor.see("/use")


def test_only_models_of_this_folder_are_accepted(tmp_path: Path) -> None:
    made_run(tmp_path, "runs/check-1", "steelyard check arm.urdf", {"verdict": "sound"})
    outside = made_run(tmp_path.parent, f"{tmp_path.name}-other", "steelyard identify x", identified_result())
    visitor = Visitor(tmp_path)
    for name in ("runs/check-1", "../" + outside.name, str(outside), "runs/none", "--help", ""):
        visitor.do("use/take", 422, model=name)
        visitor.do("use/export", 422, model=name, to="urdf")
    assert not visitor.folder.project_file.exists()
    assert not visitor.jobs.all()


def test_hostile_results_are_escaped(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>"
    result = {**identified_result(robot=bad), "check": [{"excitation": {"joints": [{"joint": bad, "lowest": bad}]}}]}
    result["verdict"] = {"grade": bad, "sentence": bad, "reasons": [bad]}
    load = {"frame": bad, "mass": {"value": 1.0, "standard_error": 0.1}, "notes": [bad], "physically_consistent": True,
            "center_of_gravity": bad, "inertia": bad, "parameters": bad}  # fmt: skip
    made_run(tmp_path, "runs/one", "steelyard identify '<b>' --estimator '<b>'", result)
    made_run(tmp_path, "runs/<b>two", "steelyard payload x", load)
    made_run(tmp_path, "runs/three", "steelyard friction x", {"joints": [{"joint": bad, "law": bad, "notes": [bad],
             "points": []}], "missing": {bad: bad}, "on": bad})  # fmt: skip
    made_run(
        tmp_path, "runs/four", "steelyard export runs/one", {"robot": bad, "files": [bad], "possible": 1}, {"<b>.c": ""}
    )
    page = Visitor(tmp_path).see("/use")
    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in page
    assert "<b>" not in page


# ------------------------------------------------------------ actions


def test_the_page_shows_accuracy_and_limits_of_the_model(arm: Visitor) -> None:
    page = arm.see("/use")
    result = json.loads((arm.folder.root / "runs/identify-1/result.json").read_text())
    assert result["verdict"]["sentence"] in page
    assert "the hold-out log &#x27;b&#x27;" in page
    fastest = max(j["speed"] for j in result["check"][0]["excitation"]["joints"])
    assert f'title="{fastest!r}"' in page  # range of motion in the data


def test_an_exported_model_can_be_loaded(arm: Visitor) -> None:
    form = arm.see("/data/use/exports")
    assert 'value="urdf" checked' in form
    page = arm.see("/data/use/words?what=export&model=runs/identify-1&to=urdf&to=csv&name=mine")
    assert "steelyard export runs/identify-1 --to urdf,csv --name mine --description arm.urdf -o runs/export-1" in page
    assert arm.folder.project().model == ""  # a preview changes nothing
    arm.do("use/export", model="runs/identify-1", to=["urdf", "csv"], name="mine")
    job = arm.wait()
    assert list(job.words) == ["export", "runs/identify-1", "--to", "urdf,csv", "--name", "mine", "--description",
                               "arm.urdf", "-o", "runs/export-1"]  # fmt: skip
    assert arm.folder.project().model == "runs/identify-1"
    assert _status(arm)[1] == "runs/identify-1"
    link = re.search(r'href="(/file/runs/export-1/mine\.urdf)"', arm.see("/use"))
    assert link is not None
    urdf = arm.folder.root / "downloaded.urdf"
    answer = arm.client.get(link[1])
    assert "attachment" in answer.headers["content-disposition"]
    urdf.write_bytes(answer.content)
    found = load_model(arm.folder.root / "runs/identify-1").robot
    read = load_model(arm.folder.root / "runs/export-1").robot
    assert read.inertial_parameters == pytest.approx(found.inertial_parameters, abs=1e-9)
    pin = pytest.importorskip("pinocchio", reason="Pinocchio reads the URDF independently")
    model = pin.buildModelFromUrdf(str(urdf))
    mine = load_format_models(arm.folder.root / "runs/identify-1")["urdf"].robot.inertial_parameters[0::10]
    assert sorted(i.mass for i in model.inertias)[-len(mine):] == pytest.approx(sorted(mine), abs=1e-6)  # fmt: skip


def test_formats_that_are_not_installed_cannot_be_chosen() -> None:
    from steelyard.studio.use_pages import export_form

    form = export_form([("urdf", "a robot", ""), ("usd", "a stage", "pip install 'usd-core'")], "runs/one")
    assert 'value="urdf"' in form
    assert 'value="usd"' not in form
    assert "pip install &#x27;usd-core&#x27;" in form


def test_a_payload_is_identified_from_two_logs(arm: Visitor) -> None:
    form = arm.see("/data/use/payload")
    assert '<option value="with" selected>' in form  # from the role of the log
    assert "Universal Robots" in form
    assert "or use the model as the bare arm" in arm.do("use/payload", 422, **{"log:logs/loaded.csv": "with"})
    arm.do("use/payload", **{"log:logs/loaded.csv": "with", "log:logs/a.csv": "without", "frame": "", "for": ["ur"]})
    arm.wait()
    assert _words(arm) == ["payload", "--with", "logs/loaded.csv", "--without", "logs/a.csv", "--for", "ur", "-o",
                           "runs/payload-1"]  # fmt: skip
    mass = json.loads((arm.folder.root / "runs/payload-1/result.json").read_text())["mass"]
    # 99.99 % of all draws are within four standard errors.
    assert abs(mass["value"] - PAYLOAD_KG) < 4.0 * mass["standard_error"]
    page = arm.see("/use")
    assert "± 95 %" in page
    assert f'title="{mass["value"]!r}"' in page
    assert "/file/runs/payload-1/load.script" in page


def test_payloads_keep_their_names_from_the_project(arm: Visitor, idle: None) -> None:
    arm.folder.set_keys(
        logs={"bare": ["logs/a.csv"], "payload": {"gripper": ["logs/b.csv"], "part": ["logs/loaded.csv"]}}
    )
    logs = {"log:logs/b.csv": "with", "log:logs/loaded.csv": "with", "log:logs/a.csv": "without"}
    arm.do("use/payload", **logs)
    assert _words(arm)[:5] == ["payload", "--with", "gripper=logs/b.csv", "--with", "part=logs/loaded.csv"]


def test_friction_is_identified_and_drawn(arm: Visitor) -> None:
    arm.do("use/friction", log=["logs/a.csv", "logs/b.csv"])
    assert _words(arm)[:4] == ["friction", "arm.urdf", "logs/a.csv", "logs/b.csv"]
    arm.wait()
    assert "/data/use/friction?run=runs%2Ffriction-1" in arm.see("/use")
    drawn = arm.see("/data/use/friction?run=runs/friction-1")
    assert "plot-data" in drawn
    assert arm.client.get("/data/use/friction", params={"run": "../x"}).status_code == 422


def test_the_model_is_tested_on_other_logs(arm: Visitor, idle: None) -> None:
    arm.do("use/judge", model="runs/identify-1", log="logs/b.csv", how="validate")
    assert _words(arm) == ["validate", "runs/identify-1", "--log", "logs/b.csv", "-o", "runs/validate-1"]
    arm.do("use/judge", model="runs/identify-1", log=["logs/a.csv", "logs/b.csv"], how="predict")
    assert _words(arm) == ["predict", "runs/identify-1", "logs/a.csv", "logs/b.csv", "-o", "runs/predict-1"]
    assert "select at least one" in arm.do("use/judge", 422, model="runs/identify-1")
    assert _status(arm) == ("working", "running")


def test_fields_never_become_options_or_outside_paths(arm: Visitor, idle: None) -> None:
    loads = {"log:logs/loaded.csv": "with", "log:logs/a.csv": "without"}
    arm.do("use/payload", 422, frame="--overwrite", **loads)
    for log in ("/etc/passwd", "../secret.csv", "--json", ""):
        arm.do("use/payload", 422, **{f"log:{log}": "with"})
        arm.do("use/friction", 422, log=log)
        arm.do("use/judge", 422, model="runs/identify-1", log=log)
    for fields in ({"to": "--json"}, {"to": "urdf", "name": "../../x"}, {"to": "urdf", "name": "-o"}, {}):
        arm.do("use/export", 422, model="runs/identify-1", **fields)
    assert not arm.jobs.all()


def test_export_of_a_urdf_in_a_browser(identified: Path, page: Any, studio: Any) -> None:
    for name in ("runs", "logs", "arm.urdf", "steelyard.toml"):
        source = identified / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, studio.folder / name)
    page.goto(studio.base + "/use")
    page.get_by_label("mjcf:").uncheck()
    page.get_by_label("sdf:").check()
    with page.expect_response("**/data/use/exports"):  # an update, as when a job ends, keeps the choices
        page.evaluate("document.activeElement.blur(); Steelyard.renew()")
    page.locator("#use-exports fieldset").wait_for()
    assert not page.get_by_label("mjcf:").is_checked()
    page.get_by_text("--to urdf,c,csv,sdf --description arm.urdf -o runs/export-1").wait_for()
    page.get_by_role("button", name="Export").click()
    link = page.get_by_role("link", name="szabo3r.urdf")
    link.wait_for(timeout=60_000)
    with page.expect_download() as download:
        link.click()
    saved = studio.folder / "saved.urdf"
    download.value.save_as(saved)
    assert "<robot" in saved.read_text("utf-8")
    assert {path.suffix for path in (studio.folder / "runs/export-1").iterdir()} >= {".urdf", ".sdf", ".c"}
    assert not (studio.folder / "runs/export-1/szabo3r.xml").exists()


@pytest.mark.skipif(not DATA, reason="STEELYARD_DATA is not set: no logs of real robots here")
def test_a_pair_of_real_logs_gives_the_known_mass(page: Any, studio: Any) -> None:
    source, folder = Path(DATA or "") / "ur10e", studio.folder
    pair = {"bare": "ident__20_02_19_14harm50sec.parquet", "payload": "ident__20_02_19_14harm50secLoad.parquet"}
    (folder / "logs").mkdir()
    for name in ("robot.urdf", *pair.values()):
        shutil.copyfile(source / name, folder / (name if name == "robot.urdf" else f"logs/{name}"))
    (folder / "mapping.toml").write_text(
        'joints = ["shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", '
        '"wrist_3_joint"]\ncurrent = "i{}"\ntorque_constants = [11.976, 11.976, 9.839, 10.763, 10.763, 10.763]\n'
    )
    roles = "".join(f'{role} = ["logs/{name}"]\n' for role, name in pair.items())
    (folder / "steelyard.toml").write_text(f'robot = "robot.urdf"\nmapping = "mapping.toml"\n[logs]\n{roles}')
    page.goto(studio.base + "/use")
    page.get_by_label("Frame of the result").select_option("tool0")
    page.get_by_label("Universal Robots").check()
    page.get_by_role("button", name="Identify the payload").click()
    page.get_by_text("payload in frame 'tool0'").wait_for(timeout=90_000)
    result = json.loads((folder / "runs/payload-1/result.json").read_text())
    low, high = result["mass"]["interval"]
    assert low < 2.805 < high  # kg, from a scale
    assert (folder / "runs/payload-1/load.script").exists()


def test_a_replayed_log_is_monitored_in_a_browser(identified: Path, page: Any, studio: Any) -> None:
    shutil.copytree(identified, studio.folder, dirs_exist_ok=True)
    page.goto(studio.base + "/use")
    page.locator("#use-live select[name=log]").select_option(index=1)
    page.locator("#use-live code", has_text="steelyard watch").wait_for()
    page.get_by_role("button", name="Start the monitor").click()
    page.locator(".live", has_text="samples").wait_for()
    page.locator(".live", has_text="External torque").wait_for()
    page.locator("#use-live .job").get_by_role("button", name="Cancel").click()
    page.locator(".live").wait_for(state="detached")
