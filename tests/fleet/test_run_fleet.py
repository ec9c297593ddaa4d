"""Runs of a fleet: each log is processed once, and a bad log does not affect the others."""

from __future__ import annotations

import gc
import os
import weakref
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from steelyard.fleet import run_fleet, worker_tasks
from steelyard.fleet.fleet import FleetOutcome, identify_fleet
from steelyard.fleet.log_factors import LogFactors, log_factors, merge_factors
from steelyard.fleet.robot_table import read_fleet
from steelyard.fleet.run_fleet import FleetFactors
from steelyard.fleet.settings import RobotTypeSettings, RobotTypeStudy, draw_logs
from steelyard.fleet.storage import FleetError
from steelyard.identification.identify import identify
from tests.fleet.planar_fleet import made_log, planar, truth, write_fleet, write_log


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FleetOutcome]:
    """A processed fleet of three robots with four logs each, and its folder with the store."""
    folder = tmp_path_factory.mktemp("fleet")
    write_fleet(folder / "logs")
    return folder, run(folder)


def run(folder: Path, **options: object) -> FleetOutcome:
    given = {"workers": 0, "store": folder / "store", "plain": True, **options}
    return identify_fleet(folder / "logs", **given)  # type: ignore[arg-type]


@pytest.fixture
def copy(once: tuple[Path, FleetOutcome], tmp_path: Path) -> Path:
    """A copy of the fleet and its store that may be changed."""
    for path in once[0].rglob("*"):
        if path.is_file():
            new = tmp_path / path.relative_to(once[0])
            new.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".parquet":
                os.link(path, new)
            else:
                new.write_bytes(path.read_bytes())
    return tmp_path


def as_bytes(found: FleetFactors) -> dict[str, bytes]:
    return {name: factors.to_bytes() for name, factors in (*found.robots.items(), *found.robot_types.items())}


def test_robots_agree_with_identify(once: tuple[Path, FleetOutcome]) -> None:
    """The free fit of the merged factors equals `identify` on the same files, with the same terms and filter."""
    found = once[1].factors
    own, study = found.settings["planar"], found.studies["planar"].study
    for robot in ("arm0", "arm2"):
        logs = [log.url for log in found.fleet.logs_of(robot)]
        preparation = replace(own.preparation, cutoff_hz=own.cutoff_hz)
        direct = identify(planar(), logs, terms=study.terms.terms, preparation=preparation, check=False, physical=False)
        factor = found.robots[robot].factor
        assert factor is not None
        assert study.base.independent == direct.base.independent
        weights = 1.0 / direct.free.residual_std
        np.testing.assert_allclose(
            # `identify` chooses source and delay of the velocities for all logs together, a fleet for each log.
            factor.solve(weights, study.base.independent),
            direct.free.beta,
            rtol=1e-4,
            atol=1e-5,
        )


