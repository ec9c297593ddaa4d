"""The library of runs: the list, one run, two side by side, and the trash."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the studio's packages are not installed")

from run_cases import Visitor, identified_result, made_run

from steelyard.studio.run_entries import command_parts, run_entries
from steelyard.studio.studio_folder import StudioError, StudioFolder

HOSTILE = "<script>alert(1)</script>\"'&"


@pytest.fixture
def visitor(tmp_path: Path) -> Visitor:
    made_run(tmp_path, "runs/identify-1", "steelyard identify arm.urdf a.csv --estimator wls", identified_result(),
             {"report.html": "<p>seen</p>", "arm.urdf": "<robot/>"})  # fmt: skip
    made_run(tmp_path, "runs/identify-2", "steelyard identify arm.urdf a.csv --estimator ols",
             identified_result((2.0, 4.0)))  # fmt: skip
    made_run(tmp_path, "old/monday/check-1", "steelyard check arm.urdf a.csv", {
        "verdict": "This log has problems.", "grade": "mend", "advice": ["Turn the sign of q1."], "entries": [
            {"severity": "problem"}, {"severity": "ok"}], "excitation": {}})  # fmt: skip
    return Visitor(tmp_path)


def test_every_run_is_listed_with_its_settings(visitor: Visitor) -> None:
    page = visitor.see("/library")
    for name in ("runs/identify-1", "runs/identify-2", "old/monday/check-1"):
        assert f">{name}</a>" in page
    assert "--estimator ols" in page
    assert "✕" in page  # the check found problems
    assert 'aria-label="Torque error by joint, % of σ: 2, 5"' in page
    only = visitor.see("/library?what=check")
    assert "check-1" in only
    assert "identify-1</a>" not in only
    assert "identify-1</a>" not in visitor.see("/library?find=ols+identify")
    assert "identify-2</a>" in visitor.see("/library?find=ols+identify")


def test_a_report_is_shown_in_a_sandbox(visitor: Visitor) -> None:
    page = visitor.see("/library?run=runs/identify-1")
    assert "The model is good." in page
    assert '<iframe class="report" sandbox="allow-scripts allow-popups allow-downloads" src="/file/runs/' in page
    assert "steelyard identify arm.urdf a.csv --estimator wls" in page
    answer = visitor.client.get("/file/runs/identify-1/report.html")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert "allow-same-origin" not in answer.headers["content-security-policy"]
    archive = visitor.client.get("/data/library/archive?run=runs/identify-1").content
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        assert packed.read("identify-1/arm.urdf") == b"<robot/>"


def test_two_runs_show_only_differences(visitor: Visitor) -> None:
    page = visitor.see("/library?both=runs/identify-1&both=runs/identify-2")
    assert "Settings that differ" in page
    assert "validation/b/joints/q2/nrmse_percent" in page
    assert "-20 %" in page  # from 5 to 4
    assert "validation/b/joints/q1/nrmse_percent" not in page
    assert "different commands" in visitor.see("/library?both=runs/identify-1&both=old/monday/check-1")
    assert "select two" in visitor.see("/library?both=runs/identify-1")


def test_a_deleted_run_can_be_restored(visitor: Visitor, tmp_path: Path) -> None:
    before = {p.name: p.read_bytes() for p in (tmp_path / "runs/identify-1").iterdir()}
    page = visitor.do("library/delete", run="runs/identify-1")
    assert "is in the trash" in page
    assert not (tmp_path / "runs/identify-1").exists()
    assert "is in the trash" in visitor.see("/library?run=runs/identify-1")
    kept = visitor.folder.trash_entries()
    assert [one.origin for one in kept] == ["runs/identify-1"]
    assert "runs/identify-1" in visitor.see("/library?view=trash")
    visitor.do("library/back", name=kept[0].name)
    assert {p.name: p.read_bytes() for p in (tmp_path / "runs/identify-1").iterdir()} == before
    assert visitor.folder.trash_entries() == []
    assert "does not exist any more" in visitor.do("library/back", 422, name=kept[0].name)


def test_a_restored_run_replaces_nothing(visitor: Visitor, tmp_path: Path) -> None:
    visitor.do("library/delete", run="runs/identify-1")
    made_run(tmp_path, "runs/identify-1", "steelyard identify other.urdf", identified_result())
    visitor.do("library/delete", run="runs/identify-1")
    for one in visitor.folder.trash_entries():
        visitor.do("library/back", name=one.name)
    commands = {run.name: run.command for run in run_entries(visitor.folder)}
    assert {commands["runs/identify-1"][:30], commands["runs/identify-1-2"][:30]} == {
        "steelyard identify other.urdf", "steelyard identify arm.urdf a."}  # fmt: skip


def test_no_run_outside_the_folder_is_shown_or_deleted(visitor: Visitor, tmp_path: Path) -> None:
    outside = made_run(tmp_path.parent, f"{tmp_path.name}-outside", "steelyard check x", {})
    for name in (f"../{outside.name}", str(outside), ".steelyard/jobs", "runs/../../x", "", "."):
        visitor.do("library/delete", 422, run=name)
        assert "not a path inside" in visitor.see(f"/library?run={name}") or not name
    os.symlink(outside, tmp_path / "runs" / "link")
    visitor.do("library/delete", 422, run="runs/link")
    assert visitor.client.get("/data/library/archive", params={"run": "runs/link"}).status_code == 422
    assert (outside / "manifest.json").exists()
    for name in ("../../key.json", "x", "/etc/passwd", ""):
        visitor.do("library/back", 422, name=name)


def test_hostile_names_and_results_are_escaped(tmp_path: Path) -> None:
    made_run(tmp_path, f"runs/{HOSTILE.replace('/', '')}", f"steelyard identify '{HOSTILE[:25]}' --estimator '<b>'",
             identified_result(grade=HOSTILE, robot=HOSTILE), {"<img src=x>.csv": ""})  # fmt: skip
    made_run(tmp_path, "runs/two", f"steelyard {HOSTILE[:25]} x", {"verdict": HOSTILE, HOSTILE: HOSTILE})
    visitor = Visitor(tmp_path)
    names = [run.name for run in run_entries(visitor.folder)]
    ask = visitor.client.get
    pages = [ask("/library").text, *(ask("/library", params={"run": name}).text for name in names)]
    pages.append(ask("/library", params={"both": names}).text)
    pages.append(ask("/library", params={"find": HOSTILE, "what": HOSTILE}).text)
    pages.append(visitor.do("library/delete", run=names[0]))
    pages.append(ask("/library?view=trash").text)
    for page in pages:
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "<b>" not in page


@pytest.mark.parametrize("result", [
    "[]", "{", "null", '{"verdict": {"grade": {}, "sentence": []}}', '{"verdict": [], "validation": 3}',
    '{"robot": {"name": {}}}', '{"validation": [{"joints": [{"nrmse_percent": "x"}]}], "verdict": {}}',
    "[" * 500 + "]" * 500, '{"robot": 1e999}',
])  # fmt: skip
@pytest.mark.parametrize("kind", ["identify", "excite", "payload", "friction", "check", "compare schemes", "export"])
def test_a_malformed_result_has_a_summary(tmp_path: Path, kind: str, result: str) -> None:
    run = made_run(tmp_path, "runs/odd", f"steelyard {kind} arm", {})
    (run / "result.json").write_text(result)
    (found,) = run_entries(StudioFolder(tmp_path))
    assert found.summary.headline.sentence is not None
    assert str(found.summary.picture).startswith("<svg")


def test_the_kind_of_a_python_run_is_guessed_from_its_result(tmp_path: Path) -> None:
    from steelyard.ground.folders import run_folder

    with run_folder(tmp_path / "mine") as staging:
        (staging / "result.json").write_text(json.dumps(identified_result()))
    (found,) = run_entries(StudioFolder(tmp_path))
    assert (found.kind, found.command) == ("identify", "")
    assert "no command repeats it" in Visitor(tmp_path).see("/library?run=mine")


def test_a_command_is_split() -> None:
    kind, inputs, settings = command_parts(
        "steelyard --project none compare schemes arm.urdf 'my log.csv' --gravity 0,0,-9.81 --plain -o out --offset -1"
    )
    assert kind == "compare schemes"
    assert inputs == ("arm.urdf", "my log.csv")
    assert settings == (("--gravity", "0,0,-9.81"), ("--plain", ""), ("--offset", "-1"))
    assert command_parts("rm -rf /") == command_parts("steelyard 'x") == ("", (), ())


def test_a_list_of_five_hundred_runs_reads_one_page_of_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from steelyard.studio import run_entries as module

    for k in range(500):
        made_run(tmp_path, f"runs/identify-{k}", f"steelyard identify arm.urdf log{k}.csv", identified_result())
    read: list[str] = []
    real = module._small_result
    monkeypatch.setattr(module, "_small_result", lambda path: read.append(path) or real(path))
    visitor = Visitor(tmp_path)
    page = visitor.see("/body/library")
    assert len(read) == 24  # only the results on the page
    assert "500 runs" in page
    assert "Page 1 of 21" in page
    visitor.see("/body/library")
    assert len(read) == 24  # results are cached


def test_a_run_that_a_job_is_writing_is_not_deleted(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    from steelyard.studio.jobs import Jobs

    monkeypatch.setattr(Jobs, "outputs", lambda self: ("runs/identify-1",))
    assert "A job is writing" in visitor.do("library/delete", 422, run="runs/identify-1")


def test_the_confirmation_names_the_use_in_the_project(visitor: Visitor) -> None:
    visitor.folder.set_keys(model="runs/identify-1")
    assert "The project uses it as its model" in visitor.see("/library?run=runs/identify-1")


def test_the_trash_cannot_restore_to_outside(tmp_path: Path) -> None:
    folder = StudioFolder(tmp_path)
    kept = folder.move_to_trash(made_run(tmp_path, "runs/one", "steelyard check x", {}))
    (kept.parent / ".from").write_text("../../elsewhere")
    with pytest.raises(StudioError):
        folder.restore(kept.parent.name)
    assert (kept / "manifest.json").exists()


def test_deleting_needs_confirmation_and_can_be_undone(page: Any, studio: Any) -> None:
    made_run(studio.folder, "runs/identify-1", "steelyard identify arm.urdf a.csv", identified_result(),
             {"report.html": "<h1 id=x>Shown</h1><script>document.getElementById('x').textContent += ' ' + origin"
                             "</script>"})  # fmt: skip
    run = studio.folder / "runs/identify-1"
    page.goto(studio.base + "/library?run=runs/identify-1")
    page.frame_locator("iframe.report").get_by_text("Shown null").wait_for()  # scripts of a report have no origin
    questions: list[str] = []
    page.once("dialog", lambda d: (questions.append(d.message), d.dismiss()))
    page.get_by_role("button", name="Delete").click()
    page.wait_for_timeout(200)
    assert run.exists()
    assert "Move runs/identify-1 to the trash?" in questions[0]
    page.once("dialog", lambda d: d.accept())
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("runs/identify-1 is in the trash").wait_for()
    assert not run.exists()
    page.get_by_role("button", name="Restore").click()
    page.frame_locator("iframe.report").get_by_text("Shown null").wait_for()
    assert (run / "report.html").exists()