def test_a_second_run_reads_no_logs_and_gives_identical_results(
    once: tuple[Path, FleetOutcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(run_fleet, "content_identity", refuse)
    monkeypatch.setattr(worker_tasks, "open_log", refuse)
    again = run(once[0])
    assert (again.factors.tally.kept, again.factors.tally.mapped, again.factors.tally.merged) == (12, 0, 0)
    assert as_bytes(again.factors) == as_bytes(once[1].factors)


def test_only_new_logs_are_processed(copy: Path) -> None:
    write_log(copy / "logs" / "arm1" / "2026-02-01.parquet", made_log(77, truth(0.7)))
    found = run(copy).factors
    assert (found.tally.kept, found.tally.mapped, found.tally.merged) == (12, 1, 1), "one log, one robot"
    assert found.robots["arm1"].logs == 5
    fresh = run(copy, store=copy / "other").factors
    # The settings are those of the first run; a fresh run may draw other logs for its settings.
    if fresh.settings["planar"].key == found.settings["planar"].key:
        assert as_bytes(fresh) == as_bytes(found)


def test_a_moved_file_is_known_by_its_content(copy: Path) -> None:
    old = copy / "logs" / "arm1" / "2026-01-01.parquet"
    content = old.read_bytes()
    old.unlink()
    (copy / "logs" / "arm1" / "2026-01-09.parquet").write_bytes(content)
    found = run(copy).factors.tally
    assert (found.kept, found.mapped) == (12, 0)


def test_changed_settings_recompute_the_factors(copy: Path) -> None:
    found = run(copy, terms="viscous,offset").factors
    assert found.tally.mapped == 12
    assert run(copy).factors.tally.kept == 12, "the old ones are still in the store"


def test_settings_are_chosen_once(once: tuple[Path, FleetOutcome], copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def chosen(task: worker_tasks.SettingsTask) -> RobotTypeSettings | str:
        calls.append(task.robot_type)
        return worker_tasks.choose_type_settings(task)

    monkeypatch.setattr(run_fleet, "choose_type_settings", chosen)
    run(copy)
    assert calls == []
    (next((copy / "store" / "settings").iterdir())).write_text("{torn", "utf-8")
    again = run(copy)
    assert calls == ["planar"]
    assert again.factors.settings["planar"].key == once[1].factors.settings["planar"].key
    run(copy, choose_again=True)
    assert calls == ["planar", "planar"]


def test_bad_logs_are_listed_and_do_not_stop_the_run(once: tuple[Path, FleetOutcome], copy: Path) -> None:
    arm = copy / "logs" / "arm0"
    (arm / "2026-03-01.parquet").write_bytes(b"PAR1 and no more")
    (arm / "2026-03-02.csv").write_text("a,b\n1,2\n", "utf-8")
    os.symlink(arm / "gone.parquet", arm / "2026-03-03.parquet")
    write_log(arm / "2026-03-04.parquet", replace(made_log(5), tau=np.zeros((1500, 2))))
    (arm / "2026-03-05.parquet").write_bytes((arm / "2026-01-01.parquet").read_bytes())
    for path in arm.glob("2026-03-0[1245]*"):
        os.utime(path, (1e9, 1e9))
    found = run(copy)
    reasons = {Path(name).name: reason for name, reason in found.skipped.items()}
    assert set(reasons) == {f"2026-03-0{k}.{'csv' if k == 2 else 'parquet'}" for k in range(1, 6)}
    for name, reason in reasons.items():
        assert name in reason, "every reason names its log"
        assert reason.endswith(".")
    assert "zero throughout" in reasons["2026-03-04.parquet"]
    assert "same log as" in reasons["2026-03-05.parquet"]
    assert as_bytes(found.factors) == as_bytes(once[1].factors), "the same as without them"
    again = run(copy)
    assert again.factors.tally.mapped == 0, "unusable logs are remembered"
    assert again.skipped == found.skipped


def test_a_fleet_without_usable_logs_gives_one_error(tmp_path: Path) -> None:
    write_fleet(tmp_path / "logs", 1, 1)
    for log in (tmp_path / "logs").rglob("*.parquet"):
        log.write_bytes(b"")
    with pytest.raises(FleetError, match=r"No robot type has logs that can be used: .*2026-01-01.parquet"):
        run(tmp_path)


def test_a_log_with_a_wrong_mapping_is_checked_in_full(copy: Path) -> None:
    good = made_log(9, truth(0.6))
    assert good.tau is not None
    write_log(copy / "logs" / "arm0" / "2026-02-01.parquet", replace(good, tau=good.tau * [1.0, -1.0]))
    found = run(copy).factors
    log = next(one for one in found.logs if one.url.endswith("02-01.parquet"))
    assert "sign" in {finding["kind"] for finding in log.findings}
    assert not any(finding["kind"] == "sign" for one in found.logs if one is not log for finding in one.findings)


def test_the_tree_of_merges_has_the_same_shape_in_blocks(once: tuple[Path, FleetOutcome]) -> None:
    """150 logs merged in blocks, as for robots with many logs, and all at once give identical factors."""
    parts = [one for one in once[1].factors.logs if one.factor is not None]
    many = [parts[k % len(parts)] for k in range(150)]
    blocks = [merge_factors(many[k : k + 64]) for k in range(0, 150, 64)]
    assert merge_factors(blocks).to_bytes() == merge_factors(many).to_bytes()


def test_settings_come_back_from_their_document(once: tuple[Path, FleetOutcome]) -> None:
    own = once[1].factors.settings["planar"]
    back = RobotTypeSettings.from_json(own.to_json(), "a test")
    assert back == own
    assert back.key == own.key
    assert RobotTypeStudy(planar(), back).study.base.independent == own.independent


def test_a_worker_frees_a_processed_log(once: tuple[Path, FleetOutcome]) -> None:
    ready = RobotTypeStudy(planar(), once[1].factors.settings["planar"])
    log = made_log(3)
    gone = weakref.ref(log)
    log_factors(ready.study_of(log), ready.beta, np.array(ready.settings.residual_std))
    del log
    gc.collect()
    assert gone() is None


@cache
def names() -> list[tuple[str, str]]:
    return [(f"r{k % 5}", f"log{k}") for k in range(60)]


def test_the_draw_does_not_depend_on_the_order() -> None:
    first = draw_logs(names(), lambda x: x[0], lambda x: x[1], 8)
    assert draw_logs(names()[::-1], lambda x: x[0], lambda x: x[1], 8) == first
    assert len({robot for robot, _ in first[:5]}) == 5, "every robot is drawn once before one is drawn again"


def test_a_run_folder_contains_the_results(once: tuple[Path, FleetOutcome], tmp_path: Path) -> None:
    folder = once[1].save(tmp_path / "run")
    assert (folder / "settings" / "planar.json").exists()
    assert isinstance(LogFactors.from_bytes(once[1].factors.logs[0].to_bytes()), LogFactors)
    assert read_fleet(once[0] / "logs").robots == {"arm0": "planar", "arm1": "planar", "arm2": "planar"}
